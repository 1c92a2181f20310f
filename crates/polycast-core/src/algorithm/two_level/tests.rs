use std::num::NonZeroU64;

use proptest::prelude::*;

use super::*;
use crate::algorithm::Registry;
use crate::algorithm::broadcast::Planner;
use crate::collective::Call;
use crate::schedule::{Fabric, Kind, Nodes, Summary, check};
use crate::units::{Bytes, Rank};

/// All with all ways between nodes, each with a buffer or without.
fn all() -> Vec<(Collective, Algorithm)> {
    let of = |entry: &'static Entry| entry.samples().map(|algorithm| (entry.collectives[0], algorithm));
    ENTRIES.iter().flat_map(of).collect()
}

/// All ranks' schedules keep the contract, shared memory stays on a node, and data between nodes is one rank's of each.
fn prove(algorithm: Algorithm, host_of: &[u64], ring: &[Rank], call: &Call) -> Summary {
    let of = || format!("{algorithm}, {call:?}, {host_of:?}");
    let schedules: Vec<_> = (0..call.ranks)
        .map(|rank| {
            let nodes = Nodes::new(host_of, ring, Rank(rank));
            let mut planner = Planner::flat(call.ranks).on_nodes(nodes.into());
            algorithm.schedule(*call, Rank(rank), &mut planner)
        })
        .collect();
    let summary = check(&schedules, call).unwrap_or_else(|violation| panic!("{violation}: {}", of()));
    let mut between_nodes = std::collections::HashMap::new();
    for (rank, schedule) in (0..).map(Rank).zip(&schedules) {
        let host = host_of[rank.index()];
        let is_here = |other: &Rank| host_of[other.index()] == host;
        for lane in schedule.lanes() {
            match &lane.kind {
                Kind::Local => {}
                Kind::Publish { fabric, readers, .. } => {
                    assert!(*fabric == Fabric::Shared && readers.iter().all(is_here), "{}", of());
                }
                Kind::Fetch { fabric, writer, .. } => {
                    assert!(*fabric == Fabric::Shared && is_here(writer), "{}", of());
                }
                Kind::Messages(stream) => {
                    assert!(!is_here(&stream.peer), "{}", of());
                    assert_eq!(*between_nodes.entry(host).or_insert(rank), rank, "{}", of());
                }
            }
        }
    }
    summary
}

/// All on one node, one per node, round about, nodes of 1, 2, 3, … ranks, and nodes of four one after the other.
fn placements(ranks: u32) -> [Vec<u64>; 6] {
    let ranks = 0..u64::from(ranks);
    [
        ranks.clone().map(|_| 0).collect(),
        ranks.clone().collect(),
        ranks.clone().map(|rank| rank % 2).collect(),
        ranks.clone().map(|rank| rank % 3).collect(),
        ranks.clone().map(|rank| (1..).find(|node| node * (node + 1) / 2 > rank).unwrap()).collect(),
        ranks.map(|rank| rank / 4).collect(),
    ]
}

/// Bytes, bytes of an element, segment and buffer (0: none).
const CUTS: [(u64, u64, u64, u64); 6] =
    [(0, 1, 0, 0), (1, 1, 0, 0), (21, 3, 5, 0), (40, 8, 4, 8), (78, 6, 20, 7), (64, 8, 0, 24)];

fn cut(algorithm: Algorithm, segment: u64, buffer: u64) -> Algorithm {
    let between = algorithm.given("between").unwrap_or(0);
    let whole = match algorithm.entry.parameters.is_empty() {
        true => algorithm,
        false => Algorithm::new(algorithm.entry, [between, buffer]),
    };
    let segment = NonZeroU64::new(segment).filter(|_| algorithm.entry.has_parameter("segment"));
    Algorithm { segment, ..whole }
}

fn prove_all(ranks: u32, every: usize) {
    let ring: Vec<Rank> = (0..ranks).map(Rank).collect();
    for (collective, algorithm) in all() {
        for (placement, host_of) in placements(ranks).iter().enumerate() {
            let roots = if collective.has_root() { ranks } else { 1 };
            for root in (0..roots).step_by(every).map(Rank) {
                let number = placement + root.index() + ranks as usize;
                let (bytes, element, segment, buffer) = CUTS[number % CUTS.len()];
                let element = NonZeroU64::new(element).unwrap();
                let plain = Call::new(collective, ranks, root, Bytes(bytes));
                let call = Call { element, is_in_place: (number / 7).is_multiple_of(2), ..plain };
                prove(cut(algorithm, segment, buffer), host_of, &ring, &call);
            }
        }
    }
}

