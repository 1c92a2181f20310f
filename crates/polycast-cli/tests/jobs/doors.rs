//! What a door makes of unusual types, buffers, communicators, and of libraries that it does not know.

use std::process::Command;

use crate::common::job::{Job, Output};
use crate::common::library_directory;
use crate::common::mpi::Mpi;

const ALL: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

/// Fails unless the forced algorithm carried at least so many broadcasts.
fn expect_served(output: &Output, at_least: u64) {
    let served = output.report().served_by("chain");
    if served < at_least {
        output.fail(&format!("expected at least {at_least} broadcasts served, found {served}"));
    }
}

#[test]
fn types_that_deceive_are_seen_through() {
    for mpi in ALL {
        Job::stock(mpi, 3, "bcast_types").run().expect_ok("bcast_types");
        let output = Job::stock(mpi, 3, "bcast_types").forced("chain").run().expect_ok("bcast_types");
        expect_served(&output, 64);
    }
}

#[test]
fn broadcasts_after_the_end_has_begun_arrive() {
    for mpi in ALL {
        // With a first broadcast before the end, and without.
        for arguments in [&[][..], &["late"]] {
            let job = || Job::stock(mpi, 3, "bcast_finalize").arguments(arguments);
            job().run().expect_ok("bcast_finalize");
            job().forced("chain").run().expect_ok("bcast_finalize").report();
        }
    }
}

/// The bare library cannot reach such memory, so there is no run without polycast.
#[test]
fn messages_in_a_gpus_memory_are_staged() {
    for mpi in ALL {
        for library in ["libcuda.so.1", "libamdhip64.so.6"] {
            let job = Job::stock(mpi, 4, "bcast_device").arguments(&[library]);
            expect_served(&job.forced("chain").run().expect_ok("bcast_device"), 20);
        }
    }
}

/// Debian's MPICH cannot spawn, and says so.
#[test]
fn processes_outside_the_world_are_left_to_stock() {
    let job = |ranks| Job::stock(Mpi::OpenMpi, ranks, "bcast_spawn");
    job(2).run().expect_ok("bcast_spawn");
    let output = job(2).forced("chain").run().expect_ok("bcast_spawn");
    let report = output.report();
    if report.served() > 0 {
        output.fail("expected every broadcast to be left to stock");
    }
    // Alone in its MPI_COMM_WORLD.
    job(1).unwatched().run().expect_ok("bcast_spawn");
}

/// The stand-in lies behind polycast, where an MPI with ULFM would be.
#[test]
fn a_revoked_communicator_returns() {
    for mpi in ALL {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("revoked").to_string_lossy().into_owned();
        let job = Job::stock(mpi, 3, "bcast_revoked").forced("chain").preload(mpi.built("ulfm.so"));
        let output = job.variable("REVOKED_FILE", &file).run().expect_ok("bcast_revoked");
        expect_served(&output, 1);
    }
}

/// A process without an MPI that anybody knows: its calls reach the library that it opened privately, if that has them.
#[test]
fn an_unknown_mpi_serves_its_own_calls() {
    let preload = library_directory().join("libpolycast-mpi.so");
    for (program, says, warnings) in [
        ("odd/bcast_dlopen", "ODD data=4711 error=0\n", 1),
        ("odd/none/bcast_dlopen", "ODD data=0 error=16\n", 2),
    ] {
        let mut command = Command::new(Mpi::OpenMpi.built(program));
        let output = command.env("LD_PRELOAD", &preload).output().expect("the program was built");
        let (said, warned) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!((&*said, output.status.code()), (says, Some(0)), "{program}: {warned}");
        assert!(warned.contains("no MPI library that polycast knows is loaded"), "{warned}");
        assert_eq!(warned.lines().count(), warnings, "{warned}");
    }
}
