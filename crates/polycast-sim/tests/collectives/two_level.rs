//! Collectives on two levels in virtual time: multicast or messages between nodes, shared memory on each.

use std::num::{NonZeroU32, NonZeroU64};

use polycast_core::algorithm::broadcast::{Between, Planner, TwoLevel, Within};
use polycast_core::algorithm::{Algorithm, Registry};
use polycast_core::collective::{Call, Collective};
use polycast_core::executor::Limits;
use polycast_core::schedule::{Nodes, Schedule};
use polycast_core::tree::Tree;
use polycast_core::units::{Bytes, Rank};
use polycast_sim::{Network, Outcome, Schedules, SharedMemory};
use proptest::prelude::*;

use crate::support::{before, combination, expected};

const BINARY: Between = Between::Tree(Tree::KAry(NonZeroU32::new(2).unwrap()));

pub fn two_level(between: Between, segment: u64, buffer: u64, overlap: u64) -> TwoLevel {
    let [segment, buffer] = [segment, buffer].map(|bytes| NonZeroU64::new(bytes).unwrap());
    TwoLevel { between, segment, buffer, overlap, within: Within::Shared }
}

pub fn schedules(algorithm: TwoLevel, host_of: &[u64], call: &Call) -> Vec<impl Schedule + use<>> {
    let ring: Vec<Rank> = (0..call.ranks).map(Rank).collect();
    let of = |rank: &Rank| algorithm.schedule(*call, &Nodes::new(host_of, &ring, *rank), *rank);
    ring.iter().map(of).collect()
}

/// Runs it, and looks at every byte.
fn simulate(
    algorithm: TwoLevel,
    host_of: &[u64],
    (root, bytes): (u32, u64),
    network: Network,
    (starts_ns, limits): (&[u64], Limits),
) -> Outcome {
    let call = Call::new(Collective::Broadcast, host_of.len() as u32, Rank(root), Bytes(bytes));
    let buffers = (0..call.ranks).map(|rank| before(&call, Rank(rank))).collect();
    let run = Schedules::new(network, schedules(algorithm, host_of, &call)).limits(limits);
    let outcome = run.starts(starts_ns.to_vec()).carry(buffers, |_, _| {}).run();
    let outcome = outcome.unwrap_or_else(|stuck| panic!("{algorithm:?} {host_of:?}: {stuck}"));
    for (rank, output) in (0..).map(Rank).zip(outcome.delivered.as_ref().unwrap()) {
        assert_eq!(
            Some(output),
            expected(&call, rank, |_, _| {}).as_ref(),
            "{algorithm:?} {host_of:?} {rank}"
        );
    }
    outcome
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whoever_is_late_wherever_the_ranks_are(
        host_of in prop::collection::vec(0u64..5, 1..14),
        root in any::<prop::sample::Index>(),
        (bytes, segment, buffer) in (0u64..3000, 1u64..900, 1u64..300),
        overlap in prop_oneof![0u64..900, Just(u64::MAX)],
        between in prop::sample::select(vec![Between::Multicast, Between::Tree(Tree::Chain), BINARY, Between::ScatterRing]),
        within in prop::sample::select(vec![Within::Shared, Within::Messages]),
        starts_ns in prop::collection::vec(0u64..300_000, 14),
        (per_lane, sends, buffers) in (1u32..=64, 1u32..8, 1u32..5),
        rendezvous_threshold in prop::option::of(0u64..900),
    ) {
        let root = root.index(host_of.len()) as u32;
        let shared = SharedMemory { latency_ns: 300, ns_per_byte: 1.0, buffers };
        let network = Network { rendezvous_threshold, shared, ..Network::ethernet(1e8) };
        let limits = Limits { per_lane, sends };
        let starts = &starts_ns[..host_of.len()];
        let algorithm = TwoLevel { within, ..two_level(between, segment, buffer, overlap) };
        simulate(algorithm, &host_of, (root, bytes), network, (starts, limits));
    }
}

