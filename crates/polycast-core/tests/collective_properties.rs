//! Every algorithm of the collectives other than the broadcast keeps its contract, for every communicator and root: see the
//! invariants of `polycast_core::schedule`, which the checker proves.

use std::num::NonZeroU64;

use polycast_core::algorithm::broadcast::Planner;
use polycast_core::algorithm::{Algorithm, Registry};
use polycast_core::collective::{Call, Collective};
use polycast_core::schedule::{Summary, check};
use polycast_core::units::{Bytes, Rank};

/// Fails with the call that breaks it.
fn prove(algorithm: Algorithm, call: &Call, segment: u64) -> Summary {
    let algorithm = Algorithm { segment: NonZeroU64::new(segment), ..algorithm };
    let mut planner = Planner::flat(call.ranks);
    let schedules: Vec<_> =
        (0..call.ranks).map(|rank| algorithm.schedule(*call, Rank(rank), &mut planner)).collect();
    check(&schedules, call).unwrap_or_else(|violation| panic!("{algorithm} {call:?}: {violation}"))
}

/// All algorithms of the collectives other than the broadcast.
fn all() -> impl Iterator<Item = (Collective, Algorithm)> {
    let others = Collective::ALL.into_iter().filter(|collective| *collective != Collective::Broadcast);
    others.flat_map(|of| Registry::BUILT_IN.samples(of).into_iter().map(move |algorithm| (of, algorithm)))
}

/// Bytes, bytes of an element, and segments (0: whole): nothing, one, fewer elements than ranks, segments that do not divide the
/// data, that are smaller than an element or larger than all.
const CUTS: [(u64, u64, u64); 5] = [(0, 1, 0), (1, 1, 0), (21, 3, 5), (40, 8, 4), (77, 7, 100)];

fn prove_all(ranks: u32) {
    for (collective, algorithm) in all() {
        let roots = if collective.has_root() { ranks } else { 1 };
        for root in (0..roots).map(Rank) {
            for (number, (bytes, element, segment)) in CUTS.into_iter().enumerate() {
                let element = NonZeroU64::new(element).unwrap();
                // Each cut meets all four in turn.
                let variant = number + root.index() + ranks as usize;
                let (is_ordered, is_in_place) = (variant.is_multiple_of(2), (variant / 2).is_multiple_of(2));
                let plain = Call::new(collective, ranks, root, Bytes(bytes));
                prove(algorithm, &Call { element, is_ordered, is_in_place, ..plain }, segment);
            }
        }
    }
}

#[test]
fn every_root_up_to_24_ranks_and_64() {
    (1..=24).chain([64]).for_each(prove_all);
}

#[test]
#[ignore = "make test-all: takes longer"]
fn every_root_up_to_63_ranks() {
    (25..=63).for_each(prove_all);
}

fn summary(of: Collective, name: &str, ranks: u32, bytes: u64) -> Summary {
    let algorithm = Registry::BUILT_IN.read(of, name).unwrap();
    prove(algorithm, &Call::new(of, ranks, Rank(0), Bytes(bytes)), 0)
}

/// What the papers count: nobody sends more than these algorithms promise.
#[test]
fn as_many_messages_and_bytes_as_promised() {
    let scatter = summary(Collective::Scatter, "binomial", 16, 10);
    assert_eq!((scatter.messages, scatter.most_messages_sent, scatter.most_bytes_sent.0), (15, 4, 150));
    let gather = summary(Collective::Gather, "binomial", 16, 10);
    assert_eq!((gather.messages, gather.most_messages_sent, gather.most_bytes_sent.0), (15, 1, 80));
    let allgather = summary(Collective::Allgather, "ring", 16, 10);
    assert_eq!((allgather.messages, allgather.most_bytes_sent.0), (16 * 15, 150));
    let alltoall = summary(Collective::Alltoall, "pairwise", 16, 10);
    assert_eq!((alltoall.messages, alltoall.most_bytes_sent.0), (16 * 15, 150));
    let barrier = summary(Collective::Barrier, "dissemination", 13, 0);
    assert_eq!((barrier.messages, barrier.signals), (0, 13 * 4));
    let reduce = summary(Collective::Reduce, "binomial", 16, 10);
    assert_eq!((reduce.messages, reduce.most_messages_sent, reduce.most_bytes_sent.0), (15, 1, 10));
    let allreduce = summary(Collective::Allreduce, "recursive-doubling", 16, 10);
    assert_eq!((allreduce.messages, allreduce.most_bytes_sent.0), (16 * 4, 40));
    let allreduce = summary(Collective::Allreduce, "recursive-doubling", 13, 10);
    assert_eq!((allreduce.messages, allreduce.most_bytes_sent.0), (8 * 3 + 2 * 5, 40));
}
