use std::collections::HashMap;

use crate::model::{ClassParameters, Line, LinkClass, Parameters};
use crate::topology::{Edge, Paths, Placed};
use crate::units::Rank;

/// Bytes of data in a full packet of TCP over Ethernet: 1500 less the headers of IP and TCP with time stamps.
const PACKET_DATA: u64 = 1448;

/// Bytes of the headers of such a packet, Ethernet's included.
const PACKET_HEADERS: u64 = 66;

/// The bytes that a message of `bytes` puts on a link, headers included.
pub fn wire_bytes(bytes: u64) -> u64 {
    bytes + PACKET_HEADERS * bytes.div_ceil(PACKET_DATA).max(1)
}

/// A direction of a link, numbered in the order in which a `CostedNetwork` met them.
pub type LinkIndex = u32;

/// The ranks of a communicator where they are, with what messages between them cost.
pub struct CostedNetwork {
    host_of: Vec<usize>,
    nodes: u32,
    switch_of_host: Vec<usize>,
    paths: Paths,
    classes: [ClassParameters; 3],
    /// The classes that occur between ranks.
    occurring: Vec<LinkClass>,
    links: Vec<DirectedLink>,
    has_links: bool,
    index_of: HashMap<Edge, LinkIndex>,
    names: Names,
}

/// The known properties of one direction of a link.
#[derive(Clone, Copy, Debug)]
struct DirectedLink {
    edge: Edge,
    /// Nanoseconds per byte on the wire.
    ns_per_byte: f64,
}

/// The names of switches and hosts, to name links; each with the switch above.
struct Names {
    switches: Vec<(String, Option<usize>)>,
    hosts: Vec<(String, usize)>,
}

/// The times of messages of one size, by class.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageTimes {
    /// The latency `L`, but not below `-g`: a message does not arrive before it was sent.
    pub latency_ns: f64,
    /// The gap `g`.
    pub gap_ns: f64,
}

impl CostedNetwork {
    /// Puts measured parameters on a placement. Where the topology says no rate for a link, the link is as fast as the
    /// messages over it were measured to be.
    pub fn new(placed: &Placed, parameters: &Parameters) -> CostedNetwork {
        let topology = &placed.topology;
        CostedNetwork {
            nodes: hosts_with_ranks(placed).len() as u32,
            host_of: placed.host_of.clone(),
            switch_of_host: topology.hosts.iter().map(|host| host.switch).collect(),
            paths: Paths::new(placed),
            classes: LinkClass::ALL.map(|class| parameters.class(class).clone()),
            occurring: occurring(placed),
            links: Vec::new(),
            has_links: true,
            index_of: HashMap::new(),
            names: Names {
                switches: topology.switches.iter().map(|s| (s.name.clone(), s.parent)).collect(),
                hosts: topology.hosts.iter().map(|h| (h.name.clone(), h.switch)).collect(),
            },
        }
    }

    /// The network without limits on links: ports alone take time, as in `polycast-sim`.
    pub fn without_links(self) -> CostedNetwork {
        CostedNetwork { has_links: false, ..self }
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.host_of.len() as u32
    }

    /// The host of each rank, an index into the topology's hosts.
    pub fn host_of(&self) -> &[usize] {
        &self.host_of
    }

    /// The number of hosts with ranks.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The class of the link between two ranks: same node, same switch or across switches.
    pub fn class(&self, a: Rank, b: Rank) -> LinkClass {
        let (a, b) = (self.host_of[a.index()], self.host_of[b.index()]);
        if a == b {
            LinkClass::SameNode
        } else if self.switch_of_host[a] == self.switch_of_host[b] {
            LinkClass::SameSwitch
        } else {
            LinkClass::AcrossSwitches
        }
    }

    /// The parameters of a class.
    pub fn parameters(&self, class: LinkClass) -> &ClassParameters {
        &self.classes[class as usize]
    }

    /// The directed links that a message takes.
    pub(super) fn path(&mut self, from: Rank, to: Rank) -> Vec<LinkIndex> {
        if !self.has_links || self.host_of[from.index()] == self.host_of[to.index()] {
            return Vec::new();
        }
        self.paths.between(from, to).into_iter().map(|edge| self.link_index(edge)).collect()
    }

    fn link_index(&mut self, edge: Edge) -> LinkIndex {
        if let Some(&known) = self.index_of.get(&edge) {
            return known;
        }
        let rate = self.paths.link(edge).rate;
        let ns_per_byte = match rate {
            Some(rate) => rate.ns_per_byte(),
            None => self.measured_ns_per_byte(edge),
        };
        let index = self.links.len() as LinkIndex;
        self.links.push(DirectedLink { edge, ns_per_byte });
        self.index_of.insert(edge, index);
        index
    }

