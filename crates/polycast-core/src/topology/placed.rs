use std::collections::{BTreeSet, HashMap, HashSet};

use super::host_name::ByName;
use super::{Host, Link, Switch, Topology};

/// The ranks of a communicator on the hosts of a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The topology, with a switch for each host that it lacked.
    pub topology: Topology,
    /// The host of each rank, an index into [`Topology::hosts`].
    pub host_of: Vec<usize>,
    /// The hosts that the topology lacked. Each is placed apart, on a switch of its own below the topmost.
    pub unplaced_hosts: Vec<String>,
}

impl Topology {
    /// Puts ranks on hosts; `host_names` has an entry per rank. A name is looked up as it is, then whatever its capitals, then
    /// without its domain, so that `Dev3.cluster.org` finds `dev3` and the other way round.
    pub fn place<S: AsRef<str>>(&self, host_names: &[S]) -> Placed {
        let mut topology = self.clone();
        let mut by_name = ByName::default();
        for (index, host) in topology.hosts.iter().enumerate() {
            by_name.add(&host.name, index);
        }
        let mut unplaced_hosts = Vec::new();
        let mut apart = Apart::new(&topology);
        let host_of = host_names
            .iter()
            .map(|name| {
                let name = name.as_ref();
                if let Some(known) = by_name.get(name) {
                    return known;
                }
                unplaced_hosts.push(name.to_owned());
                by_name.add(name, topology.hosts.len());
                apart.add(&mut topology, name)
            })
            .collect();
        Placed { topology, host_of, unplaced_hosts }
    }
}

impl Placed {
    /// Keeps only some of the ranks, numbered as here, with the hosts and switches above them: a
    /// copy whose size goes with the number of ranks kept.
    ///
    /// Trees and orders made from the copy are the same as from the whole topology: hosts and
    /// switches keep their order, and all switches stay that lead from a rank upwards.
    pub fn only(&self, ranks: &[u32]) -> Placed {
        let host_of = ranks.iter().map(|rank| self.host_of[*rank as usize]);
        let hosts: BTreeSet<usize> = host_of.clone().collect();
        let mut switches = BTreeSet::new();
        for host in &hosts {
            let mut next = Some(self.topology.hosts[*host].switch);
            while let Some(switch) = next.filter(|switch| switches.insert(*switch)) {
                next = self.topology.switches[switch].parent;
            }
        }
        let numbers =
            |kept: &BTreeSet<usize>| kept.iter().copied().zip(0..).collect::<HashMap<usize, usize>>();
        let (host_number, switch_number) = (numbers(&hosts), numbers(&switches));
        let switch = |index: &usize| {
            let switch = &self.topology.switches[*index];
            Switch { parent: switch.parent.map(|parent| switch_number[&parent]), ..switch.clone() }
        };
        let host = |index: &usize| {
            let host = &self.topology.hosts[*index];
            Host { switch: switch_number[&host.switch], ..host.clone() }
        };
        let topology = Topology {
            switches: switches.iter().map(switch).collect(),
            hosts: hosts.iter().map(host).collect(),
            notes: Vec::new(),
        };
        Placed {
            topology,
            host_of: host_of.map(|host| host_number[&host]).collect(),
            unplaced_hosts: Vec::new(),
        }
    }
}

/// The part of a topology where unknown hosts are placed: each on a switch of its own below the
/// topmost.
struct Apart {
    top: Option<usize>,
    switch_names: HashSet<String>,
    /// The number in the name of the next switch.
    number: usize,
}

impl Apart {
    fn new(topology: &Topology) -> Apart {
        let top = topology.switches.iter().position(|switch| switch.parent.is_none());
        let switch_names = topology.switches.iter().map(|switch| switch.name.clone()).collect();
        Apart { top, switch_names, number: 0 }
    }

    /// Adds a host and a switch for it; gives the host's index.
    fn add(&mut self, topology: &mut Topology, host: &str) -> usize {
        let mut name = format!("apart{}", self.number);
        while self.switch_names.contains(&name) {
            self.number += 1;
            name = format!("apart{}", self.number);
        }
        self.number += 1;
        topology.switches.push(Switch { name, parent: self.top, uplink: Link::default() });
        let switch = topology.switches.len() - 1;
        topology.hosts.push(Host { name: host.to_owned(), switch, link: Link::default() });
        topology.hosts.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_find_their_hosts_with_and_without_domain() {
        let topology = Topology::flat(["a".to_owned(), "b.cluster.org".to_owned()]);
        let placed = topology.place(&["b", "a.cluster.org", "b.cluster.org", "a"]);
        assert_eq!(placed.host_of, [1, 0, 1, 0]);
        assert_eq!(placed.topology, topology);
    }

    #[test]
    fn ranks_find_their_hosts_whatever_their_capitals() {
        let topology = Topology::flat(["N1".to_owned(), "n2.Cluster.org".to_owned()]);
        let placed = topology.place(&["n1", "N2", "n1.cluster.org", "n2.cluster.ORG"]);
        assert_eq!((placed.host_of, placed.unplaced_hosts.len()), (vec![0, 1, 0, 1], 0));
        // Numbers of an address are no name and domain.
        let placed = Topology::flat(["10.0.0.1".to_owned()]).place(&["10.0.0.2", "10.0.0.1", "10"]);
        assert_eq!(placed.unplaced_hosts, ["10.0.0.2", "10"]);
    }

    #[test]
    fn hosts_that_the_file_lacks_stand_apart() {
        let placed = Topology::flat(["a".to_owned()]).place(&["x", "a", "y", "x"]);
        assert_eq!(placed.unplaced_hosts, ["x", "y"]);
        assert_eq!(placed.host_of, [1, 0, 2, 1]);
        let switches: Vec<_> = placed.topology.hosts.iter().map(|host| host.switch).collect();
        assert_eq!(switches, [0, 1, 2]);
        assert!(placed.topology.switches[1..].iter().all(|switch| switch.parent == Some(0)));
    }
}
