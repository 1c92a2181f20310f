//! Source and destination of datagrams: in tests a network in memory.

use polycast_net::{Datagrams, Group, Interface, Socket, SocketOptions};

use super::verbs;
use crate::machine::stand_in;
use crate::reason::Reason;
use crate::settings;

/// The interfaces of this host; none if the kernel does not say.
pub fn interfaces() -> Vec<Interface> {
    stand_in!(|machine| machine.interfaces());
    Interface::all().unwrap_or_default()
}

/// Joins the group, by a socket or over verbs.
pub fn join(interface: &Interface, group: Group, is_verbs: bool) -> Result<Datagrams, Reason> {
    stand_in!(|machine| machine.open(interface, group, is_verbs).map(Datagrams::Other));
    let hops = settings::Multicast::current().map(|settings| settings.hops).unwrap_or_default();
    let options = SocketOptions { hops: hops.get(), ..SocketOptions::default() };
    if is_verbs {
        let verbs = verbs::object().ok_or(Reason::Socket)?;
        let member = verbs.join(interface, group, options.receive_bytes).map_err(|_| Reason::Socket)?;
        return Ok(Datagrams::Other(Box::new(member)));
    }
    let opened = Socket::open(interface, group, &options);
    let reason = |conflict| if conflict { Reason::Conflict } else { Reason::Socket };
    opened.map(Datagrams::Udp).map_err(|error| reason(error.is_conflict()))
}
