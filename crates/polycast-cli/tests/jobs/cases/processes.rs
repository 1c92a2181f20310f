//! Ranks that start processes of their own, which find the preloaded object, too.

use crate::common::job::{Job, Output};
use crate::common::mpi::Mpi;
use crate::common::{cannot_run, checkout};
use crate::job::warnings;

use super::{NODE, check_settings, expect_some_served};

/// One report, of the job, and no word of anybody else.
fn expect_one_report(output: &Output) {
    expect_some_served(output);
    let ends = output.stderr.lines().filter(|line| line.starts_with("polycast: report: attached")).count();
    if ends != 1 || !warnings(output).is_empty() {
        output.fail(&format!("expected one report and no warning, found {ends} reports"));
    }
}

fn of_python(mpi: Mpi) {
    let python = match mpi.python_with_mpi4py() {
        Ok(python) => python,
        Err(reason) => return cannot_run(&reason),
    };
    let script = checkout().join("tests/cases/processes.py");
    let job = |ranks| Job::of(mpi, ranks, vec![python.clone().into(), script.clone().into()]);
    job(2).run().expect_ok("processes");
    for ranks in [2, 4] {
        expect_one_report(&job(ranks).polycast().run().expect_ok("processes"));
    }
    for way in NODE {
        let settings = check_settings(&[way]);
        let set = |job: Job, setting: &str| {
            let (name, value) = setting.split_once('=').unwrap();
            job.variable(name, value)
        };
        let forced = settings.split(' ').fold(job(2).polycast(), set);
        expect_one_report(&forced.run().expect_ok("processes"));
    }
}

#[test]
#[ignore = "make test-all: Python starts processes for a minute"]
fn of_python_openmpi() {
    of_python(Mpi::OpenMpi);
}

#[test]
#[ignore = "make test-all: Python starts processes for a minute"]
fn of_python_mpich() {
    of_python(Mpi::Mpich);
}
