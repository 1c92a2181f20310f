//! The programs of `tests/mpi` over multicast: `MPI_Bcast` keeps its promises there, too.
//!
//! Four hosts; each form once with one rank on each and once with two, so that some roots lead no node.

use crate::common::mpi::Mpi;
use crate::common::{cannot_run, checkout};
use crate::job::{FORMS, LabJob, expect_multicast, lab, under_each_mpi, under_one_mpi};

under_each_mpi!(bcast_roots, bcast_communicators, bcast_errors);
under_one_mpi!(
    openmpi: bcast_datatypes, bcast_threads, bcast_f08, bcast_many;
    mpich: bcast_lengths, bcast_mixed, bcast_mpi4py, bcast_stress;
);

const HOSTS: usize = 4;

/// Runs a program with its arguments over both forms, with so many ranks on each host.
fn conforms(mpi: Mpi, ranks_per_host: [usize; 2], program: &str, arguments: &[&str]) {
    conforms_as(mpi, ranks_per_host, &[&[&*mpi.built(program).to_string_lossy()], arguments].concat(), &[]);
}

fn conforms_as(mpi: Mpi, ranks_per_host: [usize; 2], program: &[&str], variables: &[(&str, &str)]) {
    let Some(labs) = lab(HOSTS, &[]) else { return };
    for (form, ranks_per_host) in FORMS.into_iter().zip(ranks_per_host) {
        let ranks = HOSTS * ranks_per_host;
        let job = LabJob::of(&labs, mpi, ranks, program).ranks_per_host(ranks_per_host).forced(form);
        let job = variables.iter().fold(job, |job, (name, value)| job.variable(name, value));
        expect_multicast(&job.expect_ok(), form);
    }
    labs.succeeds(&["down", "--all"]);
}

fn bcast_lengths(mpi: Mpi) {
    conforms(mpi, [2, 1], "bcast_lengths", &[]);
}

fn bcast_roots(mpi: Mpi) {
    conforms(mpi, [2, 1], "bcast_roots", &[]);
}

fn bcast_datatypes(mpi: Mpi) {
    conforms(mpi, [1, 2], "bcast_datatypes", &[]);
}

fn bcast_communicators(mpi: Mpi) {
    conforms(mpi, [2, 1], "bcast_communicators", &["12"]);
}

fn bcast_many(mpi: Mpi) {
    conforms(mpi, [1, 2], "bcast_many", &["60"]);
}

/// MPICH's waiting threads spin and hold its one lock.
fn bcast_threads(mpi: Mpi) {
    let broadcasts = if mpi.is_open_mpi() { "40" } else { "6" };
    conforms(mpi, [1, 1], "bcast_threads", &[broadcasts]);
}

/// The same error classes as from the bare library, also where the root sends more than the others expect.
fn bcast_errors(mpi: Mpi) {
    let Some(labs) = lab(2, &[]) else { return };
    let job = || LabJob::stock(&labs, mpi, 2, "bcast_errors").arguments(&["--truncation"]);
    let stock = job().expect_ok();
    for form in FORMS {
        let output = job().forced(form).expect_ok();
        assert_eq!(output.lines_of("ERR"), stock.lines_of("ERR"), "{form} under {}", mpi.name());
        expect_multicast(&output, form);
    }
    labs.succeeds(&["down", "--all"]);
}

fn bcast_mixed(mpi: Mpi) {
    conforms(mpi, [1, 2], "bcast_mixed", &[]);
}

fn bcast_f08(mpi: Mpi) {
    conforms(mpi, [2, 1], "bcast_f08", &[]);
}

fn bcast_mpi4py(mpi: Mpi) {
    let python = match mpi.python_with_mpi4py() {
        Ok(python) => python.to_string_lossy().into_owned(),
        Err(reason) => return cannot_run(&reason),
    };
    let script = checkout().join("tests/mpi/bcast_mpi4py.py").to_string_lossy().into_owned();
    conforms_as(mpi, [2, 1], &[&python, &script], &[]);
}

fn bcast_stress(mpi: Mpi) {
    conforms(mpi, [1, 2], "bcast_stress", &["300"]);
}

/// More sets of nodes at a time than a process joins groups for: the rest falls back, and gets its data. Under Open MPI only:
/// with so many communicators MPICH over UCX mostly hangs in MPI_Finalize.
#[test]
fn bcast_sets() {
    let mpi = Mpi::OpenMpi;
    let Some(labs) = lab(6, &[]) else { return };
    for form in FORMS {
        let output = LabJob::stock(&labs, mpi, 6, "bcast_sets").arguments(&["60"]).forced(form).expect_ok();
        let report = expect_multicast(&output, form);
        let sockets = output.number("SETS", "datagram_sockets");
        if report.multicast("fallbacks") == 0 || !(8.0..=16.0).contains(&sockets) {
            output.fail(&format!("expected at most 16 groups and then fallbacks: {report:?}"));
        }
    }
    labs.succeeds(&["down", "--all"]);
}

/// Of a communicator that the program has freed messages may still come; an MPI with ULFM must not be asked about it any more.
#[test]
fn a_communicator_that_was_freed_is_asked_nothing() {
    let Some(labs) = lab(3, &[]) else { return };
    let job = LabJob::stock(&labs, Mpi::OpenMpi, 3, "bcast_revoked").arguments(&["freed"]);
    let job = job.forced("multicast-pull").beside(&[Mpi::OpenMpi.built("ulfm.so")]);
    expect_multicast(&job.variable("REVOKED_FILE", "/proc/none").expect_ok(), "multicast-pull");
    labs.succeeds(&["down", "--all"]);
}
