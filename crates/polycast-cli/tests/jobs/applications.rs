//! `examples/applications`: the same results behind polycast.

use std::process::Command;

use crate::common::checkout;
use crate::common::job::Job;
use crate::common::mpi::Mpi;
use crate::job::under_each_mpi;

under_each_mpi!(a_matrix_multiplication);

fn a_matrix_multiplication(mpi: Mpi) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("matmul");
    let source = checkout().join("examples/applications/matmul.c");
    let mut compiler = Command::new(format!("mpicc.{}", mpi.name()));
    let made =
        compiler.args(["-std=c17", "-O2", "-fopenmp", "-o"]).args([&program, &source]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // Three rows of two columns: roots of both kinds come in turns, in communicators of two sizes.
    let job = || {
        let job = Job::of(mpi, 6, vec![program.clone().into()]).arguments(&["96", "3", "2"]);
        job.variable("OMP_NUM_THREADS", "2")
    };
    let stock = job().run();
    let output = job().forced("binomial").run();
    assert_eq!(output.lines_of("RESULT"), stock.lines_of("RESULT"));
    assert!(stock.lines_of("RESULT")[0].ends_with(" wrong=0"), "{}", stock.stdout);
    // lcm(3, 2) parts of A and of B.
    assert_eq!(output.report().served(), 12, "{}", output.stderr);
}
