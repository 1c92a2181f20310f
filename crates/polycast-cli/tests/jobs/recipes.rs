//! Recipes of `packaging/` by what reads them: rpm and rpmlint, rattler-build, EasyBuild, the reader of Apptainer's definitions.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::common::checkout;
use crate::common::job::LIMIT;
use crate::packages::succeeds;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Reads and renders the recipe; prints its name, version, source and what it needs.
const CONDA: &str = r#"
import sys
from rattler_build import Stage0Recipe
for variant in Stage0Recipe.from_file(sys.argv[1]).render():
    recipe = variant.recipe.to_dict()
    print(recipe["package"]["name"], recipe["package"]["version"], recipe["source"][0]["path"], *recipe["requirements"]["build"])
"#;

/// Reads the easyconfig; prints its name and version, and the parameters that nobody knows. Ends with how many lines are in bad style.
/// Its own command asks for a tool for modules first.
const EASYBUILD: &str = r#"
import sys
from easybuild.tools.options import set_up_configuration
set_up_configuration(args=["--allow-use-as-root-and-accept-consequences"], silent=True)
from easybuild.easyblocks.generic.configuremake import ConfigureMake
from easybuild.framework.easyconfig.default import DEFAULT_CONFIG
from easybuild.framework.easyconfig.parser import EasyConfigParser
from easybuild.framework.easyconfig.style import check_easyconfigs_style
parsed = EasyConfigParser(sys.argv[1]).get_config_dict()
print("read:", parsed["name"], parsed["version"], sorted(set(parsed) - set(DEFAULT_CONFIG) - set(ConfigureMake.extra_options())))
sys.exit(check_easyconfigs_style([sys.argv[1]]))
"#;

fn packaging(file: &str) -> PathBuf {
    checkout().join("packaging").join(file)
}

fn tool(name: &str) -> PathBuf {
    let script = checkout().join("tests/mpi/prepare-mpi4py.sh");
    succeeds(Command::new(script).arg("recipes"), Duration::from_secs(1200));
    checkout().join("build/venv-mpi4py/recipes/bin").join(name)
}

/// The lines in which files of packaging/ name the version are those of this one.
#[test]
fn recipes_are_of_this_version() {
    for (file, line) in [
        ("conda/recipe.yaml", format!("  version: \"{VERSION}\"")),
        ("rpm/polycast.spec", format!("Version:        {VERSION}")),
        (&format!("easybuild/polycast-{VERSION}-gompi-2025b.eb"), format!("version = '{VERSION}'")),
        (
            "apptainer/polycast.def",
            format!("    build/polycast-{VERSION}-linux-x86_64.tar.gz /opt/polycast.tar.gz"),
        ),
        ("spack/package.py", format!("    version(\"{VERSION}\")")),
    ] {
        let text = std::fs::read_to_string(packaging(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(text.lines().any(|found| found == line), "{file}: expected the line {line:?}");
    }
}

#[test]
#[ignore = "make test-all: needs rpm and rpmlint"]
fn the_spec_is_clean() {
    let mut lint = Command::new("rpmlint");
    lint.arg("--rpmlintrc")
        .args(["polycast.rpmlintrc", "polycast.spec"].map(|file| packaging("rpm").join(file)));
    let said = succeeds(&mut lint, LIMIT);
    assert!(said.contains("0 errors, 0 warnings"), "{said}");
    let mut parse = Command::new("rpmspec");
    parse.args(["--query", "--queryformat", "%{name} %{version}\n"]).arg(packaging("rpm/polycast.spec"));
    assert!(succeeds(&mut parse, LIMIT).contains(&format!("polycast {VERSION}\n")));
}

#[test]
#[ignore = "make test-all: packages from PyPI"]
fn the_recipe_for_conda_is_rendered() {
    let mut python = Command::new(tool("python"));
    let said = succeeds(python.args(["-c", CONDA]).arg(packaging("conda/recipe.yaml")), LIMIT);
    let expected = format!("polycast {VERSION} ../../build/polycast-{VERSION}.tar.gz gcc_linux-64");
    assert!(said.contains(&expected), "{said}");
}

#[test]
#[ignore = "make test-all: packages from PyPI"]
fn the_easyconfig_is_read_and_in_style() {
    let file = packaging(&format!("easybuild/polycast-{VERSION}-gompi-2025b.eb"));
    let mut python = Command::new(tool("python"));
    let said = succeeds(python.args(["-c", EASYBUILD]).arg(file), LIMIT);
    assert!(said.contains(&format!("read: polycast {VERSION} []")), "{said}");
}

#[test]
#[ignore = "make test-all: packages from PyPI"]
fn the_definition_for_apptainer_is_read() {
    let mut spython = Command::new(tool("spython"));
    spython.args(["recipe", "--parser", "singularity"]).arg(packaging("apptainer/polycast.def"));
    let said = succeeds(&mut spython, LIMIT);
    for line in ["FROM debian:bookworm-slim", "RUN tar -xzf /opt/polycast.tar.gz", "CMD exec polycast"] {
        assert!(said.contains(line), "{line}: {said}");
    }
}
