use super::*;
use crate::network::Network;
use crate::units::Rate;

fn shape(nodes: u32, per_node: u32, mbit: u64) -> CommunicatorShape {
    let network = Network {
        rate: Rate::from_bits_per_second(mbit * 1_000_000),
        latency: Some(Nanos::from_micros(if mbit > 5000 { 20 } else { 50 })),
        multicast_rate: None,
    };
    let shape = CommunicatorShape::new(nodes * per_node, nodes, None).unwrap();
    if nodes > 1 { shape.on_network(network) } else { shape }
}

fn names(collective: Collective, shape: CommunicatorShape, bytes: u64, there: Capabilities) -> Vec<String> {
    challengers(collective, shape, bytes, there).iter().map(|one| one.choice.to_string()).collect()
}

const SHAPES: [(u32, u32, u64); 12] = [
    (2, 1, 1000),
    (4, 1, 100),
    (3, 3, 20),
    (8, 4, 1000),
    (16, 1, 100),
    (28, 1, 100),
    (8, 36, 25_000),
    (64, 64, 25_000),
    (256, 1, 10_000),
    (1, 2, 0),
    (1, 8, 0),
    (1, 64, 0),
];

/// Three at most, the fastest first, each of another kind, and all can be had and read.
#[test]
fn each_shape_has_a_few_challengers() {
    for (nodes, per_node, mbit) in SHAPES {
        let shape = shape(nodes, per_node, mbit);
        for collective in Collective::ALL {
            for bytes in [0, 8, 1 << 10, 32 << 10, 1 << 20, 1 << 30] {
                let found = challengers(collective, shape, bytes, Capabilities::ALL);
                let of = format!("{collective} of {bytes} on {nodes} x {per_node}");
                assert!(
                    found.len() <= MOST && found.is_sorted_by_key(|one| one.predicted),
                    "{of}: {found:?}"
                );
                let is_large = bytes > 1 << 10 && shape.ranks > 1000 || bytes >= 1 << 20;
                assert_eq!(
                    found.is_empty(),
                    (nodes, per_node) == (2, 1) || is_large && found.is_empty(),
                    "{of}"
                );
                for one in &found {
                    assert!(one.choice.suits(shape) && one.choice != Choice::Stock, "{of}: {one:?}");
                    let again = Choice::read(collective, &one.choice.to_string()).unwrap();
                    assert_eq!(again, one.choice);
                }
            }
        }
    }
}

/// The regime that multicast is made for: short messages to some nodes.
#[test]
fn short_broadcasts_to_several_nodes_are_compared_with_multicast() {
    for nodes in [8, 13, 16, 28] {
        for bytes in [256, 4 << 10] {
            let found = names(Collective::Broadcast, shape(nodes, 1, 100), bytes, Capabilities::ALL);
            assert!(found.iter().any(|name| name.starts_with("multicast-")), "{nodes} nodes: {found:?}");
            let there = Capabilities::ALL.without(Capabilities::MULTICAST);
            let without = names(Collective::Broadcast, shape(nodes, 1, 100), bytes, there);
            assert!(!without.is_empty() && !without.iter().any(|name| name.starts_with("multicast-")));
        }
    }
}

/// Of 64 ranks on a node one speaks for all, unless no memory is shared.
#[test]
fn large_nodes_are_served_on_two_levels() {
    let shape = shape(64, 64, 25_000);
    let of_two_levels = Collective::ALL.into_iter().filter(|of| *of != Collective::Broadcast);
    for collective in of_two_levels {
        let found = names(collective, shape, 8, Capabilities::ALL);
        assert!(found.iter().any(|name| name.starts_with("two-level")), "{collective}: {found:?}");
    }
}

/// The blocks of a node that one rank holds for the others.
#[test]
fn what_needs_much_memory_is_no_challenger() {
    let shape = shape(64, 64, 25_000);
    for collective in [Collective::Alltoall, Collective::Allgather, Collective::Gather] {
        let found = names(collective, shape, 1 << 20, Capabilities::ALL);
        assert!(!found.iter().any(|name| name.starts_with("two-level")), "{collective}: {found:?}");
    }
}
