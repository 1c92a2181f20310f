use super::{Link, Placed};
use crate::units::Rank;

/// The ways of messages through the network: up from the sender's host to where the ways meet, and down from there.
///
/// Ranks on the same host have no edges between them.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Switches, then hosts.
    nodes: Vec<Node>,
    node_of: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: Option<usize>,
    depth: u32,
    link: Link,
}

/// One direction of the link between a switch or host and the switch above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The lower end: an index into [`Topology::switches`](super::Topology::switches), or the number of switches plus an index
    /// into [`Topology::hosts`](super::Topology::hosts).
    pub node: usize,
    /// Towards the switch above.
    pub is_up: bool,
}

impl Paths {
    /// The ways between ranks that have been placed.
    pub fn new(placed: &Placed) -> Paths {
        let switches = placed.topology.switches.iter().map(|switch| (switch.parent, switch.uplink));
        let hosts = placed.topology.hosts.iter().map(|host| (Some(host.switch), host.link));
        let unknown = u32::MAX;
        let mut nodes: Vec<Node> =
            switches.chain(hosts).map(|(parent, link)| Node { parent, depth: unknown, link }).collect();
        for node in 0..nodes.len() {
            let mut line = vec![node];
            while let Some(parent) = nodes[line[line.len() - 1]].parent.filter(|&p| nodes[p].depth == unknown)
            {
                line.push(parent);
            }
            for &node in line.iter().rev() {
                nodes[node].depth = nodes[node].parent.map_or(0, |parent| nodes[parent].depth + 1);
            }
        }
        let first_host = placed.topology.switches.len();
        Paths { nodes, node_of: placed.host_of.iter().map(|host| first_host + host).collect() }
    }

    /// The edges that a message uses, in the order in which it does.
    pub fn between(&self, from: Rank, to: Rank) -> Vec<Edge> {
        let (mut from, mut to) = (self.node_of[from.index()], self.node_of[to.index()]);
        let (mut up, mut down) = (Vec::new(), Vec::new());
        while from != to {
            let (above, below) = (self.nodes[from], self.nodes[to]);
            if above.depth >= below.depth {
                up.push(Edge { node: from, is_up: true });
                from = above.parent.unwrap_or(to);
            }
            if below.depth >= above.depth {
                down.push(Edge { node: to, is_up: false });
                to = below.parent.unwrap_or(from);
            }
        }
        up.extend(down.into_iter().rev());
        up
    }

    /// The first edge of a message from a rank to other hosts, or the last of one to it.
    pub fn port(&self, rank: Rank, is_up: bool) -> Edge {
        Edge { node: self.node_of[rank.index()], is_up }
    }

    /// What is known of the link that an edge is a direction of.
    pub fn link(&self, edge: Edge) -> Link {
        self.nodes[edge.node].link
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
