//! The speed that multicast would have here, before it is set up; and its interface.

use polycast_core::network::{Network, Told};
use polycast_core::units::Rate;
use polycast_net::{Family, Interface, InterfaceError, receive_buffer_bytes};

use super::datagrams::interfaces;
use super::terms::rate_into;
use super::verbs;
use crate::attach::named_hosts;
use crate::machine::stand_in;
use crate::{idle, settings};

/// The interface that the user wants; among those that serve, the one that MPI's own connections use.
pub fn interface_of(wanted: &settings::Multicast, family: Family) -> Result<Interface, InterfaceError> {
    wanted.interface.choose_beside(&interfaces(), family, &idle::local_addresses())
}

/// Word of this rank on multicast's speed. Nothing is known where multicast is off or has no
/// interface; the set-up will say why.
pub fn prospect() -> Told {
    let Ok(wanted) = settings::Multicast::current() else { return Told::default() };
    let Some(family) = wanted.family else { return Told::default() };
    let rate = |bits: u64| Rate::from_bits_per_second(bits.min(Rate::MAX.bits_per_second()));
    if let Some(port) = verbs::port(&wanted) {
        // Its ring is as large as it needs to be, unless memory cannot be locked; then the set-up paces.
        return Told { interface_rate: rate(port.bits_per_second), ..Told::default() };
    }
    let Ok(interface) = interface_of(&wanted, family) else { return Told::default() };
    Told {
        estimate: None,
        interface_rate: interface.bits_per_second.and_then(rate),
        buffer_rate: granted_buffer_bytes().map(rate_into).and_then(rate),
    }
}

fn granted_buffer_bytes() -> Option<u64> {
    stand_in!(|machine| machine.receive_buffer_bytes());
    receive_buffer_bytes().ok().map(|bytes| bytes as u64)
}

/// Advice to the user, if pacing to the receive buffers of some hosts takes half or more of what
/// the network carries. `all` has the word of each rank that leads a node, and `name` is that of a
/// rank's host.
pub fn warning(all: &[Told], network: &Network, name: impl Fn(usize) -> String) -> Option<String> {
    let told = all.iter().enumerate();
    let small: Vec<(usize, Rate)> =
        told.filter_map(|(rank, told)| Some((rank, told.held_up(network)?))).collect();
    let slowest = small.iter().map(|(_, rate)| *rate).min()?;
    let names: Vec<String> = small.iter().map(|(rank, _)| name(*rank)).collect();
    let (hosts, carries) = (named_hosts(&names)?, network.rate?);
    Some(format!(
        "multicast is held up to {} Mb/s by small receive buffers on {hosts}, where the network carries {carries}: \
         net.core.rmem_max=4194304 there (sysctl) lets it go faster",
        slowest.bits_per_second() / 1_000_000
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_whose_buffers_halve_the_rate() {
        let rate = |text: &str| text.parse().ok();
        let network = Network { rate: rate("10gbit"), ..Network::default() };
        let with =
            |buffer| Told { interface_rate: rate("10gbit"), buffer_rate: rate(buffer), ..Told::default() };
        let all = [with("33gbit"), Told::default(), with("1700mbit"), with("33gbit"), with("900mbit")];
        let name = |rank| format!("node{rank}");
        let said = warning(&all, &network, name).unwrap();
        assert!(
            said.contains("held up to 900 Mb/s by small receive buffers on hosts node2, node4,"),
            "{said}"
        );
        assert!(said.contains("net.core.rmem_max=4194304"), "{said}");
        let said = warning(&all[..3], &network, name).unwrap();
        assert!(said.contains("1700 Mb/s by small receive buffers on host node2,"), "{said}");
        let said = warning(&[with("1gbit"); 100], &network, name).unwrap();
        assert!(said.contains("on hosts node0, node1, node2 and 97 more,"), "{said}");
        assert_eq!(warning(&all[..2], &network, name), None);
    }
}
