use proptest::prelude::*;

use super::*;
use crate::schedule::check;
use crate::units::Bytes;

const BETWEEN: [Between; 5] = [
    Between::Multicast,
    Between::Tree(Tree::Flat),
    Between::Tree(Tree::Chain),
    Between::Tree(Tree::KAry(std::num::NonZeroU32::new(2).unwrap())),
    Between::Tree(Tree::KNomial(std::num::NonZeroU32::new(2).unwrap())),
];

fn two_level(between: Between, segment: u64, buffer: u64, overlap: u64) -> TwoLevel {
    let [segment, buffer] = [segment, buffer].map(|bytes| NonZeroU64::new(bytes).unwrap());
    TwoLevel { between, segment, buffer, overlap }
}

/// All ranks' schedules keep the contract, shared memory stays on a node, and only one rank of a node takes part between nodes.
fn prove(algorithm: TwoLevel, host_of: &[u64], ring: &[Rank], root: Rank, bytes: u64) {
    let ranks = host_of.len() as u32;
    let call = Call::broadcast(ranks, root, Bytes(bytes));
    let schedule = |rank| algorithm.schedule(call, &Nodes::new(host_of, ring, Rank(rank)), Rank(rank));
    let schedules: Vec<_> = (0..ranks).map(schedule).collect();
    let of = || format!("{algorithm:?}, {call:?}, {host_of:?}");
    check(&schedules, &call).unwrap_or_else(|violation| panic!("{violation}: {}", of()));
    let mut between_nodes = std::collections::HashMap::new();
    for (rank, schedule) in (0..).map(Rank).zip(&schedules) {
        for lane in schedule.lanes() {
            let host = host_of[rank.index()];
            let is_here = |other: &Rank| host_of[other.index()] == host;
            match &lane.kind {
                Kind::Publish { fabric: Fabric::Shared, readers, .. } => assert!(readers.iter().all(is_here)),
                Kind::Fetch { fabric: Fabric::Shared, writer, .. } => assert!(is_here(writer)),
                Kind::Publish { readers, .. } => assert!(!readers.iter().any(is_here), "{}", of()),
                Kind::Fetch { writer, .. } => assert!(!is_here(writer), "{}", of()),
                Kind::Messages(stream) => assert!(!is_here(&stream.peer), "{}", of()),
                Kind::Local => panic!("{}", of()),
            }
            if !matches!(
                lane.kind,
                Kind::Publish { fabric: Fabric::Shared, .. } | Kind::Fetch { fabric: Fabric::Shared, .. }
            ) {
                assert_eq!(*between_nodes.entry(host).or_insert(rank), rank, "{}", of());
            }
        }
    }
}

/// All on one node, one per node, round about, and nodes of 1, 2, 3, … ranks.
fn placements(ranks: u32) -> [Vec<u64>; 5] {
    let ranks = 0..u64::from(ranks);
    [
        ranks.clone().map(|_| 0).collect(),
        ranks.clone().collect(),
        ranks.clone().map(|rank| rank % 2).collect(),
        ranks.clone().map(|rank| rank % 3).collect(),
        ranks.map(|rank| (1..).find(|node| node * (node + 1) / 2 > rank).unwrap()).collect(),
    ]
}

#[test]
fn every_root_of_many_placements() {
    for ranks in (1..=7).chain([12]) {
        let ring: Vec<Rank> = (0..ranks).map(Rank).collect();
        for (host_of, between) in placements(ranks).iter().flat_map(|p| [0, 2, 3].map(|b| (p, BETWEEN[b]))) {
            for root in (0..ranks).map(Rank) {
                for (bytes, overlap) in [(0, 0), (1, 0), (6, 2), (23, 0), (23, 3), (25, u64::MAX)] {
                    prove(two_level(between, 6, 2, overlap), host_of, &ring, root, bytes);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_placement_and_any_cut(
        host_of in prop::collection::vec(0u64..5, 1..14),
        shuffled in Just((1..14).map(Rank).collect::<Vec<_>>()).prop_shuffle(),
        root in any::<prop::sample::Index>(),
        (bytes, segment, buffer) in (0u64..90, 1u64..40, 1u64..20),
        overlap in prop_oneof![0u64..40, Just(u64::MAX)],
        between in prop::sample::select(&BETWEEN[..]),
    ) {
        let ranks = host_of.len() as u32;
        let ring: Vec<Rank> = [Rank(0)].into_iter().chain(shuffled).filter(|rank| rank.0 < ranks).collect();
        let root = Rank(root.index(ranks as usize) as u32);
        prove(two_level(between, segment, buffer, overlap), &host_of, &ring, root, bytes);
    }
}

/// As in the picture of [`Cut`].
#[test]
fn the_first_pieces_of_all_segments_go_before_the_rest() {
    let cut = two_level(Between::Multicast, 8, 2, 2).cut(19, 2);
    let places: Vec<u64> = (0..cut.pieces()).map(|place| cut.on_node(place).0).collect();
    assert_eq!(places, [0, 4, 8, 1, 2, 3, 5, 6, 7, 9]);
    let waits: Vec<u64> = (0..cut.pieces()).map(|place| cut.on_node(place).1).collect();
    assert_eq!(waits, [1, 2, 3, 3, 3, 3, 3, 3, 3, 3]);
    assert_eq!(cut.begins_at(9), 18);
    // A last piece of one byte that goes early: what comes after it begins one byte before.
    let cut = two_level(Between::Multicast, 8, 2, 2).cut(17, 2);
    assert_eq!([2, 3, 4].map(|place| cut.begins_at(place)), [4, 5, 7]);
}
