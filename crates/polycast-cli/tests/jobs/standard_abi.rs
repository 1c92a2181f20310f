//! An MPI with the standard's own ABI: the MPICH of PyPI, by whose `mpicc_abi` a door and programs are built.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::job::Job;
use crate::common::mpi::Mpi;
use crate::common::{cannot_run, checkout, library_directory};

fn succeeds(command: &mut Command) {
    let output = command.output().expect("it is there");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn build(mpicc: &Path, folder: &Path, programs: &[&str]) {
    fs::copy(library_directory().join("libpolycast.so"), folder.join("libpolycast.so")).unwrap();
    succeeds(Command::new(checkout().join("doors/build.sh")).args([folder, mpicc]));
    assert!(folder.join("doors/polycast-door-abi.so").exists());
    let mut make = Command::new("make");
    make.args(["--silent", "-C"]).arg(checkout().join("tests/mpi"));
    make.arg(format!("MPICC={}", mpicc.display())).arg(format!("OUT={}", folder.display()));
    succeeds(make.args(programs.iter().map(|program| folder.join(program))));
}

#[test]
fn an_mpi_with_the_standard_abi_is_served() {
    let mpicc = match Mpi::Mpich.python_with_mpi4py() {
        Ok(python) => python.with_file_name("mpicc_abi"),
        Err(reason) => return cannot_run(&reason),
    };
    let folder = tempfile::tempdir().unwrap();
    let programs = ["bcast_roots", "bcast_datatypes", "bcast_types", "bcast_mixed"];
    build(&mpicc, folder.path(), &programs);
    for program in programs {
        let job = || Job::of(Mpi::Mpich, 3, vec![folder.path().join(program).into()]);
        let bare = job().run().expect_ok(program);
        let library = folder.path().join("libpolycast-mpi.so");
        let job = job().preload(library).variable("POLYCAST_REPORT", "1");
        let output = job.variable("POLYCAST_BCAST", "chain").run().expect_ok(program);
        let report = output.report();
        if report.served_by("chain") == 0 {
            output.fail(&format!("chain served no broadcast: {report:?}"));
        }
        assert_eq!(output.stdout, bare.stdout, "{program}");
    }
}
