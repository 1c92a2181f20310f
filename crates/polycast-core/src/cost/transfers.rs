use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::network::MessageTimes;
use super::pipeline::SegmentWay;
use super::{Bottleneck, CostedNetwork, LinkIndex, Pipeline};
use crate::units::Rank;

/// The ways in which a rank's sends to several children share its port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sends {
    /// Sends go all at once, as non-blocking sends over TCP do: each message begins with what TCP
    /// sends before it waits for an answer, then the port goes round between the messages, so that
    /// large ones all end at about the time when the last does.
    #[default]
    Overlapping,
    /// Sends go one after the other, as in the papers (Patarasuk et al. 2008, §4.2, Figure 8).
    InTurn,
}

/// Bytes that a connection sends before it waits for the first acknowledgement: ten packets (RFC
/// 6928).
pub(super) const FIRST_TURN: u64 = 14_480;

/// The kinds of streams, by whether further segments follow the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// A message alone, over links that are idle.
    Single,
    /// A stream of segments, one after the other.
    Segments,
}

/// The messages that carry one segment down a tree over a network.
///
/// Nodes are numbered from the root downwards, siblings next to each other in the order in which they are sent to. A rank
/// may be several nodes, if several messages bring it different parts of the data.
pub struct Transfers {
    nodes: Vec<Receiver>,
    /// The links of the nodes' messages, one after the other.
    paths: Vec<LinkIndex>,
    uses: Vec<LinkUse>,
    ranks: usize,
    sends: Sends,
}

/// The messages of a tree over one link.
#[derive(Clone, Copy, Debug, Default)]
struct LinkUse {
    messages: u32,
    sender: Option<Rank>,
    /// True if the messages are of several ranks. Messages of a single rank do not get in each
    /// other's way (one-port model): the rank's gap includes that it sends one after the other.
    is_shared: bool,
}

/// A node and the message that brings the data to it; the root has no message, and its fields of
/// one mean nothing.
#[derive(Clone, Debug)]
struct Receiver {
    rank: Rank,
    parent: u32,
    class: usize,
    path: Range<u32>,
    /// Indices into the nodes.
    children: Range<u32>,
}

impl Transfers {
    /// The messages of a tree given by the children of each rank.
    pub fn new(
        network: &mut CostedNetwork,
        root: Rank,
        sends: Sends,
        children: impl Fn(Rank) -> Vec<Rank>,
    ) -> Transfers {
        Transfers::of_nodes(network, (root, ()), sends, |(rank, ())| {
            children(rank).into_iter().map(|child| (child, ())).collect()
        })
    }

    /// The messages of a tree in which the children of a node depend on more than its rank.
    pub(super) fn of_nodes<K: Copy>(
        network: &mut CostedNetwork,
        root: (Rank, K),
        sends: Sends,
        children: impl Fn((Rank, K)) -> Vec<(Rank, K)>,
    ) -> Transfers {
        let mut kinds = vec![root.1];
        let mut nodes = vec![Receiver { rank: root.0, parent: 0, class: 0, path: 0..0, children: 0..0 }];
        let mut paths = Vec::new();
        let mut next = 0;
        while next < nodes.len() {
            let from = nodes[next].rank;
            let first = nodes.len() as u32;
            for (to, kind) in children((from, kinds[next])) {
                let start = paths.len() as u32;
                paths.extend(network.path(from, to));
                let class = network.class(from, to) as usize;
                let path = start..paths.len() as u32;
                nodes.push(Receiver { rank: to, parent: next as u32, class, path, children: 0..0 });
                kinds.push(kind);
            }
            nodes[next].children = first..nodes.len() as u32;
            next += 1;
        }
        let uses = uses(&nodes, &paths, network.links());
        Transfers { nodes, paths, uses, ranks: network.ranks() as usize, sends }
    }

    /// True if messages of different ranks use the same directed link.
    pub fn is_contended(&self) -> bool {
        self.uses.iter().any(|link| link.is_shared)
    }

