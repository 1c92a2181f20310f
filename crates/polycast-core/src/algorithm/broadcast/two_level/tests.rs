use proptest::prelude::*;

use super::*;
use crate::schedule::{Summary, check};
use crate::units::Bytes;

const BETWEEN: [Between; 6] = [
    Between::Multicast,
    Between::Tree(Tree::Flat),
    Between::Tree(Tree::Chain),
    Between::Tree(Tree::KAry(std::num::NonZeroU32::new(2).unwrap())),
    Between::Tree(Tree::KNomial(std::num::NonZeroU32::new(2).unwrap())),
    Between::ScatterRing,
];

const WITHIN: [Within; 2] = [Within::Shared, Within::Messages];

fn two_level(between: Between, segment: u64, buffer: u64, overlap: u64) -> TwoLevel {
    let [segment, buffer] = [segment, buffer].map(|bytes| NonZeroU64::new(bytes).unwrap());
    TwoLevel { between, segment, buffer, overlap, within: Within::Shared }
}

/// All ranks' schedules keep the contract, shared memory stays on a node, where messages may take its place, and only one rank of a node takes part between nodes.
fn prove(algorithm: TwoLevel, host_of: &[u64], ring: &[Rank], root: Rank, bytes: u64) -> Summary {
    let ranks = host_of.len() as u32;
    let call = Call::broadcast(ranks, root, Bytes(bytes));
    let schedule = |rank| algorithm.schedule(call, &Nodes::new(host_of, ring, Rank(rank)), Rank(rank));
    let schedules: Vec<_> = (0..ranks).map(schedule).collect();
    let of = || format!("{algorithm:?}, {call:?}, {host_of:?}");
    let summary = check(&schedules, &call).unwrap_or_else(|violation| panic!("{violation}: {}", of()));
    let mut between_nodes = std::collections::HashMap::new();
    for (rank, schedule) in (0..).map(Rank).zip(&schedules) {
        for lane in schedule.lanes() {
            let host = host_of[rank.index()];
            let is_here = |other: &Rank| host_of[other.index()] == host;
            match &lane.kind {
                Kind::Publish { fabric: Fabric::Shared, readers, .. } => {
                    assert!(algorithm.within == Within::Shared && readers.iter().all(is_here));
                }
                Kind::Fetch { fabric: Fabric::Shared, writer, .. } => {
                    assert!(algorithm.within == Within::Shared && is_here(writer));
                }
                Kind::Publish { readers, .. } => assert!(!readers.iter().any(is_here), "{}", of()),
                Kind::Fetch { writer, .. } => assert!(!is_here(writer), "{}", of()),
                Kind::Messages(stream) if is_here(&stream.peer) => {
                    assert_eq!(algorithm.within, Within::Messages, "{}", of());
                    continue;
                }
                Kind::Messages(_) => {}
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
    summary
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
        for (host_of, between) in placements(ranks).iter().flat_map(|p| [0, 2, 3, 5].map(|b| (p, BETWEEN[b])))
        {
            for root in (0..ranks).map(Rank) {
                for (bytes, overlap) in [(0, 0), (1, 0), (6, 2), (23, 0), (23, 3), (25, u64::MAX)] {
                    let within = WITHIN[(root.index() + bytes as usize) % 2];
                    prove(
                        TwoLevel { within, ..two_level(between, 6, 2, overlap) },
                        host_of,
                        &ring,
                        root,
                        bytes,
                    );
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
        (between, within) in (prop::sample::select(&BETWEEN[..]), prop::sample::select(&WITHIN[..])),
    ) {
        let ranks = host_of.len() as u32;
        let ring: Vec<Rank> = [Rank(0)].into_iter().chain(shuffled).filter(|rank| rank.0 < ranks).collect();
        let root = Rank(root.index(ranks as usize) as u32);
        prove(TwoLevel { within, ..two_level(between, segment, buffer, overlap) }, &host_of, &ring, root, bytes);
    }
}

/// 16 bytes to four nodes of two ranks: the third node has its two blocks from the root's, what is missing comes from the fourth, and all is shared
/// as it comes; with an overlap of a byte the rest of each message when all has come.
#[test]
fn blocks_are_scattered_and_go_around_the_ring_of_nodes() {
    let (host_of, ring) = ([0, 0, 1, 1, 2, 2, 3, 3], (0..8).map(Rank).collect::<Vec<_>>());
    let lanes = |rank: u32, buffer: u64, overlap: u64| {
        let call = Call::broadcast(8, Rank(0), Bytes(16));
        let way = two_level(Between::ScatterRing, 1 << 20, buffer, overlap);
        let schedule = way.schedule(call, &Nodes::new(&host_of, &ring, Rank(rank)), Rank(rank));
        let step = |lane: usize, index| schedule.step(lane, index);
        let all = schedule.lanes().iter().enumerate();
        all.map(|(lane, of)| (0..of.steps).map(|index| step(lane, index)).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    let step =
        |action: fn(Slice) -> Action, bytes, after| Step { action: action(Slice::output(bytes)), after };
    let after = |lane, count| After::Steps { lane, count };
    let (receive, send, publish) = (Action::Receive, Action::Send, Action::Publish);
    assert_eq!(
        lanes(4, 1 << 20, u64::MAX),
        [
            vec![step(receive, 8..16, After::Start)],
            vec![step(receive, 0..4, After::Start), step(receive, 4..8, After::Start)],
            vec![step(send, 12..16, after(0, 1))],
            vec![
                step(send, 8..12, after(0, 1)),
                step(send, 12..16, after(0, 1)),
                step(send, 0..4, after(1, 1))
            ],
            vec![
                step(publish, 8..16, after(0, 1)),
                step(publish, 0..4, after(1, 1)),
                step(publish, 4..8, after(1, 2))
            ],
        ]
    );
    let fetch = |at, to| Step { action: Action::Fetch { at, to: Slice::output(to) }, after: After::Start };
    assert_eq!(lanes(5, 1 << 20, u64::MAX), [[fetch(0, 8..16), fetch(8, 0..4), fetch(12, 4..8)]]);
    assert_eq!(lanes(1, 1 << 20, u64::MAX), [[fetch(0, 0..16)]]);
    let (shared, all) = (&lanes(4, 1, 1)[4], After::LanesBelow(2));
    assert_eq!(
        shared[..3],
        [
            step(publish, 8..9, after(0, 1)),
            step(publish, 0..1, after(1, 1)),
            step(publish, 4..5, after(1, 2))
        ]
    );
    assert_eq!((shared.len(), &shared[3]), (16, &step(publish, 9..10, all)));
}

/// Each node's link brings the message once. The root's carries it out not quite twice, however many ranks there are; those of others less.
#[test]
fn no_links_carry_more_than_the_scatter_and_the_ring() {
    let host_of: Vec<u64> = (0..32).map(|rank| rank / 4).collect();
    let ring: Vec<Rank> = (0..32).map(Rank).collect();
    let of = |between| {
        let summary = prove(two_level(between, 1 << 20, 1 << 20, u64::MAX), &host_of, &ring, Rank(5), 800);
        (summary.messages, summary.most_bytes_sent.0)
    };
    assert_eq!(of(Between::ScatterRing), (7 + 44, 2 * 7 * 100));
    assert_eq!(of(BETWEEN[2]), (7, 800));
    assert_eq!(of(BETWEEN[4]), (7, 3 * 800));
}

/// By messages every rank is sent the data once, in pieces of a buffer on its node.
#[test]
fn messages_take_the_place_of_shared_memory() {
    let host_of: Vec<u64> = (0..32).map(|rank| rank / 4).collect();
    let ring: Vec<Rank> = (0..32).map(Rank).collect();
    for (between, messages) in [(BETWEEN[2], 7 * 2), (BETWEEN[4], 7 * 2), (Between::Multicast, 0)] {
        let way = TwoLevel { within: Within::Messages, ..two_level(between, 500, 250, 250) };
        let summary = prove(way, &host_of, &ring, Rank(5), 1000);
        assert_eq!(summary.messages, messages + 24 * 4, "{between:?}");
    }
    // The root's node goes first to another one: on a node messages go when nothing can go between nodes.
    let way = TwoLevel { within: Within::Messages, ..two_level(BETWEEN[2], 500, 250, 250) };
    let call = Call::broadcast(32, Rank(5), Bytes(1000));
    let schedule = way.schedule(call, &Nodes::new(&host_of, &ring, Rank(5)), Rank(5));
    let lanes = schedule.lanes().iter().filter_map(|lane| Some((lane.stream()?.peer, lane.phase)));
    assert_eq!(lanes.collect::<Vec<_>>(), [(Rank(8), 0), (Rank(7), 1), (Rank(6), 1)]);
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
