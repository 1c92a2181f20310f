//! Whole multicasts against the recurrences, and what Nupairoj 1998 concludes.

use polycast_study::wormhole::{
    Background, Costs, Effort, Experiment, Measured, MulticastTree, Topology, Traffic,
};
use proptest::prelude::*;

const MESH: Topology = Topology::Mesh { width: 16, height: 16 };
const MULTISTAGE: Topology = Topology::Multistage { stages: 8 };

fn alone(
    topology: Topology,
    costs: Costs,
    tree: MulticastTree,
    nodes: u32,
    bytes: u64,
    seed: u64,
) -> Experiment {
    let traffic = Traffic {
        tree,
        groups: 1,
        group_nodes: nodes,
        bytes,
        interval: None,
        local: None,
        background: None,
        mean_bytes: 1024,
        seed,
    };
    let effort = Effort { placements: 1, ..Effort::QUICK };
    Experiment::plain(topology, costs, traffic, effort)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 48, ..ProptestConfig::default() })]

    /// Nupairoj 1998, Theorems 5 and 7, with the time that heads take on their way.
    #[test]
    fn ordered_trees_alone_never_wait_and_take_as_long_as_the_recurrence(
        topology in prop_oneof![Just(MESH), Just(MULTISTAGE)],
        costs in prop_oneof![Just(Costs::CHAPTER_5), Just(Costs::BASELINE), Just(Costs::FAST_NETWORK)],
        tree in prop_oneof![Just(MulticastTree::Unicast), Just(MulticastTree::Optimal)],
        nodes in 2u32..=256,
        bytes in 1u64..20_000,
        seed in any::<u64>(),
    ) {
        let measured = alone(topology, costs, tree, nodes, bytes, seed).run();
        prop_assert_eq!(measured.delayed, 0.0);
        prop_assert_eq!(measured.latency, measured.bound);
    }
}

fn under(topology: Topology, tree: MulticastTree, load: f64) -> Measured {
    let alone = alone(topology, Costs::BASELINE, tree, 64, 1024, 3);
    let effort =
        Effort { placements: 2, discarded: 3, least: 8, most: 8, relative_error: 1.0, time: u64::MAX };
    Experiment { effort, ..alone }.under(load, 0.0).run()
}

#[test]
fn a_background_that_the_network_carries_arrives_and_delays() {
    let idle = under(MESH, MulticastTree::Optimal, 0.0);
    let loaded = under(MESH, MulticastTree::Optimal, 0.05);
    assert!((loaded.accepted - 0.05).abs() < 0.004, "{loaded:?}");
    assert!(!loaded.is_saturated() && loaded.latency > idle.latency, "{loaded:?}");
    assert_eq!(loaded, under(MESH, MulticastTree::Optimal, 0.05), "a seed means the same each time");
}

#[test]
fn more_than_a_mesh_carries_is_called_saturated() {
    let Measured { accepted, .. } = under(MESH, MulticastTree::Unicast, 0.15);
    assert!((0.07..0.13).contains(&accepted), "{accepted}");
    assert!(under(MESH, MulticastTree::Unicast, 0.15).is_saturated());
}

#[test]
fn few_messages_that_happen_to_be_short_are_no_saturation() {
    for placements in 1..4 {
        let alone = alone(MESH, Costs::BASELINE, MulticastTree::Optimal, 64, 1024, 3);
        let effort =
            Effort { placements, discarded: 1, least: 2, most: 2, relative_error: 1.0, time: u64::MAX };
        let measured = Experiment { effort, ..alone }.under(0.001, 0.0).run();
        assert!(!measured.is_saturated(), "{measured:?}");
    }
}

#[test]
fn a_background_has_the_mean_pause_that_its_load_needs() {
    let experiment = alone(MESH, Costs::BASELINE, MulticastTree::Optimal, 64, 1024, 0);
    // 192 nodes that send 1024 bytes every 9060 units and compute no time: 0.17 of 128 bytes per unit.
    assert_eq!(experiment.mean_compute(0.2), None);
    let pause = experiment.mean_compute(0.1).unwrap();
    assert!((pause - (192.0 * 1024.0 / 12.8 - 9060.0)).abs() < 1e-6, "{pause}");
    let background = experiment.under(0.2, 0.01).traffic.background;
    assert_eq!(background, Some(Background { mean_compute: 0.0, hot_spot: 0.01 }));
}

/// No two messages hold a channel at the same time; what waits was given the channel afterwards; and the multicast's own messages are there.
#[test]
fn a_trace_tells_who_held_what() {
    let alone = alone(MESH, Costs::BASELINE, MulticastTree::Binomial, 32, 1024, 5);
    let trace = alone.under(0.08, 0.0).trace();
    assert_eq!(trace.letters.len(), 31);
    assert_eq!(trace.letters.iter().map(|letter| letter.received).max(), Some(trace.received));
    let mut holds = trace.record.holds.clone();
    holds.sort_by_key(|hold| (hold.channel, hold.from));
    for pair in holds.windows(2).filter(|pair| pair[0].channel == pair[1].channel) {
        assert!(pair[0].until <= pair[1].from, "{pair:?}");
    }
    for letter in &trace.letters {
        let own: Vec<_> = holds.iter().filter(|hold| hold.message.number == letter.number).collect();
        assert_eq!(own.len() as u32, MESH.distance(letter.from, letter.to));
        let waited: u64 = trace
            .record
            .waits
            .iter()
            .filter(|wait| wait.message.number == letter.number)
            .map(|wait| wait.until - wait.from)
            .sum();
        assert_eq!(waited, letter.delayed);
    }
    assert!(trace.letters.iter().any(|letter| letter.delayed > 0));
    let of_others = holds.iter().filter(|hold| !trace.is_own(&hold.message));
    assert!(of_others.count() > 100);
}

#[test]
fn a_background_that_chance_kept_away_is_no_saturation() {
    let measured = under(Topology::Mesh { width: 9, height: 8 }, MulticastTree::Unicast, 0.000_005);
    assert!(measured.accepted == 0.0 && !measured.is_saturated(), "{measured:?}");
}
