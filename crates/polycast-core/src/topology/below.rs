use super::{Link, Topology};

/// The hosts and switches that are joined to a switch from below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Below {
    /// Hosts, indices into [`Topology::hosts`].
    pub hosts: Vec<usize>,
    /// Switches, indices into [`Topology::switches`].
    pub switches: Vec<usize>,
}

impl Topology {
    /// The hosts and switches below each switch, in the order of [`Topology::switches`].
    pub fn below(&self) -> Vec<Below> {
        let mut below = vec![Below::default(); self.switches.len()];
        for (index, host) in self.hosts.iter().enumerate() {
            below[host.switch].hosts.push(index);
        }
        for (index, switch) in self.switches.iter().enumerate() {
            if let Some(parent) = switch.parent {
                below[parent].switches.push(index);
            }
        }
        below
    }

    /// The topmost switch, an index into [`Topology::switches`]; none in an empty topology.
    pub fn top(&self) -> Option<usize> {
        self.switches.iter().position(|switch| switch.parent.is_none())
    }

    /// All links: those of the hosts, then those between switches.
    pub fn links(&self) -> impl Iterator<Item = Link> {
        let uplinks =
            self.switches.iter().filter(|switch| switch.parent.is_some()).map(|switch| switch.uplink);
        self.hosts.iter().map(|host| host.link).chain(uplinks)
    }
}
