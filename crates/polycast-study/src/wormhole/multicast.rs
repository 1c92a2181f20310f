//! Trees of messages by which a group is told something: who is told next, at every sender.

use polycast_core::tree::{DynamicTimes, IdleTimes, Part, SendTimes, Splits};

use super::{Costs, Node, Topology};

/// A tree by which a multicast goes around its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MulticastTree {
    /// A root that tells everybody.
    Sequential,
    /// Halves of a group in no order.
    Binomial,
    /// OPT-tree for the times of an idle network, of a group in no order.
    OptTree,
    /// Halves of a group in the order of the network: U-mesh, U-min.
    Unicast,
    /// OPT-tree in the order of the network: OPT-mesh, OPT-min.
    Optimal,
    /// OPT-tree in the order of the network for the times that each sender finds: DYN-mesh,
    /// DYN-min.
    Dynamic,
}

impl MulticastTree {
    /// All trees, in the order in which they are listed.
    pub const ALL: [MulticastTree; 6] = [
        MulticastTree::Sequential,
        MulticastTree::Binomial,
        MulticastTree::OptTree,
        MulticastTree::Unicast,
        MulticastTree::Optimal,
        MulticastTree::Dynamic,
    ];

    /// The name on a network, such as `opt-mesh`.
    pub fn name(self, topology: Topology) -> String {
        self.title(topology).to_ascii_lowercase()
    }

    /// The name as published, such as `OPT-Mesh`.
    pub fn title(self, topology: Topology) -> &'static str {
        let is_mesh = matches!(topology, Topology::Mesh { .. });
        match self {
            MulticastTree::Sequential => "Sequential",
            MulticastTree::Binomial => "Binomial",
            MulticastTree::OptTree => "OPT-Tree",
            MulticastTree::Unicast if is_mesh => "U-Mesh",
            MulticastTree::Unicast => "U-Min",
            MulticastTree::Optimal if is_mesh => "OPT-Mesh",
            MulticastTree::Optimal => "OPT-Min",
            MulticastTree::Dynamic if is_mesh => "DYN-Mesh",
            MulticastTree::Dynamic => "DYN-Min",
        }
    }

    /// Reads the name of a tree, which may leave out the network: `opt`.
    pub fn parse(text: &str) -> Result<MulticastTree, String> {
        let networks = [Topology::Mesh { width: 2, height: 1 }, Topology::Multistage { stages: 1 }];
        let is_named = |tree: &MulticastTree| {
            networks.iter().any(|network| {
                let name = tree.name(*network);
                text == name || name.strip_suffix("-mesh").or(name.strip_suffix("-min")) == Some(text)
            })
        };
        MulticastTree::ALL
            .into_iter()
            .find(is_named)
            .ok_or_else(|| format!("tree {text:?}: expected sequential, binomial, opt-tree, u, opt or dyn"))
    }

    /// True if the group is sorted for the network.
    fn is_ordered(self) -> bool {
        matches!(self, MulticastTree::Unicast | MulticastTree::Optimal | MulticastTree::Dynamic)
    }
}

/// A group with a tree over it.
#[derive(Clone, Debug)]
pub struct Multicast {
    tree: MulticastTree,
    /// The group in the order in which it is divided.
    chain: Vec<Node>,
    root: u32,
    /// The splits of trees that do not change.
    splits: Splits,
}

impl Multicast {
    /// A multicast of messages of `bytes` bytes from the first node of `group` to all of it.
    pub fn new(
        tree: MulticastTree,
        topology: Topology,
        group: &[Node],
        costs: &Costs,
        bytes: u64,
    ) -> Multicast {
        let mut chain = group.to_vec();
        if tree.is_ordered() {
            chain.sort_unstable_by_key(|node| topology.key(*node));
        }
        let root = chain.iter().position(|node| Some(node) == group.first()).unwrap_or(0) as u32;
        let idle = costs.idle(bytes);
        let ranks = chain.len() as u32;
        let splits = match tree {
            MulticastTree::OptTree | MulticastTree::Optimal => {
                Splits::optimal(SendTimes { hold: idle.hold, end: idle.end }, ranks)
            }
            _ => Splits::halves(ranks),
        };
        Multicast { tree, chain, root, splits }
    }

