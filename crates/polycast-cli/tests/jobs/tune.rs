//! `polycast tune` end to end, in a lab.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::bench::text;
use crate::common::job::wait_for;
use crate::common::library_directory;
use crate::common::mpi::Mpi;
use crate::doctor::descendants;
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
            "--shapes",
            "2,4",
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
    let said = text(&output.stderr);
    assert!(said.contains("polycast: measured beforehand, ") && said.contains("same-switch "), "{said}");
    let parameters = folder.path().join("cluster.toml.params.json");
    let map = text(&output.stdout);
    let tool = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_polycast")).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let file = table.to_str().unwrap();
    tool(&["table", "check", file]);
    tool(&["predict", "--params", parameters.to_str().unwrap(), "--ranks", "4"]);
    let mut ranks = "";
    for line in map.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [number, "ranks,", _, "nodes"] => ranks = number,
            // The grid of all shapes stands behind their lines.
            ["bcast", _, "ranks,", ..] => break,
            [size, best, ..] if size.starts_with(|c: char| c.is_ascii_digit()) => {
                let said =
                    tool(&["explain", "--table", file, "--ranks", ranks, "--nodes", ranks, "--bytes", size]);
                // Lines are broken where names are long.
                let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(words.contains(best) && words.contains("serves such calls"), "{line}\n{said}");
            }
            _ => {}
        }
    }
    assert_eq!(ranks, "4", "{map}");
    let svg = fs::read_to_string(folder.path().join("cluster.toml.svg")).unwrap();
    assert!(svg.contains("2 ranks, 2 nodes") && svg.contains("4 ranks, 4 nodes"), "{svg}");
    let found = fs::read_to_string(folder.path().join("cluster.toml.found")).unwrap();
    assert!(found.lines().count() >= 2, "{found}");
    let output = tune();
    assert!(output.status.success());
    assert!(text(&output.stderr).contains("as measured on "), "{}", text(&output.stderr));
    // The first run may have had too little time for the sizes between.
    let again = fs::read_to_string(folder.path().join("cluster.toml.found")).unwrap();
    assert!(again.starts_with(&found), "{again}");
}

/// Ways that are measured one launch after another are not each said to be interrupted.
#[test]
fn an_interrupted_search_says_so_once() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("cluster.toml");
    let words = ["tune", "--mpi", "openmpi", "-n", "2", "--sizes", "1MiB", "--exhaustive", "-o"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_polycast"));
    command.args(words).arg(&table).env("POLYCAST_LIBDIR", library_directory());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let tool = child.id() as i32;
    let program = |pid: &i32| fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let measures = || descendants(tool).iter().any(|pid| program(pid).ends_with("polycast-bench-openmpi"));
    if wait_for(&mut child, measures) {
        thread::sleep(Duration::from_secs(2));
        kill(Pid::from_raw(tool), Signal::SIGINT).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert_eq!(said.matches("interrupted").count(), 1, "{said}");
    assert!(said.contains("nothing is written") && !table.exists(), "{said}");
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

/// What is written for MPICH is its own tree, which it takes, with what the table says in it: its ranks call in the way of the file.
#[test]
#[ignore = "make test-all: a lab and MPICH"]
fn mpich_takes_the_file_that_is_made_of_its_own() {
    let Some(labs) = lab(3, &[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (table, file) = (folder.path().join("t.toml"), folder.path().join("mpich.json"));
    let rule = "version = 1\n[[rule]]\ncollective = \"bcast\"\nbytes = \"4KiB..\"\nuse = \"scatter-ring\"\n";
    fs::write(&table, rule).unwrap();
    let tool = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_polycast"));
        let output = command.args(words).env("POLYCAST_LIBDIR", library_directory()).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let [table, file] = [&table, &file].map(|path| path.to_str().unwrap());
    fs::write(file, tool(&["table", "convert", table, "--to", "mpich", "--ranks", "3"])).unwrap();
    assert!(tool(&["table", "check", file]).contains(" rules"));
    let shown = tool(&["table", "show", file]);
    assert!(shown.contains("comm_size<=3\n") && shown.contains("avg_msg_size<4096\n"), "{shown}");
    let job = LabJob::stock(&labs, Mpi::Mpich, 3, "bcast_stress").arguments(&["10"]);
    job.variable("MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE", file).expect_ok();
    labs.succeeds(&["down", "--all"]);
}
