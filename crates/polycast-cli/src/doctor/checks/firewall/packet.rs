//! The datagram in question, and what is known of it: a group is random within its range, a port altogether.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use polycast_net::Family;

/// A datagram of a broadcast.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Where it arrives or leaves.
    pub interface: &'a str,
    /// Its family.
    pub family: Family,
    /// Whether it arrives or leaves.
    pub direction: Direction,
}

/// Which way a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It arrives.
    In,
    /// It is sent.
    Out,
}

/// Whether a condition of a rule holds for the datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holds {
    /// Never.
    No,
    /// For some groups, ports or moments, or it is not understood.
    Maybe,
    /// Always.
    Yes,
}

impl Holds {
    /// `Yes` or `No`.
    pub fn of(condition: bool) -> Holds {
        if condition { Holds::Yes } else { Holds::No }
    }

    /// Whether the opposite holds.
    pub fn not(self) -> Holds {
        match self {
            Holds::No => Holds::Yes,
            Holds::Maybe => Holds::Maybe,
            Holds::Yes => Holds::No,
        }
    }
}

impl Packet<'_> {
    /// The range of groups, as address and prefix length.
    pub fn groups(&self) -> (IpAddr, u8) {
        match self.family {
            Family::V4 => (Ipv4Addr::new(239, 192, 0, 0).into(), 14),
            Family::V6 => (Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0, 0).into(), 16),
        }
    }

    /// Whether the destination is in a prefix.
    pub fn is_to(&self, address: IpAddr, prefix_bits: u8) -> Holds {
        let (groups, bits) = self.groups();
        if address.is_ipv4() != groups.is_ipv4() {
            return Holds::No;
        }
        let shared = bits.min(prefix_bits);
        match (leading(address, shared) == leading(groups, shared), prefix_bits <= bits) {
            (false, _) => Holds::No,
            (true, true) => Holds::Yes,
            (true, false) => Holds::Maybe,
        }
    }

    /// Whether `interface`, which may end in a wild card of nft (`*`) or iptables (`+`), is where it arrives or leaves.
    pub fn is_by(&self, interface: &str, direction: Direction) -> Holds {
        if direction != self.direction {
            return Holds::No;
        }
        Holds::of(match interface.strip_suffix(['*', '+']) {
            Some(prefix) => self.interface.starts_with(prefix),
            None => self.interface == interface,
        })
    }
}

/// The first bits of an address.
fn leading(address: IpAddr, bits: u8) -> u128 {
    let (word, width) = match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    word.checked_shr(width - u32::from(bits).min(width)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_holds_all_some_or_no_groups() {
        let packet = Packet { interface: "e0", family: Family::V4, direction: Direction::In };
        let to = |text: &str, bits| packet.is_to(text.parse().unwrap(), bits);
        assert_eq!(to("0.0.0.0", 0), Holds::Yes);
        assert_eq!(to("224.0.0.0", 4), Holds::Yes);
        assert_eq!(to("239.192.0.0", 14), Holds::Yes);
        assert_eq!(to("239.193.0.0", 16), Holds::Maybe);
        assert_eq!(to("239.193.0.1", 32), Holds::Maybe);
        assert_eq!(to("224.0.0.0", 24), Holds::No);
        assert_eq!(to("10.0.0.0", 8), Holds::No);
        assert_eq!(to("ff00::", 8), Holds::No);
        let packet = Packet { family: Family::V6, ..packet };
        assert_eq!(packet.is_to("ff00::".parse().unwrap(), 8), Holds::Yes);
        assert_eq!(packet.is_to("::".parse().unwrap(), 0), Holds::Yes);
    }

    #[test]
    fn interfaces_may_have_wild_cards() {
        let packet = Packet { interface: "eth0", family: Family::V4, direction: Direction::In };
        assert_eq!(packet.is_by("eth0", Direction::In), Holds::Yes);
        assert_eq!(packet.is_by("eth+", Direction::In), Holds::Yes);
        assert_eq!(packet.is_by("lo", Direction::In), Holds::No);
        assert_eq!(packet.is_by("eth0", Direction::Out), Holds::No);
    }
}
