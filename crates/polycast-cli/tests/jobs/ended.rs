//! Jobs that end early report all the same: a witness does it for rank 0 (docs/decisions/0075). How they end stays as it was.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::cluster::TOOL;
use crate::common::job::{LIMIT, Output, finish, place, timeout, wait_for, wait_until};
use crate::common::library_directory;
use crate::common::mpi::Mpi;

const ALL: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];
const RANKS: usize = 3;

/// Of broadcasts before the end. After as many calls as a power of two the witness knows of all.
const CALLS: std::ops::RangeInclusive<u64> = 16..=20;

/// `polycast run` of the program, with `options`; what is known to the witness is not to depend on what an earlier job found.
fn job(mpi: Mpi, options: &[&str], words: &[&str]) -> Command {
    let mut command = timeout(LIMIT);
    command.arg(TOOL).args(["run", "--mpi", mpi.name(), "-n", &RANKS.to_string()]).args(options).arg("--");
    command.arg(mpi.built("collective_killed")).args(words);
    command.env("POLYCAST_LIBDIR", library_directory());
    command.env("POLYCAST_CACHE", "off").env("POLYCAST_BCAST", "chain");
    command
}

/// The lines of the report.
fn lines(stderr: &str) -> Vec<&str> {
    stderr.lines().filter_map(|line| line.strip_prefix("polycast: report: ")).collect()
}

/// What is said of an end of which the launcher has heard before the witness could look.
const UNKNOWN: &str = "nobody knows how";

/// The report says how rank 0 ended, by one of these ways, and what it had counted.
fn expect_report(output: &Output, ways: &[&str]) {
    let said = lines(&output.stderr);
    let way = |way: &&str| format!("rank 0 ended without MPI_Finalize ({way}); its own numbers until then:");
    if !ways.iter().chain([&UNKNOWN]).any(|words| said.first() == Some(&way(words).as_str())) {
        output.fail(&format!("expected a report of an end by one of {ways:?}"));
    }
    let calls = said.iter().find_map(|line| line.strip_prefix("bcast chain calls=")?.split(' ').next());
    if !calls.and_then(|calls| calls.parse().ok()).is_some_and(|calls| CALLS.contains(&calls)) {
        output.fail(&format!("expected {CALLS:?} broadcasts by the chain"));
    }
}

/// With a report, ended as without polycast. MPICH's mpiexec names now one rank's status and now another's, by itself, too.
fn ends_as_bare(mpi: Mpi, words: &[&str]) -> Output {
    let (bare, _) = finish(&mut job(mpi, &["--off"], words));
    let (status, output) = finish(&mut job(mpi, &["--report"], words));
    let is_alike = mpi == Mpi::Mpich || status.code() == bare.code();
    if bare.success() || status.success() || !is_alike {
        output.fail(&format!("{words:?}: {status}, without polycast {bare}"));
    }
    output
}

/// What an mpiexec does to the other ranks; Open MPI's end by themselves where they miss their daemon first.
const BY_LAUNCHER: [&str; 3] = ["SIGTERM", "SIGKILL", "exit status 195"];

#[test]
fn a_fatal_error_of_any_rank_is_reported() {
    for mpi in ALL {
        let _place = place();
        let output = ends_as_bare(mpi, &["0", "error"]);
        let status = lines(&output.stderr)[0];
        assert!(status.contains("(exit status ") || status.contains("(SIG"), "{mpi:?}: {}", output.stderr);
        let by_itself = status.split(['(', ')']).nth(1).unwrap().to_owned();
        expect_report(&output, &[&by_itself]);
        expect_report(&ends_as_bare(mpi, &["2", "error"]), &[&BY_LAUNCHER[..], &[&by_itself]].concat());
    }
}

#[test]
fn an_exit_and_a_signal_of_any_rank_are_reported() {
    for mpi in ALL {
        let _place = place();
        expect_report(&ends_as_bare(mpi, &["0", "exit"]), &["exit status 3"]);
        expect_report(&ends_as_bare(mpi, &["1", "exit"]), &BY_LAUNCHER);
        expect_report(&ends_as_bare(mpi, &["0", "signal"]), &["SIGABRT"]);
        expect_report(&ends_as_bare(mpi, &["1", "signal"]), &BY_LAUNCHER);
    }
}

/// Starts a job that waits for ever, and waits until all ranks do.
fn waiting(mut command: Command, folder: &Path) -> Child {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let all_wait = || (0..RANKS).all(|rank| folder.join(format!("rank-{rank}")).exists());
    assert!(wait_for(&mut child, all_wait), "{:?}", child.wait_with_output());
    child
}