    /// The time per byte on a link of unknown rate, in nanoseconds: from the slope of the gap
    /// between ranks that a link of this kind joins.
    fn measured_ns_per_byte(&self, edge: Edge) -> f64 {
        let is_host = edge.node >= self.names.switches.len();
        let class = if is_host { LinkClass::SameSwitch } else { LinkClass::AcrossSwitches };
        let data_share = PACKET_DATA as f64 / (PACKET_DATA + PACKET_HEADERS) as f64;
        Line::fit(&self.parameters(class).gap).delay_ns.max(0.0) * data_share
    }

    /// The number of directed links that have been met.
    pub(super) fn links(&self) -> usize {
        self.links.len()
    }

    /// The time that the data of a message of `bytes`, without headers, occupies a link, in
    /// nanoseconds. A rank's gap is compared with it, to see links that are slower than those that
    /// were measured.
    pub(super) fn data_ns(&self, link: LinkIndex, bytes: u64) -> f64 {
        self.links[link as usize].ns_per_byte * bytes as f64
    }

    /// The time that a message of `bytes` with its headers occupies a link, in nanoseconds.
    pub(super) fn occupancy_ns(&self, link: LinkIndex, bytes: u64) -> f64 {
        self.links[link as usize].ns_per_byte * wire_bytes(bytes) as f64
    }

    /// The time per byte on the slowest of the links from `root` to the ranks, in nanoseconds; 0 if
    /// all ranks are on one host.
    pub(super) fn slowest_ns_per_byte(&mut self, root: Rank) -> f64 {
        let ranks = (0..self.ranks()).map(Rank);
        let links: Vec<LinkIndex> = ranks.flat_map(|rank| self.path(root, rank)).collect();
        links.into_iter().map(|link| self.links[link as usize].ns_per_byte).fold(0.0, f64::max)
    }

    /// The times of messages of `bytes`, by class.
    pub(super) fn times(&self, bytes: u64) -> [MessageTimes; 3] {
        std::array::from_fn(|class| {
            let parameters = &self.classes[class];
            let gap_ns = parameters.gap.at(bytes);
            MessageTimes { latency_ns: parameters.hop_ns(bytes) - gap_ns, gap_ns }
        })
    }

    /// The time of a message of `bytes` over the slowest class of link between ranks, in
    /// nanoseconds.
    pub(super) fn slowest_hop_ns(&self, bytes: u64) -> f64 {
        self.occurring.iter().map(|class| self.parameters(*class).hop_ns(bytes)).fold(0.0, f64::max)
    }

    /// The gap `g` of a message of `bytes` over the class with the largest one between ranks, in
    /// nanoseconds.
    pub(super) fn slowest_gap_ns(&self, bytes: u64) -> f64 {
        self.occurring.iter().map(|class| self.parameters(*class).gap.at(bytes)).fold(0.0, f64::max)
    }

    /// A link by the names of its ends, in the direction of its messages: `leaf0 → core`.
    pub fn link_name(&self, link: LinkIndex) -> String {
        let Edge { node, is_up } = self.links[link as usize].edge;
        let Names { switches, hosts } = &self.names;
        let (lower, upper) = match node.checked_sub(switches.len()) {
            Some(host) => (&hosts[host].0, Some(hosts[host].1)),
            None => (&switches[node].0, switches[node].1),
        };
        let upper = upper.map_or("", |upper| &switches[upper].0);
        let (from, to) = if is_up { (lower.as_str(), upper) } else { (upper, lower.as_str()) };
        format!("{from} → {to}")
    }
}

/// The hosts that have ranks, each once, in rising order.
fn hosts_with_ranks(placed: &Placed) -> Vec<usize> {
    let mut hosts = placed.host_of.clone();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

/// The classes that occur between any two ranks.
fn occurring(placed: &Placed) -> Vec<LinkClass> {
    let hosts = hosts_with_ranks(placed);
    let is_shared = hosts.len() < placed.host_of.len();
    let mut switches: Vec<usize> = hosts.iter().map(|host| placed.topology.hosts[*host].switch).collect();
    switches.sort_unstable();
    let is_switch_shared = switches.windows(2).any(|two| two[0] == two[1]);
    let is_across = switches.first() != switches.last();
    let occur = [is_shared, is_switch_shared, is_across];
    LinkClass::ALL.into_iter().zip(occur).filter_map(|(class, occurs)| occurs.then_some(class)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_sent_in_packets() {
        for (bytes, on_wire) in [(0, 66), (1, 67), (1448, 1514), (1449, 1581), (1_448_000, 1_514_000)] {
            assert_eq!(wire_bytes(bytes), on_wire);
        }
    }
}
