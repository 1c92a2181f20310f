use std::collections::BTreeMap;

use polycast_core::topology::{Edge, Paths, Placed};
use polycast_core::tree::PlannedTree;
use polycast_core::units::Rank;

/// The messages of a tree over each directed edge of the network.
pub struct Traffic {
    /// The messages by edge; edges without messages are left out.
    on_edge: BTreeMap<Edge, Messages>,
}

/// The messages over one directed edge, one per segment.
#[derive(Default)]
pub struct Messages {
    /// The number of messages.
    pub count: u32,
    /// The number of different senders. Messages of one sender come one after the other, so that
    /// the last sender is enough to tell a new one.
    senders: u32,
    last_sender: Option<Rank>,
}

impl Traffic {
    /// Follows every message of the tree through the network.
    pub fn new(tree: &PlannedTree, paths: &Paths) -> Traffic {
        let mut on_edge = BTreeMap::<Edge, Messages>::new();
        for (from, to) in tree.edges() {
            for edge in paths.between(from, to) {
                let messages = on_edge.entry(edge).or_default();
                messages.count += 1;
                messages.senders += u32::from(messages.last_sender != Some(from));
                messages.last_sender = Some(from);
            }
        }
        Traffic { on_edge }
    }

    /// The edges with messages.
    pub fn edges(&self) -> impl Iterator<Item = (Edge, &Messages)> {
        self.on_edge.iter().map(|(edge, messages)| (*edge, messages))
    }

    /// The number of messages over an edge.
    pub fn count(&self, edge: Edge) -> u32 {
        self.on_edge.get(&edge).map_or(0, |messages| messages.count)
    }

    /// The edge with most messages, the first of them in the order of the topology. None if all ranks are on one host.
    pub fn busiest(&self) -> Option<(Edge, u32)> {
        let most = self.on_edge.values().map(|messages| messages.count).max()?;
        self.edges()
            .find(|(_, messages)| messages.count == most)
            .map(|(edge, messages)| (edge, messages.count))
    }

    /// Whether messages of several senders go over an edge: they disturb each other, while those of one sender come one after
    /// the other anyway (one-port model, Patarasuk et al. 2008, §4.1).
    pub fn is_contended(&self, edge: Edge) -> bool {
        self.on_edge.get(&edge).is_some_and(|messages| messages.senders > 1)
    }
}

/// Both ends of an edge by name, in the direction of the messages.
pub fn ends(edge: Edge, placed: &Placed) -> (&str, &str) {
    let switches = &placed.topology.switches;
    let (lower, upper) = match edge.node.checked_sub(switches.len()) {
        None => (&switches[edge.node].name, switches[edge.node].parent),
        Some(host) => (&placed.topology.hosts[host].name, Some(placed.topology.hosts[host].switch)),
    };
    let upper = upper.map_or("", |upper| &switches[upper].name);
    if edge.is_up { (lower, upper) } else { (upper, lower) }
}
