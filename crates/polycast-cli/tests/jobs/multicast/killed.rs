//! A rank that is killed amid broadcasts leaves nothing behind, and the job ends as soon as it does without polycast.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use crate::cluster::Labs;
use crate::common::job::{Job, wait_until};
use crate::common::mpi::Mpi;
use crate::common::processes_of;
use crate::job::{FORMS, LAB, LabJob, lab};

const HOSTS: usize = 4;

/// How much later than without polycast: a second by design, and the rest for a machine on which other tests run, too. Such a
/// machine may be slow once, what waits for the dead is slow each time.
const MAX_LATER: Duration = Duration::from_secs(10);
const TRIES: usize = 3;

/// Processes of the test program.
fn ranks_alive() -> usize {
    processes_of("bcast_killed").len()
}

/// What shared memory and temporary files there are.
fn files() -> BTreeSet<String> {
    let names = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let ours = |name: &String| name.contains("polycast");
    ["/dev/shm", "/tmp"].into_iter().flat_map(names).filter(ours).collect()
}

/// What others have there, who also test, goes with them.
fn no_file_is_left(before: &BTreeSet<String>) {
    wait_until("no file is left in /dev/shm and /tmp", || files().is_subset(before));
}

/// How long the job took that a rank's death ended.
fn run(labs: &Labs, mpi: Mpi, victim: &str, form: Option<&str>) -> Duration {
    let job = LabJob::stock(labs, mpi, HOSTS, "bcast_killed").arguments(&[victim, "30"]);
    let job = form.map_or(job.clone(), |form| job.forced(form));
    let began = Instant::now();
    let (status, output) = job.finish();
    let took = began.elapsed();
    if status.success() || status.code() == Some(124) {
        output.fail(&format!("the job was to end by its rank's death: {status}"));
    }
    took
}

/// A process that ends has no program any more before its sockets are closed.
fn nothing_is_left(labs: &Labs) {
    wait_until("all ranks are gone", || ranks_alive() == 0);
    for host in (0..HOSTS).map(|host| format!("h{host}")) {
        wait_until(&format!("{host} has neither sockets nor memberships (tail /proc/net/udp)"), || {
            let left = labs.exec(LAB, &host, "tail -n +2 /proc/net/udp /proc/net/udp6; ip maddr show e0");
            !left.contains("239.") && !left.contains("00000000:0000 ")
        });
    }
}

fn killed(mpi: Mpi) {
    let Some(labs) = lab(HOSTS, &[]) else { return };
    let before = files();
    let stock = run(&labs, mpi, "2", None);
    for (form, victim) in FORMS.into_iter().zip(["2", "0"]) {
        let ends_in_time = || {
            let took = run(&labs, mpi, victim, Some(form));
            nothing_is_left(&labs);
            took < stock + MAX_LATER
        };
        let is_in_time = (0..TRIES).any(|_| ends_in_time());
        assert!(is_in_time, "{form}: {TRIES} times {MAX_LATER:?} later than {stock:?} without polycast");
    }
    no_file_is_left(&before);
    labs.succeeds(&["down", "--all"]);
}

/// On one node, in the memory that its ranks share: by the address of the root's message, through the ring, and through cells, whoever dies.
/// Each combination that `is_meant` by its number.
fn killed_beside_others(mpi: Mpi, is_meant: impl Fn(usize) -> bool) {
    let before = files();
    let run = |job: Job, victim: u32, calls: u32| {
        let job = job.arguments(&[&victim.to_string(), &calls.to_string(), "sums"]);
        let job = job.limit(Duration::from_secs(60));
        let (status, output) = job.finish();
        if status.success() || status.code() == Some(124) {
            output.fail(&format!("the job was to end by its rank's death: {status}"));
        }
        wait_until("all ranks are gone", || ranks_alive() == 0);
    };
    let ways = [("two-level", "direct"), ("two-level:segment=8KiB", "two-level"), ("cells", "cells")];
    let deaths = [(0, 0), (1, 1), (2, 2), (3, 30), (0, 31), (1, 50)];
    let all = deaths.into_iter().flat_map(|death| ways.map(|way| (death, way)));
    for (_, ((victim, calls), (broadcast, sum))) in all.enumerate().filter(|(number, _)| is_meant(*number)) {
        let job = Job::stock(mpi, 4, "bcast_killed").forced(broadcast);
        run(job.variable("POLYCAST_ALLREDUCE", sum), victim, calls);
    }
    no_file_is_left(&before);
}

/// One after the other: each looks for ranks of this program anywhere.
#[test]
fn a_killed_rank_leaves_nothing() {
    killed(Mpi::OpenMpi);
    killed(Mpi::Mpich);
    // An odd number of ways: each meets both MPIs.
    killed_beside_others(Mpi::OpenMpi, |number| number.is_multiple_of(2));
    killed_beside_others(Mpi::Mpich, |number| !number.is_multiple_of(2));
}

#[test]
#[ignore = "make test-all: half of them have run"]
fn a_killed_rank_leaves_nothing_on_its_node() {
    killed_beside_others(Mpi::OpenMpi, |_| true);
    killed_beside_others(Mpi::Mpich, |_| true);
}
