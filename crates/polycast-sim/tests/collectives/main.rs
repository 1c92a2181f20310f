//! Collectives in virtual time, with the bytes that MPI promises at the end.

mod sabotage;
mod sums;
mod support;
mod two_level;

use std::num::NonZeroU64;

use polycast_core::algorithm::broadcast::Planner;
use polycast_core::algorithm::{Algorithm, Entry, Registry};
use polycast_core::collective::{Call, Collective, CombinationOrder};
use polycast_core::executor::Limits;
use polycast_core::schedule::{Listed, Schedule};
use polycast_core::units::{Bytes, Rank};
use polycast_sim::{Network, Outcome, Schedules, Simulation, Wrong};
use proptest::prelude::*;
use support::{before, combination, expected};

type Run = Schedules<Box<dyn Schedule>>;

fn simulate(
    algorithm: Algorithm,
    call: &Call,
    segment: u64,
    change: impl Fn(Run) -> Run,
    network: Network,
) -> Outcome {
    let call = &for_any_order(algorithm, call);
    let combine = combination(call);
    let ranks = || (0..call.ranks).map(Rank);
    let algorithm = Algorithm { segment: NonZeroU64::new(segment), ..algorithm };
    let mut planner = Planner::flat(call.ranks);
    let schedules = ranks().map(|rank| algorithm.schedule(*call, rank, &mut planner)).collect();
    let run =
        Schedules::new(network, schedules).carry(ranks().map(|rank| before(call, rank)).collect(), combine);
    let outcome = change(run).run().unwrap_or_else(|stuck| panic!("{call:?}: {stuck}"));
    let delivered = outcome.delivered.as_ref().expect("data was carried");
    for (rank, output) in ranks().zip(delivered) {
        if let Some(expected) = expected(call, rank, combine) {
            assert_eq!(*output, expected, "{call:?}: rank {rank}");
        }
    }
    outcome
}

/// The call, with an operation that asks for no more order than the algorithm keeps.
fn for_any_order(algorithm: Algorithm, call: &Call) -> Call {
    Call { order: call.order.min(algorithm.entry.keeps), ..*call }
}

/// All algorithms of the collectives other than the broadcast, with typical parameters.
fn all() -> Vec<(Collective, Algorithm)> {
    let others = Collective::ALL.into_iter().filter(|collective| *collective != Collective::Broadcast);
    let of = |of| Registry::BUILT_IN.compared(of).into_iter().map(move |algorithm| (of, algorithm));
    others.flat_map(of).collect()
}

fn read(of: Collective, name: &str) -> Algorithm {
    Registry::BUILT_IN.read(of, name).expect("there is this algorithm")
}

/// The library's own check holds where this one does, and it sees what goes wrong.
#[test]
fn the_check_of_the_library() {
    static IDLE: Entry =
        Entry::any(&[Collective::Gather], "idle", "", "", |_, _, _| Box::new(Listed::default()));
    let run = |algorithm, call: &Call| {
        let call = Call { element: NonZeroU64::new(8).expect("not 0"), ..*call };
        Simulation::new(Network::ethernet(1e9), call, algorithm).run_checked()
    };
    for (collective, algorithm) in all() {
        for (ranks, bytes) in [(1, 8), (7, 0), (13, 1000), (16, 4096)] {
            let call = Call::new(collective, ranks, Rank(ranks / 2), Bytes(bytes));
            let checked =
                run(algorithm, &call).unwrap_or_else(|wrong| panic!("{call:?} {algorithm}: {wrong}"));
            let seen = simulate(algorithm, &call, 0, |run| run, Network::ethernet(1e9));
            assert_eq!(checked.messages, seen.messages, "{call:?} {algorithm}");
        }
    }
    let gather = Call::new(Collective::Gather, 3, Rank(1), Bytes(8));
    assert_eq!(run(IDLE.typical(), &gather), Err(Wrong::Data(Rank(1))));
    let alltoall = Call::new(Collective::Alltoall, 2000, Rank(0), Bytes(1));
    assert_eq!(run(read(Collective::Alltoall, "pairwise"), &alltoall), Err(Wrong::TooLong));
}

fn deliver(ranks: u32) {
    for (collective, algorithm) in all() {
        for (number, bytes) in [0, 2, 22, 1000].into_iter().enumerate() {
            let root = Rank((ranks / 2 + number as u32) % ranks);
            let plain = Call::new(collective, ranks, root, Bytes(bytes));
            let element = NonZeroU64::new(2).expect("not 0");
            for (order, is_in_place) in [
                (CombinationOrder::Any, false),
                (CombinationOrder::Tree, false),
                (CombinationOrder::Any, true),
                (CombinationOrder::Tree, true),
            ] {
                let call = Call { element, order, is_in_place, ..plain };
                let segment = [0, 5, 256][ranks as usize % 3];
                simulate(algorithm, &call, segment, |run| run, Network::ethernet(1e9));
            }
        }
    }
}

