//! Open MPI's component: found by its path, listed, switched off by its priority, and left out where some ranks lack it.
//!
//! The programs of `tests/mpi` run through it in `conformance`, `collectives` and `multicast`, under the name `component`.

use std::process::Command;

use polycast_core::variables::FORCED;

use crate::common::job::{Job, Output};
use crate::common::mpi::Mpi;
use crate::job::{FORMS, LabJob, expect_multicast, lab};

const MPI: Mpi = Mpi::OpenMpiComponent;

fn expect_served(output: &Output, calls: u64) {
    let served = output.report().served_by("chain");
    if served != calls {
        output.fail(&format!("expected {calls} broadcasts served by the chain, found {served}"));
    }
}

fn warnings(output: &Output) -> Vec<&str> {
    output.stderr.lines().filter_map(|line| line.strip_prefix("polycast: warning: ")).collect()
}

#[test]
fn open_mpi_lists_its_parameters() {
    let (path, folder) = MPI.component().unwrap();
    let mut command = Command::new("ompi_info");
    let listed =
        command.args(["--param", "coll", "polycast", "--level", "9"]).env(path, folder).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let forced = FORCED.map(|variable| variable.trim_start_matches("POLYCAST_").to_lowercase());
    for name in forced.iter().map(String::as_str).chain(["priority", "table", "sums", "multicast", "report"])
    {
        assert!(listed.contains(&format!("\"coll_polycast_{name}\"")), "{name}: {listed}");
    }
}

/// Fortran calls the same functions of the component; what is set by a parameter goes before the variable.
#[test]
fn fortran_is_served_without_preloading() {
    let stock = Job::stock(MPI, 4, "bcast_mpifh").run().expect_ok("bcast_mpifh");
    assert!(!stock.stderr.contains("polycast"), "{}", stock.stderr);
    let job = Job::stock(MPI, 4, "bcast_mpifh").forced("binomial");
    let output = job.variable("OMPI_MCA_coll_polycast_bcast", "chain").run().expect_ok("bcast_mpifh");
    expect_served(&output, 12);
}

/// The preloaded object gives way.
#[test]
fn with_the_preloaded_object_a_call_is_served_once() {
    let one = |mpi: Mpi| Job::stock(mpi, 3, "bcast_mpifh").forced("chain");
    let both = one(MPI).preload(Mpi::OpenMpi.preload());
    for job in [one(Mpi::OpenMpi), one(MPI), both] {
        let output = job.run().expect_ok("bcast_mpifh");
        assert_eq!(warnings(&output), [""; 0]);
        expect_served(&output, 9);
    }
}

/// What a program sets and asks while it runs reaches the component, with and without the preloaded object.
#[test]
fn programs_choose_as_they_do_with_the_preloaded_object() {
    let job =
        || Job::stock(MPI, 3, "bcast_datatypes").polycast().variable("CHECK_ALGORITHMS", "chain binomial");
    for job in [job(), job().preload(Mpi::OpenMpi.preload())] {
        let report = job.run().expect_ok("bcast_datatypes").report();
        assert!(report.served_by("chain") > 0 && report.served_by("binomial") > 0, "{report:?}");
    }
}

/// One algorithm for each collective that messages carry.
const ALGORITHMS: [(&str, &str); 8] = [
    ("BCAST", "chain:segment=1KiB"),
    ("SCATTER", "binomial"),
    ("GATHER", "binomial"),
    ("ALLGATHER", "ring"),
    ("ALLTOALL", "pairwise"),
    ("BARRIER", "dissemination"),
    ("REDUCE", "binomial"),
    ("ALLREDUCE", "recursive-doubling"),
];

fn nonblocking(job: Job, algorithms: &[(&str, &str)]) -> Output {
    let set =
        |job: Job, &(name, algorithm): &(&str, &str)| job.variable(&format!("POLYCAST_{name}"), algorithm);
    let job = algorithms.iter().fold(job.arguments(&["freed"]).polycast(), set);
    let output = job.run().expect_ok("collective_nonblocking");
    for (name, algorithm) in algorithms {
        let line = format!("polycast: report: {} {algorithm} calls=", name.to_lowercase());
        if !output.stderr.contains(&line) {
            output.fail(&format!("{algorithm} served nothing"));
        }
    }
    output
}

