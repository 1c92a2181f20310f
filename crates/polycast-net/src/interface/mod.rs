//! Network interfaces: what there is, and which one to use.

mod choice;
mod system;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use choice::{InterfaceChoice, InterfaceError, ParseInterfaceChoiceError};

use crate::Family;

/// A network interface of this host, in this network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The name, as `ip link` shows it.
    pub name: String,
    /// The kernel's number for the interface; names can change, and two interfaces can share an
    /// address.
    pub index: u32,
    /// The first IPv4 address of the interface.
    pub ipv4: Option<Ipv4Addr>,
    /// The link-local IPv6 address of the interface.
    pub ipv6: Option<Ipv6Addr>,
    /// Bytes of the largest IP packet.
    pub mtu_bytes: u32,
    /// The rate as the driver says it; virtual interfaces often do not know.
    pub bits_per_second: Option<u64>,
    /// True if the administrator has set the interface up, and it has a carrier.
    pub is_up: bool,
    /// True if the interface is flagged MULTICAST and not point-to-point.
    pub can_multicast: bool,
    /// True for `lo`. IPv4 multicast works there within the host, whatever the flags say; IPv6 has
    /// no route there.
    pub is_loopback: bool,
    /// True if the default route of either family leaves through the interface.
    pub has_default_route: bool,
}

impl Interface {
    /// Lists all interfaces, by index. An error is the kernel's.
    pub fn all() -> io::Result<Vec<Interface>> {
        system::interfaces()
    }

    /// Returns the interface's address of this family, if it has one.
    pub fn address(&self, family: Family) -> Option<IpAddr> {
        match family {
            Family::V4 => self.ipv4.map(IpAddr::from),
            Family::V6 => self.ipv6.map(IpAddr::from),
        }
    }
}
