//! Choosers of a job's ranks, whose exchanges are answered by a world that a seed decides.

mod job;

use proptest::prelude::*;

use self::job::{Job, Outcome, World};
use super::*;
use crate::network::Network;
use crate::policy::{Call, CommunicatorShape, Explanation, Ranks, ServedSums, Table, passing_at_first};
use crate::units::{Bytes, Nanos, Rate};

const BROADCAST: Collective = Collective::Broadcast;
const ALLREDUCE: Collective = Collective::Allreduce;

fn rule() -> impl Strategy<Value = String> {
    const OF_BROADCAST: [&str; 7] =
        ["stock", "chain:segment=1KiB", "binomial", "multicast-pull", "two-level", "cells", "flat"];
    const OF_ALLREDUCE: [&str; 6] =
        ["stock", "recursive-doubling", "two-level", "two-level:between=pairwise", "cells", "ring"];
    let bytes = prop::sample::select(
        &["", "bytes = \"..1KiB\"\n", "bytes = \"1KiB..\"\n", "bytes = \"8KiB..\"\n"][..],
    );
    let calls = prop::sample::select(
        &[
            "",
            "",
            "",
            "earlier_calls = \"5..\"\n",
            "earlier_calls = \"..40\"\n",
            "earlier_calls = \"100..\"\n",
        ][..],
    );
    let network = prop::sample::select(&["", "", "", "rate = \"1gbit..\"\n", "latency = \"..50us\"\n"][..]);
    let choice = prop_oneof![
        prop::sample::select(&OF_BROADCAST[..]).prop_map(|of| ("bcast", of)),
        prop::sample::select(&OF_ALLREDUCE[..]).prop_map(|of| ("allreduce", of)),
    ];
    (bytes, calls, network, choice).prop_map(|(bytes, calls, network, (collective, choice))| {
        format!("[[rule]]\ncollective = \"{collective}\"\n{bytes}{calls}{network}use = \"{choice}\"\n")
    })
}

fn world() -> impl Strategy<Value = World> {
    let table = prop::collection::vec(rule(), 1..8)
        .prop_map(|rules| Table::parse(&format!("version = 1\n{}", rules.concat()), "t").unwrap());
    let shape = (1u32..4, 1u32..4).prop_filter_map("two ranks", |(nodes, per_node)| {
        (nodes * per_node > 1).then(|| CommunicatorShape::new(nodes * per_node, nodes, None).unwrap())
    });
    let learning = prop_oneof![
        4 => any::<bool>().prop_map(|tries| Learning { tries, tunes: false }),
        1 => any::<bool>().prop_map(|tries| Learning { tries, tunes: true }),
    ];
    let network =
        (prop::option::of(1u64..5_000_000_000), 1u64..100_000).prop_map(|(rate, latency)| Network {
            rate: rate.and_then(Rate::from_bits_per_second),
            latency: Some(Nanos(latency)),
            multicast_rate: None,
        });
    let there =
        (prop::bool::weighted(0.9), any::<bool>(), prop::collection::vec(any::<bool>(), 1..4), 1u32..20);
    let sums = prop::sample::select(
        &[ServedSums::Auto, ServedSums::Auto, ServedSums::Canonical, ServedSums::Mpi][..],
    );
    ((table, any::<bool>()), sums, any::<bool>(), shape, learning, network, there).prop_map(
        |(
            (table, challenges),
            sums,
            is_of_all,
            shape,
            learning,
            network,
            (has_number, has_memory, multicast, looks),
        )| {
            World {
                table,
                challenges: challenges && learning.tries && !learning.tunes,
                sums,
                of_sums: Table::of_sums(),
                shape: shape.of_all(is_of_all),
                learning,
                has_number,
                has_memory,
                multicast,
                looks,
                network,
                exchanges: 0,
                tries: 0,
                is_asked: false,
            }
        },
    )
}

fn waited(collective: Collective, bytes: u64) -> Request {
    let call = Call::new(collective, Bytes(bytes));
    Request {
        call,
        is_root: false,
        may_be_compared: true,
        is_ordered: false,
        is_own: false,
        when: Waiting::Waited,
    }
}

