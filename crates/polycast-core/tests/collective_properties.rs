//! Every algorithm of the collectives other than the broadcast keeps its contract, for every communicator and root: see the
//! invariants of `polycast_core::schedule`, which the checker proves.

use std::num::NonZeroU64;

use polycast_core::algorithm::broadcast::Planner;
use polycast_core::algorithm::{Algorithm, Registry};
use polycast_core::collective::{Call, Collective, CombinationOrder};
use polycast_core::schedule::{Summary, Violation, check, cut};
use polycast_core::units::{Bytes, Rank};

/// Fails with the call that breaks it.
fn prove(algorithm: Algorithm, call: &Call, segment: u64) -> Summary {
    prove_cut(algorithm, call, segment, u64::MAX)
}

/// The same where no message is to have more than `most` bytes.
fn prove_cut(algorithm: Algorithm, call: &Call, segment: u64, most: u64) -> Summary {
    let algorithm = Algorithm { segment: NonZeroU64::new(segment), ..algorithm };
    let mut planner = Planner::flat(call.ranks);
    let schedules: Vec<_> =
        (0..call.ranks).map(|rank| cut(algorithm.schedule(*call, Rank(rank), &mut planner), most)).collect();
    check(&schedules, call).unwrap_or_else(|violation| panic!("{algorithm} {call:?}: {violation}"))
}

/// All algorithms of the collectives other than the broadcast, and those for one node of all.
fn all() -> impl Iterator<Item = (Collective, Algorithm)> {
    Collective::ALL.into_iter().flat_map(|of| {
        let anywhere =
            Registry::BUILT_IN.samples(of).into_iter().filter(move |_| of != Collective::Broadcast);
        let all = anywhere.chain(Registry::BUILT_IN.samples_on_one_node(of));
        all.map(move |algorithm| (of, algorithm))
    })
}

/// Bytes, bytes of an element, and segments (0: whole): nothing, one, fewer elements than ranks, segments that do not divide the
/// data, that are smaller than an element or larger than all.
const CUTS: [(u64, u64, u64); 5] = [(0, 1, 0), (1, 1, 0), (21, 3, 5), (40, 8, 4), (77, 7, 100)];

/// With every `every`th root.
fn prove_all(ranks: u32, every: usize) {
    for (collective, algorithm) in all() {
        let roots = if collective.has_root() { ranks } else { 1 };
        for root in (0..roots).step_by(every).map(Rank) {
            for (number, (bytes, element, segment)) in CUTS.into_iter().enumerate() {
                let element = NonZeroU64::new(element).unwrap();
                // Each cut meets all four in turn.
                let variant = number + root.index() + ranks as usize;
                let order =
                    if variant.is_multiple_of(2) { algorithm.entry.keeps } else { CombinationOrder::Any };
                let is_in_place = (variant / 2).is_multiple_of(2);
                let plain = Call::new(collective, ranks, root, Bytes(bytes));
                prove(algorithm, &Call { element, order, is_in_place, ..plain }, segment);
            }
        }
    }
}

#[test]
fn every_root_up_to_13_ranks() {
    (1..=13).for_each(|ranks| prove_all(ranks, 1));
}

/// For `make test`; `make check` goes without.
mod long {
    #[test]
    fn every_root_of_14_to_16_ranks() {
        (14..=16).for_each(|ranks| super::prove_all(ranks, 1));
    }

    #[test]
    fn every_ninth_root_of_more() {
        [21, 32, 37].into_iter().for_each(|ranks| super::prove_all(ranks, 9));
    }
}

#[test]
#[ignore = "make test-all: takes longer"]
fn every_root_up_to_64_ranks() {
    (17..=64).for_each(|ranks| prove_all(ranks, 1));
}

