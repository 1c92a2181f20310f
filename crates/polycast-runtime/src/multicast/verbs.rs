//! Multicast over InfiniBand or RoCE: this process's port, if it has one. Asked of the devices,
//! once.

use std::sync::OnceLock;

use polycast_net::verbs::{self, Verbs, VerbsPort};
use polycast_net::{Family, Interface};

use super::datagrams::interfaces;
use crate::machine::stand_in;
use crate::of_process::of_process;
use crate::{idle, settings};

/// A port of a leader.
#[derive(Clone, Debug)]
pub struct Port {
    pub interface: Interface,
    pub family: Family,
    pub datagram_bytes: u32,
    /// Rate of the port in bits per second; 0: unknown.
    pub bits_per_second: u64,
}

of_process! {
    static OBJECT: OnceLock<Option<Verbs>> = OnceLock::new();
}

/// The library for verbs; `None` if it cannot be opened, for a reason that the doctor tells.
pub fn object() -> Option<Verbs> {
    let open = || Verbs::open(&verbs::own_folder()?).ok();
    OBJECT.with(|object| *object.get_or_init(open))
}

/// The active port of the first interface that has one, in the order in which interfaces are chosen.
pub fn port(wanted: &settings::Multicast) -> Option<Port> {
    match wanted.verbs {
        settings::Verbs::No => return None,
        settings::Verbs::Wanted => {}
        settings::Verbs::IfPresent => {
            // No library needs to be opened to see that there is no device.
            stand_in!(|_machine| None);
            if verbs::devices().is_empty() {
                return None;
            }
        }
    }
    let (all, local) = (interfaces(), idle::local_addresses());
    let usable = |family| wanted.interface.usable_beside(&all, family, &local);
    let mut among = usable(Family::V4);
    for interface in usable(Family::V6) {
        if !among.contains(&interface) {
            among.push(interface);
        }
    }
    among.into_iter().find_map(|interface| {
        let found = port_of(&interface)?;
        let family = found.family(&interface).filter(|_| found.is_active && !found.is_limited())?;
        let bits_per_second = found.bits_per_second.unwrap_or(0);
        Some(Port { interface, family, datagram_bytes: found.most_datagram_bytes, bits_per_second })
    })
}

fn port_of(interface: &Interface) -> Option<VerbsPort> {
    stand_in!(|machine| machine.verbs_port());
    object()?.port(interface).ok()
}
