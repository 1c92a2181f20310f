use std::collections::HashMap;

use super::{Link, Placed};
use crate::units::Rank;

/// The paths of messages through the network: up from the sender's host to where the two hosts'
/// ways meet, and down from there.
///
/// Ranks on the same host have no edges between them.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Switches, then hosts.
    nodes: Vec<PathNode>,
    first_host: u32,
    node_of: Vec<u32>,
    /// The distinct links, indexed by `PathNode::link`: most hosts have equal ones.
    links: Vec<Link>,
}

/// A switch or a host. Kept small, because each rank of a job holds one of these for each host.
#[derive(Clone, Copy, Debug)]
struct PathNode {
    /// The switch above, an index into the nodes; [`NONE`] at the topmost.
    parent: u32,
    depth: u32,
    link: u32,
}

const NONE: u32 = u32::MAX;

/// A direction of the link between a switch or host and the switch above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The lower end: an index into [`Topology::switches`](super::Topology::switches), or the number of switches plus an index
    /// into [`Topology::hosts`](super::Topology::hosts).
    pub node: usize,
    /// True if the direction is towards the switch above.
    pub is_up: bool,
}

impl Paths {
    /// The ways between ranks that have been placed.
    pub fn new(placed: &Placed) -> Paths {
        let switches = placed.topology.switches.iter().map(|switch| (switch.parent, switch.uplink));
        let hosts = placed.topology.hosts.iter().map(|host| (Some(host.switch), host.link));
        let unknown = u32::MAX;
        let (mut links, mut known) = (Vec::new(), HashMap::new());
        let mut node = |(parent, link): (Option<usize>, Link)| {
            let link = *known.entry(link).or_insert_with(|| {
                links.push(link);
                links.len() as u32 - 1
            });
            PathNode { parent: parent.map_or(NONE, |parent| parent as u32), depth: unknown, link }
        };
        let mut nodes: Vec<PathNode> = switches.chain(hosts).map(&mut node).collect();
        for node in 0..nodes.len() {
            let mut line = vec![node];
            while let Some(parent) =
                nodes[line[line.len() - 1]].above().filter(|&p| nodes[p].depth == unknown)
            {
                line.push(parent);
            }
            for &node in line.iter().rev() {
                nodes[node].depth = nodes[node].above().map_or(0, |parent| nodes[parent].depth + 1);
            }
        }
        let first_host = placed.topology.switches.len() as u32;
        let node_of = placed.host_of.iter().map(|host| first_host + *host as u32).collect();
        Paths { nodes, first_host, node_of, links }
    }

    /// The number of switches and hosts.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn is_host(&self, node: usize) -> bool {
        node >= self.first_host as usize
    }

    /// The switch above a switch or host; `None` at the topmost.
    pub(crate) fn parent(&self, node: usize) -> Option<usize> {
        self.nodes[node].above()
    }

    /// The number of ranks.
    pub(crate) fn ranks(&self) -> u32 {
        self.node_of.len() as u32
    }

    /// The host of a rank, as a node.
    pub(crate) fn node_of(&self, rank: Rank) -> usize {
        self.node_of[rank.index()] as usize
    }

    /// The edges that a message uses on its way, in order.
    pub fn between(&self, from: Rank, to: Rank) -> Vec<Edge> {
        let (mut from, mut to) = (self.node_of(from), self.node_of(to));
        let (mut up, mut down) = (Vec::new(), Vec::new());
        while from != to {
            let (above, below) = (self.nodes[from], self.nodes[to]);
            if above.depth >= below.depth {
                up.push(Edge { node: from, is_up: true });
                from = above.above().unwrap_or(to);
            }
            if below.depth >= above.depth {
                down.push(Edge { node: to, is_up: false });
                to = below.above().unwrap_or(from);
            }
        }
        up.extend(down.into_iter().rev());
        up
    }

    /// The edge next to a rank's host: with `is_up` the first of a message to other hosts, else the
    /// last of a message to the rank.
    pub fn port(&self, rank: Rank, is_up: bool) -> Edge {
        Edge { node: self.node_of(rank), is_up }
    }

    /// The known properties of the link that an edge is a direction of.
    pub fn link(&self, edge: Edge) -> Link {
        self.links[self.nodes[edge.node].link as usize]
    }
}

impl PathNode {
    fn above(self) -> Option<usize> {
        (self.parent != NONE).then_some(self.parent as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;

    #[test]
    fn up_to_where_ways_meet_and_down() {
        let mut topology = Topology::flat(["a", "b"].map(str::to_owned));
        // c hangs on a switch below.
        let placed = {
            topology = topology.place(&["c"]).topology;
            topology.place(&["a", "b", "c", "c"])
        };
        let paths = Paths::new(&placed);
        // Switches 0 (above) and 1, hosts a = 2, b = 3, c = 4.
        let edges = |from, to| {
            let edges = paths.between(Rank(from), Rank(to)).into_iter();
            edges.map(|edge| (edge.node, edge.is_up)).collect::<Vec<_>>()
        };
        assert_eq!(edges(0, 1), [(2, true), (3, false)]);
        assert_eq!(edges(0, 2), [(2, true), (1, false), (4, false)]);
        assert_eq!(edges(3, 1), [(4, true), (1, true), (3, false)]);
        assert!(edges(2, 3).is_empty(), "on one host");
    }
}
