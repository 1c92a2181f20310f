use std::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::quantity::DEFAULT_BUCKET_BYTES;
use polycast_core::topology::{self, Link, Topology, is_same_name};
use polycast_core::units::Rate;

/// The most hosts of a lab: a kernel bridge has 1023 ports.
pub const MAX_HOSTS: usize = 1_000;

/// A host and the link that joins it to its switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// The host's name, inside the lab and for the lab's commands.
    pub name: String,
    /// The address of the host's interface `e0`.
    pub address: Ipv4Addr,
    /// The host's switch, an index into [`Plan::switches`].
    pub switch: usize,
    /// Rate of the host's link, in each direction.
    pub rate_bits_per_second: Rate,
    /// True if the switch keeps UDP multicast from and to the host, as one does that filters or has
    /// no querier.
    #[serde(default)]
    pub blocks_multicast: bool,
}

impl Host {
    /// The IPv6 address of its interface `e0`, which is of this link only: fe80:: with the IPv4 address at its end.
    pub fn link_local(&self) -> Ipv6Addr {
        link_local(self.address)
    }
}

/// A switch and the link to the switch above it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Switch {
    /// The switch's name in the topology file.
    pub name: String,
    /// The link upward; the root switch has none.
    pub uplink: Option<Uplink>,
}

/// A link between two switches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Uplink {
    /// The switch above, an index into [`Plan::switches`].
    pub switch: usize,
    /// Rate of the link, in each direction.
    pub rate_bits_per_second: Rate,
}

/// Everything that is needed to make a lab: a tree of switches with hosts on it.
///
/// ```text
///                 sw0                 switch: a bridge
///                /   \                link: a veth pair with a token bucket at both ends
///             sw1     sw2
///            / | \     | \
///          h0 h1 h2   h3  h4          host: a network namespace with the interface e0
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The switches; exactly one of them is without uplink.
    pub switches: Vec<Switch>,
    /// The hosts, in the order of their addresses.
    pub hosts: Vec<Host>,
    /// Bucket of every link, in bytes.
    pub burst_bytes: u32,
    /// Packets that every link loses, in each direction, in packets per million.
    pub loss_per_million: u32,
}

impl Plan {
    /// `hosts` hosts h0, h1, … on one switch.
    pub fn one_switch(hosts: usize, rate: Rate) -> Result<Plan, LabError> {
        if !(1..=MAX_HOSTS).contains(&hosts) {
            return Err(too_many_or_none(hosts));
        }
        Ok(Plan {
            switches: vec![Switch { name: "s0".into(), uplink: None }],
            hosts: (0..hosts)
                .map(|index| Host {
                    name: format!("h{index}"),
                    address: address_of(index),
                    switch: 0,
                    rate_bits_per_second: rate,
                    blocks_multicast: false,
                })
                .collect(),
            burst_bytes: DEFAULT_BUCKET_BYTES,
            loss_per_million: 0,
        })
    }

    /// The tree of a topology file. Links whose rate the file does not give have `default_rate`. Hosts come in the order of
    /// their names, as from a batch system, which need not be the order of the switches.
    pub fn from_topology(topology: &Topology, default_rate: Rate) -> Result<Plan, LabError> {
        if !(1..=MAX_HOSTS).contains(&topology.hosts.len()) {
            return Err(too_many_or_none(topology.hosts.len()));
        }
        let switches = topology.switches.iter().map(|switch| Switch {
            name: switch.name.clone(),
            uplink: switch.parent.map(|above| Uplink {
                switch: above,
                rate_bits_per_second: switch.uplink.rate.unwrap_or(default_rate),
            }),
        });
        let in_order = topology.hosts_by_name().into_iter().map(|host| &topology.hosts[host]);
        let hosts = in_order.enumerate().map(|(index, host)| Host {
            name: host.name.clone(),
            address: address_of(index),
            switch: host.switch,
            rate_bits_per_second: host.link.rate.unwrap_or(default_rate),
            blocks_multicast: false,
        });
        Ok(Plan {
            switches: switches.collect(),
            hosts: hosts.collect(),
            burst_bytes: DEFAULT_BUCKET_BYTES,
            loss_per_million: 0,
        })
    }

