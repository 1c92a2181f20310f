//! The placement of ranks on hosts, from options.

use std::path::Path;

use polycast_core::files::FileKind;
use polycast_core::topology::{Placed, Topology};

use crate::hosts;
use crate::topology_input::Input;

/// The largest communicator that is predicted.
pub const MAX_RANKS: u32 = 1 << 20;

/// Options that do not say where ranks are, or say it in two ways.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// No option says how many ranks there are.
    #[error("expected --ranks, --hosts or --topology, which say how many ranks there are")]
    Nothing,
    /// The number of ranks is 0, or too large.
    #[error("--ranks {0}: expected 1 to {MAX_RANKS}")]
    Ranks(usize),
    /// The hosts have fewer places than there are ranks.
    #[error("{ranks} ranks with {per_host} on each host need more hosts than the {hosts} of the topology")]
    TooFewHosts {
        /// Ranks that are wanted.
        ranks: usize,
        /// The ranks on each host.
        per_host: usize,
        /// The number of hosts in the topology.
        hosts: usize,
    },
    /// A topology without hosts.
    #[error("the topology has no hosts to put ranks on")]
    NoHosts,
}

/// Places the ranks: on the hosts in their order, or on those of the topology, or each on a host of
/// its own.
pub fn placed(
    topology: Option<&Path>,
    hosts: Option<&str>,
    ranks: Option<u32>,
    ranks_per_host: Option<u32>,
) -> Result<Placed, Box<dyn std::error::Error>> {
    if let Some(ranks) = ranks.filter(|ranks| !(1..=MAX_RANKS).contains(ranks)) {
        return Err(PlaceError::Ranks(ranks as usize).into());
    }
    let topology = topology
        .map(|file| Ok::<_, Box<dyn std::error::Error>>(Input::read(file, FileKind::Topology)?.topology()?));
    let topology = topology.transpose()?;
    let each = ranks_per_host.unwrap_or(1);
    let names: Vec<String> = match (hosts, &topology, ranks) {
        (Some(hosts), ..) => {
            hosts::of_ranks(hosts::place(&hosts::parse(hosts)?, ranks.map(|ranks| ranks as usize))?)
        }
        (None, Some(topology), ranks) => spread(topology, ranks, ranks_per_host)?,
        (None, None, Some(ranks)) => (0..ranks).map(|rank| format!("host{}", rank / each)).collect(),
        (None, None, None) => return Err(PlaceError::Nothing.into()),
    };
    Ok(match topology {
        Some(topology) => topology.place(&names),
        None => {
            let mut hosts = names.clone();
            hosts.sort_unstable();
            hosts.dedup();
            Topology::flat(hosts).place(&names)
        }
    })
}

/// Ranks on the hosts of a topology in the order of their names, as schedulers list them, evenly.
fn spread(
    topology: &Topology,
    ranks: Option<u32>,
    ranks_per_host: Option<u32>,
) -> Result<Vec<String>, PlaceError> {
    let hosts = topology.hosts_by_name();
    let each = ranks_per_host.map(|each| each as usize);
    let ranks = ranks.map_or(hosts.len() * each.unwrap_or(1), |ranks| ranks as usize);
    let per_host = each.unwrap_or(ranks.div_ceil(hosts.len().max(1)));
    if hosts.is_empty() {
        return Err(PlaceError::NoHosts);
    }
    if ranks > MAX_RANKS as usize {
        return Err(PlaceError::Ranks(ranks));
    }
    if ranks > per_host * hosts.len() {
        return Err(PlaceError::TooFewHosts { ranks, per_host, hosts: hosts.len() });
    }
    Ok((0..ranks).map(|rank| topology.hosts[hosts[rank / per_host]].name.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_go_on_hosts_in_their_order() {
        let hosts = |hosts, ranks| {
            let placed = placed(None, hosts, ranks, None).unwrap();
            let names = placed.host_of.iter().map(|host| placed.topology.hosts[*host].name.clone());
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(hosts(Some("b,a:2"), None), "b a a");
        assert_eq!(hosts(Some("n[0-1]:2"), None), "n0 n0 n1 n1");
        assert_eq!(hosts(None, Some(2)), "host0 host1");
        assert!(placed(None, None, None, None).unwrap_err().to_string().contains("--ranks"));
        assert!(placed(None, None, Some(0), None).unwrap_err().to_string().contains("1 to 1048576"));
        assert!(placed(None, None, Some(MAX_RANKS + 1), None).is_err());
        assert_eq!(placed(None, None, Some(5), Some(2)).unwrap().host_of, [0, 0, 1, 1, 2]);
        let topology = Topology::flat(["a", "b"].map(str::to_owned));
        assert_eq!(spread(&topology, None, Some(2)).unwrap(), ["a", "a", "b", "b"]);
        let too_many = spread(&topology, None, Some(MAX_RANKS)).unwrap_err().to_string();
        assert!(too_many.contains("--ranks 2097152: expected 1 to 1048576"), "{too_many}");
        assert!(
            spread(&topology, Some(5), Some(2)).unwrap_err().to_string().contains("more hosts than the 2")
        );
    }
}
