//! Whether polycast serves a job is settled when MPI begins, by all ranks: where one is switched off, has no door or runs
//! another build, the MPI library serves all, and one line says why.

use std::path::Path;

use crate::common::job::{Job, Output};
use crate::common::library_directory;
use crate::common::mpi::Mpi;

const ALL: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];
const SILENT: [&str; 0] = [];

/// `bcast_roots` on three ranks behind polycast; the ranks that the shell's condition on `$rank` names run `prelude` first.
fn with_prelude(mpi: Mpi, ranks: &str, prelude: &str) -> Job {
    let rank = mpi.rank_variable();
    let script = format!("rank=${rank}; if [ {ranks} ]; then {prelude}; fi; exec \"$0\"");
    let words = vec!["sh".into(), "-c".into(), script.into(), mpi.built("bcast_roots").into()];
    Job::of(mpi, 3, words).forced("chain")
}

/// Ends well by the MPI library alone, with exactly these warnings.
fn expect_stock(job: Job, warnings: &[&str]) -> Output {
    let output = job.run().expect_ok("bcast_roots");
    if output.stderr.contains("polycast: report: bcast chain") {
        output.fail("expected every broadcast to be left to stock");
    }
    let said: Vec<&str> =
        output.stderr.lines().filter_map(|line| line.strip_prefix("polycast: warning: ")).collect();
    let is_expected = said.len() == warnings.len()
        && said.iter().zip(warnings).all(|(said, expected)| said.starts_with(expected));
    if !is_expected {
        output.fail(&format!("expected the warnings {warnings:?}, found {said:?}"));
    }
    output
}

#[test]
fn one_rank_that_is_switched_off_leaves_all_to_stock() {
    for mpi in ALL {
        for rank in [0, 2] {
            let job = with_prelude(mpi, &format!("$rank = {rank}"), "export POLYCAST=off");
            expect_stock(job, &[&format!("rank {rank} has POLYCAST=off and other ranks have not")]);
        }
        expect_stock(with_prelude(mpi, "$rank -ge 1", "export POLYCAST=no"), &["rank 1 has POLYCAST=off"]);
    }
}

#[test]
fn ranks_that_are_all_switched_off_say_nothing() {
    for mpi in ALL {
        expect_stock(with_prelude(mpi, "$rank -ge 0", "export POLYCAST=off"), &SILENT);
    }
}

/// The files of the library, without those whose name contains a word.
fn copy_library(to: &Path, without: &str) {
    let from = library_directory();
    std::fs::create_dir(to.join("doors")).unwrap();
    let doors = std::fs::read_dir(from.join("doors")).unwrap().map(|entry| entry.unwrap().path());
    let files = ["libpolycast.so", "libpolycast-mpi.so"].map(|name| from.join(name)).into_iter().chain(doors);
    for file in files {
        let place = to.join(file.strip_prefix(&from).unwrap());
        if !file.to_string_lossy().contains(without) {
            std::fs::copy(&file, place).unwrap();
        }
    }
}

#[test]
fn one_rank_without_a_door_leaves_all_to_stock() {
    for mpi in ALL {
        let folder = tempfile::tempdir().unwrap();
        copy_library(folder.path(), mpi.name());
        let prelude = format!("export LD_PRELOAD={}/libpolycast-mpi.so", folder.path().display());
        let output = expect_stock(
            with_prelude(mpi, "$rank = 1", &prelude),
            &["rank 1 has no door to its MPI (no door for this MPI: "],
        );
        if !output.stderr.contains(&format!("polycast-door-{}.so", mpi.name())) {
            output.fail("expected the name of the door that is missing");
        }
    }
}

/// A preloaded object in front of the runtime says that the rank runs another build.
#[test]
fn one_rank_with_another_build_leaves_all_to_stock() {
    for mpi in ALL {
        let other = mpi.built("other_build.so");
        let prelude = format!("export LD_PRELOAD={}:$LD_PRELOAD", other.display());
        expect_stock(
            with_prelude(mpi, "$rank = 2", &prelude),
            &["some ranks have another build of polycast"],
        );
    }
}

/// A door that was left over from an earlier version.
#[test]
fn one_rank_with_another_versions_door_leaves_all_to_stock() {
    for mpi in ALL {
        let folder = tempfile::tempdir().unwrap();
        copy_library(folder.path(), mpi.name());
        let door = folder.path().join(format!("doors/polycast-door-{}.so", mpi.name()));
        std::fs::copy(mpi.built("other_version.so"), door).unwrap();
        let prelude = format!("export LD_PRELOAD={}/libpolycast-mpi.so", folder.path().display());
        expect_stock(
            with_prelude(mpi, "$rank = 1", &prelude),
            &["rank 1 has no door to its MPI (the door for this MPI is of another version of polycast"],
        );
    }
}

#[test]
fn nonblocking_broadcasts_are_counted() {
    for mpi in ALL {
        let output = Job::stock(mpi, 3, "bcast_mixed").polycast().run().expect_ok("bcast_mixed");
        if !output.stderr.contains("MPI_Ibcast calls=120 bytes=300000") {
            output.fail("expected the report to count 120 calls of MPI_Ibcast with 300000 bytes");
        }
    }
}
