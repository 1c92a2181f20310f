//! Several calls in flight on one communicator: ranks go on with them in different orders, and one that fails takes no other with it.

use std::cell::Cell;

use super::INJECTED;
use super::conditions::{Fault, Function};
use super::job::{Broadcast, Job, Outcome, Step};
use super::network::Weather;
use super::process::Ended;
use super::random::{Random, seeds, with_seeds};
use crate::fault::Point;

const ERROR_INTERNAL: i32 = -1;
const ERROR_SIZE: i32 = -2;

/// Of the same size on all ranks.
fn calls(random: &mut Random, ranks: u64, count: u64) -> Vec<Broadcast> {
    let call = |_| {
        let most = random.one_of(if cfg!(miri) { &[10, 300, 3000] } else { &[10, 3000, 60_000] });
        let bytes = random.within(1, most) as usize;
        Broadcast { communicator: 0, root: random.below(ranks) as u32, bytes: vec![bytes; ranks as usize] }
    };
    (0..count).map(call).collect()
}

/// All calls in flight at a time, twice: what the first leave behind serves the second.
fn job(ranks: u64, seed: u64, algorithm: &str, calls: &[Broadcast]) -> Job {
    let mut job = Job::new(ranks as u32, seed, algorithm, &[]);
    let free = job.program.pop();
    job.program.extend([Step::InFlight(calls.to_vec()), Step::InFlight(calls.to_vec())]);
    job.program.extend(free);
    job
}

fn assert_all_right(outcome: &Outcome, calls: usize, job: &Job) {
    for (rank, told) in outcome.ranks.iter().enumerate() {
        assert_eq!(told.calls, vec![Ended::SERVED_WELL; calls], "rank {rank} of {job:?}");
    }
}

#[test]
fn schedules_in_flight_do_not_meet() {
    with_seeds(60, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(2, 9);
        let count = random.within(2, 5);
        let calls = calls(random, ranks, count);
        let algorithm =
            random.one_of(&["chain:segment=1KiB", "binary:segment=1KiB,ready", "scatter-ring", "binomial"]);
        let job = job(ranks, seed, algorithm, &calls);
        let outcome = job.run();
        assert_all_right(&outcome, 2 * calls.len(), &job);
        assert!(outcome.ranks.iter().all(|told| told.outstanding_receives == 0), "{job:?}");
    });
}

/// The protocol has one at a time: the others wait for their turn.
#[test]
fn multicasts_in_flight_follow_each_other() {
    with_seeds(60, |seed| {
        let random = &mut Random::new(seed);
        let count = random.within(2, 5) as u32;
        let mut hosts: Vec<u32> = (0..count).collect();
        hosts.extend((0..random.below(5)).map(|_| random.below(count.into()) as u32));
        random.shuffle(&mut hosts);
        let ranks = hosts.len() as u64;
        let calls = calls(random, ranks, 3);
        let lost = random.one_of(&[0, 10, 300]);
        let algorithm = random.one_of(&["multicast-pull", "multicast-push"]);
        let weather = Weather { lost, ..Weather::FINE };
        let job = job(ranks, seed, algorithm, &calls).on_hosts(&hosts, weather);
        let outcome = job.run();
        assert_all_right(&outcome, 6, &job);
        assert!(outcome.datagrams > 0, "{job:?}");
    });
}

/// Sizes differ in one of them, and the ranks of nodes that no longer can have it know.
#[test]
fn sizes_that_differ_spoil_one_call() {
    with_seeds(60, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(3, 7);
        let mut calls = calls(random, ranks, 3);
        let wrong = random.below(3) as usize;
        let of = (calls[wrong].root as usize + 1) % ranks as usize;
        calls[wrong].bytes[of] += random.within(1, 3000) as usize;
        let hosts: Vec<u32> = (0..ranks as u32).map(|rank| rank / 2).collect();
        let algorithm = random.one_of(&["chain:segment=1KiB", "binary:ready", "multicast-pull"]);
        let job = job(ranks, seed, algorithm, &calls).on_hosts(&hosts, Weather::FINE);
        for (rank, told) in job.run().ranks.iter().enumerate() {
            for (at, ended) in told.calls.iter().enumerate() {
                let may_differ = at % 3 == wrong;
                let is_right = *ended == Ended::SERVED_WELL;
                let knows = may_differ && (ended.code == ERROR_SIZE || rank == calls[wrong].root as usize);
                assert!(is_right || knows, "call {at} on rank {rank}: {ended:?} of {job:?}");
            }
            assert_eq!(told.calls.len(), 6, "rank {rank} of {job:?}");
        }
    });
}

/// MPI refuses a message, or polycast panics: the call ends there with its receives cancelled, and the others are done everywhere.
#[test]
fn a_call_that_fails_takes_no_other_with_it() {
    let failures = Cell::new(0);
    with_seeds(120, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(2, 6);
        let rank = random.below(ranks) as u32;
        let calls = calls(random, ranks, 3);
        let algorithm = random.one_of(&["chain:segment=1KiB", "binary:segment=1KiB,ready", "scatter-ring"]);
        let mut job = job(ranks, seed, algorithm, &calls);
        let nth = random.below(8) as u32;
        let code = match random.below(3) {
            0 => {
                job.panic = Some((rank, Point::Message, nth));
                ERROR_INTERNAL
            }
            way => {
                let function = if way == 1 { Function::Isend } else { Function::Irecv };
                job.conditions.fault = Some(Fault { rank, function, nth, is_late: false });
                INJECTED
            }
        };
        let outcome = job.run();
        let mine = &outcome.ranks[rank as usize].calls;
        let Some(wrong) = mine.iter().position(|ended| ended.code != 0) else { return };
        failures.set(failures.get() + 1);
        assert_eq!(mine[wrong].code, code, "{job:?}");
        for (other, told) in outcome.ranks.iter().enumerate() {
            let is_spared = |(at, ended): (usize, &Ended)| at == wrong || *ended == Ended::SERVED_WELL;
            let first = told.calls.iter().enumerate().take(3 * (wrong / 3 + 1));
            assert!(first.clone().count() > wrong, "rank {other}: {told:?} of {job:?}");
            assert!(first.clone().all(is_spared), "rank {other}: {told:?} of {job:?}");
            assert_eq!(told.outstanding_receives, 0, "rank {other}: {told:?} of {job:?}");
        }
    });
    assert!(failures.get() > 20 || seeds(120).count() < 120, "only {} have failed", failures.get());
}
