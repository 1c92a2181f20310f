//! How fast multicast would go here, before it is set up; and on which interface.

use polycast_core::network::Network;
use polycast_core::units::Rate;
use polycast_net::{Family, Interface, InterfaceError, receive_buffer_bytes};

use super::datagrams::interfaces;
use super::terms::rate_into;
use super::verbs;
use crate::machine::stand_in;
use crate::{idle, settings};

/// The interface that the user wants; among those that serve, the one that MPI's own connections use.
pub fn interface_of(wanted: &settings::Multicast, family: Family) -> Result<Interface, InterfaceError> {
    wanted.interface.choose_beside(&interfaces(), family, &idle::local_addresses())
}

/// What holds multicast up on this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prospect {
    /// The interface, if it says how fast it is.
    pub interface: Option<Rate>,
    /// The receive buffer that the kernel grants.
    pub buffer: Option<Rate>,
}

/// Nothing is known where multicast is off or has no interface; the set-up will say why.
pub fn prospect() -> Prospect {
    let Ok(wanted) = settings::Multicast::current() else { return Prospect::default() };
    let Some(family) = wanted.family else { return Prospect::default() };
    let rate = |bits: u64| Rate::from_bits_per_second(bits.min(Rate::MAX.bits_per_second()));
    if let Some(port) = verbs::port(&wanted) {
        // Its ring is as large as it needs to be, unless memory cannot be locked; then the set-up paces.
        return Prospect { interface: rate(port.bits_per_second), buffer: None };
    }
    let Ok(interface) = interface_of(&wanted, family) else { return Prospect::default() };
    Prospect {
        interface: interface.bits_per_second.and_then(rate),
        buffer: granted_buffer_bytes().map(rate_into).and_then(rate),
    }
}

fn granted_buffer_bytes() -> Option<u64> {
    stand_in!(|_machine| None);
    receive_buffer_bytes().ok().map(|bytes| bytes as u64)
}

impl Prospect {
    /// The slower of the two.
    pub fn rate(&self) -> Option<Rate> {
        self.interface.into_iter().chain(self.buffer).min()
    }

    /// What would help, where pacing to the buffer takes half or more of what the network carries.
    pub fn warning(&self, network: &Network) -> Option<String> {
        let (buffer, carries) = (self.buffer?, network.rate?);
        let carries = self.interface.map_or(carries, |interface| interface.min(carries));
        (buffer.bits_per_second() * 2 <= carries.bits_per_second()).then(|| {
            format!(
                "multicast is held up to {} Mb/s by small receive buffers, where the network carries {carries}: \
                 net.core.rmem_max=4194304 on all hosts (sysctl) lets it go faster",
                buffer.bits_per_second() / 1_000_000
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Option<Rate> {
        text.parse().ok()
    }

    #[test]
    fn small_buffers_are_named_where_they_halve_the_rate() {
        let network = |text| Network { rate: rate(text), ..Network::default() };
        let small = Prospect { interface: rate("10gbit"), buffer: rate("1700mbit") };
        assert_eq!(small.rate(), rate("1700mbit"));
        let warning = small.warning(&network("10gbit")).unwrap();
        assert!(warning.contains("1700 Mb/s") && warning.contains("net.core.rmem_max=4194304"), "{warning}");
        assert_eq!(small.warning(&network("2gbit")), None, "the network carries no more");
        let slow = Prospect { interface: rate("1gbit"), ..small };
        assert_eq!(slow.warning(&network("100gbit")), None, "a slow interface is not helped by buffers");
        assert_eq!(Prospect::default().warning(&network("10gbit")), None);
    }
}
