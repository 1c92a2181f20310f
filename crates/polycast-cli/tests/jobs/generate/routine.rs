//! A generated routine, and test programs with it in place of the library's `MPI_Bcast`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::checkout;
use crate::common::job::Job;
use crate::common::mpi::Mpi;

/// A slow network without a cost per message: trees are chosen from a few thousand bytes on, chains for more.
/// `near.json` has a shorter latency, so that chains are chosen already for a few hundred.
const PARAMETERS: &str = r#"{"format":"polycast-parameters","version":1,
"measured":{"when":"2026-11-22T03:00:00Z","where":"nowhere","how":"made up"},
"classes":{"same-switch":{"latency":[POINTS_0],"gap":[POINTS_1]}}}"#;

/// A folder with a topology and what is made from it.
pub struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    pub fn new(topology: &str) -> Workshop {
        let workshop = Workshop { folder: tempfile::tempdir().expect("a temporary folder") };
        workshop.write("cluster.conf", topology);
        let points = |fixed: u32, per_byte: u32| {
            let point = |bytes: u32| {
                let ns = fixed + per_byte * bytes;
                format!(r#"{{"bytes":{bytes},"ns":{ns}.0,"low":{ns}.0,"high":{ns}.0,"samples":1}}"#)
            };
            format!("{},{}", point(1), point(1000))
        };
        for (name, latency_ns) in [("network.json", 100_000), ("near.json", 10_000)] {
            let text = PARAMETERS.replace("POINTS_0", &points(latency_ns, 0));
            workshop.write(name, &text.replace("POINTS_1", &points(0, 100)));
        }
        workshop
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.file(name), text).expect("a writable temporary folder");
    }

    /// `polycast generate` in the folder.
    pub fn generate(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_polycast"));
        command.current_dir(&self.folder).args(["generate", "--topology", "cluster.conf"]).args(arguments);
        command.env("SOURCE_DATE_EPOCH", "0").output().expect("the tool can be started")
    }

    /// Makes `bcast.c`, and gives its text.
    pub fn make(&self, arguments: &[&str]) -> String {
        let output = self.generate(&[arguments, &["-o", "bcast.c"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read_to_string(self.file("bcast.c")).expect("the routine was written")
    }

    /// Fails unless `bcast.c` compiles without a warning. The object's calls of MPI go through `stand_in.c`.
    pub fn compile(&self, mpi: Mpi) -> PathBuf {
        let object = self.file(&format!("bcast.{}.o", mpi.name()));
        let stand_ins = [
            "Get_processor_name=stand_in_name",
            "Bcast=stand_in_bcast",
            "Irecv=stand_in_irecv",
            "Isend=stand_in_isend",
        ];
        let mut command = compiler(mpi);
        command.args(stand_ins.map(|stand_in| format!("-DPMPI_{stand_in}")));
        command
            .args(["-std=c17", "-Wpedantic", "-Wshadow", "-Wconversion", "-fPIC", "-c"])
            .arg(self.file("bcast.c"));
        succeeds(command.arg("-o").arg(&object));
        object
    }

    /// The routine as a shared object.
    pub fn share(&self, mpi: Mpi) -> PathBuf {
        let object = self.compile(mpi);
        let shared = self.file(&format!("bcast.{}.so", mpi.name()));
        let mut command = compiler(mpi);
        command.args(["-std=gnu17", "-fPIC", "-shared"]).arg(object).arg(source("stand_in"));
        succeeds(command.arg("-o").arg(&shared));
        shared
    }

    /// A program of `tests/mpi` with the routine linked before the library.
    pub fn program(&self, mpi: Mpi, name: &str) -> PathBuf {
        let program = self.file(&format!("{name}.{}", mpi.name()));
        let mut command = compiler(mpi);
        command.args(["-std=gnu17", "-Wno-stringop-overflow", "-pthread"]);
        command.args([
            source(name),
            source("check"),
            source("stand_in"),
            self.file(&format!("bcast.{}.o", mpi.name())),
        ]);
        succeeds(command.arg("-o").arg(&program));
        program
    }

    /// A job of this program whose ranks find themselves on these hosts.
    pub fn job(&self, mpi: Mpi, name: &str, hosts: &[&str]) -> Job {
        Job::of(mpi, hosts.len(), vec![self.program(mpi, name).into()])
            .variable("PRETENDED_HOSTS", &hosts.join(","))
    }
}

fn source(name: &str) -> PathBuf {
    checkout().join("tests/mpi").join(name).with_extension("c")
}

fn compiler(mpi: Mpi) -> Command {
    let mut command = Command::new(format!("mpicc.{}", mpi.name()));
    command.args(["-O2", "-Wall", "-Wextra", "-Werror"]);
    command
}

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Fails unless the project's style has nothing to change in the file.
pub fn is_formatted(file: &Path) {
    let style = format!("--style=file:{}", checkout().join(".clang-format").display());
    succeeds(Command::new("clang-format").args(["--dry-run", "--Werror", &style]).arg(file));
}
