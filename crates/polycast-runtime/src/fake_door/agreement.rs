//! Ranks agree whether polycast serves a communicator, whatever happens to one of them meanwhile.

use super::ABORTED;
use super::conditions::Tamper;

use super::job::{Broadcast, Job, Outcome, Step};
use super::network::Weather;
use super::process::Ended;
use super::random::{Random, with_seeds};
use crate::fault::Point;

const CALLS: [(u32, usize); 2] = [(1, 3000), (0, 10)];

fn all_are_left(outcome: &Outcome) -> bool {
    outcome.ranks.iter().all(|told| told.attached == 0 && told.calls == [Ended::LEFT; 2])
}

#[test]
fn another_build_on_one_rank_leaves_all_to_stock() {
    let other_builds: [Tamper; 3] = [
        |rank, record| record[8] ^= u8::from(rank == 0),
        |rank, record| record[15] ^= u8::from(rank == 1),
        // No polycast at all.
        |rank, record| record[0] ^= u8::from(rank == 1),
    ];
    for tamper in other_builds {
        for ranks in 2..6 {
            let mut job = Job::new(ranks, ranks.into(), "binomial", &CALLS);
            job.conditions.tamper = Some(tamper);
            let outcome = job.run();
            assert!(all_are_left(&outcome), "{job:?}");
            let warnings = outcome.ranks.iter().map(|told| told.said.matches("another build").count());
            assert_eq!(warnings.sum::<usize>(), 1, "{job:?}: {outcome:?}");
        }
    }
}

/// The identity of a build covers the version of the interface: who has another one is found by the vote, before anything is attached.
#[test]
fn another_version_of_the_interface_on_one_rank_leaves_all_to_stock() {
    for algorithm in ["binomial", "multicast-pull"] {
        for rank in 0..4 {
            let job = Job::new(4, rank.into(), algorithm, &CALLS).on_hosts(&[0, 0, 1, 2], Weather::FINE);
            let job = Job { other_build: Some(rank), ..job };
            assert!(all_are_left(&job.run()), "{job:?}");
        }
    }
}

#[test]
fn other_settings_on_one_rank_give_way_to_those_of_rank_0() {
    let job = Job::new(4, 7, "chain:segment=1KiB", &CALLS).with(Some(1), "POLYCAST_BCAST", "stock");
    assert!(job.run().ranks.iter().all(|told| told.calls == [Ended::SERVED_WELL; 2]));
}

#[test]
fn a_panic_while_ranks_agree_leaves_all_to_stock() {
    with_seeds(30, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(2, 9) as u32;
        let point = random.one_of(&[Point::Record, Point::Settings, Point::Agree]);
        let panic = Some((random.below(ranks.into()) as u32, point, 0));
        let job = Job::new(ranks, seed, "binomial", &CALLS).with(Some(1), "POLYCAST_BCAST", "chain");
        let job = Job { panic, ..job };
        assert!(all_are_left(&job.run()), "{job:?}");
    });
}

#[test]
fn a_panic_before_the_first_served_call_leaves_the_communicator_to_stock() {
    for (rank, hosts) in [(0, [0, 0, 1, 2]), (1, [0, 0, 1, 2]), (3, [0, 0, 1, 2]), (0, [0; 4])] {
        let job = Job::new(4, 1, "binomial", &CALLS).on_hosts(&hosts, Weather::FINE);
        let job = Job { panic: Some((rank, Point::Open, 0)), ..job.with(None, "POLYCAST_MULTICAST", "off") };
        let outcome = job.run();
        assert!(
            outcome.ranks.iter().all(|told| told.attached == 1 && told.calls == [Ended::LEFT; 2]),
            "{job:?}"
        );
    }
}

/// On one host the others hear nothing but what rank 0 says: where polycast fails on another rank it ends there, as while it chooses.
#[test]
fn a_panic_behind_what_rank_0_says_ends_there() {
    for rank in 1..4 {
        let job = Job { panic: Some((rank, Point::Open, 0)), ..Job::new(4, 1, "binomial", &CALLS) };
        let outcome = job.run();
        for (other, told) in outcome.ranks.iter().enumerate() {
            let last = told.calls.last().expect("a call");
            match other == rank as usize {
                true => assert_eq!((last.is_served, last.code), (true, -1), "{job:?}"),
                false => assert!(last.is_right() || last.code == ABORTED, "{job:?}: {told:?}"),
            }
        }
    }
}

/// Settings that the program changes count for communicators that are met later; where ranks differ, those of the communicator's rank 0.
#[test]
fn settings_changed_by_the_program_are_agreed_on_again() {
    let call = |communicator| Step::Broadcast(Broadcast { communicator, root: 0, bytes: vec![100; 3] });
    let make = |members: &[u32]| Step::Make { members: members.to_vec() };
    let mut job = Job::new(3, 1, "binomial", &[]);
    job.program = vec![make(&[0, 1, 2]), call(0), Step::Configure(vec!["stock", "flat", "chain"])];
    job.program.extend([make(&[0, 1, 2]), call(1), make(&[1, 2, 0]), call(2), call(0), call(1)]);
    job.program.extend([Step::Configure(vec!["binary"; 3]), make(&[2, 1, 0]), call(3), call(2)]);
    for told in &job.run().ranks {
        assert!(told.calls.iter().all(Ended::is_right), "{told:?}");
        let choices: Vec<String> = told.choices.iter().map(ToString::to_string).collect();
        assert_eq!(choices, ["binomial", "stock", "flat", "binomial", "stock", "binary", "flat"]);
    }
}

#[test]
fn a_panic_while_multicast_is_set_up_leaves_all_to_what_needs_none() {
    for (ranks, rank) in [(2, 0), (2, 1), (5, 3)] {
        let hosts: Vec<u32> = (0..ranks).collect();
        let job = Job::new(ranks, 3, "multicast-pull", &CALLS).on_hosts(&hosts, Weather::FINE);
        let job = Job { panic: Some((rank, Point::Offer, 0)), ..job };
        let outcome = job.run();
        for told in &outcome.ranks {
            assert!(told.attached == 1, "{job:?}");
            assert_eq!(told.calls, outcome.ranks[0].calls, "{job:?}");
            assert!(told.calls.iter().all(Ended::is_right), "{job:?}: {told:?}");
        }
    }
}
