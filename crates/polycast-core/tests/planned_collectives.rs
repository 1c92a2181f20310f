//! Scatter, gather and reduce along trees that are planned for the switches, on random clusters: they keep their contract, and no two messages
//! that are under way together share a direction of a link.

use std::num::NonZeroU64;

use polycast_core::algorithm::broadcast::Planner;
use polycast_core::algorithm::{Algorithm, Registry};
use polycast_core::collective::{Call, Collective, CombinationOrder};
use polycast_core::cost::Predictor;
use polycast_core::model::Parameters;
use polycast_core::schedule::{Schedule, check};
use polycast_core::topology::{Paths, Placed, Reading, Topology};
use polycast_core::tree::{Site, contending_pairs, contending_pairs_upwards};
use polycast_core::units::{Bytes, Rank};
use proptest::prelude::*;

/// Ranks on a random tree of switches, several of them on a host or none, in random order.
fn placed(ranks: u32, switches: usize, hosts: usize, seed: u64) -> Placed {
    let mut random = fastrand::Rng::with_seed(seed);
    let topology = Topology::random(switches, hosts, |n| random.usize(..n));
    let host_of = (0..ranks).map(|_| random.usize(..hosts)).collect();
    Placed { topology, host_of, unplaced_hosts: Vec::new() }
}

fn algorithms() -> Vec<(Collective, Algorithm)> {
    let of = |of| Registry::BUILT_IN.samples(of).into_iter().map(move |algorithm| (of, algorithm));
    let not_broadcast = Collective::ALL.into_iter().filter(|of| *of != Collective::Broadcast);
    not_broadcast.flat_map(of).filter(|(_, algorithm)| algorithm.entry.is_planned()).collect()
}

/// All messages of a call: from whom to whom.
fn messages(schedules: &[Box<dyn Schedule>]) -> Vec<(Rank, Rank)> {
    let of = |(rank, schedule): (u32, &dyn Schedule)| {
        let sends = schedule.lanes().iter().filter(|lane| lane.is_send()).filter_map(|lane| lane.stream());
        sends.map(|stream| (Rank(rank), stream.peer)).collect::<Vec<_>>()
    };
    (0..).zip(schedules.iter().map(|schedule| &**schedule)).flat_map(of).collect()
}

