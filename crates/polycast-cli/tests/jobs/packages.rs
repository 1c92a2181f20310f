//! What others build and install with: the files for pkg-config and CMake, Debian's packages, the sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cluster::output_within;
use crate::common::checkout;
use crate::common::job::LIMIT;
use crate::install::{in_front_of_path, text};

const PROGRAM: &str = r#"
#include <mpi.h>
#include <polycast-program.h>
#include <stdio.h>
int main(int argc, char **argv) {
    static unsigned char bytes[100 << 10];
    char choice[100];
    int rank, is_wrong = 0, sum = 0;
    if (polycast_configure("POLYCAST_BCAST", "chain:segment=4KiB")) return 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; rank == 0 && i < (int)sizeof bytes; i++) bytes[i] = (unsigned char)(i * 7 + 1);
    MPI_Bcast(bytes, sizeof bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < (int)sizeof bytes; i++) is_wrong |= bytes[i] != (unsigned char)(i * 7 + 1);
    MPI_Allreduce(&is_wrong, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    int answer = polycast_choice_of("bcast", POLYCAST_COMM(MPI_COMM_WORLD), sizeof bytes, choice, sizeof choice);
    if (rank == 0) printf("%d wrong, %d %s\n", sum, answer, choice);
    MPI_Finalize();
    return 0;
}
"#;

pub fn succeeds(command: &mut Command, limit: Duration) -> String {
    let output = output_within(command, limit);
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, text(&output));
    text(&output)
}

/// What the file for pkg-config says, but for pkg-config, which not every machine has.
fn flags(installed: &Path) -> Vec<String> {
    let folder = installed.join("lib/pkgconfig");
    let file = fs::read_to_string(folder.join("polycast.pc")).unwrap();
    let value = |name: &str| {
        let line = file.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}"));
        line.trim().replace("${libdir}", "${prefix}/lib/polycast").replace("${prefix}", "${pcfiledir}/../..")
    };
    let all = format!("{} {}", value("Cflags:"), value("Libs:"));
    all.replace("${pcfiledir}", folder.to_str().unwrap()).split(' ').map(str::to_owned).collect()
}

#[test]
fn a_program_that_is_linked_with_it_needs_no_variables() {
    let folder = tempfile::tempdir().unwrap();
    // As if somebody had copied the installation on.
    let installed = folder.path().join("elsewhere");
    let stage = checkout().join("build/stage");
    succeeds(Command::new("cp").arg("-r").args([&stage, &installed]), LIMIT);
    fs::write(folder.path().join("a.c"), PROGRAM).unwrap();
    for family in ["openmpi", "mpich"] {
        let program = folder.path().join(family);
        let mut compiler = Command::new(format!("mpicc.{family}"));
        compiler.arg("-o").args([&program, &folder.path().join("a.c")]).args(flags(&installed));
        succeeds(&mut compiler, LIMIT);
        let mut job = Command::new(format!("mpiexec.{family}"));
        job.args(["-n", "2"]).env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        job.env("OMPI_MCA_rmaps_base_oversubscribe", "1").arg(&program);
        let said = succeeds(&mut job, LIMIT);
        assert!(said.contains("0 wrong, 0 chain:segment=4KiB"), "{family}: {said}");
    }
}

#[test]
#[ignore = "make test-all: needs CMake"]
fn cmake_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.c"), PROGRAM).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let lists = format!(
        "cmake_minimum_required(VERSION 3.16)\nproject(a C)\nfind_package(MPI REQUIRED)\n\
         find_package(polycast {version} REQUIRED)\nadd_executable(a a.c)\n\
         target_link_libraries(a PRIVATE polycast::polycast MPI::MPI_C)\n"
    );
    fs::write(folder.path().join("CMakeLists.txt"), lists).unwrap();
    let prefix = format!("-DCMAKE_PREFIX_PATH={}", checkout().join("build/stage").display());
    let build = folder.path().join("build");
    let mut configure = Command::new("cmake");
    configure
        .args([&prefix, "-DMPI_C_COMPILER=mpicc.openmpi", "-S"])
        .arg(folder.path())
        .arg("-B")
        .arg(&build);
    succeeds(&mut configure, LIMIT);
    succeeds(Command::new("cmake").arg("--build").arg(&build), LIMIT);
    let mut job = Command::new("mpiexec.openmpi");
    job.args(["--allow-run-as-root", "--oversubscribe", "-n", "2"]).arg(build.join("a"));
    let said = succeeds(&mut job, LIMIT);
    assert!(said.contains("0 wrong, 0 chain:segment=4KiB"), "{said}");
}