/// Stretches of calls alike.
fn requests(most: usize) -> impl Strategy<Value = Vec<(Request, u32)>> {
    let collective = prop::sample::select(&[BROADCAST, BROADCAST, ALLREDUCE][..]);
    let when =
        prop_oneof![8 => Just(Waiting::Waited), 1 => Just(Waiting::Ahead), 1 => Just(Waiting::Prepared)];
    let kind = (prop::bool::weighted(0.8), prop::bool::weighted(0.1), prop::bool::weighted(0.1));
    let bytes = prop::sample::select(&[4u64, 60, 700, 1500, 9000, 9001, 100_000][..]);
    let request = (collective, bytes, when, kind).prop_map(|(collective, bytes, when, kind)| {
        let (may_be_compared, is_ordered, is_own) = kind;
        let is_reduction = collective.combines();
        let request = waited(collective, bytes);
        let may_be_compared = !is_reduction || (may_be_compared && !is_ordered);
        Request {
            call: Call { is_sum: !may_be_compared, ..request.call },
            may_be_compared,
            is_ordered: is_reduction && is_ordered,
            is_own: is_reduction && is_own,
            when,
            ..request
        }
    });
    prop::collection::vec((request, prop_oneof![1u32..5, 1u32..200]), 1..most)
}

proptest! {
    /// Invariants 1 to 4, for any order of calls, times, readers and doors.
    #[test]
    fn choosers_of_one_job_agree(
        world in world(),
        requests in requests(20),
        kinds in prop::collection::vec((any::<bool>(), any::<bool>()), 1..6),
        limit in prop::option::weighted(0.2, 1000u64..400_000),
        failure in prop::option::weighted(0.3, (0usize..8, 0usize..12)),
    ) {
        let (shape, count) = (world.shape, world.shape.ranks);
        let longest = limit.map(|room| LongestCalls::new(room, shape));
        let mut job = Job::new(world, count, longest, &kinds);
        job.failure = failure.map(|(rank, at)| (rank % count as usize, at));
        for (request, times) in requests {
            for _ in 0..times {
                job.call(request);
            }
        }
        job.assert_all_know_the_same();
    }

    /// Invariant 6: of sums, all of a size are the MPI's or none is, and who promises that all are
    /// served serves the first one, if ranks can be served at all.
    #[test]
    fn sums_of_a_size_go_one_way_from_the_first_call_to_the_last(
        world in world(),
        requests in requests(30),
        kinds in prop::collection::vec((any::<bool>(), any::<bool>()), 1..6),
        limit in prop::option::weighted(0.2, 1000u64..400_000),
        failure in prop::option::weighted(0.1, (0usize..8, 0usize..12)),
    ) {
        let (shape, count, sums) = (world.shape, world.shape.ranks, world.sums);
        let (has_number, can_be_promised) = (world.has_number, failure.is_none());
        let mut job = Job::new(world, count, limit.map(|room| LongestCalls::new(room, shape)), &kinds);
        job.failure = failure.map(|(rank, at)| (rank % count as usize, at));
        let mut served = std::collections::HashMap::new();
        for (request, times) in requests {
            for _ in 0..times {
                let (of, when) = (request.call, request.when);
                let Some(outcome) = job.call(request).filter(|_| of.is_sum) else { continue };
                let is_served = match outcome {
                    Outcome::Left => false,
                    Outcome::Served(chosen) => {
                        let keeps = chosen.choice.keeps_order_of_sums(shape);
                        prop_assert!(keeps, "{} for {of:?}", chosen.choice);
                        true
                    }
                };
                let is_possible = has_number && when != Waiting::Ahead && can_be_promised;
                prop_assert!(sums != ServedSums::Canonical || is_served == is_possible || failure.is_some());
                prop_assert!(sums != ServedSums::Mpi || !is_served);
                if when != Waiting::Ahead {
                    let is_alike = *served.entry((of.bytes.0, request.is_own)).or_insert(is_served) == is_served;
                    prop_assert!(is_alike, "{of:?}, served: {is_served}");
                }
            }
        }
    }

    /// Invariant 2 for the first calls, which pass before the communicator is attached: where the
    /// rules leave the same sizes uncounted in the whole job as here, as in its MPI_COMM_WORLD.
    #[test]
    fn who_is_attached_late_decides_as_who_was_asked_from_the_start(
        world in world(),
        requests in requests(20),
    ) {
        let (shape, count) = (world.shape, world.shape.ranks);
        let rules = world.rules();
        let ranks = Ranks { least: count, most: count };
        let at_first = passing_at_first(rules, (ranks, shape));
        let policy = world.policy(None);
        let counts_alike = Collective::ALL.iter().all(|of| policy.to_stock(*of) == at_first[*of as usize].uncounted);
        if !counts_alike || world.learning.tunes {
            return Ok(());
        }
        let kinds = [(false, true)];
        let mut asked = Job::new(world.clone(), count, None, &kinds);
        let (mut late, mut counts) = (None, [0; 8]);
        for (request, times) in requests {
            let of = request.call.collective as usize;
            for _ in 0..times {
                let passes = late.is_none()
                    && request.when == Waiting::Waited
                    && at_first[of].passes(request.call.bytes.0, &mut counts[of]);
                let attached = || Job::after(counts, world.clone(), count, None, &kinds);
                let outcome = match passes {
                    true => Some(Outcome::Left),
                    false => late.get_or_insert_with(attached).call(request),
                };
                prop_assert_eq!(asked.call(request), outcome, "{:?}", request);
                prop_assert!(late.is_some() || asked.world.exchanges == 0);
            }
        }
    }

    /// What explains a call number names what a job of that shape does, whatever the job turns out to have.
    #[test]
    fn what_is_explained_is_what_jobs_do(world in world(), requests in requests(12)) {
        let multicast = vec![world.multicast[0]];
        let (learning, challenges) = (Learning::default(), false);
        let world = World { learning, challenges, multicast, looks: u32::MAX, ..world };
        let lost = [
            (!world.multicast[0] || world.shape.nodes == 1, Capabilities::MULTICAST),
            (!world.has_memory, Capabilities::SHARED),
        ];
        let there = lost.into_iter().filter(|(is_lost, _)| *is_lost);
        let there = there.fold(Capabilities::ALL, |there, (_, lost)| there.without(lost));
        let there = if world.has_number { there } else { Capabilities::NONE };
        let count = world.shape.ranks;
        let mut job = Job::new(world, count, None, &[(false, false), (true, true)]);
        let mut made = Vec::new();
        let mut counted = [0u64; 8];
        for (request, times) in requests {
            let request = Request { is_ordered: false, is_own: false, when: Waiting::Waited, ..request };
            for _ in 0..times {
                let earlier_calls = counted[request.call.collective as usize];
                let is_counted = !job.ranks[0].chooser.policy().leaves(&request.call);
                made.push((request.call, earlier_calls, job.call(request).unwrap()));
                counted[request.call.collective as usize] += u64::from(is_counted);
            }
        }
        let network = job.world.is_asked.then_some(job.world.network);
        let shape = CommunicatorShape { network, ..job.world.shape };
        let rules = job.world.rules();
        for (call, earlier_calls, outcome) in made {
            let choice = match outcome {
                Outcome::Left => Choice::Stock,
                Outcome::Served(chosen) => chosen.choice,
            };
            let explained = Explanation::new(rules, shape, there, &call, earlier_calls).decision;
            prop_assert_eq!(explained.choice, choice, "{:?} after {}", call, earlier_calls);
        }
    }
}