/// Messages of any collective can be kept below what MPI can count, and still do what they did.
#[test]
fn messages_that_are_too_long_are_cut() {
    for (collective, algorithm) in all() {
        for (ranks, is_in_place, segment) in [(2, false, 0), (5, true, 0), (8, false, 0), (13, true, 50)] {
            let plain = Call::new(collective, ranks, Rank(ranks / 2), Bytes(40));
            let call = Call { element: NonZeroU64::new(8).unwrap(), is_in_place, ..plain };
            let whole = prove_cut(algorithm, &call, segment, u64::MAX);
            let cut = prove_cut(algorithm, &call, segment, 11);
            assert_eq!((cut.bytes, cut.signals), (whole.bytes, whole.signals), "{algorithm} {call:?}");
            assert!(cut.messages * 11 >= cut.bytes.0, "{algorithm} {call:?}");
        }
    }
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
    assert_eq!(alltoall.signals, 16 * 14, "a grant before each step but the first");
    let barrier = summary(Collective::Barrier, "dissemination", 13, 0);
    assert_eq!((barrier.messages, barrier.signals), (0, 13 * 4));
    let reduce = summary(Collective::Reduce, "binomial", 16, 10);
    assert_eq!((reduce.messages, reduce.most_messages_sent, reduce.most_bytes_sent.0), (15, 1, 10));
    let allreduce = summary(Collective::Allreduce, "recursive-doubling", 16, 10);
    assert_eq!((allreduce.messages, allreduce.most_bytes_sent.0), (16 * 4, 40));
    let ring = summary(Collective::Allreduce, "ring", 16, 160);
    assert_eq!((ring.messages, ring.most_bytes_sent.0), (16 * 30, 2 * 15 * 10));
    let halving = summary(Collective::Allreduce, "halving-doubling", 16, 160);
    assert_eq!((halving.messages, halving.most_bytes_sent.0), (16 * 8, 2 * 15 * 10));
    let chain = summary(Collective::Allreduce, "chain", 16, 160);
    assert_eq!((chain.messages, chain.most_bytes_sent.0), (2 * 15, 2 * 160));
    let doubling = summary(Collective::Allgather, "recursive-doubling", 16, 10);
    assert_eq!((doubling.messages, doubling.most_bytes_sent.0), (16 * 4, 150));
    let bruck = summary(Collective::Alltoall, "bruck", 16, 10);
    assert_eq!((bruck.messages, bruck.most_bytes_sent.0), (16 * 4, 4 * 80));
    for name in ["flat", "chain", "binary", "binomial"] {
        let scatter = summary(Collective::Scatter, name, 16, 10);
        assert_eq!((scatter.messages, scatter.most_bytes_sent.0), (15, 150), "{name}");
    }
    let allreduce = summary(Collective::Allreduce, "recursive-doubling", 13, 10);
    assert_eq!((allreduce.messages, allreduce.most_bytes_sent.0), (8 * 3 + 2 * 5, 40));
}

/// A proof that can fail: rings, chains and other trees combine otherwise, and do not say that they have the order of sums.
#[test]
fn what_does_not_claim_the_order_of_sums_has_not_got_it() {
    let plain = Call::new(Collective::Allreduce, 7, Rank(2), Bytes(56));
    let element = NonZeroU64::new(8).unwrap();
    let mut otherwise: Vec<String> = Vec::new();
    for (collective, algorithm) in all().filter(|(of, _)| of.combines()) {
        let call = Call { collective, element, ..plain };
        let mut planner = Planner::flat(call.ranks);
        // For a call that asks for less, proved as one that asks for more.
        let call = Call { order: algorithm.entry.keeps.min(CombinationOrder::Ranks), ..call };
        let schedules: Vec<_> =
            (0..call.ranks).map(|rank| algorithm.schedule(call, Rank(rank), &mut planner)).collect();
        let found = check(&schedules, &Call { order: CombinationOrder::Tree, ..call });
        let is_by_messages = algorithm.entry.is_of_messages() || algorithm.entry.is_on_one_node();
        if is_by_messages {
            assert_eq!(
                found.is_ok(),
                algorithm.entry.keeps == CombinationOrder::Tree,
                "{collective} {algorithm}: {found:?}"
            );
        }
        if algorithm.entry.keeps < CombinationOrder::Tree
            && matches!(found, Err(Violation::WrongOperands { .. }))
        {
            otherwise.push(format!("{collective} {algorithm}"));
        }
    }
    for text in [
        "reduce chain",
        "reduce flat",
        "reduce binary",
        "allreduce ring",
        "allreduce chain",
        "allreduce binary",
    ] {
        assert!(otherwise.iter().any(|other| other == text), "{text}: {otherwise:?}");
    }
}
