//! What a way makes the busiest link and the ranks of a node do, counted from the algorithm alone:
//! enough to say which ways are likely to be the fastest on a network of which nothing but rate and
//! latency is known.
//!
//! Ranks are taken to be placed node by node. What several ranks of a node send to other nodes at a
//! time shares the node's link, so an algorithm that knows nothing of nodes pays for each rank.

use std::ops::Add;

use super::Algorithm;
use crate::collective::Collective;

/// The work of a call: steps of which each waits for the one before, until the last rank has all,
/// and the room that it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallWork {
    /// Messages between nodes of which each waits for the one before.
    pub rounds: f64,
    /// Further messages that the busiest rank sends or gets in a row.
    pub messages: f64,
    /// Bytes through the link of the busiest node.
    pub link_bytes: f64,
    /// Hand-overs on a node of which each waits for the one before.
    pub node_rounds: f64,
    /// Bytes that the busiest rank copies on its node.
    pub node_bytes: f64,
    /// Bytes that go by multicast.
    pub multicast_bytes: f64,
    /// Bytes for which one rank needs memory beside the program's.
    pub room_bytes: f64,
}

impl Add for CallWork {
    type Output = CallWork;

    fn add(self, other: CallWork) -> CallWork {
        CallWork {
            rounds: self.rounds + other.rounds,
            messages: self.messages + other.messages,
            link_bytes: self.link_bytes + other.link_bytes,
            node_rounds: self.node_rounds + other.node_rounds,
            node_bytes: self.node_bytes + other.node_bytes,
            multicast_bytes: self.multicast_bytes + other.multicast_bytes,
            room_bytes: self.room_bytes + other.room_bytes,
        }
    }
}

/// The rounds in which a number that grows by a factor reaches `count`.
fn growths(factor: f64, count: f64) -> f64 {
    let (mut rounds, mut reached) = (0.0, 1.0);
    while reached < count {
        (rounds, reached) = (rounds + 1.0, reached * factor);
    }
    rounds
}

/// The spread of ranks over nodes that have about as many each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Ranks in all.
    pub ranks: u32,
    /// Nodes that hold them.
    pub nodes: u32,
    /// Ranks on the node that holds most.
    pub on_node: u32,
}

/// A call, and the ranks that take part in it.
#[derive(Clone, Copy, Debug)]
struct Parts {
    ranks: f64,
    nodes: f64,
    on_node: f64,
    /// Bytes as they are counted for the collective: all, or a block.
    bytes: f64,
    /// Bytes of a segment, and how many there are.
    segment: f64,
    segments: f64,
    /// Children of a rank in a tree that says how many.
    radix: f64,
}

/// Trees that grow by a factor: which of them is the fastest is more than their work says.
const GROWING: [&str; 6] = ["binary", "k-ary", "binomial", "k-nomial", "split-binary", "double-tree"];

impl Algorithm {
    /// The work of a call; `None` where nobody knows.
    pub fn work(&self, collective: Collective, spread: Spread, bytes: u64) -> Option<CallWork> {
        let whole = (bytes as f64).max(1.0);
        let segment = self.segment.map_or(whole, |segment| (segment.get() as f64).min(whole));
        let parts = Parts {
            ranks: spread.ranks.into(),
            nodes: spread.nodes.into(),
            on_node: spread.on_node.into(),
            bytes: if collective == Collective::Barrier { 0.0 } else { whole },
            segment,
            segments: (whole / segment).ceil(),
            radix: self.given("k").map_or(2.0, |k| k as f64),
        };
        Some(match self.entry.name {
            "cells" => parts.on_one_node(collective, true),
            "direct" => parts.on_one_node(collective, false),
            "multicast-push" => parts.multicast(2.0),
            "multicast-pull" => parts.multicast(3.0),
            _ if self.entry.is_on_two_levels() => {
                let is_by_messages = self.given("within").is_some();
                let between = parts.of_nodes(collective).between_ranks(collective, self.between())?;
                between + parts.on_each_node(collective, is_by_messages)
            }
            name => parts.between_ranks(collective, name.trim_start_matches("contention-free-"))?,
        })
    }

    /// True if two algorithms are one with other segments, or trees of one kind: predictions of
    /// their times differ by less than they are off.
    pub fn is_kin(&self, other: &Algorithm) -> bool {
        let kind = |algorithm: &Algorithm| {
            let is_on_levels = algorithm.entry.is_on_two_levels();
            let name = if is_on_levels { algorithm.between() } else { algorithm.entry.name };
            (is_on_levels, if GROWING.contains(&name) { GROWING[0] } else { name })
        };
        kind(self) == kind(other)
    }
}