#[test]
fn every_algorithm_delivers_the_bytes_that_are_promised() {
    (1..=9).chain([13, 16]).for_each(deliver);
}

mod long {
    #[test]
    fn every_algorithm_delivers_the_bytes_that_are_promised() {
        [31, 64].into_iter().for_each(super::deliver);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whoever_is_late_and_whatever_the_limits(
        (collective, algorithm) in prop::sample::select(all()),
        ranks in 1u32..24,
        root in any::<prop::sample::Index>(),
        elements in 0u64..200,
        segment in 0u64..100,
        order in prop::sample::select(vec![CombinationOrder::Any, CombinationOrder::Ranks, CombinationOrder::Tree]),
        is_in_place in any::<bool>(),
        starts_ns in prop::collection::vec(0u64..3_000_000, 24),
        limits in (1u32..=64, 1u32..8).prop_map(|(per_lane, sends)| Limits { per_lane, sends }),
        rendezvous_threshold in prop::option::of(0u64..200),
    ) {
        let root = Rank(root.index(ranks as usize) as u32);
        let element = NonZeroU64::new(2).expect("not 0");
        let plain = Call::new(collective, ranks, root, Bytes(2 * elements));
        let call = Call { element, order, is_in_place, ..plain };
        let network = Network { rendezvous_threshold, ..Network::ethernet(1e8) };
        let starts = &starts_ns[..ranks as usize];
        simulate(algorithm, &call, segment, |run| run.limits(limits).starts(starts.to_vec()), network);
    }
}

/// Times are those of closed forms where a byte takes one nanosecond and nothing else takes time,
/// as the papers count.
#[test]
fn closed_forms() {
    let time = |collective, name, ranks, bytes| {
        let call = Call::new(collective, ranks, Rank(0), Bytes(bytes));
        simulate(read(collective, name), &call, 0, |run| run, Network::bare(1.0)).completion_ns
    };
    for ranks in [2u32, 4, 8, 16, 32] {
        let (hops, others) = (u64::from(ranks.ilog2()), u64::from(ranks) - 1);
        assert_eq!(time(Collective::Scatter, "binomial", ranks, 1000), others * 1000, "{ranks}");
        assert_eq!(time(Collective::Gather, "binomial", ranks, 1000), others * 1000, "{ranks}");
        assert_eq!(time(Collective::Allgather, "ring", ranks, 1000), others * 1000, "{ranks}");
        assert_eq!(time(Collective::Alltoall, "pairwise", ranks, 1000), others * 1000, "{ranks}");
        assert_eq!(time(Collective::Reduce, "binomial", ranks, 1000), hops * 1000, "{ranks}");
        assert_eq!(time(Collective::Allreduce, "recursive-doubling", ranks, 1000), hops * 1000, "{ranks}");
        assert_eq!(time(Collective::Allgather, "recursive-doubling", ranks, 1000), others * 1000, "{ranks}");
        let halves = u64::from(ranks) / 2 * 1000;
        assert_eq!(time(Collective::Alltoall, "bruck", ranks, 1000), hops * halves, "{ranks}");
        for name in ["ring", "halving-doubling"] {
            let share = 3200 / u64::from(ranks);
            assert_eq!(time(Collective::Allreduce, name, ranks, 3200), 2 * others * share, "{name} {ranks}");
        }
        for collective in [Collective::Scatter, Collective::Gather] {
            assert_eq!(time(collective, "flat", ranks, 1000), others * 1000, "{ranks}");
        }
    }
}

/// Nobody leaves a barrier before the last has come, and all leave soon after.
#[test]
fn a_barrier_waits_for_the_last() {
    for ranks in [2, 3, 13, 32] {
        let call = Call::new(Collective::Barrier, ranks, Rank(0), Bytes(0));
        let network = Network { latency_ns: 100, ..Network::bare(0.0) };
        for late in 0..ranks as usize {
            let starts: Vec<u64> =
                (0..ranks as usize).map(|rank| if rank == late { 5_000 } else { 0 }).collect();
            let outcome = simulate(
                read(Collective::Barrier, "dissemination"),
                &call,
                0,
                |run| run.starts(starts.clone()),
                network,
            );
            let rounds = u64::from(ranks.next_power_of_two().ilog2());
            let others = outcome.per_rank_ns.iter();
            assert!(
                others.clone().all(|end_ns| (5_000..=5_000 + rounds * 100).contains(end_ns)),
                "{outcome:?}"
            );
        }
    }
}