    /// The times of a stream of segments of `bytes` down the tree.
    pub fn pipeline(&self, network: &CostedNetwork, bytes: u64, stream: StreamKind) -> Pipeline {
        let times = network.times(bytes);
        let fill = self.first_segment(network, bytes, stream);
        let mut pipeline = Pipeline::default();
        let mut ways = vec![SegmentWay::NOWHERE; self.nodes.len()];
        let busy = self.busy_ranks(&times);
        let loads = self.loads(network, bytes);
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            let sender = self.nodes[node.parent as usize].rank;
            let mut way = SegmentWay { fill_ns: fill[index], ..ways[node.parent as usize] };
            let mut slow_down = |interval_ns, bottleneck| {
                if interval_ns > way.interval_ns {
                    (way.interval_ns, way.bottleneck) = (interval_ns, bottleneck);
                }
            };
            slow_down(busy[sender.index()], Bottleneck::Rank(sender));
            slow_down(times[node.class].gap_ns, Bottleneck::Rank(node.rank));
            for &link in self.path(node) {
                slow_down(loads[link as usize], Bottleneck::Link(link));
            }
            ways[index] = way;
            pipeline.add(way);
        }
        pipeline
    }

    /// The time that the tree's messages of one segment occupy each link, in nanoseconds, by link.
    fn loads(&self, network: &CostedNetwork, bytes: u64) -> Vec<f64> {
        let of = |(link, on): (LinkIndex, &LinkUse)| {
            let each =
                if on.is_shared { network.occupancy_ns(link, bytes) } else { network.data_ns(link, bytes) };
            f64::from(on.messages) * each
        };
        (0..).zip(&self.uses).map(of).collect()
    }

    /// The links of a message that other ranks use too.
    fn shared_path(&self, node: &Receiver) -> impl Iterator<Item = usize> {
        self.path(node).iter().map(|link| *link as usize).filter(|link| self.uses[*link].is_shared)
    }

    fn path(&self, node: &Receiver) -> &[LinkIndex] {
        &self.paths[node.path.start as usize..node.path.end as usize]
    }

    /// The time that each rank takes to send a segment to all of its children, in nanoseconds, by
    /// rank.
    fn busy_ranks(&self, times: &[MessageTimes; 3]) -> Vec<f64> {
        let mut busy = vec![0.0; self.ranks];
        for node in &self.nodes[1..] {
            busy[self.nodes[node.parent as usize].rank.index()] += times[node.class].gap_ns;
        }
        busy
    }

    /// The time from when a node's parent has a segment to when the node has it, if the network is
    /// free; in nanoseconds, by node.
    fn hops(&self, network: &CostedNetwork, bytes: u64, stream: StreamKind) -> Vec<f64> {
        let times = network.times(bytes);
        let first_turn = network.times(bytes.min(FIRST_TURN)).map(|times| times.gap_ns);
        let mut hops = vec![0.0; self.nodes.len()];
        for node in &self.nodes {
            let children = node.children.start as usize..node.children.end as usize;
            let mut before = [0u32; 3];
            let mut after = [0u32; 3];
            self.nodes[children.clone()].iter().for_each(|child| after[child.class] += 1);
            for index in children {
                let child = &self.nodes[index];
                after[child.class] -= 1;
                let own = times[child.class].gap_ns;
                let later = match self.sends {
                    Sends::InTurn => 0.0,
                    Sends::Overlapping => own - first_turn[child.class],
                };
                let shared: f64 = (0..3)
                    .map(|class| {
                        let gap = times[class].gap_ns;
                        let earlier = if self.sends == Sends::InTurn { gap } else { gap.min(own) };
                        f64::from(before[class]) * earlier + f64::from(after[class]) * gap.min(later)
                    })
                    .sum();
                // A negative latency was measured over links that let a packet pass at once after a pause. In a stream there
                // are no pauses.
                let measured = times[child.class].latency_ns;
                let latency = if stream == StreamKind::Single { measured } else { measured.max(0.0) };
                hops[index] = own + shared + latency;
                before[child.class] += 1;
            }
        }
        hops
    }

    /// The time until a node has the first segment, in nanoseconds, by node.
    fn first_segment(&self, network: &CostedNetwork, bytes: u64, stream: StreamKind) -> Vec<f64> {
        let hops = self.hops(network, bytes, stream);
        if self.is_contended() {
            return self.first_segment_with_queues(network, bytes, &hops);
        }
        let mut arrived = hops;
        for index in 1..self.nodes.len() {
            arrived[index] += arrived[self.nodes[index].parent as usize];
        }
        arrived
    }

    /// The time until a node has the first segment where links are shared, in nanoseconds, by node.
    /// Links serve messages in the order in which they begin, one after the other; a message waits
    /// for the link of its way that is busy for longest.
    fn first_segment_with_queues(&self, network: &CostedNetwork, bytes: u64, hops: &[f64]) -> Vec<f64> {
        let times = network.times(bytes);
        let occupancy: Vec<f64> =
            (0..network.links() as u32).map(|link| network.occupancy_ns(link, bytes)).collect();
        let mut free = vec![0.0f64; occupancy.len()];
        let mut arrived = vec![0.0; self.nodes.len()];
        // Times are not negative, so their bits are in their order. Each rank has the message to one child here.
        let mut begins = BinaryHeap::new();
        begins.extend(self.nodes[0].children.clone().next().map(|child| Reverse((0u64, child))));
        while let Some(Reverse((begin, index))) = begins.pop() {
            let begin_ns = f64::from_bits(begin);
            let node = &self.nodes[index as usize];
            let wait = self.shared_path(node).map(|link| free[link] - begin_ns).fold(0.0, f64::max);
            for link in self.shared_path(node) {
                free[link] = free[link].max(begin_ns) + occupancy[link];
            }
            let at: f64 = arrived[node.parent as usize] + hops[index as usize] + wait;
            arrived[index as usize] = at;
            begins.extend(node.children.clone().next().map(|child| Reverse((at.to_bits(), child))));
            let sibling = index + 1;
            if sibling < self.nodes[node.parent as usize].children.end {
                begins.push(Reverse(((begin_ns + times[node.class].gap_ns).to_bits(), sibling)));
            }
        }
        arrived
    }
}

fn uses(nodes: &[Receiver], paths: &[LinkIndex], links: usize) -> Vec<LinkUse> {
    let mut uses = vec![LinkUse::default(); links];
    for node in &nodes[1..] {
        let sender = nodes[node.parent as usize].rank;
        for &link in &paths[node.path.start as usize..node.path.end as usize] {
            let link = &mut uses[link as usize];
            link.messages += 1;
            link.is_shared |= *link.sender.get_or_insert(sender) != sender;
        }
    }
    uses
}

#[cfg(test)]
mod tests;
