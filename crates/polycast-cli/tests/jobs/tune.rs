//! `polycast tune` end to end, in a lab.

use std::fs;
use std::process::Command;

use crate::bench::text;
use crate::common::library_directory;
use crate::common::mpi::Mpi;
use crate::job::{LabJob, lab};

/// The table is one, chooses what its map says, and the next run goes on where this one ended.
#[test]
#[ignore = "make test-all: a minute"]
fn tuning_writes_a_table_that_chooses_what_it_found() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("cluster.toml");
    let tune = || {
        let words = [
            "tune",
            "--lab",
            "hosts=4,rate=20mbit",
            "--sizes",
            "1KiB,64KiB",
            "--budget",
            "60s",
            "--time",
            "60ms",
            "-o",
        ];
        let mut command = Command::new(env!("CARGO_BIN_EXE_polycast"));
        command.args(words).arg(&table).env("POLYCAST_LIBDIR", library_directory()).output().unwrap()
    };
    let output = tune();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let map = text(&output.stdout);
    let tool = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_polycast")).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let file = table.to_str().unwrap();
    tool(&["table", "check", file]);
    for line in map.lines().filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit())) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let said = tool(&["explain", "--table", file, "--ranks", "4", "--nodes", "4", "--bytes", words[0]]);
        assert!(said.contains(words[1]), "{line}\n{said}");
    }
    let found = fs::read_to_string(folder.path().join("cluster.toml.found")).unwrap();
    assert!(found.lines().count() >= 2, "{found}");
    assert!(tune().status.success());
    // The first run may have had too little time for the sizes between.
    let again = fs::read_to_string(folder.path().join("cluster.toml.found")).unwrap();
    assert!(again.starts_with(&found), "{again}");
}

/// A job measures, the next one reads: the bytes are right, and it says so.
#[test]
fn a_job_measures_for_itself_and_the_next_one_reads() {
    let Some(labs) = lab(3, &[]) else { return };
    let cache = tempfile::tempdir().unwrap();
    let said = |budget: &str| {
        let job = LabJob::stock(&labs, Mpi::OpenMpi, 3, "bcast_stress").arguments(&["40"]).polycast();
        let job = job.variable("POLYCAST_TUNE", budget);
        job.variable("POLYCAST_CACHE", cache.path().to_str().unwrap()).expect_ok().stderr
    };
    let first = said("1s");
    assert!(first.contains("report: tuned: "), "{first}");
    let second = said("on");
    assert!(
        second.contains("report: tuned by an earlier job: ") && !second.contains("report: tuned: "),
        "{second}"
    );
    labs.succeeds(&["down", "--all"]);
}
