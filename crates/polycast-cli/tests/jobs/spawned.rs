//! Processes that appear later: mpi4py's Spawn, merge and pools, which end as they do without polycast.

use crate::cluster::TOOL;
use crate::common::job::{LIMIT, place, run, timeout};
use crate::common::mpi::Mpi;
use crate::common::{cannot_run, checkout, library_directory};

#[test]
fn workers_that_come_and_go_end_well() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let python = match mpi.python_with_mpi4py() {
            Ok(python) => python,
            Err(reason) => return cannot_run(&reason),
        };
        // PyPI's MPICH comes with its own.
        let mpiexec = match mpi {
            Mpi::Mpich => python.with_file_name("mpiexec").to_string_lossy().into_owned(),
            _ => mpi.name().to_owned(),
        };
        for (script, ranks, before) in [
            ("spawn_merge", "1", &[][..]),
            ("spawn_merge", "2", &[]),
            ("spawn_pool", "1", &[]),
            ("spawn_pool", "4", &["-m", "mpi4py.futures"]),
        ] {
            let mut command = timeout(LIMIT);
            command.arg(TOOL).args(["run", "--mpi", &mpiexec, "-n", ranks, "--report", "--"]);
            command.arg(&python).args(before).arg(checkout().join(format!("tests/mpi/{script}.py")));
            command.env("POLYCAST_LIBDIR", library_directory()).env("POLYCAST_CACHE", "off");
            let _place = place();
            let output = run(command, LIMIT).expect_ok(script);
            // Of each MPI_COMM_WORLD one at most.
            if output.stderr.matches("polycast: report: attached communicators=").count() == 0 {
                output.fail("expected a report");
            }
        }
    }
}
