//! Which ranks stand for a link class.

use std::collections::BTreeMap;

use polycast_core::model::LinkClass;
use polycast_core::topology::{Placed, Topology};

/// A pair of ranks for each class that there is in a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairs {
    /// Sender and receiver, by class.
    pub by_class: BTreeMap<LinkClass, (usize, usize)>,
    /// Hosts of the job that the topology lacks.
    pub unplaced_hosts: Vec<String>,
}

/// Chooses pairs among ranks on these hosts: the first of a class, but between switches the first of those that are
/// furthest apart. Without a topology all hosts are taken to be on one switch.
pub fn choose(hosts: &[String], topology: Option<&Topology>) -> Pairs {
    let flat = Topology::flat(unique(hosts));
    let Placed { topology, host_of, unplaced_hosts } = topology.unwrap_or(&flat).place(hosts);
    let mut best: BTreeMap<LinkClass, (usize, (usize, usize))> = BTreeMap::new();
    for from in 0..hosts.len() {
        for to in from + 1..hosts.len() {
            let class = LinkClass::between(&topology, host_of[from], host_of[to]);
            let links = match class {
                LinkClass::AcrossSwitches => links_between(&topology, host_of[from], host_of[to]),
                _ => 0,
            };
            let is_further = |best: &(usize, _)| links > best.0;
            if best.get(&class).is_none_or(is_further) {
                best.insert(class, (links, (from, to)));
            }
        }
    }
    Pairs { by_class: best.into_iter().map(|(class, (_, pair))| (class, pair)).collect(), unplaced_hosts }
}

fn unique(hosts: &[String]) -> Vec<String> {
    let mut unique = hosts.to_vec();
    unique.sort();
    unique.dedup();
    unique
}

/// Links between the switches of two hosts.
fn links_between(topology: &Topology, a: usize, b: usize) -> usize {
    let up = |host: usize| -> Vec<usize> {
        std::iter::successors(Some(topology.hosts[host].switch), |&switch| topology.switches[switch].parent)
            .collect()
    };
    let (a, b) = (up(a), up(b));
    let common = a.iter().rev().zip(b.iter().rev()).take_while(|(one, other)| one == other).count();
    a.len() + b.len() - 2 * common
}

#[cfg(test)]
mod tests {
    use polycast_core::topology::{Host, Link, Switch};

    use super::*;

    /// ```text
    ///        top
    ///       ╱   ╲
    ///   left     right ── c
    ///   a  b       │
    ///            below ── d
    /// ```
    fn tree() -> Topology {
        let switch = |name: &str, parent| Switch { name: name.to_owned(), parent, uplink: Link::default() };
        let host = |name: &str, switch| Host { name: name.to_owned(), switch, link: Link::default() };
        Topology {
            switches: vec![
                switch("top", None),
                switch("left", Some(0)),
                switch("right", Some(0)),
                switch("below", Some(2)),
            ],
            hosts: vec![host("a", 1), host("b", 1), host("c", 2), host("d", 3)],
            notes: Vec::new(),
        }
    }

    fn names(hosts: &[&str]) -> Vec<String> {
        hosts.iter().map(|host| (*host).to_owned()).collect()
    }

    #[test]
    fn every_class_has_a_pair_and_the_furthest_switches_speak_for_all() {
        use LinkClass::{AcrossSwitches, SameNode, SameSwitch};
        let pairs = choose(&names(&["a", "c", "a", "b", "d"]), Some(&tree()));
        let expected = [(SameNode, (0, 2)), (SameSwitch, (0, 3)), (AcrossSwitches, (0, 4))];
        assert_eq!(pairs.by_class, BTreeMap::from(expected));
        assert!(pairs.unplaced_hosts.is_empty());
    }

    #[test]
    fn without_topology_other_hosts_are_on_the_same_switch() {
        let pairs = choose(&names(&["x", "y", "z"]), None);
        assert_eq!(pairs.by_class, BTreeMap::from([(LinkClass::SameSwitch, (0, 1))]));
        assert!(choose(&names(&["x"]), None).by_class.is_empty());
    }

    #[test]
    fn hosts_that_the_topology_lacks_are_named() {
        let pairs = choose(&names(&["a", "x"]), Some(&tree()));
        assert_eq!(pairs.unplaced_hosts, ["x"]);
        assert_eq!(pairs.by_class.keys().collect::<Vec<_>>(), [&LinkClass::AcrossSwitches]);
    }
}
