//! Measuring jobs that hang in MPI_Finalize, after their last result, as MPICH 4.0 over UCX sometimes does.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cluster::{Labs, TOOL, output_within};
use crate::common::job::wait_until;
use crate::common::library_directory;

/// Stands in for an MPI that never leaves MPI_Finalize, nor ends when it is asked to.
const STAYS: &str = "\
#include <signal.h>
#include <unistd.h>
int MPI_Finalize(void) { signal(SIGTERM, SIG_IGN); for (;;) pause(); }
";

#[test]
fn a_job_that_hangs_after_its_last_result_is_ended_and_its_results_are_kept() {
    let labs = Labs::new();
    let stays = compile(labs.directory());
    let variable = format!("LD_PRELOAD={}", stays.display());
    let bench = |mpi: &str, place: [&str; 2]| {
        let file = labs.directory().join(mpi);
        let words = [
            "bench",
            "--mpi",
            mpi,
            "--variants",
            "stock",
            "--sizes",
            "1KiB",
            "--time",
            "1s",
            "--launches",
            "1",
        ];
        let output = ["--env", &variable, "--json", file.to_str().unwrap()];
        said(&labs, &[&words[..], &place, &output].concat());
        let written = fs::read_to_string(&file).unwrap();
        assert!(written.contains("\"bytes\":1024"), "{written}");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| bench("openmpi", ["-n", "2"]));
        scope.spawn(|| bench("mpich", ["--lab", "hosts=2,rate=20mbit"]));
        scope.spawn(|| {
            let words = ["measure", "--mpi", "mpich", "-n", "2", "--sizes", "1KiB..4KiB", "--time", "1s"];
            // What ranks share is measured by a job of its own, which would hang, too.
            let options = ["--force", "--no-sharing", "--env", &variable];
            let result = said(&labs, &[&words[..], &options].concat());
            assert!(result.contains("\"classes\""), "{result}");
        });
    });
    // They have been killed: what waits for a processor still has to die.
    wait_until("no process has it", || processes_with(&stays).is_empty());
}

/// The standard output of a run of the tool that succeeds and says that it ended the job.
fn said(labs: &Labs, words: &[&str]) -> String {
    let mut command = Command::new(TOOL);
    command.args(words).env("POLYCAST_LAB_DIRECTORY", labs.directory());
    command.env("POLYCAST_LIBDIR", library_directory());
    let output = output_within(&mut command, Duration::from_secs(240));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {}\n{errors}", output.status);
    assert_eq!(errors.matches("had not ended 10 s after its last result").count(), 1, "{words:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn compile(directory: &Path) -> PathBuf {
    let (source, object) = (directory.join("stays.c"), directory.join("stays.so"));
    fs::write(&source, STAYS).unwrap();
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&object, &source]).status().unwrap();
    assert!(made.success());
    object
}

/// Those that have this object mapped.
fn processes_with(object: &Path) -> Vec<String> {
    let name = object.to_string_lossy();
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    let is_process = |entry: &std::ffi::OsString| entry.to_string_lossy().bytes().all(|c| c.is_ascii_digit());
    let maps =
        |pid: &OsStr| fs::read_to_string(Path::new("/proc").join(pid).join("maps")).unwrap_or_default();
    let with_it = processes.filter(is_process).filter(|pid| maps(pid).contains(&*name));
    with_it.map(|pid| pid.to_string_lossy().into_owned()).collect()
}