#[test]
fn three_collectives_have_them() {
    let names = |of: Collective| {
        let planned = algorithms().into_iter().filter(move |(collective, _)| *collective == of);
        planned.map(|(_, algorithm)| algorithm.to_string()).collect::<Vec<_>>().join(" ")
    };
    let expected = "contention-free-chain contention-free-binary contention-free-k-ary:k=2 \
                    contention-free-k-ary:k=3 contention-free-k-ary:k=4";
    for collective in Collective::ALL {
        let has_root = collective.has_root() && collective != Collective::Broadcast;
        assert_eq!(names(collective), if has_root { expected } else { "" }, "{collective}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn they_keep_their_contract_and_share_no_link(
        (collective, algorithm) in prop::sample::select(algorithms()),
        (ranks, root) in (1u32..40).prop_flat_map(|ranks| (Just(ranks), 0..ranks)),
        (switches, hosts, seed) in (1usize..20, 1usize..40, any::<u64>()),
        (bytes, segment, is_in_place) in (0u64..100, 0u64..40, any::<bool>()),
    ) {
        let placed = placed(ranks, switches, hosts, seed);
        let mut planner = Planner::new(Site::new(&placed));
        let call = Call { is_in_place, ..Call::new(collective, ranks, Rank(root), Bytes(bytes)) };
        let algorithm = Algorithm { segment: NonZeroU64::new(segment), ..algorithm };
        let schedules: Vec<_> =
            (0..ranks).map(|rank| algorithm.schedule(call, Rank(rank), &mut planner)).collect();
        check(&schedules, &call).unwrap_or_else(|violation| panic!("{algorithm} {call:?}: {violation}"));

        let (paths, is_down) = (Paths::new(&placed), collective == Collective::Scatter);
        let messages = messages(&schedules);
        prop_assert_eq!(messages.len() as u32, if bytes == 0 { 0 } else { ranks - 1 });
        for (number, (from, to)) in messages.iter().enumerate() {
            let path = paths.between(*from, *to);
            for (other_from, other_to) in &messages[..number] {
                let other = paths.between(*other_from, *other_to);
                // Those of one parent go one after the other at its own port.
                let of_one = if is_down { from == other_from } else { to == other_to };
                let share = path.iter().any(|edge| other.contains(edge));
                prop_assert!(of_one || !share, "{} {}: {}→{} and {}→{}", collective, algorithm, from, to, other_from, other_to);
            }
        }
    }

    /// The checker of trees says the same of the tree backwards.
    #[test]
    fn trees_are_free_of_contention_backwards(
        (ranks, root) in (1u32..150).prop_flat_map(|ranks| (Just(ranks), 0..ranks)),
        (switches, hosts, seed) in (1usize..20, 1usize..40, any::<u64>()),
    ) {
        let placed = placed(ranks, switches, hosts, seed);
        let mut planner = Planner::new(Site::new(&placed));
        for text in ["contention-free-chain", "contention-free-binary", "contention-free-k-ary:k=4", "binomial"] {
            let call = Call::broadcast(ranks, Rank(root), Bytes(1));
            let tree = planner.tree(&text.parse().unwrap(), call).unwrap();
            let [down, up] = [contending_pairs(&tree, &placed), contending_pairs_upwards(&tree, &placed)];
            prop_assert!(down == up && (up == 0 || text == "binomial"), "{}: {} {}", text, down, up);
        }
    }
}

/// What does not commute is combined in the order of ranks, which these do not keep.
#[test]
fn ordered_reductions_are_refused() {
    for (collective, algorithm) in algorithms() {
        let call = Call { order: CombinationOrder::Ranks, ..Call::new(collective, 4, Rank(0), Bytes(8)) };
        assert!(!algorithm.entry.can_serve(&call), "{collective} {algorithm}");
    }
}

/// What `algorithm` takes from or to rank 0 on the 32 hosts of this example, each with one rank, message by message over all switches.
fn milliseconds(topology: &str, collective: Collective, algorithm: &str, bytes: u64) -> f64 {
    let file = |name: &str| {
        let path = format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    };
    let topology = Topology::parse(&file(topology), topology, Reading::default()).unwrap();
    let hosts: Vec<String> = (0..32).map(|host| format!("n{host}")).collect();
    let parameters = Parameters::parse(&file("params/lab-20mbit.json"), "params").unwrap();
    let mut predictor = Predictor::new(&topology.place(&hosts), &parameters, Rank(0));
    let algorithm = Registry::BUILT_IN.read(collective, algorithm).unwrap();
    predictor.follow(&algorithm, collective, Bytes(bytes)).unwrap().0 as f64 / 1e6
}

/// Names are dealt out to four switches in a row in turn: in the order of ranks every step crosses switches. On the star neighbours are on one switch, and
/// nothing is lost.
#[test]
fn planned_trees_beat_the_order_of_ranks_over_several_switches() {
    use Collective::{Gather, Reduce, Scatter};
    for (collective, bytes, tree, expected_ms) in [
        (Reduce, 1 << 20, "chain:segment=3KiB", [3574.0, 477.0]),
        (Reduce, 16 << 10, "binary:segment=3KiB", [74.0, 22.0]),
        (Gather, 32 << 10, "chain:segment=3KiB", [1897.0, 420.0]),
        (Gather, 32 << 10, "binary:segment=3KiB", [575.0, 433.0]),
        (Scatter, 32 << 10, "chain:segment=3KiB", [1897.0, 420.0]),
    ] {
        let trees = [tree.to_owned(), format!("contention-free-{tree}")];
        let on =
            |topology| trees.each_ref().map(|tree| milliseconds(topology, collective, tree, bytes).round());
        assert_eq!(on("topologies/5.conf"), expected_ms, "{collective} of {bytes} by {tree}");
        let [by_rank_ms, planned_ms] = on("topologies/3.conf");
        assert!(
            planned_ms <= by_rank_ms,
            "{collective} of {bytes} by {tree}: {planned_ms} after {by_rank_ms}"
        );
    }
}