impl Parts {
    /// Returns the call with a rank in place of each node, which stands for all of its ranks.
    fn of_nodes(self, collective: Collective) -> Parts {
        let blocks = match collective {
            Collective::Scatter | Collective::Gather | Collective::Allgather => self.on_node,
            Collective::Alltoall => self.on_node * self.on_node,
            _ => 1.0,
        };
        let bytes = self.bytes * blocks;
        let segment = if self.segments > 1.0 { self.segment } else { bytes.max(1.0) };
        let segments = (bytes.max(1.0) / segment).ceil();
        Parts { ranks: self.nodes, on_node: 1.0, bytes, segment, segments, ..self }
    }

    /// Rounds over doubling distances: those between nodes, and those on a node.
    fn doublings(self) -> CallWork {
        CallWork {
            rounds: growths(2.0, self.nodes),
            node_rounds: growths(2.0, self.on_node),
            ..CallWork::default()
        }
    }

    fn off_node(self) -> f64 {
        self.ranks - self.on_node
    }

    /// An algorithm of messages from rank to rank.
    fn between_ranks(self, collective: Collective, name: &str) -> Option<CallWork> {
        Some(match collective {
            Collective::Broadcast => self.down(name)?,
            Collective::Reduce => self.down(name)? + self.combined(growths(2.0, self.ranks)),
            Collective::Scatter | Collective::Gather => self.spread(name)?,
            Collective::Allgather => self.all_gathered(name)?,
            Collective::Alltoall => self.exchanged(name)?,
            Collective::Barrier => self.doublings(),
            Collective::Allreduce => self.all_reduced(name)?,
        })
    }

    /// Bytes that are combined where they come, as copies.
    fn combined(self, times: f64) -> CallWork {
        CallWork { node_bytes: times.min(self.segments + 1.0) * self.segment, ..CallWork::default() }
    }

    /// All data from the root to all, or the reverse.
    fn down(self, name: &str) -> Option<CallWork> {
        let Parts { ranks, nodes, on_node, bytes, segment, segments, radix } = self;
        let of_doublings = self.doublings();
        // A rank of a tree by position has its children on other nodes, and so have all of its
        // node.
        let tree = |depth: f64, children: f64, share: f64| {
            let is_between = nodes > 1.0;
            let interval = (children * share).max(on_node * share) * segment;
            CallWork {
                rounds: if is_between { depth } else { 0.0 },
                node_rounds: if is_between { 0.0 } else { depth },
                messages: children * (segments - 1.0) + (children - 1.0) * depth,
                link_bytes: if is_between {
                    depth * children * share * segment + (segments - 1.0) * interval
                } else {
                    0.0
                },
                node_bytes: if is_between { 0.0 } else { (depth + segments - 1.0) * children * segment },
                ..CallWork::default()
            }
        };
        Some(match name {
            "flat" | "linear" => CallWork {
                rounds: f64::from(u8::from(nodes > 1.0)),
                messages: ranks - 1.0,
                link_bytes: self.off_node() * bytes,
                node_rounds: f64::from(u8::from(on_node > 1.0)),
                node_bytes: (on_node - 1.0) * bytes,
                ..CallWork::default()
            },
            "chain" => CallWork {
                rounds: nodes - 1.0,
                messages: segments - 1.0,
                link_bytes: (nodes - 1.0 + segments - 1.0) * if nodes > 1.0 { segment } else { 0.0 },
                node_rounds: ranks - nodes,
                node_bytes: (ranks - nodes + segments - 1.0) * if on_node > 1.0 { segment } else { 0.0 },
                ..CallWork::default()
            },
            "binary" => tree(growths(2.0, ranks), 2.0, 1.0),
            "k-ary" => tree(growths(radix, ranks), radix, 1.0),
            "split-binary" | "double-tree" => tree(growths(2.0, ranks), 2.0, 0.5),
            "binomial" | "k-nomial" => {
                let radix = if name == "binomial" { 2.0 } else { radix };
                let [between, within] = [nodes, on_node].map(|count| growths(radix, count));
                CallWork {
                    rounds: between,
                    messages: between * (radix - 2.0) + (segments - 1.0) * between.max(within),
                    link_bytes: between * (radix - 1.0) * bytes,
                    node_rounds: within,
                    node_bytes: within * (radix - 1.0) * bytes,
                    ..CallWork::default()
                }
            }
            "scatter-ring" => CallWork {
                rounds: of_doublings.rounds + if nodes > 1.0 { ranks - 1.0 } else { 0.0 },
                messages: ranks - 1.0,
                link_bytes: if nodes > 1.0 { 2.0 * bytes } else { 0.0 },
                node_rounds: of_doublings.node_rounds + if nodes > 1.0 { 0.0 } else { ranks - 1.0 },
                node_bytes: if on_node > 1.0 { 2.0 * bytes } else { 0.0 },
                ..CallWork::default()
            },
            "scatter-doubling" => CallWork {
                link_bytes: if nodes > 1.0 { (1.0 + on_node) * bytes } else { 0.0 },
                node_bytes: if on_node > 1.0 { 2.0 * bytes } else { 0.0 },
                ..of_doublings + of_doublings
            },
            // Each rank gets its share from all, then the shares come together.
            "pairwise" => CallWork {
                rounds: if nodes > 1.0 { ranks - 1.0 } else { 0.0 },
                messages: ranks - 1.0,
                link_bytes: on_node * bytes * (nodes - 1.0) / nodes + (nodes - 1.0) / nodes * bytes,
                node_rounds: if nodes > 1.0 { 0.0 } else { ranks - 1.0 },
                node_bytes: if on_node > 1.0 { 2.0 * bytes } else { 0.0 },
                ..CallWork::default()
            },
            _ => return None,
        })
    }

