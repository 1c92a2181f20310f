//! MPIs that Debian does not have, from PyPI: Open MPI 5, MPICH 5 with its own interface and the standard's, and Intel MPI with both. The C programs of
//! `tests/mpi` run under `polycast run` on each, and across the hosts of a lab.
//!
//! PyPI has Intel's libraries and launcher and no compiler: it runs what was built with MPICH's, whose interfaces it shares.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cluster::TOOL;
use crate::common::job::{LIMIT, Output, alone, finish, timeout};
use crate::common::{cannot_run, checkout, library_directory};
use crate::job::{LAB, lab};
use tempfile::TempDir;

struct OtherMpi {
    name: &'static str,
    /// Below build/venv-mpi4py.
    environment: &'static str,
    /// That its programs and, if it is the first of its family, its door are built with.
    mpicc: &'static str,
    family: &'static str,
    /// As `polycast info` and `run` call it.
    title: &'static str,
    variables: &'static [(&'static str, &'static str)],
    /// Programs that it fails without polycast, too.
    fails: &'static [&'static str],
}

/// Ranks that wait give way: two cores have more ranks than that.
const THROTTLED: [(&str, &str); 2] =
    [("MPIR_CVAR_CH4_PROGRESS_THROTTLE", "1"), ("MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT", "16")];

const OPEN_MPI_5: OtherMpi = OtherMpi {
    name: "openmpi-5",
    environment: "openmpi5",
    mpicc: "openmpi5/bin/mpicc",
    family: "openmpi",
    title: "Open MPI 5.",
    variables: &[],
    fails: &[],
};
const MPICH_5: OtherMpi = OtherMpi {
    name: "mpich-5",
    environment: "mpich",
    mpicc: "mpich/bin/mpicc",
    family: "mpich",
    title: "MPICH 5.",
    variables: &THROTTLED,
    // 5.0.2 calls the error handler for a wrong root, and returns that all is well.
    fails: &["bcast_errors", "collective_errors"],
};
const MPICH_5_ABI: OtherMpi =
    OtherMpi { name: "mpich-5-abi", mpicc: "mpich/bin/mpicc_abi", family: "abi", ..MPICH_5 };
const INTEL: OtherMpi = OtherMpi {
    name: "intel",
    environment: "intel",
    title: "Intel MPI ",
    // Its own library goes before the one that the program was linked with.
    variables: &[("LD_LIBRARY_PATH", "intel/lib"), ("I_MPI_FABRICS", "shm")],
    // 2021.18 mixes up an allgather whose ranks send one derived type and receive another.
    fails: &["collective_values"],
    ..MPICH_5
};
/// Its errors are fatal where the program's handler would return them.
const INTEL_ABI: OtherMpi = OtherMpi {
    name: "intel-abi",
    mpicc: "mpich/bin/mpicc_abi",
    family: "abi",
    fails: &["bcast_errors", "collective_values"],
    ..INTEL
};

/// With how many ranks, and arguments.
const PROGRAMS: [(&str, u32, &[&str]); 9] = [
    ("bcast_roots", 4, &[]),
    ("bcast_datatypes", 3, &[]),
    ("bcast_types", 3, &[]),
    ("bcast_mixed", 3, &[]),
    ("bcast_errors", 3, &[]),
    ("bcast_communicators", 3, &["50"]),
    ("collective_values", 3, &["1"]),
    ("collective_errors", 3, &[]),
    ("collective_nonblocking", 3, &[]),
];

fn environments() -> PathBuf {
    checkout().join("build/venv-mpi4py")
}

/// Fetches what is not there; `None` if it cannot be had.
fn prepare() -> Option<()> {
    let script = checkout().join("tests/mpi/prepare-mpi4py.sh");
    let prepared = Command::new(script).arg("all").output().expect("the script is in the checkout");
    if !prepared.status.success() {
        cannot_run(&String::from_utf8_lossy(&prepared.stderr));
        return None;
    }
    Some(())
}