    /// The switches, hosts and links as a topology.
    pub fn topology(&self) -> Topology {
        let link = |rate| Link { rate: Some(rate), latency: None };
        let switches = self.switches.iter().map(|switch| topology::Switch {
            name: switch.name.clone(),
            parent: switch.uplink.map(|uplink| uplink.switch),
            uplink: switch.uplink.map_or(Link::default(), |uplink| link(uplink.rate_bits_per_second)),
        });
        let hosts = self.hosts.iter().map(|host| topology::Host {
            name: host.name.clone(),
            switch: host.switch,
            link: link(host.rate_bits_per_second),
        });
        Topology { switches: switches.collect(), hosts: hosts.collect(), notes: Vec::new() }
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| is_same_name(&host.name, name))
    }

    /// Keeps UDP multicast from and to the host of this name.
    pub fn block_multicast(&mut self, name: &str) -> Result<(), LabError> {
        if let Some(host) = self.hosts.iter_mut().find(|host| is_same_name(&host.name, name)) {
            host.blocks_multicast = true;
            return Ok(());
        }
        let names = |host: Option<&Host>| host.map_or(String::new(), |host| host.name.clone());
        let expected = format!("one of {} … {}", names(self.hosts.first()), names(self.hosts.last()));
        Err(LabError::Value { key: "block-multicast", expected, found: name.into() })
    }

    /// The slowest link of the lab: what a broadcast to all hosts cannot beat.
    pub fn slowest_rate(&self) -> Rate {
        self.rates().min().unwrap_or(Rate::MAX)
    }

    /// The fastest link of the lab.
    pub fn fastest_rate(&self) -> Rate {
        self.rates().max().unwrap_or(Rate::MIN)
    }

    /// The hosts switch by switch, as a walk around the tree meets them: a chain in this order crosses each link once in
    /// each direction, wherever it starts and although it ends where it began.
    pub fn tree_order(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.hosts.len());
        let mut to_visit: Vec<usize> =
            (0..self.switches.len()).filter(|&switch| self.switches[switch].uplink.is_none()).collect();
        while let Some(switch) = to_visit.pop() {
            order.extend((0..self.hosts.len()).filter(|&host| self.hosts[host].switch == switch));
            let is_below = |&other: &usize| self.switches[other].uplink.is_some_and(|up| up.switch == switch);
            to_visit.extend((0..self.switches.len()).rev().filter(is_below));
        }
        order
    }

    /// The slowest link between two hosts.
    pub fn path_rate(&self, from: usize, to: usize) -> Rate {
        let (mut one, mut other) = (self.hosts[from].switch, self.hosts[to].switch);
        let mut slowest = self.hosts[from].rate_bits_per_second.min(self.hosts[to].rate_bits_per_second);
        while one != other {
            // The deeper of the two goes up, until they meet.
            let lower = if self.depth(one) >= self.depth(other) { &mut one } else { &mut other };
            let Some(up) = self.switches[*lower].uplink else { break };
            slowest = slowest.min(up.rate_bits_per_second);
            *lower = up.switch;
        }
        slowest
    }

    /// Switches above a switch.
    fn depth(&self, switch: usize) -> usize {
        std::iter::successors(Some(switch), |&below| self.switches[below].uplink.map(|up| up.switch)).count()
            - 1
    }

    fn rates(&self) -> impl Iterator<Item = Rate> {
        let hosts = self.hosts.iter().map(|host| host.rate_bits_per_second);
        hosts.chain(self.switches.iter().filter_map(|switch| switch.uplink.map(|up| up.rate_bits_per_second)))
    }
}

fn too_many_or_none(found: usize) -> LabError {
    LabError::Value { key: "hosts", expected: format!("1 to {MAX_HOSTS} hosts"), found: found.to_string() }
}

/// The address of a host: 10.77.0.1, 10.77.0.2, …; the last byte stays clear of network and
/// broadcast addresses.
fn address_of(index: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, (index / 250) as u8, (index % 250 + 1) as u8)
}

pub(crate) fn link_local(address: Ipv4Addr) -> Ipv6Addr {
    let [a, b, c, d] = address.octets();
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
}

/// Prefix length of the lab's one network.
pub(crate) const PREFIX_BITS: u8 = 16;

/// The root switch has an address too: multicast queries must come from one to count among other switches.
pub(crate) const QUERIER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 255, 254);

#[cfg(test)]
mod tests {
    use polycast_core::topology::Reading;

    use super::*;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    #[test]
    fn hosts_have_names_and_addresses_of_their_own() {
        let plan = Plan::one_switch(MAX_HOSTS, rate("20mbit")).unwrap();
        let mut addresses: Vec<_> = plan.hosts.iter().map(|host| host.address).collect();
        addresses.dedup();
        assert_eq!(addresses.len(), MAX_HOSTS);
        assert!(!addresses.contains(&QUERIER_ADDRESS));
        assert_eq!(plan.host("h251").unwrap().address, Ipv4Addr::new(10, 77, 1, 2));
    }

