//! The placement of the call's ranks, as far as the user says.

use std::collections::BTreeSet;

use polycast_core::network::Network;
use polycast_core::policy::CommunicatorShape;
use polycast_core::schedule::are_parts_of_the_tree;
use polycast_core::topology::{Placed, Topology};

use crate::hosts::{self, HostsError};
use crate::usage::wrong;

/// The options on where ranks are.
pub struct Request<'a> {
    pub ranks: Option<u32>,
    pub nodes: Option<u32>,
    pub ranks_per_node: Option<u32>,
    pub ranks_per_processor: u32,
    /// `a:2,b`.
    pub hosts: Option<&'a str>,
    pub topology: Option<&'a Topology>,
    /// The facts about the network that a job would find out.
    pub network: Network,
    /// True if the ranks are all of the job's.
    pub is_of_all: bool,
}

/// Ranks on hosts, and what a table may ask of them.
pub struct Placement {
    pub shape: CommunicatorShape,
    pub placed: Placed,
}

impl Placement {
    /// Ranks fill the hosts in their order: those that are named, else the first of the topology, else any.
    pub fn new(request: &Request) -> Result<Placement, Box<dyn std::error::Error>> {
        let host_names = match request.hosts {
            Some(hosts) => named(hosts, request.ranks)?,
            None => counted(request)?,
        };
        let flat;
        let topology = match request.topology {
            Some(topology) => topology,
            None => {
                let hosts: BTreeSet<&String> = host_names.iter().collect();
                flat = Topology::flat(hosts.into_iter().cloned());
                &flat
            }
        };
        let placed = topology.place(&host_names);
        let shape = shape_of(&placed)?
            .on_processors(request.ranks_per_processor)
            .with_parts(are_parts_of_the_tree(&placed.host_of))
            .of_all(request.is_of_all);
        Ok(Placement { shape: shape.on_network(request.network), placed })
    }
}

fn named(hosts: &str, ranks: Option<u32>) -> Result<Vec<String>, HostsError> {
    Ok(hosts::of_ranks(hosts::place(&hosts::parse(hosts)?, ranks.map(|ranks| ranks as usize))?))
}

/// A host name per rank: the first host is the fullest, the others share what is left evenly.
fn counted(request: &Request) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let ranks = request.ranks.ok_or_else(|| wrong("expected --ranks or --hosts"))?;
    let known = request.topology.map(|topology| &topology.hosts[..]);
    let nodes = request.nodes.unwrap_or_else(|| known.map_or(ranks, |hosts| ranks.min(hosts.len() as u32)));
    let fullest = CommunicatorShape::new(ranks, nodes, request.ranks_per_node)?.ranks_per_node;
    if let Some(hosts) = known.filter(|hosts| hosts.len() < nodes as usize) {
        return Err(wrong(format_args!("--nodes {nodes}: the topology has {} hosts", hosts.len())));
    }
    let name = |node: u32| match known {
        Some(hosts) => hosts[node as usize].name.clone(),
        None => format!("h{node}"),
    };
    let (mut left, mut names) = (ranks, Vec::new());
    for node in 0..nodes {
        let here = if node == 0 { fullest } else { left.div_ceil(nodes - node) };
        left -= here;
        names.extend(std::iter::repeat_n(name(node), here as usize));
    }
    Ok(names)
}

fn shape_of(placed: &Placed) -> Result<CommunicatorShape, polycast_core::policy::CommunicatorShapeError> {
    let mut ranks_on = vec![0; placed.topology.hosts.len()];
    placed.host_of.iter().for_each(|host| ranks_on[*host] += 1);
    let mut switches: Vec<usize> =
        placed.host_of.iter().map(|host| placed.topology.hosts[*host].switch).collect();
    switches.sort_unstable();
    switches.dedup();
    let nodes = ranks_on.iter().filter(|ranks| **ranks > 0).count() as u32;
    let fullest = ranks_on.iter().copied().max();
    CommunicatorShape::new(placed.host_of.len() as u32, nodes, fullest)?.on_switches(switches.len() as u32)
}

#[cfg(test)]
mod tests {
    use polycast_core::topology::Reading;

    use super::*;

    const TOPOLOGY: &str =
        "SwitchName=s0 Nodes=a,b\nSwitchName=s1 Nodes=c,d\nSwitchName=top Switches=s0,s1\n";

    fn request(ranks: Option<u32>, hosts: Option<&'static str>) -> Request<'static> {
        Request {
            ranks,
            nodes: None,
            ranks_per_node: None,
            ranks_per_processor: 1,
            hosts,
            topology: None,
            network: Network::default(),
            is_of_all: true,
        }
    }

    #[test]
    fn named_hosts_are_looked_up_in_the_topology() {
        let topology = Topology::parse(TOPOLOGY, "t", Reading::default()).unwrap();
        let request = Request { topology: Some(&topology), ..request(None, Some("c:2,a,x")) };
        let Placement { shape, placed } = Placement::new(&request).unwrap();
        assert_eq!((shape.ranks, shape.nodes, shape.ranks_per_node, shape.switches), (4, 3, 2, 3));
        assert_eq!((placed.host_of, placed.unplaced_hosts), (vec![2, 2, 0, 4], vec!["x".to_owned()]));
    }

    #[test]
    fn a_hostlist_stands_for_its_hosts() {
        let shape = Placement::new(&request(None, Some("n[0-7]:2"))).unwrap().shape;
        assert_eq!((shape.ranks, shape.nodes, shape.ranks_per_node), (16, 8, 2));
    }

    #[test]
    fn numbers_take_the_first_hosts() {
        let topology = Topology::parse(TOPOLOGY, "t", Reading::default()).unwrap();
        let request = Request { topology: Some(&topology), ..request(Some(3), None) };
        let placement = Placement::new(&request).unwrap();
        assert_eq!(placement.placed.host_of, [0, 1, 2]);
        assert_eq!(placement.shape.switches, 2);
        let fuller = Request { nodes: Some(2), ranks_per_node: Some(4), ranks: Some(6), ..request };
        assert_eq!(Placement::new(&fuller).unwrap().placed.host_of, [0, 0, 0, 0, 1, 1]);
        let error =
            Placement::new(&Request { nodes: Some(5), ranks: Some(5), ranks_per_node: None, ..fuller });
        assert!(error.is_err_and(|error| error.to_string().contains("the topology has 4 hosts")));
    }

    #[test]
    fn without_a_topology_there_is_one_switch() {
        let placement = Placement::new(&Request { nodes: Some(4), ..request(Some(7), None) }).unwrap();
        assert_eq!(placement.placed.host_of, [0, 0, 1, 1, 2, 2, 3]);
        assert_eq!((placement.shape.ranks_per_node, placement.shape.switches), (2, 1));
    }
}