fn one_rule(way: &str) -> World {
    let table = format!("version = 1\n[[rule]]\ncollective = \"bcast\"\nuse = \"{way}\"\n");
    World {
        table: Table::parse(&table, "t").unwrap(),
        challenges: false,
        sums: ServedSums::Auto,
        of_sums: Table::of_sums(),
        shape: CommunicatorShape::new(4, 4, None).unwrap(),
        learning: Learning::default(),
        has_number: true,
        has_memory: true,
        multicast: vec![true],
        looks: u32::MAX,
        network: Network::default(),
        exchanges: 0,
        tries: 0,
        is_asked: false,
    }
}

#[test]
fn the_first_call_opens_and_those_alike_ask_for_nothing() {
    let mut job = Job::new(one_rule("chain"), 2, None, &[(false, false)]);
    for _ in 0..1000 {
        assert!(matches!(job.call(waited(BROADCAST, 5000)), Some(Outcome::Served(_))));
    }
    assert_eq!(job.world.exchanges, 1);
    assert_eq!(job.ranks[0].chooser.expected(BROADCAST, Bytes(9), 0).0.to_string(), "chain");
}

#[test]
fn what_is_only_started_is_served_when_a_call_that_was_waited_for_has_opened() {
    let mut job = Job::new(one_rule("chain"), 2, None, &[(false, false)]);
    let ahead = Request { when: Waiting::Ahead, ..waited(BROADCAST, 5000) };
    assert_eq!(job.call(ahead), Some(Outcome::Left));
    assert_eq!(job.call(waited(ALLREDUCE, 8)), Some(Outcome::Left));
    assert_eq!(job.world.exchanges, 1, "although nobody serves the call");
    assert!(matches!(job.call(ahead), Some(Outcome::Served(_))));
}