    #[test]
    fn limits_of_the_number_of_hosts() {
        for (hosts, good) in [(0, false), (1, true), (MAX_HOSTS, true), (MAX_HOSTS + 1, false)] {
            assert_eq!(Plan::one_switch(hosts, rate("1gbit")).is_ok(), good, "{hosts}");
        }
    }

    #[test]
    fn a_host_that_is_blocked_has_a_name() {
        let mut plan = Plan::one_switch(3, rate("1gbit")).unwrap();
        plan.block_multicast("h1").unwrap();
        assert_eq!(
            plan.hosts.iter().map(|host| host.blocks_multicast).collect::<Vec<_>>(),
            [false, true, false]
        );
        let error = plan.block_multicast("h3").unwrap_err().to_string();
        assert!(error.contains("h0 … h2") && error.contains("\"h3\""), "{error}");
    }

    #[test]
    fn link_local_addresses_follow_the_others() {
        let plan = Plan::one_switch(252, rate("1gbit")).unwrap();
        assert_eq!(plan.hosts[251].link_local().to_string(), "fe80::a4d:102");
    }

    #[test]
    fn a_plan_of_an_older_state_file_blocks_nobody() {
        let plan = Plan::one_switch(1, rate("1gbit")).unwrap();
        let mut text = serde_json::to_value(&plan).unwrap();
        text["hosts"][0].as_object_mut().unwrap().remove("blocks_multicast").unwrap();
        assert_eq!(serde_json::from_value::<Plan>(text).unwrap(), plan);
    }

    #[test]
    fn link_speed_counts_for_the_links_below_a_switch() {
        let text = "SwitchName=leaf Nodes=a,b\nSwitchName=top Switches=leaf LinkSpeed=100\n";
        let plan =
            Plan::from_topology(&Topology::parse(text, "t", Reading::default()).unwrap(), rate("20mbit"))
                .unwrap();
        assert_eq!(plan.host("a").unwrap().rate_bits_per_second, rate("20mbit"));
        assert_eq!(plan.switches[0].uplink.unwrap().rate_bits_per_second, rate("100mbit"));
        assert_eq!(plan.slowest_rate(), rate("20mbit"));
    }

    #[test]
    fn hosts_come_in_the_order_of_their_names() {
        let text = "SwitchName=s0 Nodes=n[0,2,10] Switches=s1\nSwitchName=s1 Nodes=n[1,9]\n";
        let plan =
            Plan::from_topology(&Topology::parse(text, "t", Reading::default()).unwrap(), rate("20mbit"))
                .unwrap();
        let hosts: Vec<_> = plan.hosts.iter().map(|host| (host.name.as_str(), host.switch)).collect();
        assert_eq!(hosts, [("n0", 0), ("n1", 1), ("n2", 0), ("n9", 1), ("n10", 0)]);
        assert_eq!(plan.host("n1").unwrap().address, address_of(1));
    }

    #[test]
    fn paths_and_order_in_a_tree() {
        let text = "SwitchName=top Switches=b,a LinkSpeed=100\nSwitchName=a Nodes=a[0-1] LinkSpeed=1000\n\
                    SwitchName=b Nodes=b[0-1] Switches=c LinkSpeed=50\nSwitchName=c Nodes=c0 LinkSpeed=1000\n";
        let plan =
            Plan::from_topology(&Topology::parse(text, "t", Reading::default()).unwrap(), rate("20mbit"))
                .unwrap();
        let names: Vec<_> =
            plan.tree_order().into_iter().map(|host| plan.hosts[host].name.as_str()).collect();
        assert_eq!(names, ["a0", "a1", "b0", "b1", "c0"]);
        let path = |a: &str, b: &str| {
            let index = |name: &str| plan.hosts.iter().position(|host| host.name == name).unwrap();
            plan.path_rate(index(a), index(b)).to_string()
        };
        assert_eq!(path("a0", "a1"), "1gbit");
        assert_eq!(path("a0", "b0"), "50mbit");
        assert_eq!(path("c0", "a0"), "50mbit");
    }

    #[test]
    fn the_topology_of_a_plan_gives_the_plan() {
        let text = "SwitchName=a Nodes=x,y LinkSpeed=10\nSwitchName=b Nodes=z\nSwitchName=top Switches=a,b LinkSpeed=5\n";
        let topology = Topology::parse(text, "t", Reading::default()).unwrap();
        let plan = Plan::from_topology(&topology, rate("20mbit")).unwrap();
        assert_eq!(Plan::from_topology(&plan.topology(), rate("1gbit")).unwrap(), plan);
    }
}