    /// A block for each from the root, or the reverse.
    fn spread(self, name: &str) -> Option<CallWork> {
        let Parts { ranks, nodes, on_node, bytes, radix, .. } = self;
        let all = CallWork {
            link_bytes: self.off_node() * bytes,
            node_bytes: (on_node - 1.0) * bytes,
            ..CallWork::default()
        };
        let (rounds, node_rounds, messages) = match name {
            "flat" | "linear" => {
                (f64::from(u8::from(nodes > 1.0)), f64::from(u8::from(on_node > 1.0)), ranks - 1.0)
            }
            "binomial" | "binary" => (growths(2.0, nodes), growths(2.0, on_node), 0.0),
            "k-nomial" => {
                let [between, within] = [nodes, on_node].map(|count| growths(radix, count));
                (between, within, (between + within) * (radix - 2.0))
            }
            "chain" => (nodes - 1.0, ranks - nodes, 0.0),
            _ => return None,
        };
        Some(CallWork { rounds, node_rounds, messages, ..all })
    }

    /// A block of each to all.
    fn all_gathered(self, name: &str) -> Option<CallWork> {
        let Parts { ranks, nodes, on_node, bytes, .. } = self;
        let is_between = nodes > 1.0;
        let node_bytes = if on_node > 1.0 { (ranks - 1.0) * bytes } else { 0.0 };
        Some(match name {
            "ring" => CallWork {
                rounds: if is_between { ranks - 1.0 } else { 0.0 },
                link_bytes: if is_between { (ranks - 1.0) * bytes } else { 0.0 },
                node_rounds: if is_between { 0.0 } else { ranks - 1.0 },
                node_bytes,
                ..CallWork::default()
            },
            "recursive-doubling" | "bruck" => {
                let shared = if name == "bruck" { self.ranks - 1.0 } else { self.off_node() };
                let link_bytes = if is_between { on_node * shared * bytes } else { 0.0 };
                let link_bytes = if on_node > 1.0 { link_bytes } else { link_bytes.min(shared * bytes) };
                CallWork { link_bytes, node_bytes, ..self.doublings() }
            }
            _ => return None,
        })
    }

    /// A block of each for each.
    fn exchanged(self, name: &str) -> Option<CallWork> {
        let Parts { ranks, nodes, on_node, bytes, .. } = self;
        let is_between = nodes > 1.0;
        let link_bytes = on_node * self.off_node() * bytes;
        let node_bytes = if on_node > 1.0 { (on_node - 1.0) * bytes } else { 0.0 };
        Some(match name {
            "linear" => CallWork {
                rounds: f64::from(u8::from(is_between)),
                messages: ranks - 1.0,
                link_bytes,
                node_rounds: f64::from(u8::from(on_node > 1.0)),
                node_bytes,
                ..CallWork::default()
            },
            "pairwise" => CallWork {
                rounds: if is_between { ranks - 1.0 } else { 0.0 },
                link_bytes,
                node_rounds: if is_between { 0.0 } else { ranks - 1.0 },
                node_bytes,
                ..CallWork::default()
            },
            "bruck" => {
                let half = ranks / 2.0 * bytes;
                let of_doublings = self.doublings();
                CallWork {
                    link_bytes: on_node * of_doublings.rounds * half,
                    node_bytes: growths(2.0, ranks) * half,
                    room_bytes: ranks * bytes,
                    ..of_doublings
                }
            }
            _ => return None,
        })
    }

