use polycast_core::topology::{Edge, Paths};
use polycast_core::units::Rank;

use crate::network::Network;

/// Every direction of every link, each of which carries one message after the other.
pub(crate) struct Links {
    paths: Paths,
    /// The time at which each link is free, by link and direction; grows when a link is first used.
    free_ns: Vec<u64>,
}

impl Links {
    pub fn new(paths: Paths) -> Links {
        Links { paths, free_ns: Vec::new() }
    }

    /// The links that a message goes over, the last one first; none on one host.
    pub fn way(&self, from: Rank, to: Rank) -> Vec<Edge> {
        let mut way = self.paths.between(from, to);
        way.reverse();
        way
    }

    /// The link of a rank's host.
    pub fn port(&self, rank: Rank, is_up: bool) -> Edge {
        self.paths.port(rank, is_up)
    }

    /// Occupies a link for a message that has reached it, and returns the times at which that
    /// begins and ends. A link of which no rate is known has the network's.
    pub fn occupy(&mut self, network: &Network, edge: Edge, bytes: u64, now_ns: u64) -> (u64, u64) {
        let index = 2 * edge.node + usize::from(edge.is_up);
        self.free_ns.resize(self.free_ns.len().max(index + 1), 0);
        let begin_ns = self.free_ns[index].max(now_ns);
        self.free_ns[index] = begin_ns + network.at(self.paths.link(edge).rate).occupancy_ns(bytes);
        (begin_ns, self.free_ns[index])
    }
}
