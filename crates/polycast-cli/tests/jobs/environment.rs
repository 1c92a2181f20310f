//! Programs that have changed what libraries may take for granted: how numbers are rounded and what traps, and which functions have libc's names.

use std::process::Command;

use crate::cluster::Labs;
use crate::common::job::{Job, Output};
use crate::common::mpi::Mpi;
use crate::common::{cannot_run, checkout};
use crate::job::{CELLS, FORMS, LAB, LabJob, MESSAGES, by, expect_multicast, lab, under_each_mpi};

under_each_mpi!(
    traps_and_rounding_on_one_node,
    traps_and_rounding_between_nodes,
    names_of_libc_on_one_node,
    names_of_libc_between_nodes
);

const RANKS: usize = 4;
const HOSTS: usize = 4;

fn expect_served(output: &Output) {
    if output.report().served() == 0 {
        output.fail("expected calls that polycast served");
    }
}

/// What is chosen by itself, by trials, and each way for all calls.
fn traps_and_rounding_on_one_node(mpi: Mpi) {
    let program = "collective_traps";
    Job::stock(mpi, RANKS, program).run().expect_ok(program);
    expect_served(&Job::stock(mpi, RANKS, program).polycast().run().expect_ok(program));
    for way in [CELLS, MESSAGES] {
        let job = by(Job::stock(mpi, RANKS, program), &way);
        expect_served(&job.run().expect_ok(program));
    }
}

/// By multicast; by predictions; and by what the job measures for itself. A rank that chose by itself would wait for ever.
fn traps_and_rounding_between_nodes(mpi: Mpi) {
    // From 2 Gb/s on rules of the shipped table leave broadcasts to the MPI, whatever is predicted.
    let labs = Labs::new();
    if !labs.up(&[LAB, "--hosts", &HOSTS.to_string(), "--rate", "200mbit", "--burst", "16KiB"]) {
        return;
    }
    let job = || LabJob::stock(&labs, mpi, HOSTS, "collective_traps");
    for form in FORMS {
        expect_multicast(&job().forced(form).expect_ok(), form);
    }
    let parameters = checkout().join("examples/params/lab-20mbit.json");
    expect_served(&job().polycast().variable("POLYCAST_PARAMS", &parameters.to_string_lossy()).expect_ok());
    let tuned = job().polycast().variable("POLYCAST_TRIALS", "on").variable("POLYCAST_TUNE", "1s");
    let tuned = tuned.expect_ok();
    expect_served(&tuned);
    assert!(tuned.stderr.contains("report: tuned: "), "{}", tuned.stderr);
    labs.succeeds(&["down", "--all"]);
}

const NAMES: &str = "own_names";

fn has_names() -> bool {
    if !cfg!(target_arch = "x86_64") {
        cannot_run("tests/mpi/own_names.S is for x86-64");
    }
    cfg!(target_arch = "x86_64")
}

fn names_of_libc_on_one_node(mpi: Mpi) {
    if !has_names() {
        return;
    }
    Job::stock(mpi, RANKS, NAMES).run().expect_ok(NAMES);
    expect_served(&Job::stock(mpi, RANKS, NAMES).polycast().run().expect_ok(NAMES));
    // It would have been seen.
    let folder = tempfile::tempdir().unwrap();
    let [source, object] = ["polycast.c", "polycast.so"].map(|name| folder.path().join(name));
    std::fs::write(&source, "#include <unistd.h>\nint call(void) { return getpid(); }\n").unwrap();
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&object, &source]).status();
    assert!(compiled.unwrap().success());
    let output = Command::new(mpi.built(NAMES)).arg(&object).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("getpid: polycast has called the program's function of this name"), "{said}");
}

fn names_of_libc_between_nodes(mpi: Mpi) {
    if !has_names() {
        return;
    }
    let Some(labs) = lab(HOSTS, &[]) else { return };
    let output = LabJob::stock(&labs, mpi, HOSTS, NAMES).forced(FORMS[0]).run().expect_ok(NAMES);
    expect_multicast(&output, FORMS[0]);
    labs.succeeds(&["down", "--all"]);
}
