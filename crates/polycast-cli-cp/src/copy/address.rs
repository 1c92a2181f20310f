//! The addresses at which a node can be reached.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

/// Listens on every address, at a port that the kernel chooses.
pub fn listen() -> io::Result<(TcpListener, Vec<SocketAddr>)> {
    // Both families, unless there is no IPv6 here.
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0))
        .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
    let local = listener.local_addr()?;
    let mut addresses = own_addresses()?;
    addresses.retain(|address| local.is_ipv6() || address.is_ipv4());
    Ok((listener, addresses.into_iter().map(|address| SocketAddr::new(address, local.port())).collect()))
}

/// The host's addresses, IPv4 first; that of `lo` if there is no other.
fn own_addresses() -> io::Result<Vec<IpAddr>> {
    let mut found: Vec<IpAddr> = Vec::new();
    for entry in getifaddrs()? {
        let is_up = entry.flags.contains(InterfaceFlags::IFF_UP);
        if !is_up || entry.flags.contains(InterfaceFlags::IFF_LOOPBACK) {
            continue;
        }
        let Some(address) = entry.address else { continue };
        if let Some(v4) = address.as_sockaddr_in() {
            found.push(v4.ip().into());
        } else if let Some(v6) = address.as_sockaddr_in6().filter(|v6| !v6.ip().is_unicast_link_local()) {
            found.push(v6.ip().into());
        }
    }
    found.sort_by_key(IpAddr::is_ipv6);
    if found.is_empty() {
        found.push(Ipv4Addr::LOCALHOST.into());
    }
    Ok(found)
}