    fn all_reduced(self, name: &str) -> Option<CallWork> {
        let Parts { ranks, nodes, on_node, bytes, .. } = self;
        let is_between = nodes > 1.0;
        let share = if is_between { bytes } else { 0.0 };
        Some(match name {
            "recursive-doubling" => {
                let rounds = self.doublings();
                let combined = (rounds.rounds + rounds.node_rounds) * bytes;
                CallWork { link_bytes: on_node * rounds.rounds * share, node_bytes: combined, ..rounds }
            }
            "ring" => CallWork {
                rounds: if is_between { 2.0 * (ranks - 1.0) } else { 0.0 },
                link_bytes: 2.0 * share,
                node_rounds: if is_between { 0.0 } else { 2.0 * (ranks - 1.0) },
                node_bytes: 2.0 * bytes,
                ..CallWork::default()
            },
            "halving-doubling" => {
                let rounds = self.doublings();
                CallWork {
                    link_bytes: 2.0 * share,
                    node_bytes: if on_node > 1.0 { 4.0 * bytes } else { bytes },
                    ..rounds + rounds
                }
            }
            // The results go around a ring.
            "pairwise" => {
                self.down(name)?
                    + CallWork {
                        rounds: if is_between { ranks - 1.0 } else { 0.0 },
                        node_rounds: if is_between { 0.0 } else { ranks - 1.0 },
                        ..self.combined(1.0)
                    }
            }
            _ => {
                let way = self.down(name)?;
                // In segments the way back goes beside the way there.
                let back = CallWork { link_bytes: way.link_bytes / self.segments, ..way };
                way + back + self.combined(growths(2.0, ranks))
            }
        })
    }

    /// A broadcast whose data goes out once, and rounds of words about it.
    fn multicast(self, rounds: f64) -> CallWork {
        let Parts { on_node, bytes, .. } = self;
        CallWork {
            rounds,
            messages: (bytes / DATAGRAM_BYTES).ceil(),
            multicast_bytes: bytes,
            node_rounds: f64::from(u8::from(on_node > 1.0)),
            node_bytes: if on_node > 1.0 { bytes.min(16.0 * DATAGRAM_BYTES) } else { 0.0 },
            ..CallWork::default()
        }
    }

    /// The part of two levels on each node, beside what goes on between nodes.
    fn on_each_node(self, collective: Collective, is_by_messages: bool) -> CallWork {
        let Parts { ranks, on_node, bytes, segment, .. } = self;
        if on_node < 2.0 {
            return CallWork::default();
        }
        // What comes in segments is handed on while more comes.
        let (up, down, room_bytes) = match collective {
            Collective::Broadcast => (0.0, segment, 0.0),
            Collective::Scatter => (0.0, on_node * bytes, ranks * bytes),
            Collective::Gather => (on_node * bytes, 0.0, ranks * bytes),
            Collective::Allgather => (on_node * bytes, ranks * bytes, ranks * bytes),
            Collective::Alltoall => {
                (on_node * ranks * bytes, on_node * ranks * bytes, 2.0 * on_node * ranks * bytes)
            }
            Collective::Barrier => (0.0, 0.0, 0.0),
            Collective::Reduce => (on_node * segment, 0.0, bytes),
            Collective::Allreduce => (on_node * segment, segment, bytes),
        };
        let hands = if is_by_messages { growths(2.0, on_node) } else { 1.0 };
        let is_both = !matches!(collective, Collective::Broadcast | Collective::Scatter);
        CallWork {
            node_rounds: hands * if is_both { 2.0 } else { 1.0 },
            messages: if is_by_messages { 0.0 } else { on_node / 16.0 },
            node_bytes: (up + down) * hands,
            room_bytes,
            ..CallWork::default()
        }
    }

    /// All of a call in the memory of one node: through cells, or each from where the data is.
    fn on_one_node(self, collective: Collective, is_through_cells: bool) -> CallWork {
        let Parts { ranks, bytes, .. } = self;
        let node_bytes = match collective {
            Collective::Broadcast | Collective::Reduce => bytes,
            Collective::Scatter | Collective::Gather => (ranks - 1.0) * bytes,
            Collective::Allgather | Collective::Alltoall => (ranks - 1.0) * bytes,
            Collective::Barrier => 0.0,
            Collective::Allreduce => 2.0 * bytes,
        };
        let (rounds, copies) = if is_through_cells { (0.5, 1.0) } else { (2.0, 0.5) };
        let spread = growths(2.0, ranks);
        CallWork { node_rounds: rounds * spread, node_bytes: copies * node_bytes, ..CallWork::default() }
    }
}

/// Bytes of a datagram's data.
const DATAGRAM_BYTES: f64 = 1400.0;
