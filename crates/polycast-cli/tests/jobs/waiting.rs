//! Ranks that wait in MPI_Init for others which do not have polycast: they say so, once per node, and again.

use std::fs;

use crate::cluster::TOOL;
use crate::common::job::{Job, LIMIT, finish, place, timeout};
use crate::common::library_directory;
use crate::common::mpi::Mpi;
use crate::job::{LAB, lab};

const ALL: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

/// How the rank ends the job that has seen the words.
const SEEN: i32 = 3;

/// The ranks of `without` have no polycast; rank 0, which is one of them, ends the job when a line with `words` stands twice in the file that the
/// others write to. What they wrote.
fn waits(mpi: Mpi, ranks: usize, without: &str, words: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("said");
    fs::write(&file, "").unwrap();
    let script = format!(
        "rank=${}; if [ {without} ]; then unset LD_PRELOAD; fi; if [ $rank != 0 ]; then exec \"$0\" 2>> \"$1\"; fi; \"$0\" & \
         while kill -0 $! && [ $(grep -c \"$2\" \"$1\") -lt 2 ]; do sleep 0.1; done; kill -KILL $!; exit {SEEN}",
        mpi.rank_variable()
    );
    let program = mpi.built("collective_mpmd");
    let words = ["sh".into(), "-c".into(), script.into(), program.into(), file.clone().into(), words.into()];
    let job = Job::of(mpi, ranks, words.into()).polycast().variable("POLYCAST_TEST_PATIENCE", "1");
    let (status, output) = job.finish();
    let said = fs::read_to_string(&file).unwrap();
    if status.code() != Some(SEEN) {
        output.fail(&format!("expected status {SEEN}, found {status}; said: {said}"));
    }
    said
}

#[test]
fn who_waits_says_so_once_per_node_and_again() {
    for mpi in ALL {
        let words = "rank 1 of 3 on .* (1 of the 3 on this node)";
        let said = waits(mpi, 3, "$rank = 0", words);
        let preload = library_directory().canonicalize().unwrap().join("libpolycast-mpi.so");
        for expected in [
            "has waited 1 s in MPI_Init for ranks that run without polycast or are late",
            &format!("Is {} on all nodes, and in LD_PRELOAD of all programs", preload.display()),
            "`polycast run --off`",
        ] {
            assert!(said.contains(expected), "{mpi:?}: {expected}: {said}");
        }
        // Once where this one had not come so far when the other one spoke.
        assert!(said.matches("rank 2 of 3").count() <= 1, "{mpi:?}: {said}");
    }
}

#[test]
fn all_that_lack_it_are_counted() {
    for mpi in ALL {
        waits(mpi, 4, "$rank -le 1", "rank 2 of 4 on .* (2 of the 4 on this node)");
    }
}

/// The second host's ranks have no polycast, as where a folder is not mounted.
#[test]
fn a_node_without_polycast_is_waited_for_with_words() {
    let Some(labs) = lab(2, &[]) else { return };
    for mpi in ALL {
        let file = labs.directory().join(format!("said-{}", mpi.name()));
        fs::write(&file, "").unwrap();
        let script = format!(
            "rank=${}; if [ $rank = 0 ]; then exec \"$0\" 2>> \"$1\"; fi; unset LD_PRELOAD; \"$0\" & \
             while kill -0 $! && [ $(grep -c 'has waited' \"$1\") -lt 2 ]; do sleep 0.1; done; kill -KILL $!; exit {SEEN}",
            mpi.rank_variable()
        );
        let mut command = timeout(LIMIT);
        let state = labs.directory();
        command.arg(TOOL).args(["lab", "run", "--lab", LAB, "-n", "2", "--polycast"]);
        command.args(["--mpi", mpi.name(), "--env", "POLYCAST_TEST_PATIENCE=1", "--", "sh", "-c", &script]);
        command.arg(mpi.built("collective_mpmd")).arg(&file).env("POLYCAST_LAB_DIRECTORY", state);
        let _place = place();
        let (status, output) = finish(command.env("POLYCAST_LIBDIR", library_directory()));
        let said = fs::read_to_string(&file).unwrap();
        let expected = "rank 0 of 2 on h0 has waited 1 s in MPI_Init for ranks that run without polycast or are late \
                        (none of the 1 on this node)";
        if status.code() != Some(SEEN) || !said.contains(expected) {
            output.fail(&format!("expected {SEEN} and `{expected}`, found {status}: {said}"));
        }
    }
}