/// A root that hands a long message to a chain is through long before the others have it. With a short one it may be held up, which counts.
#[test]
fn the_root_times_what_is_short() {
    for (bytes, root_counts) in [(9000, true), (65_535, true), (65_536, false)] {
        let learning = Learning { tries: true, tunes: false };
        let mut job = Job::new(World { learning, ..one_rule("chain") }, 4, None, &[(false, true)]);
        for _ in 0..2 {
            job.call(waited(BROADCAST, bytes));
        }
        let mut counts = |is_root: bool| {
            let request = Request { is_root, ..waited(BROADCAST, bytes) };
            match job.ranks[1].chooser.next(&request) {
                WhoServes::Leave { sample, why, .. } | WhoServes::Serve { sample, why, .. } => {
                    assert_eq!(why, Some(Why::Compared));
                    sample.is_some()
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!([false, true, true, false].map(&mut counts), [true, root_counts, root_counts, true]);
        let of = Sameness::tuned(BROADCAST, bytes, Capabilities::PRIVATE);
        assert_eq!(compared::timed_ranks(of, 4), 3 + u32::from(root_counts));
    }
}

#[test]
fn multicast_that_does_not_work_is_tried_again_later_and_later() {
    let mut job =
        Job::new(World { multicast: vec![false], ..one_rule("multicast-pull") }, 2, None, &[(false, true)]);
    let mut tries = Vec::new();
    for call in 1..=120 {
        assert_eq!(job.call(waited(BROADCAST, 5000)), Some(Outcome::Left));
        tries.extend((job.world.tries > tries.len()).then_some(call));
    }
    assert_eq!(tries, [1, 17, 49, 113]);
}

#[test]
fn multicast_that_dies_is_left_at_the_next_look() {
    let mut job = Job::new(World { looks: 3, ..one_rule("multicast-pull") }, 2, None, &[(false, false)]);
    let is_left: Vec<bool> =
        (0..14).map(|_| job.call(waited(BROADCAST, 5000)) == Some(Outcome::Left)).collect();
    // Four calls to a look.
    assert_eq!(is_left.iter().position(|is_left| *is_left), Some(12), "{is_left:?}");
}

/// Where no rule speaks: only the MPI at first, then others within what they may cost; calls that
/// may not be served in different ways are the MPI's for ever.
#[test]
fn where_no_rule_speaks_challengers_are_tried() {
    let learning = Learning { tries: true, tunes: false };
    let table = Table::parse("version = 1\n", "t").unwrap();
    let world = World { table, challenges: true, learning, ..one_rule("chain") };
    let mut job = Job::new(world, 4, None, &[(false, false), (true, false)]);
    let mut is_left = |bytes, may_be_compared, calls: usize| -> Vec<bool> {
        let request = Request { may_be_compared, ..waited(ALLREDUCE, bytes) };
        (0..calls).map(|_| job.call(request) == Some(Outcome::Left)).collect()
    };
    assert!(is_left(16 << 10, false, 400).iter().all(|is_left| *is_left), "sums");
    let first = is_left(16 << 10, true, 20);
    assert!(first.iter().all(|is_left| *is_left));
    let later = is_left(16 << 10, true, 2000);
    let tried = later.iter().filter(|is_left| !**is_left).count();
    assert!(tried > 0, "something was tried");
    assert!(job.world.exchanges > 2 && job.world.is_asked);
}

/// Programs keep thousands of communicators that are never served.
#[test]
fn a_chooser_that_serves_nothing_is_small() {
    assert!(size_of::<Chooser>() <= 144, "{} bytes", size_of::<Chooser>());
}
