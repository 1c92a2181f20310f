//! The route of the group range. polycast joins and sends by interface, other programs do not.

use std::net::{Ipv4Addr, Ipv6Addr};

use polycast_net::Family;
use polycast_net::routes::{self, REJECT, Route, UP};

use crate::doctor::finding::{Finding, Topic};
use crate::doctor::system::System;

/// The organisation-local scope, which groups are taken from (RFC 2365, 6.2).
const GROUPS: Ipv4Addr = Ipv4Addr::new(239, 192, 0, 0);

/// Looks where a program that names no interface would send to a group.
pub fn check(system: &System, interface: &str, family: Family) -> Vec<Finding> {
    match family {
        Family::V4 => vec![ipv4(&system.read("/proc/net/route").unwrap_or_default(), interface)],
        Family::V6 => vec![ipv6(&system.read("/proc/net/ipv6_route").unwrap_or_default(), interface)],
    }
}

fn ipv4(table: &str, interface: &str) -> Finding {
    let remedy = format!("ip route add 224.0.0.0/4 dev {interface}");
    match best_route(table, GROUPS) {
        Some(route) if route.flags & REJECT != 0 => {
            let found = "multicast is refused by a route of kind unreachable or prohibit; polycast sends by interface and is not concerned";
            Finding::note(Topic::Route, found).with_remedy("ip route del unreachable 224.0.0.0/4")
        }
        Some(route) if route.interface == interface => {
            Finding::ok(Topic::Route, format!("multicast leaves by {interface}"))
        }
        Some(route) => {
            let found = format!(
                "multicast of programs that name no interface leaves by {}; polycast names {interface}",
                route.interface
            );
            Finding::note(Topic::Route, found).with_remedy(remedy)
        }
        None => {
            let found =
                "no route for multicast: programs that name no interface cannot send; polycast names it";
            Finding::note(Topic::Route, found).with_remedy(remedy)
        }
    }
}

/// The route of `address` in the words of /proc/net/route: the longest prefix, then the smallest metric.
fn best_route(table: &str, address: Ipv4Addr) -> Option<Route<'_, Ipv4Addr>> {
    let takes = |route: &Route<_>| route.flags & UP != 0 && route.has(address);
    let routes = routes::ipv4(table).filter(takes);
    routes.max_by_key(|route| (route.prefix_bits, std::cmp::Reverse(route.metric)))
}

/// The kernel gives every IPv6 interface its own route for ff00::/8; without it nothing can be sent.
fn ipv6(table: &str, interface: &str) -> Finding {
    let is_of_groups = |route: &Route<Ipv6Addr>| route.destination.segments()[0] == 0xff00;
    let has_route = routes::ipv6(table).any(|route| is_of_groups(&route) && route.interface == interface);
    if has_route {
        return Finding::ok(Topic::Route, format!("multicast leaves by {interface}"));
    }
    let remedy = format!("ip -6 route add multicast ff00::/8 dev {interface} table local");
    Finding::warning(Topic::Route, format!("{interface} has no route for ff00::/8"), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    const HEADING: &str = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n";

    /// As /proc/net/route has it on a little-endian machine.
    fn table(lines: &[&str]) -> String {
        HEADING.to_owned() + &lines.join("\n")
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_longest_prefix_wins() {
        let default = "eth1 00000000 0100A8C0 0003 0 0 100 00000000 0 0 0";
        let all_groups = "eth0 000000E0 00000000 0001 0 0 0 000000F0 0 0 0";
        let level = |lines: &[&str]| ipv4(&table(lines), "eth0").level;
        assert_eq!(level(&[default, all_groups]), Level::Ok);
        let finding = ipv4(&table(&[default]), "eth0");
        assert!(finding.level == Level::Note && finding.found.contains("eth1"), "{finding:?}");
        assert_eq!(finding.remedy.as_deref(), Some("ip route add 224.0.0.0/4 dev eth0"));
        let found = |lines: &[&str]| ipv4(&table(lines), "eth0").found;
        assert!(found(&[default, "* 000000E0 00000000 0201 0 0 0 000000F0 0 0 0"]).contains("refused"));
        assert!(found(&[]).contains("no route"));
    }

    #[test]
    fn an_ipv6_interface_needs_its_multicast_route() {
        let zeros = "0".repeat(32);
        let line = format!("ff00{} 08 {zeros} 00 {zeros} 00000100 1 0 1 eth0", "0".repeat(28));
        assert_eq!(ipv6(&line, "eth0").level, Level::Ok);
        assert_eq!(ipv6(&line, "eth1").level, Level::Warning);
    }
}