#[test]
fn every_root_of_many_placements() {
    (1..=6).chain([9]).for_each(|ranks| prove_all(ranks, 2));
}

#[test]
fn every_cut_on_some_placements() {
    for (collective, algorithm) in all() {
        for ranks in [4, 7] {
            let ring: Vec<Rank> = (0..ranks).map(Rank).collect();
            for host_of in &placements(ranks)[2..] {
                for ((bytes, element, segment, buffer), is_in_place) in
                    CUTS.into_iter().flat_map(|cut| [(cut, false), (cut, true)])
                {
                    let element = NonZeroU64::new(element).unwrap();
                    let plain = Call::new(collective, ranks, Rank(ranks / 2), Bytes(bytes));
                    let call = Call { element, is_in_place, ..plain };
                    prove(cut(algorithm, segment, buffer), host_of, &ring, &call);
                }
            }
        }
    }
}

#[test]
fn some_roots_of_more_ranks() {
    [16, 33].into_iter().for_each(|ranks| prove_all(ranks, 31));
}

#[test]
#[ignore = "make test-all: takes longer"]
fn every_root_up_to_64_ranks() {
    (1..=64).for_each(|ranks| prove_all(ranks, 1));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_placement_and_any_cut(
        (collective, algorithm) in prop::sample::select(all()),
        host_of in prop::collection::vec(0u64..5, 1..14),
        shuffled in Just((1..14).map(Rank).collect::<Vec<_>>()).prop_shuffle(),
        root in any::<prop::sample::Index>(),
        (elements, element) in (0u64..40, 1u64..5),
        (segment, buffer) in (0u64..30, 0u64..30),
        is_in_place in any::<bool>(),
    ) {
        let ranks = host_of.len() as u32;
        let ring: Vec<Rank> = [Rank(0)].into_iter().chain(shuffled).filter(|rank| rank.0 < ranks).collect();
        let root = if collective.has_root() { Rank(root.index(ranks as usize) as u32) } else { Rank(0) };
        let plain = Call::new(collective, ranks, root, Bytes(elements * element));
        let call = Call { element: NonZeroU64::new(element).unwrap(), is_in_place, ..plain };
        prove(cut(algorithm, segment, buffer), &host_of, &ring, &call);
    }
}

/// A node's link carries what the algorithm between nodes promises, however many ranks there are: here 8 nodes of 4.
#[test]
fn between_nodes_go_as_many_messages_and_bytes_as_promised() {
    let host_of: Vec<u64> = (0..32).map(|rank| rank / 4).collect();
    let ring: Vec<Rank> = (0..32).map(Rank).collect();
    let most = |of: Collective, name: &str, bytes: u64| {
        let algorithm = Registry::BUILT_IN.read(of, name).unwrap();
        let summary = prove(algorithm, &host_of, &ring, &Call::new(of, 32, Rank(0), Bytes(bytes)));
        (summary.messages, summary.most_bytes_sent.0)
    };
    assert_eq!(most(Collective::Allreduce, "two-level", 800), (8 * 14, 2 * 7 * 100));
    assert_eq!(most(Collective::Allreduce, "two-level:between=recursive-doubling", 80), (8 * 3, 3 * 80));
    assert_eq!(most(Collective::Reduce, "two-level", 80), (7, 80));
    assert_eq!(most(Collective::Allgather, "two-level", 10), (8 * 7, 7 * 4 * 10));
    assert_eq!(most(Collective::Gather, "two-level", 10), (7, 4 * 4 * 10));
    assert_eq!(most(Collective::Scatter, "two-level", 10), (7, 7 * 4 * 10));
    assert_eq!(most(Collective::Alltoall, "two-level", 10), (8 * 7, 7 * 16 * 10));
    let barrier = Registry::BUILT_IN.read(Collective::Barrier, "two-level").unwrap();
    let call = Call::new(Collective::Barrier, 32, Rank(0), Bytes(0));
    assert_eq!(prove(barrier, &host_of, &ring, &call).signals, 8 * 3);
}
