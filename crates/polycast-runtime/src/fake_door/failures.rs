//! MPI fails on one rank, or polycast does: the error is reported there, no receive is left behind, and nobody takes another way than
//! the others.

use super::conditions::{Fault, Function};
use super::job::{Job, Outcome};
use super::network::Weather;
use super::process::Ended;
use super::random::{Random, with_seeds};
use super::world::{Collective, Doing};
use super::{ABORTED, INJECTED};
use crate::fault::Point;

const ERROR_INTERNAL: i32 = -1;
const CALLS: [(u32, usize); 3] = [(0, 20_000), (1, 3000), (0, 50)];

/// `code` on `rank`, whose program it ends; elsewhere calls are right, and all go the same way, until the job is aborted. Nowhere has
/// MPI still a buffer.
fn assert_ended(outcome: &Outcome, rank: u32, code: i32, job: &Job) {
    let mut ways = [None; CALLS.len()];
    for (other, told) in outcome.ranks.iter().enumerate() {
        let context = format!("rank {other}: {told:?} of {job:?}");
        let (last, before) = told.calls.split_last().expect("a call");
        let is_right = |ended: &Ended| ended.code == 0 && ended.has_data;
        assert!(before.iter().all(is_right), "{context}");
        match other == rank as usize {
            true => assert_eq!((last.is_served, last.code), (true, code), "{context}"),
            false => assert!(is_right(last) || last.code == ABORTED, "{context}"),
        }
        for (way, ended) in ways.iter_mut().zip(&told.calls).filter(|(_, ended)| ended.code == 0) {
            assert_eq!(*way.get_or_insert(ended.is_served), ended.is_served, "{context}");
        }
        assert_eq!(told.outstanding_receives, 0, "{context}");
    }
}

#[test]
fn a_panic_in_choosing_ends_there() {
    with_seeds(30, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(2, 9) as u32;
        let rank = random.below(ranks.into()) as u32;
        let panic = Some((rank, Point::Choose, random.below(3) as u32));
        let job = Job { panic, ..Job::new(ranks, seed, "chain:segment=1KiB", &CALLS) };
        assert_ended(&job.run(), rank, ERROR_INTERNAL, &job);
    });
}

#[test]
fn a_panic_in_a_broadcast_cancels_its_receives() {
    with_seeds(60, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(2, 9) as u32;
        let rank = random.below(ranks.into()) as u32;
        let panic = Some((rank, Point::Message, random.below(6) as u32));
        let algorithm = random.one_of(&["chain:segment=1KiB", "binary:segment=1KiB,ready", "scatter-ring"]);
        let job = Job { panic, ..Job::new(ranks, seed, algorithm, &[(0, 20_000), (1, 30_000)]) };
        let outcome = job.run();
        let has_panicked = outcome.ranks[rank as usize].calls.iter().any(|ended| ended.code != 0);
        assert!(has_panicked || algorithm != "chain:segment=1KiB", "{job:?}");
        if has_panicked {
            assert_ended(&outcome, rank, ERROR_INTERNAL, &job);
        }
    });
}

#[test]
fn a_failed_message_ends_there_and_cancels_receives() {
    with_seeds(90, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(2, 9) as u32;
        let rank = random.below(ranks.into()) as u32;
        let function = random.one_of(&[Function::Isend, Function::Irecv, Function::Poll]);
        let fault = Some(Fault { rank, function, nth: random.below(12) as u32, is_late: false });
        let algorithm = random.one_of(&["chain:segment=1KiB", "binary:segment=1KiB,ready", "binomial"]);
        let mut job = Job::new(ranks, seed, algorithm, &CALLS);
        job.conditions.fault = fault;
        let outcome = job.run();
        match outcome.failed {
            Some(_) => assert_ended(&outcome, rank, INJECTED, &job),
            None => {
                assert!(outcome.ranks.iter().all(|told| told.calls == [Ended::SERVED_WELL; 3]), "{job:?}")
            }
        }
    });
}

/// Every exchange, on every rank, before and after the others have what they need: when MPI begins, the number, and the
/// offers for multicast. Settings differ, and each rank has a host, so that all is exchanged that can be.
#[test]
fn a_failed_exchange_leaves_no_rank_with_a_choice_of_its_own() {
    for rank in 0..3 {
        for is_late in [false, true] {
            let mut failed = Vec::new();
            for nth in 0.. {
                let job = Job::new(3, nth.into(), "multicast-pull", &CALLS);
                let mut job = job.on_hosts(&[0, 1, 2], Weather::FINE).with(Some(1), "POLYCAST_BCAST", "flat");
                // The vote is the door's own.
                let nth = nth + 1;
                job.conditions.fault = Some(Fault { rank, function: Function::Collective, nth, is_late });
                let outcome = job.run();
                let Some(Doing::Collective(call)) = outcome.failed else { break };
                if let Collective::Stock { .. } = call {
                    break;
                }
                failed.push(call);
                assert_ended(&outcome, rank, INJECTED, &job);
            }
            assert!(
                failed.iter().any(|call| matches!(call, Collective::Intersect { .. })) && failed.len() >= 7,
                "{failed:?}"
            );
        }
    }
}
