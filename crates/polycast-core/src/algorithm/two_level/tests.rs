use std::num::NonZeroU64;

use proptest::prelude::*;

use super::*;
use crate::algorithm::Registry;
use crate::algorithm::broadcast::Planner;
use crate::collective::{Call, CombinationOrder};
use crate::schedule::{Action, Fabric, Kind, Nodes, Schedule, Summary, check};
use crate::units::{Bytes, Rank};

/// All with all ways between nodes, each with a buffer or without.
fn all() -> Vec<(Collective, Algorithm)> {
    let of = |entry: &'static Entry| entry.samples().map(|algorithm| (entry.collectives[0], algorithm));
    ENTRIES.iter().flat_map(of).collect()
}

/// All ranks' schedules keep the contract, shared memory stays on a node, where messages may take its place, and data between nodes is one
/// rank's of each.
fn prove(algorithm: Algorithm, host_of: &[u64], ring: &[Rank], call: &Call) -> Summary {
    let of = || format!("{algorithm}, {call:?}, {host_of:?}");
    let schedules: Vec<_> = (0..call.ranks)
        .map(|rank| {
            let nodes = Nodes::new(host_of, ring, Rank(rank));
            let mut planner = Planner::flat(call.ranks).on_nodes(nodes.into());
            algorithm.schedule(*call, Rank(rank), &mut planner)
        })
        .collect();
    let is_shared = algorithm.shares_memory();
    let summary = check(&schedules, call).unwrap_or_else(|violation| panic!("{violation}: {}", of()));
    let mut between_nodes = std::collections::HashMap::new();
    for (rank, schedule) in (0..).map(Rank).zip(&schedules) {
        let host = host_of[rank.index()];
        let is_here = |other: &Rank| host_of[other.index()] == host;
        for lane in schedule.lanes() {
            match &lane.kind {
                Kind::Local => {}
                Kind::Publish { fabric, readers, .. } => {
                    let is_so = is_shared && *fabric == Fabric::Shared;
                    assert!(is_so && readers.iter().all(is_here), "{}", of());
                }
                Kind::Fetch { fabric, writer, .. } => {
                    assert!(is_shared && *fabric == Fabric::Shared && is_here(writer), "{}", of());
                }
                Kind::Messages(stream) if is_here(&stream.peer) => assert!(!is_shared, "{}", of()),
                Kind::Messages(_) => {
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

/// An overlap of none is one of two bytes in every second segment size.
fn cut(algorithm: Algorithm, segment: u64, buffer: u64) -> Algorithm {
    let whole = algorithm.with_value("buffer", buffer).unwrap_or(algorithm);
    let overlap = whole.given("overlap").map(|none| if segment.is_multiple_of(2) { none } else { 2 });
    let whole = overlap.and_then(|overlap| whole.with_value("overlap", overlap)).unwrap_or(whole);
    let segment = NonZeroU64::new(segment).filter(|_| algorithm.entry.has_parameter("segment"));
    Algorithm { segment, ..whole }
}

/// Each algorithm on a quarter of the calls, other ones from one to the next.
fn prove_all(ranks: u32, every: usize) {
    let ring: Vec<Rank> = (0..ranks).map(Rank).collect();
    for (index, (collective, algorithm)) in all().into_iter().enumerate() {
        for (placement, host_of) in placements(ranks).iter().enumerate() {
            let roots = if collective.has_root() { ranks } else { 1 };
            for root in (0..roots).step_by(every).map(Rank) {
                let number = placement + root.index() + ranks as usize;
                if !(number / 2 + index).is_multiple_of(4) {
                    continue;
                }
                let (bytes, element, segment, buffer) = CUTS[number % CUTS.len()];
                let element = NonZeroU64::new(element).unwrap();
                let plain = Call::new(collective, ranks, root, Bytes(bytes));
                let nodes = Nodes::new(host_of, &ring, Rank(0));
                let order =
                    if number.is_multiple_of(3) { CombinationOrder::Any } else { algorithm.keeps_on(&nodes) };
                let call = Call { element, order, is_in_place: (number / 7).is_multiple_of(2), ..plain };
                prove(cut(algorithm, segment, buffer), host_of, &ring, &call);
            }
        }
    }
}

#[test]
fn every_root_of_many_placements() {
    (1..=6).chain([9]).for_each(|ranks| prove_all(ranks, 2));
}

/// Nodes that are parts of the tree, visited in any order: sums have its order, whatever goes on between nodes
/// but rings and chains.
#[test]
fn sums_have_one_order_where_nodes_are_parts_of_the_tree() {
    let blocks = |widths: &[usize]| -> Vec<u64> {
        (0..).zip(widths).flat_map(|(node, width)| vec![node; *width]).collect()
    };
    let is_kept = |text: &str, collective: Collective, widths: &[usize]| {
        let algorithm = Registry::BUILT_IN.read(collective, text).unwrap();
        let host_of = blocks(widths);
        let ranks = host_of.len() as u32;
        let ring: Vec<Rank> = [0].into_iter().chain((1..ranks).rev()).map(Rank).collect();
        let keeps = algorithm.keeps_on(&Nodes::new(&host_of, &ring, Rank(0)));
        for (root, is_in_place) in (0..ranks).flat_map(|root| [(root, false), (root, true)]) {
            for (bytes, element, segment, buffer) in &CUTS[2..] {
                let element = NonZeroU64::new(*element).unwrap();
                let plain = Call::new(collective, ranks, Rank(root), Bytes(*bytes));
                let call = Call { element, order: keeps, is_in_place, ..plain };
                prove(cut(algorithm, *segment, *buffer), &host_of, &ring, &call);
            }
        }
        keeps == CombinationOrder::Tree
    };
    for within in ["shared", "messages"] {
        for (collective, betweens) in [
            (Collective::Reduce, &["binomial", "pairwise"][..]),
            (Collective::Allreduce, &["recursive-doubling", "halving-doubling", "binomial", "pairwise"]),
        ] {
            for text in betweens.iter().map(|between| format!("two-level:between={between},within={within}"))
            {
                assert!(
                    is_kept(&text, collective, &[4, 4]) && is_kept(&text, collective, &[2, 2, 4]),
                    "{text}"
                );
                assert!(
                    is_kept(&text, collective, &[2, 2, 2]) && is_kept(&text, collective, &[3, 2]),
                    "{text}"
                );
                assert!(
                    !is_kept(&text, collective, &[4, 2, 2]) && !is_kept(&text, collective, &[3, 3]),
                    "{text}"
                );
            }
            for between in ["chain", "binary"] {
                let text = format!("two-level:between={between},within={within}");
                assert!(!is_kept(&text, collective, &[4, 4]), "{text}");
            }
        }
    }
}

#[test]
fn every_cut_on_some_placements() {
    for (index, (collective, algorithm)) in all().into_iter().enumerate() {
        for ranks in [[4, 7][index % 2]] {
            let ring: Vec<Rank> = (0..ranks).map(Rank).collect();
            for host_of in placements(ranks)[2..].iter().skip(index / 2 % 2).step_by(2) {
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

/// The three ways on a node, of which the network knows of no nodes: by messages as many come to each rank as it has neighbours in a tree, or as are
/// for it, and as much data as in shared memory.
#[test]
fn on_a_node_messages_do_what_shared_memory_does() {
    let host_of: Vec<u64> = (0..8).map(|rank| rank / 4).collect();
    let ring: Vec<Rank> = (0..8).map(Rank).collect();
    let counts = |of: Collective, name: &str, bytes: u64| {
        let algorithm = Registry::BUILT_IN.read(of, &format!("two-level:{name}within=messages")).unwrap();
        let summary = prove(algorithm, &host_of, &ring, &Call::new(of, 8, Rank(0), Bytes(bytes)));
        (summary.messages, summary.bytes.0)
    };
    // Up, between two nodes, down.
    assert_eq!(counts(Collective::Allreduce, "between=recursive-doubling,", 80), (6 + 2 + 6, 14 * 80));
    assert_eq!(counts(Collective::Reduce, "", 80), (6 + 1, 7 * 80));
    assert_eq!(counts(Collective::Gather, "", 10), (6 + 1, (6 + 4) * 10));
    assert_eq!(counts(Collective::Scatter, "", 10), (6 + 1, (6 + 4) * 10));
    // Each of the others lacks seven blocks; those before and behind its own come by themselves.
    let (messages, bytes) = counts(Collective::Allgather, "", 10);
    assert_eq!(bytes, (6 + 8 + 6 * 7) * 10);
    assert!((6 + 2 + 6 * 2..=6 + 2 + 6 * 3).contains(&messages), "{messages}");
    // Six hand up seven blocks each, or six, as those for themselves stay; 16 go each way.
    let (_, bytes) = counts(Collective::Alltoall, "", 10);
    assert_eq!(bytes, (6 * 8 + 32 + 6 * 7) * 10);
}

/// Of 40 bytes that the other node sends in two segments, with an overlap of 4 the first 4 of each are shared as they come, with none nothing
/// before all has; what goes up is the mirror image: all but 4 of each before anything is sent.
#[test]
fn an_overlap_of_a_part_leaves_the_rest_to_the_end_and_to_the_beginning() {
    let host_of = [0, 0, 1, 1];
    let ring: Vec<Rank> = (0..4).map(Rank).collect();
    let steps = |of: Collective, name: &str, is_up: bool| {
        let algorithm = Registry::BUILT_IN.read(of, &format!("two-level:{name}")).unwrap();
        let nodes = Nodes::new(&host_of, &ring, Rank(1));
        let call = Call::new(of, 4, Rank(0), Bytes(40));
        let schedule = algorithm.schedule(call, Rank(1), &mut Planner::flat(4).on_nodes(nodes.into()));
        let is_it = |kind: &Kind| matches!(kind, Kind::Publish { .. }) == is_up && *kind != Kind::Local;
        let lane = schedule.lanes().iter().position(|lane| is_it(&lane.kind)).unwrap();
        let bytes = |step| match schedule.step(lane, step).action {
            Action::Publish(slice) | Action::Fetch { to: slice, .. } => (slice.bytes.start, slice.bytes.end),
            other => panic!("{other:?}"),
        };
        (0..schedule.lanes()[lane].steps).map(bytes).collect::<Vec<_>>()
    };
    let chain = "between=chain,segment=20";
    assert_eq!(steps(Collective::Allreduce, chain, true), [(0, 20), (20, 40)]);
    let mirrored = [(4, 20), (24, 40), (0, 4), (20, 24)];
    assert_eq!(steps(Collective::Allreduce, &format!("{chain},overlap=4"), true), mirrored);
    assert_eq!(steps(Collective::Reduce, &format!("{chain},overlap=4"), true), mirrored);
    let parts = [(0, 4), (20, 24), (4, 20), (24, 40)];
    assert_eq!(steps(Collective::Allreduce, &format!("{chain},overlap=4"), false), parts);
    let allgather = steps(Collective::Allgather, "overlap=4", false);
    // The block of rank 0, then those of ranks 2 and 3 in one message.
    assert_eq!(allgather, [(0, 4), (80, 84), (4, 40), (84, 160)]);
}

#[test]
fn by_messages_alone_with_each_algorithm_between_nodes() {
    for collective in Collective::ALL {
        let all = Registry::BUILT_IN.on_levels_by_messages(collective);
        let names: std::collections::BTreeSet<&str> = all.iter().map(Algorithm::between).collect();
        let known = all[0].entry.between_nodes().len().max(1);
        assert_eq!((all.len(), names.len()), (known, known), "{collective}: {all:?}");
        assert!(all.iter().all(|algorithm| !algorithm.shares_memory()), "{collective}: {all:?}");
    }
}
