//! Where datagrams go to and come from: in tests a network in memory.

use polycast_net::{Datagrams, Group, Interface, Socket, SocketOptions};

use super::offer::Reason;
use crate::machine::stand_in;

/// The interfaces of this host; none if the kernel does not say.
pub fn interfaces() -> Vec<Interface> {
    stand_in!(|machine| machine.interfaces());
    Interface::all().unwrap_or_default()
}

/// Joins the group.
pub fn join(interface: &Interface, group: Group) -> Result<Datagrams, Reason> {
    stand_in!(|machine| machine.open(interface, group).map(Datagrams::Other));
    let opened = Socket::open(interface, group, &SocketOptions::default());
    let reason = |conflict| if conflict { Reason::Conflict } else { Reason::Socket };
    opened.map(Datagrams::Udp).map_err(|error| reason(error.is_conflict()))
}
