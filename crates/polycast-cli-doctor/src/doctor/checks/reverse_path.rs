//! Strict reverse-path filtering drops datagrams silently if an answer to their sender would leave by another interface.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use polycast_net::Family;

use crate::doctor::finding::{Finding, Topic};
use crate::doctor::system::System;

/// Whether the filter is strict on the interface: the greater of two values counts, and 2 is the loose one.
fn is_strict(system: &System, interface: &str) -> bool {
    let value = |name: &str| system.number(&format!("/proc/sys/net/ipv4/conf/{name}/rp_filter")).unwrap_or(0);
    value("all").max(value(interface)) == 1
}

/// Looks at the setting. What it does depends on the senders: see [`compare`].
pub fn check(system: &System, interface: &str, family: Family) -> Vec<Finding> {
    match family {
        Family::V4 if is_strict(system, interface) => Vec::new(),
        Family::V4 => {
            vec![Finding::ok(Topic::ReversePath, "the reverse path of datagrams is not checked strictly")]
        }
        // Linux has no such setting for IPv6, firewalls do it there.
        Family::V6 => Vec::new(),
    }
}

/// Looks whether answers to all `peers` would leave by the interface, which has the address `own`.
pub fn compare(system: &System, interface: &str, own: IpAddr, peers: &[IpAddr]) -> Vec<Finding> {
    if own.is_ipv6() || !is_strict(system, interface) {
        return Vec::new();
    }
    let elsewhere: Vec<String> = peers
        .iter()
        .filter(|peer| local_address_toward(**peer).is_some_and(|local| local != own))
        .map(ToString::to_string)
        .collect();
    if elsewhere.is_empty() {
        let found = format!("rp_filter is strict on {interface}, and all hosts lie behind that interface");
        return vec![Finding::ok(Topic::ReversePath, found)];
    }
    let found = format!(
        "rp_filter is strict on {interface}, but answers to {} would leave by another interface: datagrams from there are \
         dropped without a trace",
        elsewhere.join(", ")
    );
    // The greater value counts, so 2 on the interface is enough whatever `all` is.
    let remedy = format!("sysctl -w net.ipv4.conf.{interface}.rp_filter=2");
    vec![Finding::warning(Topic::ReversePath, found, remedy)]
}

/// The address this host would send from: connecting a UDP socket asks for the route and sends nothing.
fn local_address_toward(peer: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = if peer.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(SocketAddr::new(peer, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::fake;
    use crate::doctor::finding::Level;

    fn with_filter(all: &str, interface: &str) -> (tempfile::TempDir, System) {
        fake::system(&[
            ("proc/sys/net/ipv4/conf/all/rp_filter", all),
            ("proc/sys/net/ipv4/conf/e0/rp_filter", interface),
        ])
    }

    #[test]
    fn the_greater_value_counts() {
        for (all, interface, strict) in
            [("0", "0", false), ("1", "0", true), ("0", "1", true), ("1", "2", false)]
        {
            let (_root, system) = with_filter(all, interface);
            assert_eq!(is_strict(&system, "e0"), strict, "{all} {interface}");
        }
    }

    #[test]
    fn a_sender_behind_another_interface_is_named() {
        let (_root, system) = with_filter("1", "0");
        // The loop-back address is behind the loop-back interface, whatever network this machine has.
        let loopback: IpAddr = [127, 0, 0, 1].into();
        let finding = &compare(&system, "e0", [10, 0, 0, 1].into(), &[loopback])[0];
        assert!(finding.level == Level::Warning && finding.found.contains("127.0.0.1"), "{finding:?}");
        assert_eq!(compare(&system, "e0", loopback, &[loopback])[0].level, Level::Ok);
    }
}
