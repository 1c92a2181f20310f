//! Ranks that wait in MPI_Init for others which do not have polycast: they say so, once per node, and again.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::cluster::TOOL;
use crate::common::job::{Job, LIMIT, end, place, timeout, wait_for};
use crate::common::library_directory;
use crate::common::mpi::Mpi;
use crate::job::{LAB, lab};

const ALL: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

/// Runs the program behind it; the ranks that `without` names, a condition on `$rank`, have no polycast, the others write what they say to the file
/// behind that.
fn script(mpi: Mpi, without: &str) -> String {
    let rank = mpi.rank_variable();
    format!("rank=${rank}; if [ {without} ]; then unset LD_PRELOAD; exec \"$0\"; fi; exec \"$0\" 2>> \"$1\"")
}

/// Ends the job when each of these words stands in two lines of the file. All that it says.
fn said_twice(mut job: Child, file: &Path, words: &[&str]) -> String {
    let said = || fs::read_to_string(file).unwrap_or_default();
    let is_there = || {
        let lines = said();
        let times = lines.lines().filter(|line| words.iter().all(|words| line.contains(words))).count();
        times >= 2
    };
    let is_seen = wait_for(&mut job, is_there);
    if is_seen {
        end(&mut job);
    }
    assert!(is_seen, "expected two lines with {words:?}: {}", said());
    said()
}

fn waits(mpi: Mpi, ranks: usize, without: &str, words: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("said");
    let program = mpi.built("collective_mpmd").into();
    let command = vec!["sh".into(), "-c".into(), script(mpi, without).into(), program, file.clone().into()];
    let job = Job::of(mpi, ranks, command).polycast().variable("POLYCAST_TEST_PATIENCE", "1");
    let _place = place();
    said_twice(job.start(), &file, words)
}

#[test]
fn who_waits_says_so_once_per_node_and_again() {
    for mpi in ALL {
        let said = waits(mpi, 3, "$rank = 0", &["rank 1 of 3 on ", " (1 of the 3 on this node)"]);
        let preload = library_directory().canonicalize().unwrap().join("libpolycast-mpi.so");
        for expected in [
            " s in MPI_Init for ranks that run without polycast or are late",
            &format!("Is {} on all nodes, and in LD_PRELOAD of all programs", preload.display()),
            "`polycast run --off`",
        ] {
            assert!(said.contains(expected), "{mpi:?}: {expected}: {said}");
        }
        // Once, where the other one had not come so far when this one spoke.
        assert!(said.matches("rank 2 of 3").count() <= 1, "{mpi:?}: {said}");
    }
}

#[test]
fn all_that_lack_it_are_counted() {
    for mpi in ALL {
        waits(mpi, 4, "$rank -le 1", &["rank 2 of 4 on ", " (2 of the 4 on this node)"]);
    }
}

/// The second host has no polycast, as where a folder is not mounted.
#[test]
fn a_node_without_polycast_is_waited_for_with_words() {
    let Some(labs) = lab(2, &[]) else { return };
    for mpi in ALL {
        let file = labs.directory().join(format!("said-{}", mpi.name()));
        let mut command = timeout(LIMIT);
        command.arg(TOOL).args(["lab", "run", "--lab", LAB, "-n", "2", "--polycast", "--mpi", mpi.name()]);
        command.args(["--env", "POLYCAST_TEST_PATIENCE=1", "--", "sh", "-c", &script(mpi, "$rank = 1")]);
        command.arg(mpi.built("collective_mpmd")).arg(&file).env("POLYCAST_LIBDIR", library_directory());
        command.env("POLYCAST_LAB_DIRECTORY", labs.directory());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let _place = place();
        let words = ["rank 0 of 2 on h0 has waited ", " (none of the 1 on this node)"];
        said_twice(command.spawn().unwrap(), &file, &words);
    }
}

/// The component's ranks know who has it: one that is late where they vote is waited for with words, and the job goes on when it has come.
#[test]
fn who_waits_for_a_late_component_says_so_and_goes_on() {
    let mpi = Mpi::OpenMpiComponent;
    let folder = tempfile::tempdir().unwrap();
    let [file, go] = ["said", "go"].map(|name| folder.path().join(name));
    let rank = mpi.rank_variable();
    let script = format!("if [ ${rank} = 1 ]; then export LD_PRELOAD=$2; fi; exec \"$0\" 2>> \"$1\"");
    let program = mpi.built("collective_mpmd").into();
    let words = [&file, &mpi.built("late_component.so")].map(|path| path.clone().into());
    let command = ["sh".into(), "-c".into(), script.into(), program].into_iter().chain(words).collect();
    let job = Job::of(mpi, 3, command).polycast().variable("POLYCAST_TEST_PATIENCE", "1");
    let _place = place();
    let mut job = job.variable("LATE_COMPONENT", go.to_str().unwrap()).start();
    let said = || fs::read_to_string(&file).unwrap_or_default();
    let is_it = |line: &&str| {
        line.starts_with("polycast: rank 0 of 3 on ")
            && line.contains(" s in MPI_Init for ranks that have polycast's component for Open MPI and are late (1 of the 3 on this node). ")
    };
    let is_seen = wait_for(&mut job, || said().lines().filter(is_it).count() >= 2);
    fs::write(&go, "").unwrap();
    let status = job.wait().unwrap();
    assert!(is_seen && status.success(), "{status}: {}", said());
    assert!(said().contains("polycast: report: "), "{}", said());
}
