//! Every algorithm, for every communicator and root, is a correct broadcast: see the invariants of
//! `polycast_core::schedule`, which the checker proves.

use polycast_core::algorithm::broadcast::{Algorithm, Call};
use polycast_core::schedule::{RankOrder, Summary, check};
use polycast_core::units::{Bytes, Rank};
use proptest::prelude::*;

const SHAPES: [&str; 10] = [
    "flat",
    "chain",
    "binary",
    "k-ary:k=3",
    "binomial",
    "k-nomial:k=3",
    "k-nomial:k=4",
    "split-binary",
    "scatter-ring",
    "scatter-doubling",
];

fn algorithm(text: &str) -> Algorithm {
    text.parse().expect("a valid algorithm")
}

/// Fails with the call that breaks it.
fn prove(algorithm: Algorithm, call: Call) -> Summary {
    let schedules: Vec<_> = (0..call.ranks).map(|rank| algorithm.schedule(call, Rank(rank))).collect();
    let summary = check(&schedules, call.bytes, call.root)
        .unwrap_or_else(|violation| panic!("{algorithm} {call:?}: {violation}"));
    let expected = call.bytes.0 * u64::from(call.ranks - 1);
    assert_eq!(summary.bytes.0, expected, "{algorithm} {call:?}: every rank receives the data once");
    summary
}

/// Bytes and segment sizes (0: whole) around the edges: nothing, fewer bytes than ranks, segments that do not divide
/// the message, that are larger than it, of one byte.
const CUTS: [(u64, u64); 7] = [(0, 0), (1, 0), (7, 1), (37, 5), (1000, 0), (1021, 64), (100, 128)];

fn prove_every_root(ranks: u32) {
    for (number, (bytes, segment)) in CUTS.into_iter().enumerate() {
        for shape in SHAPES {
            for root in 0..ranks {
                // Every second root, others for the next cut.
                let ready = (root as usize + number).is_multiple_of(2);
                let segment = std::num::NonZeroU64::new(segment);
                let algorithm = Algorithm { segment, ready, ..algorithm(shape) };
                prove(algorithm, Call { ranks, root: Rank(root), bytes: Bytes(bytes) });
            }
        }
    }
}

/// As a job does it where ranks are scattered over hosts.
#[test]
fn ranks_in_the_order_of_their_hosts() {
    for (ranks, hosts) in [(4, 2), (7, 3), (16, 5)] {
        let host_of: Vec<u64> = (0..ranks).map(|rank| u64::from(rank % hosts)).collect();
        let order = RankOrder::by_host(&host_of).unwrap();
        for (shape, root) in SHAPES.iter().flat_map(|shape| (0..ranks).map(move |root| (shape, Rank(root)))) {
            let call = Call { ranks, root: order.position(root), bytes: Bytes(1021) };
            let schedule = |rank| order.apply(algorithm(shape).schedule(call, order.position(Rank(rank))));
            let schedules: Vec<_> = (0..ranks).map(schedule).collect();
            check(&schedules, call.bytes, root)
                .unwrap_or_else(|violation| panic!("{shape} {root}: {violation}"));
        }
    }
}

#[test]
fn every_root_up_to_32_ranks() {
    (1..=32).for_each(prove_every_root);
}

#[test]
fn every_root_up_to_48_ranks() {
    (33..=48).for_each(prove_every_root);
}

#[test]
fn every_root_up_to_64_ranks() {
    (49..=64).for_each(prove_every_root);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn samples_up_to_1024_ranks(
        shape in prop::sample::select(&SHAPES[..]),
        (ranks, root) in (1u32..=1024).prop_flat_map(|ranks| (Just(ranks), 0..ranks)),
        bytes in prop_oneof![0u64..3000, 0u64..100_000_000],
        segments in 0u64..20,
        ready: bool,
    ) {
        let segment = bytes.checked_div(segments).and_then(std::num::NonZeroU64::new);
        prove(
            Algorithm { segment, ready, ..algorithm(shape) },
            Call { ranks, root: Rank(root), bytes: Bytes(bytes) },
        );
    }
}