/// The number of a rank's process.
fn process(folder: &Path, rank: usize) -> Pid {
    Pid::from_raw(fs::read_to_string(folder.join(format!("rank-{rank}"))).unwrap().trim().parse().unwrap())
}

fn said(child: Child) -> Output {
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success());
    Output {
        command: "a job that was ended".to_owned(),
        stdout: String::new(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// As a batch system does at the end of a job's time, to the launcher or to ranks; the second signal gives no time for anything.
#[test]
fn who_is_ended_by_a_signal_is_reported() {
    for mpi in ALL {
        for (of, signal) in [
            (None, Signal::SIGTERM),
            (Some(0), Signal::SIGTERM),
            (Some(1), Signal::SIGTERM),
            (Some(0), Signal::SIGKILL),
        ] {
            let _place = place();
            let folder = tempfile::tempdir().unwrap();
            let words = ["0", "wait", folder.path().to_str().unwrap()];
            let child = waiting(job(mpi, &["--report"], &words), folder.path());
            // `timeout` hands it on to the tool, and that to the launcher.
            let whom = of.map_or(Pid::from_raw(child.id() as i32), |rank| process(folder.path(), rank));
            kill(whom, signal).unwrap();
            let output = said(child);
            match of {
                Some(0) => expect_report(&output, &[signal.as_str()]),
                _ => expect_report(&output, &BY_LAUNCHER),
            }
        }
    }
}

/// Without the tool: the file is there, says how it ended, and `polycast report` shows it.
#[test]
fn a_file_is_written_under_any_launcher() {
    for mpi in ALL {
        let _place = place();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.json");
        let mut command = timeout(LIMIT);
        mpi.mpiexec(&mut command, RANKS);
        for (name, value) in [
            ("LD_PRELOAD", mpi.preload().to_str().unwrap()),
            ("POLYCAST_REPORT", file.to_str().unwrap()),
            ("POLYCAST_BCAST", "chain"),
        ] {
            command.args(mpi.set_variable(name, value));
        }
        command.arg(mpi.built("collective_killed")).args(["0", "wait"]).arg(folder.path());
        let mut child = waiting(command, folder.path());
        kill(process(folder.path(), 0), Signal::SIGKILL).unwrap();
        assert!(wait_for(&mut child, || file.exists()) || file.exists(), "{:?}", child.wait_with_output());
        let _ = child.wait();
        let report: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!((&report["ended_by"], &report["job"]["ranks"]), (&"SIGKILL".into(), &RANKS.into()));
        assert!(report["rank_0"]["served"]["calls"].as_u64().is_some_and(|calls| CALLS.contains(&calls)));
        let shown = Command::new(TOOL).arg("report").arg(&file).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.contains("without MPI_Finalize: SIGKILL"), "{shown}");
    }
}

/// The program has no child, thread or descriptor more, and its witness goes with it.
#[test]
fn a_witness_is_nothing_of_the_program() {
    for mpi in ALL {
        let _place = place();
        let folder = tempfile::tempdir().unwrap();
        let words = ["0", "wait", folder.path().to_str().unwrap()];
        let child = waiting(job(mpi, &["--report"], &words), folder.path());
        let ranks = [0, 1].map(|rank| process(folder.path(), rank));
        let of = |rank: Pid, what: &str| format!("/proc/{rank}/{what}");
        let count = |rank: Pid, what: &str| fs::read_dir(of(rank, what)).unwrap().count();
        let children = |rank: Pid| fs::read_to_string(of(rank, &format!("task/{rank}/children"))).unwrap();
        let [first, second] = ranks.map(|rank| (count(rank, "task"), children(rank)));
        assert_eq!(first, second, "{mpi:?}");
        let is_mapped =
            |rank: Pid| fs::read_to_string(of(rank, "maps")).unwrap().contains("polycast-witness");
        assert_eq!(ranks.map(is_mapped), [true, false], "{mpi:?}");
        assert!(witness_of(ranks[0]).is_some(), "rank 0 has a witness");
        assert_eq!(witness_of(ranks[1]), None);
        kill(ranks[0], Signal::SIGTERM).unwrap();
        wait_until("the witness goes", || witness_of(ranks[0]).is_none());
        let _ = child.wait_with_output();
    }
}

/// The process whose words name a rank's.
fn witness_of(rank: Pid) -> Option<String> {
    let rank = rank.to_string();
    fs::read_dir("/proc").unwrap().find_map(|process| {
        let process = process.ok()?;
        let words = fs::read(process.path().join("cmdline")).ok()?;
        let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
        let is_it = words.first()?.ends_with(b"/polycast-witness") && words.get(3) == Some(&rank.as_bytes());
        is_it.then(|| process.file_name().to_string_lossy().into_owned())
    })
}
