//! The routing tables of the kernel, in the words of `/proc/net/route` and `/proc/net/ipv6_route`.

use std::net::{Ipv4Addr, Ipv6Addr};

/// RTF_UP of `<linux/route.h>`: the route is in use.
pub const UP: u32 = 0x1;
/// RTF_REJECT of `<linux/route.h>`: what would take the route is refused.
pub const REJECT: u32 = 0x200;

/// A route of one of the two families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route<'a, Address> {
    /// The interface that the route leaves through.
    pub interface: &'a str,
    /// The first address of those that take the route.
    pub destination: Address,
    /// The number of leading bits in which they are alike.
    pub prefix_bits: u32,
    /// The route's metric: of two the smaller one is taken.
    pub metric: u32,
    /// [`UP`], [`REJECT`] and others.
    pub flags: u32,
}

/// The routes of a table of IPv4. Columns: interface, destination, gateway, flags, references, use, metric, mask, …
pub fn ipv4(table: &str) -> impl Iterator<Item = Route<'_, Ipv4Addr>> {
    table.lines().skip(1).filter_map(|line| {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        // Addresses are printed as the words of memory that they are, so the bytes are turned on little-endian machines.
        let word = |index: usize| {
            let word = u32::from_str_radix(columns.get(index)?, 16).ok()?;
            Some(Ipv4Addr::from(word.to_ne_bytes()))
        };
        Some(Route {
            interface: columns.first()?,
            destination: word(1)?,
            prefix_bits: word(7)?.to_bits().count_ones(),
            metric: columns.get(6)?.parse().ok()?,
            flags: u32::from_str_radix(columns.get(3)?, 16).ok()?,
        })
    })
}

/// The routes of a table of IPv6. Columns: destination, its prefix length, source, its prefix length, next hop, metric,
/// references, use, flags, interface.
pub fn ipv6(table: &str) -> impl Iterator<Item = Route<'_, Ipv6Addr>> {
    table.lines().filter_map(|line| {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |index: usize| u32::from_str_radix(columns.get(index)?, 16).ok();
        Some(Route {
            interface: columns.get(9)?,
            destination: Ipv6Addr::from(u128::from_str_radix(columns.first()?, 16).ok()?),
            prefix_bits: number(1)?,
            metric: number(5)?,
            flags: number(8)?,
        })
    })
}

impl Route<'_, Ipv4Addr> {
    /// True if an address takes the route where no longer prefix does.
    pub fn has(&self, address: Ipv4Addr) -> bool {
        let mask = u32::MAX.checked_shl(u32::BITS - self.prefix_bits).unwrap_or(0);
        address.to_bits() & mask == self.destination.to_bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn routes_of_ipv4_are_read() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     eth0\t00000000\t0100000A\t0003\t0\t0\t5\t00000000\t0\t0\t0\n\
                     eth1\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\nshort 1\n";
        let routes: Vec<_> = ipv4(table).collect();
        let default = Route {
            interface: "eth0",
            destination: Ipv4Addr::UNSPECIFIED,
            prefix_bits: 0,
            metric: 5,
            flags: UP | 2,
        };
        let net = Route {
            interface: "eth1",
            destination: [10, 0, 0, 0].into(),
            prefix_bits: 8,
            metric: 0,
            flags: UP,
        };
        assert_eq!(routes, [default, net]);
        let ten = Ipv4Addr::from([10, 1, 2, 3]);
        assert!(default.has(ten) && net.has(ten) && !net.has([11, 1, 2, 3].into()));
        assert_eq!(ipv4("").count(), 0);
    }

    #[test]
    fn routes_of_ipv6_are_read() {
        let zeros = "0".repeat(32);
        let table = format!("ff00{} 08 {zeros} 00 {zeros} 00000100 1 0 00200200 eth3\nx y\n", "0".repeat(28));
        let expected = Route {
            interface: "eth3",
            destination: Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0),
            prefix_bits: 8,
            metric: 0x100,
            flags: 0x20_0200,
        };
        assert_eq!(ipv6(&table).collect::<Vec<_>>(), [expected]);
    }
}