    /// The whole group as a part, which the root is answerable for.
    pub fn all(&self) -> Part {
        Part { begin: 0, end: self.chain.len() as u32, source: self.root }
    }

    /// The node at the source of a part.
    pub fn source(&self, part: Part) -> Node {
        self.chain[part.source as usize]
    }

    /// Takes away from `part` what its source gives to the next receiver; `None` if the source is
    /// alone. `times` are what the source knows of the network, for messages that take `idle` at
    /// best.
    pub fn next(&self, part: &mut Part, times: &DynamicTimes, idle: IdleTimes) -> Option<Part> {
        let ranks = part.others() + 1;
        if ranks == 1 {
            return None;
        }
        let led = match self.tree {
            MulticastTree::Sequential => Some(1),
            MulticastTree::Dynamic => Splits::optimal(times.expected(idle), ranks).led(ranks).next(),
            _ => self.splits.led(ranks).next(),
        };
        led.map(|led| part.give(led))
    }

    /// The latency on an idle network, in units of time, if no message delays another and
    /// `way(from, to)` is what a message needs beyond `t_end`: the recurrence of Nupairoj 1998,
    /// §4.2, message by message.
    pub fn latency(&self, costs: &Costs, bytes: u64, way: impl Fn(Node, Node) -> u64) -> u64 {
        let idle = costs.idle(bytes);
        let mut pending = vec![(self.all(), 0)];
        let mut last = 0;
        while let Some((mut part, mut at)) = pending.pop() {
            let from = self.source(part);
            while let Some(given) = self.next(&mut part, &DynamicTimes::default(), idle) {
                let has_it = at + idle.end.0 + way(from, self.source(given));
                last = last.max(has_it);
                pending.push((given, has_it));
                at += idle.hold.0;
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nupairoj 1998, §5.4 and §6.4: the recurrences with the published parameters.
    #[test]
    fn latencies_without_contention() {
        let latency = |tree, costs: Costs, nodes: u32, bytes| {
            let group: Vec<Node> = (0..nodes).collect();
            let topology = Topology::Multistage { stages: 8 };
            Multicast::new(tree, topology, &group, &costs, bytes).latency(&costs, bytes, |_, _| 0)
        };
        let (halves, optimal) = (MulticastTree::Binomial, MulticastTree::OptTree);
        let chapter_5 = [
            (16, 1024, 37_480, 50_672),
            (32, 4096, 119_304, 170_860),
            (64, 16_384, 483_752, 721_128),
            (96, 65_536, 1_993_080, 2_918_584),
            (128, 1024, 58_768, 88_676),
        ];
        for (nodes, bytes, opt, binomial) in chapter_5 {
            assert_eq!(latency(optimal, Costs::CHAPTER_5, nodes, bytes), opt, "{nodes} {bytes}");
            assert_eq!(latency(halves, Costs::CHAPTER_5, nodes, bytes), binomial, "{nodes} {bytes}");
        }
        let chapter_6 = [
            (Costs::BASELINE, MulticastTree::Sequential, 258_204),
            (Costs::BASELINE, halves, 74_988),
            (Costs::BASELINE, optimal, 52_737),
            (Costs::FAST_NETWORK, optimal, 47_079),
            (Costs::FAST_NETWORK, halves, 64_674),
            (Costs::FAST_SOFTWARE, halves, 63_162),
            (Costs::FAST_SOFTWARE, optimal, 42_089),
        ];
        for (costs, tree, expected) in chapter_6 {
            assert_eq!(latency(tree, costs, 64, 1024), expected, "{tree:?}");
        }
    }

    #[test]
    fn trees_have_names() {
        for network in [Topology::Mesh { width: 4, height: 4 }, Topology::Multistage { stages: 4 }] {
            for tree in MulticastTree::ALL {
                assert_eq!(MulticastTree::parse(&tree.name(network)), Ok(tree));
            }
        }
        assert_eq!(MulticastTree::parse("u"), Ok(MulticastTree::Unicast));
        assert_eq!(MulticastTree::parse("opt"), Ok(MulticastTree::Optimal));
        assert!(MulticastTree::parse("mesh").is_err());
    }
}