/// All nine, with the program's own checks. What is left to the MPI is what was started before the ranks had agreed on a communicator: six
/// broadcasts on the second one, and on the first a few of each function.
#[test]
fn nonblocking_and_persistent_calls_are_served() {
    Job::stock(MPI, 4, "collective_nonblocking").run().expect_ok("collective_nonblocking");
    let output = nonblocking(Job::stock(MPI, 4, "collective_nonblocking"), &ALGORITHMS);
    let unserved: Vec<&str> =
        output.stderr.lines().filter_map(|line| line.strip_prefix("polycast: report: unserved ")).collect();
    let calls = |line: &str| line.split("calls=").nth(1)?.split(' ').next()?.parse::<u64>().ok();
    // On rank 0.
    if unserved.iter().any(|line| calls(line).is_none_or(|calls| calls > 12)) {
        output.fail(&format!("more was left to the MPI than the first calls of communicators: {unserved:?}"));
    }
}

/// What the ranks have to agree on when a request is made they agree on by a collective that Open MPI makes of two others.
#[test]
fn persistent_calls_are_agreed_on_by_collectives_made_of_others() {
    let job = Job::stock(MPI, 2, "collective_nonblocking");
    let job = job.variable("OMPI_MCA_coll_tuned_use_dynamic_rules", "1");
    nonblocking(job.variable("OMPI_MCA_coll_tuned_allreduce_algorithm", "2"), &ALGORITHMS);
}

#[test]
#[ignore = "make test-all: one set of algorithms has run"]
fn nonblocking_calls_go_through_shared_memory() {
    for ranks in [2, 5] {
        for algorithm in ["cells", "two-level"] {
            let all = ALGORITHMS.map(|(name, _)| (name, algorithm));
            nonblocking(Job::stock(MPI, ranks, "collective_nonblocking"), &all);
        }
    }
}

/// Each thread has its communicator; whichever of them is in MPI lets the calls of all go on.
#[test]
#[ignore = "make test-all: with one thread it has run"]
fn threads_start_calls_at_a_time() {
    Job::stock(MPI, 3, "collective_threads").run().expect_ok("collective_threads");
    let job = Job::stock(MPI, 3, "collective_threads").forced("chain:segment=1KiB");
    let output = job.variable("POLYCAST_ALLREDUCE", "recursive-doubling").run();
    let served = output.expect_ok("collective_threads").report().served_by("chain:segment=1KiB");
    // Of 300 on each communicator all but the first, which comes before a call that is waited for.
    assert_eq!(served, 4 * 299);
}

/// Two ranks on each of three hosts.
#[test]
#[ignore = "make test-all: without a lab it has run"]
fn nonblocking_calls_go_by_multicast() {
    let Some(labs) = lab(3, &[]) else { return };
    for form in FORMS {
        let job = LabJob::stock(&labs, MPI, 6, "collective_nonblocking").ranks_per_host(2).forced(form);
        expect_multicast(&job.run().expect_ok("collective_nonblocking"), form);
    }
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn priority_0_is_off() {
    let job = Job::stock(MPI, 3, "bcast_mpifh").forced("chain");
    let output = job.variable("OMPI_MCA_coll_polycast_priority", "0").run().expect_ok("bcast_mpifh");
    assert!(!output.stderr.contains("polycast"), "{}", output.stderr);
}

/// The first of five ranks, one in the middle, the last, or all but one lack it, or have it switched off: one line says so.
#[test]
fn ranks_that_lack_it_leave_all_to_stock() {
    let job = |lacking: &str, prelude: &str| {
        let script =
            format!("rank=${}; if [ {lacking} ]; then {prelude}; fi; exec \"$0\"", MPI.rank_variable());
        let words = vec!["sh".into(), "-c".into(), script.into(), MPI.built("bcast_mpifh").into()];
        Job::of(MPI, 5, words).forced("chain").run().expect_ok("bcast_mpifh")
    };
    let missing = "some ranks do not have polycast's component for Open MPI";
    let off = "rank 2 has POLYCAST=off";
    for (lacking, prelude, expected) in [
        ("$rank = 0", "unset OMPI_MCA_mca_base_component_path", missing),
        ("$rank = 1", "unset OMPI_MCA_mca_base_component_path", missing),
        ("$rank = 4", "export OMPI_MCA_coll_polycast_priority=0", missing),
        ("$rank != 3", "unset OMPI_MCA_mca_base_component_path", missing),
        ("$rank = 2", "export POLYCAST=off", off),
    ] {
        let output = job(lacking, prelude);
        let said = warnings(&output);
        assert!(said.len() == 1 && said[0].starts_with(expected), "{lacking}: {said:?}");
        assert!(!output.stderr.contains("bcast chain"), "{lacking}: {}", output.stderr);
    }
}
