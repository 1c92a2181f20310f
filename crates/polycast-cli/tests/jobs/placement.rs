//! Ranks on several hosts, with real MPI in a lab: data is right however they are placed, and hosts are told apart.

use crate::cluster::{self, Labs};
use crate::common::job::LIMIT;
use crate::common::mpi::Mpi;
use crate::common::report::Report;

/// Runs `program` on 5 ranks, dealt out to 2 hosts in turn: ranks 0, 2, 4 on one, 1 and 3 on the other.
fn run_scattered(labs: &Labs, choice: &[&str], program: &[&str]) -> (String, String) {
    let run = ["run", "--lab", "box", "--mpi", "openmpi", "--ranks-per-host", "3", "-n", "5", "--polycast"];
    let placement = ["--mpiexec-args", "--map-by node", "--env", "POLYCAST_REPORT=1"];
    let mut command = labs.command(&[&run[..], &placement, choice, &["--"], program].concat());
    let output = cluster::output_within(&mut command, LIMIT);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn scattered_ranks_get_their_data() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "2", "--rate", "1gbit", "--burst", "64KiB"]) {
        return;
    }
    let (placed, _) = run_scattered(&labs, &[], &["sh", "-c", "echo $OMPI_COMM_WORLD_RANK $(hostname)"]);
    let mut placed: Vec<_> = placed.lines().collect();
    placed.sort_unstable();
    assert_eq!(placed, ["0 h0", "1 h1", "2 h0", "3 h1", "4 h0"], "else this proves nothing");

    let program = Mpi::OpenMpi.built("bcast_roots");
    let program = program.to_str().unwrap();
    for algorithm in ["chain:segment=4KiB,ready", "binomial", "scatter-ring"] {
        let forced = format!("POLYCAST_BCAST={algorithm}");
        let (said, report) = run_scattered(&labs, &["--env", &forced], &[program]);
        assert!(said.contains("OK bcast_roots"), "{algorithm}: {said}");
        assert!(Report::parse(&report).unwrap().served_by(algorithm) > 0, "{algorithm}: {report}");
    }

    // By the table: two hosts with several ranks each get pipelines for what is large, stock for the rest.
    let (said, report) = run_scattered(&labs, &[], &[program]);
    assert!(said.contains("OK bcast_roots"), "{said}");
    let report = Report::parse(&report).unwrap();
    assert!(report.served() > 0 && report.stock() > 0, "{report:?}");
    labs.succeeds(&["down", "--all"]);
}
