//! The cluster: hosts on a tree of switches, the links between them, and ranks on the hosts.
//!
//! ```text
//!              core                  switches[2], no parent
//!            ╱      ╲                uplinks of switches[0] and [1]
//!        leaf0      leaf1            switches[0], switches[1]
//!        ╱   ╲      ╱   ╲            links of the hosts
//!      a       b  c       d          hosts[0] … hosts[3]
//! ```
//!
//! Every link is full duplex: two directed edges that do not disturb each other.

mod addresses;
mod below;
mod dot;
mod draft;
mod format;
mod host_name;
mod hostlist;
mod json;
mod lldp;
mod locality;
mod name_order;
mod node;
mod paths;
mod placed;
mod problem;
mod random;
mod slurm;
mod slurm_conf;
mod slurm_yaml;
mod spanning;
#[cfg(test)]
mod testing;

pub use addresses::{Address, host_of_address};
pub use below::Below;
pub use format::{Format, ParseFormatError, Reading, Written};
pub use host_name::{is_same_name, without_domain};
pub use hostlist::compress as hostlist;
pub use hostlist::expand as expand_hostlist;
pub use lldp::Neighbours;
pub use locality::{Locality, by_locality, may_order};
pub use name_order::counting_key;
pub use paths::{Edge, Paths};
pub use placed::Placed;
pub use problem::{Problem, ProblemKind, TopologyError};

use crate::units::{Nanos, Rate};

/// Bytes that the text of a description may have.
pub const MAX_TEXT_BYTES: usize = 64 << 20;

/// The longest name of a switch or host, as in Slurm.
pub const MAX_NAME: usize = 64;

/// The most hosts of a description. It bounds what a hostlist such as `n[0-999999999]` can ask for.
pub const MAX_HOSTS: usize = 65_536;

/// The most switches of a description.
pub const MAX_SWITCHES: usize = 65_536;

/// The most links between switches of a description, which need not be a tree.
pub const MAX_LINKS: usize = 1_000_000;

/// A tree of switches with hosts on it.
///
/// # Invariants
/// 1. Exactly one switch has no parent, and every switch leads up to it.
/// 2. Names of switches are unique among switches, names of hosts among hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// The switches, in the order in which they were described.
    pub switches: Vec<Switch>,
    /// The hosts, in the order in which they were described.
    pub hosts: Vec<Host>,
    /// Notes for the user on how the topology came about, as sentences: links that were left out,
    /// guesses.
    pub notes: Vec<String>,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The name of the switch.
    pub name: String,
    /// The switch above this one, an index into [`Topology::switches`]; `None` at the topmost.
    pub parent: Option<usize>,
    /// The link to the switch above; meaningless without a parent.
    pub uplink: Link,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The name of the host.
    pub name: String,
    /// The switch that the host is joined to, an index into [`Topology::switches`].
    pub switch: usize,
    /// The link between the host and its switch.
    pub link: Link,
}

/// The known properties of a link, the same in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Link {
    /// Rate in bits per second.
    pub rate: Option<Rate>,
    /// Time from one end to the other, without the time that the bits take to leave.
    pub latency: Option<Nanos>,
}

impl Topology {
    /// A topology with all hosts on one switch, for use where nothing is known.
    pub fn flat(hosts: impl IntoIterator<Item = String>) -> Topology {
        let switch = Switch { name: "switch".to_owned(), parent: None, uplink: Link::default() };
        let host = |name| Host { name, switch: 0, link: Link::default() };
        Topology { switches: vec![switch], hosts: hosts.into_iter().map(host).collect(), notes: Vec::new() }
    }
}