/// A byte takes a nanosecond on the network, so many in memory each way, and nothing else takes time.
fn time(algorithm: TwoLevel, host_of: &[u64], bytes: u64, copy_ns_per_byte: f64, buffers: u32) -> u64 {
    let shared = SharedMemory { latency_ns: 0, ns_per_byte: copy_ns_per_byte, buffers };
    let network = Network { shared, ..Network::bare(1.0) };
    let starts = vec![0; host_of.len()];
    simulate(algorithm, host_of, (0, bytes), network, (&starts, Limits::default())).completion_ns
}

/// The writer copies in while the readers copy out, if there is a second buffer; all readers at once.
#[test]
fn buffers_of_shared_memory_are_a_pipeline() {
    let on_node = |buffer, buffers, ranks| {
        time(two_level(Between::Multicast, buffer, buffer, 0), &vec![0; ranks], 1000, 1.0, buffers)
    };
    for ranks in [2, 5, 16] {
        assert_eq!(on_node(1000, 4, ranks), 2000, "in, then out");
        assert_eq!(on_node(100, 4, ranks), 1100, "the last of ten comes out after all are in");
        assert_eq!(on_node(100, 1, ranks), 2000, "one buffer: in and out by turns");
    }
}

/// Latencies of shared memory: until a reader sees a buffer, and until the writer sees that it is free again.
#[test]
fn shared_memory_is_seen_after_its_latency() {
    let shared = |buffers| SharedMemory { latency_ns: 7, ns_per_byte: 1.0, buffers };
    let run = |buffers| {
        let network = Network { shared: shared(buffers), ..Network::bare(1.0) };
        let algorithm = two_level(Between::Multicast, 100, 100, 0);
        simulate(algorithm, &[0; 3], (0, 200), network, (&[0; 3], Limits::default())).completion_ns
    };
    assert_eq!(run(2), 100 + 100 + 7 + 100);
    assert_eq!(run(1), 2 * (100 + 7 + 100) + 7);
}

/// A multicast takes the time of one message, however many nodes there are, and comes byte by byte.
#[test]
fn a_multicast_leaves_once_and_is_taken_as_its_prefix_comes() {
    for nodes in [2, 3, 9] {
        let host_of: Vec<u64> = (0..nodes).collect();
        for segment in [1, 7, 1000] {
            assert_eq!(time(two_level(Between::Multicast, segment, 100, 0), &host_of, 1000, 1.0, 2), 1000);
        }
        assert_eq!(
            time(two_level(Between::Tree(Tree::Flat), 100, 100, 0), &host_of, 1000, 1.0, 2),
            (nodes - 1) * 1000
        );
    }
}

/// The work of a node with a segment hides behind the arrival of the next: Wu 2005, §4.3.3,
/// complete overlap.
#[test]
fn nodes_distribute_while_data_comes_in() {
    let unequal: Vec<u64> = [vec![0; 1], vec![1; 3], vec![2; 8]].concat();
    for between in [Between::Multicast, Between::Tree(Tree::Chain)] {
        let run = |overlap| time(two_level(between, 1000, 250, overlap), &unequal, 100_000, 0.5, 16);
        let alone = time(two_level(between, 1000, 250, u64::MAX), &[0, 1, 2], 100_000, 0.5, 16);
        let on_node = time(two_level(between, 1000, 250, u64::MAX), &[0; 8], 100_000, 0.5, 16);
        // Every further node of the chain adds a segment.
        assert_eq!(alone, if between == Between::Multicast { 100_000 } else { 101_000 });
        assert_eq!(on_node, 50_125, "copied in, and the last buffer out");
        let [whole, half, none] = [u64::MAX, 500, 0].map(run);
        assert_eq!(none, alone + on_node, "one phase after the other");
        // The last segment's four buffers go in after it has come, and the last of them out.
        assert_eq!(whole, alone + 500 + 125);
        assert_eq!(
            half,
            alone + 250 + 25_000 + 125,
            "half of the last segment, and of all others the other half"
        );
    }
}