/// The packages, made into a folder of their own.
fn packages(folder: &Path) -> Vec<PathBuf> {
    let mut build = Command::new(checkout().join("packaging/debian/build.sh"));
    build.arg(checkout().join("build/stage")).arg(folder);
    succeeds(&mut build, LIMIT);
    let mut made: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    made.sort();
    assert_eq!(made.len(), 3, "{made:?}");
    made
}

#[test]
fn no_package_is_made_whose_dependencies_are_not_known() {
    let front = in_front_of_path(&[("dpkg-shlibdeps", "echo cannot find library libmpi.so.40 >&2; exit 2")]);
    let folder = tempfile::tempdir().unwrap();
    let mut build = Command::new(checkout().join("packaging/debian/build.sh"));
    build.arg(checkout().join("build/stage")).arg(folder.path());
    build.env("PATH", format!("{}:{}", front.path().display(), std::env::var("PATH").unwrap()));
    let output = output_within(&mut build, LIMIT);
    assert!(!output.status.success() && text(&output).contains("cannot find library"), "{}", text(&output));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// What is no checkout, or another's, has no archive.
#[test]
fn without_git_no_sources_are_packed() {
    let front = in_front_of_path(&[("git", "[ $1 = status ] || exit 128")]);
    let folder = tempfile::tempdir().unwrap();
    let parts = ["scripts", "Cargo.toml"].map(|part| checkout().join(part));
    succeeds(Command::new("cp").arg("-r").args(parts).arg(folder.path()), LIMIT);
    let mut dist = Command::new(folder.path().join("scripts/dist.sh"));
    dist.env("PATH", format!("{}:{}", front.path().display(), std::env::var("PATH").unwrap()));
    let output = output_within(&mut dist, LIMIT);
    assert!(!output.status.success(), "{}", text(&output));
    assert_eq!(fs::read_dir(folder.path().join("build")).unwrap().count(), 0);
}

/// Runs a line of the shell in another system, whose processes end with it.
pub fn inside(root: &Path, line: &str) -> String {
    let proc = format!("--mount-proc={}", root.join("proc").display());
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", &proc, "chroot"]);
    command.arg(root).args(["sh", "-c", line]).env("DEBIAN_FRONTEND", "noninteractive");
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    succeeds(&mut command, Duration::from_secs(900))
}

#[test]
#[ignore = "make test-all: needs lintian, debootstrap, root, and Debian's packages"]
fn debian_packages_are_clean_and_serve_in_a_fresh_system() {
    let folder = tempfile::tempdir().unwrap();
    let made = packages(folder.path());
    let mut lintian = Command::new("lintian");
    lintian.args(["--fail-on", "error,warning", "--allow-root"]).args(&made);
    let said = succeeds(&mut lintian, LIMIT);
    assert!(!said.contains("W: ") && !said.contains("E: "), "{said}");

    let root = tempfile::tempdir().unwrap();
    let mut bootstrap = Command::new("debootstrap");
    bootstrap.args(["--variant=minbase", "bookworm"]).arg(root.path());
    succeeds(&mut bootstrap, Duration::from_secs(900));
    for package in &made {
        fs::copy(package, root.path().join("tmp").join(package.file_name().unwrap())).unwrap();
    }
    let inside = |line: &str| inside(root.path(), line);
    inside("apt-get install -y --no-install-recommends /tmp/polycast_*.deb /tmp/polycast-mpich_*.deb mpich");
    let version = inside("polycast --version");
    assert_eq!(version.trim(), format!("polycast {}", env!("CARGO_PKG_VERSION")));
    // The measuring program checks every byte.
    let measured =
        inside("polycast bench --mpi mpich -n 2 --variants stock,chain --sizes 64KiB --time 300ms");
    assert!(measured.contains("chain"), "{measured}");
    inside(
        "apt-get purge -y polycast polycast-mpich && test ! -e /usr/lib/polycast && test ! -e /usr/share/polycast",
    );
}

/// What `make dist` packs: at least its manifest is whole.
#[test]
#[ignore = "make test-all: needs a checkout with its history"]
fn the_sources_are_packed_whole() {
    let folder = tempfile::tempdir().unwrap();
    succeeds(&mut Command::new(checkout().join("scripts/dist.sh")), LIMIT);
    let archive = checkout().join(format!("build/polycast-{}.tar.gz", env!("CARGO_PKG_VERSION")));
    succeeds(Command::new("tar").arg("xzf").arg(&archive).arg("-C").arg(folder.path()), LIMIT);
    let top = folder.path().join(format!("polycast-{}", env!("CARGO_PKG_VERSION")));
    let mut metadata = Command::new("cargo");
    metadata.args(["metadata", "--locked", "--no-deps", "--format-version", "1"]).current_dir(&top);
    assert!(succeeds(&mut metadata, LIMIT).contains("polycast-runtime"));
    for file in ["Makefile", "include/polycast.h", "packaging/polycast.pc.in", ".ci/run"] {
        assert!(top.join(file).exists(), "{file}");
    }
}

/// The names that Spack's documentation gives to recipes, before 1.0 and since; what they make is printed.
const SPACK: &str = r#"
import runpy, sys, types
recipe, layout = sys.argv[1:]
def module(name, **names):
    made = types.ModuleType(name)
    vars(made).update(names)
    sys.modules[name] = made
class MakefilePackage: pass
def directive(*words, **named): pass
def make(*words): print(" ".join(words))
old = {"MakefilePackage": MakefilePackage} if layout == "old" else {}
module("spack")
module("spack.package", license=directive, version=directive, variant=directive, depends_on=directive, make=make, **old)
if layout == "new":
    for name in ["spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"]: module(name)
    module("spack_repo.builtin.build_systems.makefile", MakefilePackage=MakefilePackage)
class Path(str):
    include = "/slurm/include"
class Spec(dict):
    def __contains__(self, what): return what == "+slurm" or dict.__contains__(self, what)
spec = Spec(mpi=types.SimpleNamespace(mpicc="/usr/bin/mpicc.openmpi"), slurm=types.SimpleNamespace(prefix=Path("/slurm")))
package = runpy.run_path(recipe)["Polycast"]()
package.build(spec, Path("/prefix"))
package.install(spec, Path("/prefix"))
"#;

/// Spack itself is in none of the places that tests may fetch from.
#[test]
fn the_recipe_for_spack_makes_what_there_is_to_make() {
    let recipe = checkout().join("packaging/spack/package.py");
    for layout in ["old", "new"] {
        let mut python = Command::new("python3");
        let python = python.args(["-B", "-c", SPACK]).arg(&recipe).arg(layout);
        let made = succeeds(python, LIMIT);
        let expected = "build MPICC=/usr/bin/mpicc.openmpi\nspank SLURM_CFLAGS=-I/slurm/include\ninstall PREFIX=/prefix\n";
        assert_eq!(made, expected, "{layout}");
        for words in made.lines() {
            let mut make = Command::new("make");
            make.args(["--dry-run", "--directory"]).arg(checkout()).args(words.split(' '));
            succeeds(&mut make, LIMIT);
        }
    }
}