fn succeeds(command: &mut Command) {
    let output = command.output().expect("it is there");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl OtherMpi {
    fn launcher(&self) -> PathBuf {
        environments().join(self.environment).join("bin/mpiexec")
    }

    /// The library with a door for this MPI's family, and the programs.
    fn build(&self) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mpicc = environments().join(self.mpicc);
        let from = library_directory();
        succeeds(Command::new("cp").arg("-r").arg(from.join(".")).arg(folder.path()));
        let door = format!("doors/polycast-door-{}.so", self.family);
        if !folder.path().join(&door).exists() {
            succeeds(Command::new(checkout().join("doors/build.sh")).args([folder.path(), &mpicc]));
        }
        assert!(folder.path().join(&door).exists());
        let mut make = Command::new("make");
        make.args(["--silent", "-C"]).arg(checkout().join("tests/mpi"));
        make.arg(format!("MPICC={}", mpicc.display())).arg(format!("OUT={}", folder.path().display()));
        succeeds(make.args(PROGRAMS.iter().map(|(program, ..)| folder.path().join(program))));
        folder
    }

    /// `polycast run` or `polycast lab run`, up to the program's own arguments.
    fn command(&self, built: &Path, verb: &[&str], ranks: u32, variables: &[(&str, &str)]) -> Command {
        let mut command = timeout(LIMIT);
        command.arg(TOOL).args(verb).arg("--mpi").arg(self.launcher()).args(["-n", &ranks.to_string()]);
        for name in ["OMPI", "PRTE"] {
            command.env(format!("{name}_ALLOW_RUN_AS_ROOT"), "1");
            command.env(format!("{name}_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
        }
        for (name, value) in self.variables.iter().chain(variables) {
            let path = environments().join(value).to_string_lossy().into_owned();
            let value = if *name == "LD_LIBRARY_PATH" { path } else { (*value).to_owned() };
            match verb[0] {
                "lab" => command.args(["--env", &format!("{name}={value}")]),
                _ => command.env(name, value),
            };
        }
        command.env("POLYCAST_LIBDIR", built).env("POLYCAST_CACHE", "off");
        command.arg("--");
        command
    }
}

const CHAIN: &str = "chain:segment=1KiB";
const FORCED: [(&str, &str); 3] =
    [("POLYCAST_REPORT", "1"), ("POLYCAST_BCAST", CHAIN), ("POLYCAST_ALLREDUCE", "recursive-doubling")];

fn end_well(mut command: Command, program: &str) -> Output {
    let (status, output) = finish(&mut command);
    if !status.success() {
        output.fail(&status.to_string());
    }
    output.expect_ok(program)
}

fn expect_served(output: &Output, algorithm: &str) {
    if output.report().served_by(algorithm) == 0 {
        output.fail(&format!("{algorithm} served no broadcast"));
    }
}

/// Recognized, and the same with and without polycast on one node.
fn conforms(mpi: &OtherMpi) {
    let Some(()) = prepare() else { return };
    let built = mpi.build();
    let launcher = mpi.launcher();
    let mut info = Command::new(TOOL);
    let known = info.arg("info").env("PATH", launcher.parent().unwrap()).output().unwrap();
    let known = String::from_utf8_lossy(&known.stdout).into_owned();
    assert!(known.contains(mpi.title), "{}: {known}", mpi.name);
    let _alone = alone();
    for (program, ranks, arguments) in PROGRAMS.into_iter().filter(|(name, ..)| !mpi.fails.contains(name)) {
        let run = |verb: &[&str], variables: &[(&str, &str)]| {
            let mut command = mpi.command(built.path(), verb, ranks, variables);
            command.arg(built.path().join(program)).args(arguments);
            end_well(command, program)
        };
        let bare = run(&["run", "--off"], &[]);
        let output = run(&["run"], &FORCED);
        assert_eq!(output.lines_of("ERR"), bare.lines_of("ERR"), "{program} under {}", mpi.name);
        if program.starts_with("bcast_") {
            expect_served(&output, CHAIN);
        }
    }
}

/// Two programs across three hosts, by multicast.
fn conforms_in_a_lab(mpi: &OtherMpi) {
    let (Some(()), Some(labs)) = (prepare(), lab(3, &[])) else { return };
    let built = mpi.build();
    let _alone = alone();
    let preload = built.path().join("libpolycast-mpi.so").to_string_lossy().into_owned();
    let variables = [
        ("LD_PRELOAD", preload.as_str()),
        ("POLYCAST_REPORT", "1"),
        ("POLYCAST_BCAST", "multicast-pull"),
        // See check.c.
        ("CHECK_PAUSE_MS", "400"),
    ];
    for program in ["bcast_roots", "bcast_mixed"] {
        let mut command = mpi.command(built.path(), &["lab", "run", "--lab", LAB], 3, &variables);
        command.env("POLYCAST_LAB_DIRECTORY", labs.directory());
        command.arg(built.path().join(program));
        expect_served(&end_well(command, program), "multicast-pull");
    }
    labs.succeeds(&["down", "--all"]);
}

macro_rules! under_each {
    ($($name:ident $mpi:expr;)*) => {
        $(mod $name {
            #[test]
            #[ignore = "make test-all: an MPI from PyPI"]
            fn on_one_node() {
                super::conforms(&$mpi);
            }
            #[test]
            #[ignore = "make test-all: an MPI from PyPI"]
            fn in_a_lab() {
                super::conforms_in_a_lab(&$mpi);
            }
        })*
    };
}

under_each!(
    open_mpi_5 super::OPEN_MPI_5;
    mpich_5 super::MPICH_5;
    mpich_5_abi super::MPICH_5_ABI;
    intel super::INTEL;
    intel_abi super::INTEL_ABI;
);