/// Messages on the last node of a chain hide behind the arrival of the next segment, too; a byte
/// takes a nanosecond there as well. A node in the middle has one port for the next node and its
/// own ranks.
#[test]
fn messages_on_a_node_hide_behind_what_comes_in() {
    let run = |host_of: &[u64], overlap| {
        let algorithm = two_level(Between::Tree(Tree::Chain), 1000, 250, overlap);
        time(TwoLevel { within: Within::Messages, ..algorithm }, host_of, 100_000, 0.5, 16)
    };
    let [whole, half, none] = [u64::MAX, 500, 0].map(|overlap| run(&[0, 1, 2, 2], overlap));
    assert_eq!(none, 101_000 + 100_000, "one phase after the other");
    assert_eq!(whole, 101_000 + 1000, "the last segment's pieces go after it has come");
    assert_eq!(half, 101_000 + 500 + 50_000);
    // Down a tree of four, the root of which sends everything twice.
    assert_eq!(run(&[0; 4], u64::MAX), 2 * 100_000);
    assert_eq!(run(&[0, 1, 1, 2], u64::MAX), 201_000, "the next node goes first");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// The other collectives, by every algorithm between nodes: every byte, whoever is late, wherever the ranks are.
    #[test]
    fn the_other_collectives_deliver_what_is_promised(
        (collective, algorithm) in prop::sample::select(others()),
        host_of in prop::collection::vec(0u64..5, 1..14),
        root in any::<prop::sample::Index>(),
        (elements, segment) in (0u64..600, 0u64..300),
        is_in_place in any::<bool>(),
        starts_ns in prop::collection::vec(0u64..300_000, 14),
        (per_lane, sends, buffers) in (1u32..=64, 1u32..8, 1u32..5),
        rendezvous_threshold in prop::option::of(0u64..900),
    ) {
        let root = if collective.has_root() { Rank(root.index(host_of.len()) as u32) } else { Rank(0) };
        let plain = Call::new(collective, host_of.len() as u32, root, Bytes(2 * elements));
        let call = Call { element: NonZeroU64::new(2).unwrap(), is_in_place, ..plain };
        let segment = NonZeroU64::new(segment).filter(|_| algorithm.entry.has_parameter("segment"));
        let algorithm = Algorithm { segment, ..algorithm };
        let ring: Vec<Rank> = (0..call.ranks).map(Rank).collect();
        let of = |rank: &Rank| {
            let nodes = Nodes::new(&host_of, &ring, *rank);
            algorithm.schedule(call, *rank, &mut Planner::flat(call.ranks).on_nodes(nodes.into()))
        };
        let shared = SharedMemory { latency_ns: 300, ns_per_byte: 1.0, buffers };
        let network = Network { rendezvous_threshold, shared, ..Network::ethernet(1e8) };
        let run = Schedules::new(network, ring.iter().map(of).collect()).limits(Limits { per_lane, sends });
        let run = run.starts(starts_ns[..host_of.len()].to_vec());
        let run = run.carry(ring.iter().map(|rank| before(&call, *rank)).collect(), combination(&call));
        let outcome = run.run().unwrap_or_else(|stuck| panic!("{algorithm} {call:?} {host_of:?}: {stuck}"));
        for (rank, output) in ring.iter().zip(outcome.delivered.as_ref().unwrap()) {
            if let Some(expected) = expected(&call, *rank, combination(&call)) {
                assert_eq!(*output, expected, "{algorithm} {call:?} {host_of:?} {rank}");
            }
        }
    }
}

/// All two-level algorithms but for broadcasts.
fn others() -> Vec<(Collective, Algorithm)> {
    let of = |of| Registry::BUILT_IN.samples(of).into_iter().map(move |algorithm| (of, algorithm));
    let all = Collective::ALL.into_iter().skip(1).flat_map(of);
    all.filter(|(_, algorithm)| algorithm.entry.shares_memory()).collect()
}
