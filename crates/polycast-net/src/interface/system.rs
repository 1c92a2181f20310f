//! What the kernel tells about interfaces.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::libc;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::Interface;
use crate::routes::{self, Route};

nix::ioctl_read_bad!(interface_mtu, libc::SIOCGIFMTU, libc::ifreq);

pub(super) fn interfaces() -> io::Result<Vec<Interface>> {
    let default_routes = default_routes();
    let mut found: BTreeMap<u32, Interface> = BTreeMap::new();
    for entry in getifaddrs()? {
        // An interface that went away since getifaddrs is left out.
        let Ok(index) = if_nametoindex(entry.interface_name.as_str()) else { continue };
        let interface = match found.entry(index) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                let has_default_route = default_routes.contains(&entry.interface_name);
                let Ok(interface) = describe(&entry, index, has_default_route) else { continue };
                place.insert(interface)
            }
        };
        add_address(interface, &entry);
    }
    Ok(found.into_values().collect())
}

fn describe(entry: &InterfaceAddress, index: u32, has_default_route: bool) -> io::Result<Interface> {
    let flags = entry.flags;
    let name = entry.interface_name.clone();
    Ok(Interface {
        index,
        ipv4: None,
        ipv6: None,
        mtu_bytes: mtu_bytes(&name)?,
        bits_per_second: bits_per_second(&name, index),
        is_up: flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING),
        can_multicast: flags.contains(InterfaceFlags::IFF_MULTICAST)
            && !flags.contains(InterfaceFlags::IFF_POINTOPOINT),
        is_loopback: flags.contains(InterfaceFlags::IFF_LOOPBACK),
        has_default_route,
        name,
    })
}

fn add_address(interface: &mut Interface, entry: &InterfaceAddress) {
    let Some(address) = entry.address else { return };
    if let Some(v4) = address.as_sockaddr_in() {
        interface.ipv4.get_or_insert(v4.ip());
    } else if let Some(v6) = address.as_sockaddr_in6() {
        let address: Ipv6Addr = v6.ip();
        if address.is_unicast_link_local() {
            interface.ipv6.get_or_insert(address);
        }
    }
}

fn mtu_bytes(name: &str) -> io::Result<u32> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: ifreq is plain data for which all zeroes is a value: an empty name.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // One place stays zero: the name ends there.
    let places = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..places].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: SIOCGIFMTU reads the name and writes the MTU, both inside `request`, which outlives the call.
    unsafe { interface_mtu(socket.as_raw_fd(), &mut request)? };
    // SAFETY: the call succeeded, so this is the field of the union that it wrote.
    Ok(unsafe { request.ifr_ifru.ifru_mtu } as u32)
}

/// Reads the rate of an interface from /sys. /sys shows the network namespace in which it was
/// mounted, which need not be ours: the index tells whether it is the same interface.
fn bits_per_second(name: &str, index: u32) -> Option<u64> {
    let read = |file: &str| fs::read_to_string(format!("/sys/class/net/{name}/{file}")).ok();
    if read("ifindex")?.trim().parse() != Ok(index) {
        return None;
    }
    // -1: the driver does not know.
    let megabits: i64 = read("speed")?.trim().parse().ok()?;
    u64::try_from(megabits).ok().filter(|m| *m > 0).map(|m| m * 1_000_000)
}

/// Names of interfaces that a default route leaves through. The thread's namespace need not be that of the process, which
/// /proc/net would show.
fn default_routes() -> HashSet<String> {
    let v4 = fs::read_to_string("/proc/thread-self/net/route").unwrap_or_default();
    let v6 = fs::read_to_string("/proc/thread-self/net/ipv6_route").unwrap_or_default();
    default_routes_v4(&v4).chain(default_routes_v6(&v6)).map(str::to_owned).collect()
}

fn default_routes_v4(table: &str) -> impl Iterator<Item = &str> {
    let is_default = |route: &Route<_>| route.destination == Ipv4Addr::UNSPECIFIED && route.prefix_bits == 0;
    routes::ipv4(table).filter(is_default).map(|route| route.interface)
}

fn default_routes_v6(table: &str) -> impl Iterator<Item = &str> {
    // The kernel keeps an unreachable default route on lo, of the worst metric.
    let is_default = |route: &Route<_>| {
        route.destination == Ipv6Addr::UNSPECIFIED && route.prefix_bits == 0 && route.metric != u32::MAX
    };
    routes::ipv6(table).filter(is_default).map(|route| route.interface)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_described() {
        let all = Interface::all().unwrap();
        let lo = all.iter().find(|i| i.is_loopback).expect("every host has lo");
        assert_eq!(lo.name, "lo");
        assert!(lo.mtu_bytes >= 1280, "{lo:?}");
        assert!(!lo.has_default_route);
    }

    #[test]
    fn default_routes_are_read_from_both_tables() {
        let v4 = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                  eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                  eth1\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
        assert_eq!(default_routes_v4(v4).collect::<Vec<_>>(), ["eth0"]);

        let zero = "0".repeat(32);
        let v6 = format!(
            "{zero} 00 {zero} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth2\n\
             {zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200 lo\n\
             fe800000000000000000000000000000 40 {zero} 00 {zero} 00000100 00000001 00000000 00000001 eth3\n"
        );
        assert_eq!(default_routes_v6(&v6).collect::<Vec<_>>(), ["eth2"]);
        assert_eq!(default_routes_v4("").count() + default_routes_v6("x y").count(), 0);
    }
}
