//! The addresses at which a node can be reached, and what the user says of the network.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use polycast_core::variables::{HOPS, PORTS};
use polycast_net::{Hops, Ports};

use super::message::Command;
use crate::settings::variable;

/// The user's word on the network of a copy.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// The ports to listen at; `None`: one that the kernel chooses.
    ports: Option<Ports>,
    pub hops: Hops,
}

impl Network {
    /// Reads the values of POLYCAST_PORTS and POLYCAST_TTL.
    pub fn new(ports: Option<String>, hops: Option<String>) -> Result<Network, String> {
        let ports = ports.map(|text| text.parse().map_err(|error| format!("{PORTS}={text}: {error}")));
        let hops = hops.map(|text| text.parse().map_err(|error| format!("{HOPS}={text}: {error}")));
        Ok(Network { ports: ports.transpose()?, hops: hops.transpose()?.unwrap_or_default() })
    }

    /// What the user says on this host, for the agents of others; `None` if that is nothing.
    pub fn for_agents() -> Option<Command> {
        let (ports, hops) = (variable(PORTS), variable(HOPS));
        (ports.is_some() || hops.is_some()).then_some(Command::Network { ports, hops })
    }

    /// Listens on every address.
    pub fn listen(self) -> io::Result<(TcpListener, Vec<SocketAddr>)> {
        let listener = match self.ports {
            None => bind(0)?,
            Some(ports) => {
                let free = || io::Error::new(io::ErrorKind::AddrInUse, "no port of POLYCAST_PORTS is free");
                ports.all().find_map(|port| bind(port).ok()).ok_or_else(free)?
            }
        };
        let local = listener.local_addr()?;
        let mut addresses = own_addresses()?;
        addresses.retain(|address| local.is_ipv6() || address.is_ipv4());
        Ok((listener, addresses.into_iter().map(|address| SocketAddr::new(address, local.port())).collect()))
    }
}

impl Default for Network {
    /// What this host's environment and files say; what is wrong there is told.
    fn default() -> Network {
        Network::new(variable(PORTS), variable(HOPS)).unwrap_or_else(|problem| {
            eprintln!("polycast: warning: {problem}");
            Network { ports: None, hops: Hops::default() }
        })
    }
}

/// A listener at this port, for both families unless there is no IPv6 here.
fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
        .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))
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
