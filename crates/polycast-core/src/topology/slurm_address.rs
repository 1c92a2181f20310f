use std::collections::HashMap;

use super::{Host, Link, Switch, Topology};

impl Topology {
    /// The part of a cluster that a job sees whose ranks were told by Slurm where their hosts are: host name and
    /// `SLURM_TOPOLOGY_ADDR` of each. An address names the switches from the top and then the node, as in `s3.s0.dev0`. Ranks
    /// on one host say the same; of a switch or host that is said to be in two places, the first counts. Addresses that
    /// name no switch are passed over; `None` if all do.
    pub fn from_slurm_addresses<'a>(
        addresses: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Option<Topology> {
        let mut topology = Topology::default();
        let mut switches = HashMap::new();
        let mut hosts = HashMap::new();
        for (host, address) in addresses {
            let Some((path, _node)) = address.rsplit_once('.') else { continue };
            let mut above = None;
            for name in path.split('.') {
                above = Some(*switches.entry(name).or_insert_with(|| {
                    let switch = Switch { name: name.to_owned(), parent: above, uplink: Link::default() };
                    topology.switches.push(switch);
                    topology.switches.len() - 1
                }));
            }
            if let (Some(switch), None) = (above, hosts.insert(host, ())) {
                topology.hosts.push(Host { name: host.to_owned(), switch, link: Link::default() });
            }
        }
        let roots: Vec<usize> = (0..topology.switches.len())
            .filter(|&switch| topology.switches[switch].parent.is_none())
            .collect();
        if roots.len() > 1 {
            topology.join_below_top(&roots);
        }
        (!roots.is_empty()).then_some(topology)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(addresses: &[(&str, &str)]) -> Topology {
        Topology::from_slurm_addresses(addresses.iter().copied()).unwrap()
    }

    fn switch_of<'a>(topology: &'a Topology, host: &str) -> &'a str {
        let host = topology.hosts.iter().find(|known| known.name == host).unwrap();
        &topology.switches[host.switch].name
    }

    #[test]
    fn switches_come_before_the_node() {
        let topology = read(&[("a", "s3.s0.a"), ("c", "s3.s1.node-c"), ("a", "s3.s0.a"), ("x", "")]);
        let switches: Vec<_> =
            topology.switches.iter().map(|switch| (&*switch.name, switch.parent)).collect();
        assert_eq!(switches, [("s3", None), ("s0", Some(0)), ("s1", Some(0))]);
        assert_eq!(topology.hosts.len(), 2);
        assert_eq!((switch_of(&topology, "a"), switch_of(&topology, "c")), ("s0", "s1"));
    }

    #[test]
    fn several_tops_are_joined() {
        let topology = read(&[("a", "s0.a"), ("b", "s1.b")]);
        assert_eq!(topology.switches.len(), 3);
        assert_eq!(topology.switches.iter().filter(|switch| switch.parent.is_none()).count(), 1);
        assert_eq!(topology.notes.len(), 1, "that is an assumption");
    }

    #[test]
    fn a_cluster_without_switches_says_nothing() {
        assert_eq!(Topology::from_slurm_addresses([("a", "a"), ("b", "b")]), None);
    }

    proptest! {
        /// What ranks say need not make sense.
        #[test]
        fn there_is_a_tree_whatever_is_said(
            addresses in prop::collection::vec(("[ab]", "[xyz]?(\\.[xyz]?){0,4}"), 1..12),
        ) {
            let pairs = addresses.iter().map(|(host, address)| (host.as_str(), address.as_str()));
            let Some(topology) = Topology::from_slurm_addresses(pairs) else { return Ok(()) };
            prop_assert_eq!(topology.switches.iter().filter(|switch| switch.parent.is_none()).count(), 1);
            for (index, switch) in topology.switches.iter().enumerate() {
                let mut above = switch.parent;
                for _ in 0..topology.switches.len() {
                    above = above.and_then(|above| topology.switches[above].parent);
                }
                prop_assert_eq!(above, None, "{} leads to no top", index);
            }
        }
    }
}
