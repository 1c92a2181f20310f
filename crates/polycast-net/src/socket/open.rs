//! Opening: everything that Linux needs to be told before the first datagram.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, getsockopt, setsockopt, socket, sockopt,
};

use super::error::{OpenError, Step};
use super::{Socket, SocketOptions, option, receive};
use crate::{Family, Group, Interface};

/// include/uapi/linux/in6.h; since Linux 4.20.
const IPV6_MULTICAST_ALL: libc::c_int = 29;

/// The longest wait for an IPv6 address: duplicate address detection takes one to two seconds.
const ADDRESS_WAIT: Duration = Duration::from_secs(3);
const ADDRESS_PAUSE: Duration = Duration::from_millis(50);

type Attempt<T> = Result<T, (Step, io::Error)>;

pub(super) fn open(
    interface: &Interface,
    group: Group,
    options: &SocketOptions,
) -> Result<Socket, OpenError> {
    attempt(interface, group, options).map_err(|(step, source)| OpenError {
        step,
        group,
        interface: interface.name.clone(),
        source,
    })
}

fn attempt(interface: &Interface, group: Group, options: &SocketOptions) -> Attempt<Socket> {
    check(interface, group)?;
    let family = group.family();
    let socket = create(family)?;
    let fd = socket.as_fd();
    isolate(fd, family)?;
    aim(fd, family, interface, options)?;
    let granted_receive_bytes = size_buffers(fd, options)?;
    let can_coalesce = options.coalesce && setsockopt(&fd, sockopt::UdpGroSegment, &true).is_ok();
    // The option tells whether the kernel knows the control message; older ones ignore it and send one huge datagram.
    let can_segment = options.segment && getsockopt(&fd, sockopt::UdpGsoSegment).is_ok();

    let destination = SockaddrStorage::from(address(interface, group));
    bind(fd.as_raw_fd(), &destination).map_err(|e| (Step::Bind, e.into()))?;
    join(fd, interface, group).map_err(|e| (Step::Join, e))?;
    if family == Family::V6 {
        wait_for_address(address(interface, group)).map_err(|e| (Step::Address, e))?;
    }

    let most = interface.mtu_bytes as usize - family.header_bytes();
    Ok(Socket {
        destination,
        group,
        interface_index: interface.index,
        most_datagram_bytes: most.min(family.most_payload_bytes()),
        granted_receive_bytes,
        can_segment,
        can_coalesce,
        buffer: vec![0; receive::BUFFER_BYTES].into_boxed_slice(),
        control: receive::control_buffer(),
        refused: 0,
        socket,
    })
}

fn check(interface: &Interface, group: Group) -> Attempt<()> {
    let invalid = |text: String| Err((Step::Check, io::Error::new(io::ErrorKind::InvalidInput, text)));
    let family = group.family();
    if !group.address.is_multicast() {
        return invalid("not a multicast address".to_owned());
    }
    if interface.address(family).is_none() {
        return invalid(format!("the interface has no {family} address"));
    }
    // 68 and 1280 are the least that the protocols allow; interfaces can be set to less.
    if (interface.mtu_bytes as usize) <= family.header_bytes() {
        return invalid(format!("an MTU of {} bytes has no room for data", interface.mtu_bytes));
    }
    Ok(())
}

fn create(family: Family) -> Attempt<OwnedFd> {
    let domain = match family {
        Family::V4 => AddressFamily::Inet,
        Family::V6 => AddressFamily::Inet6,
    };
    // SO_REUSEADDR is never set: with it, any other user can bind the same group and port, read and inject.
    socket(domain, SockType::Datagram, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None)
        .map_err(|e| (Step::Create, e.into()))
}

/// Restricts the socket to this group's datagrams, and has their destination and interface told, so
/// that `receive` can check them.
fn isolate(fd: BorrowedFd<'_>, family: Family) -> Attempt<()> {
    match family {
        Family::V4 => {
            // By default a socket also gets groups that other processes of the host have joined.
            configure(fd, libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0, "IP_MULTICAST_ALL")?;
            configure(fd, libc::IPPROTO_IP, libc::IP_PKTINFO, 1, "IP_PKTINFO")
        }
        Family::V6 => {
            configure(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1, "IPV6_V6ONLY")?;
            // Refused before Linux 4.20: there the check of the interface in `receive` has to do.
            let _ = configure(fd, libc::IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0, "IPV6_MULTICAST_ALL");
            configure(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1, "IPV6_RECVPKTINFO")
        }
    }
}

/// Sets the interface at which datagrams leave and how far they go. IP_PMTUDISC_PROBE: never IP
/// fragments, and whatever a router claims about the path's MTU is ignored.
fn aim(fd: BorrowedFd<'_>, family: Family, interface: &Interface, options: &SocketOptions) -> Attempt<()> {
    let hops = libc::c_int::from(options.hops);
    let loop_back = libc::c_int::from(options.loop_back);
    let index = interface.index as libc::c_int;
    match family {
        Family::V4 => {
            let ip = libc::IPPROTO_IP;
            option::set(fd, ip, libc::IP_MULTICAST_IF, &membership(Ipv4Addr::UNSPECIFIED, interface.index))
                .map_err(|e| (Step::Configure("IP_MULTICAST_IF"), e))?;
            configure(fd, ip, libc::IP_MULTICAST_TTL, hops, "IP_MULTICAST_TTL")?;
            configure(fd, ip, libc::IP_MULTICAST_LOOP, loop_back, "IP_MULTICAST_LOOP")?;
            configure(fd, ip, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE, "IP_MTU_DISCOVER")
        }
        Family::V6 => {
            let ip = libc::IPPROTO_IPV6;
            configure(fd, ip, libc::IPV6_MULTICAST_IF, index, "IPV6_MULTICAST_IF")?;
            configure(fd, ip, libc::IPV6_MULTICAST_HOPS, hops, "IPV6_MULTICAST_HOPS")?;
            configure(fd, ip, libc::IPV6_MULTICAST_LOOP, loop_back, "IPV6_MULTICAST_LOOP")?;
            configure(fd, ip, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE, "IPV6_MTU_DISCOVER")
        }
    }
}

/// The receive buffer that the kernel grants to a member of a group, book-keeping included.
pub(super) fn granted_receive_bytes(options: &SocketOptions) -> io::Result<usize> {
    let socket = create(Family::V4).map_err(|(_, error)| error)?;
    size_buffers(socket.as_fd(), options).map_err(|(_, error)| error)
}

/// Asks for buffers and returns the receive buffer that was granted. The kernel silently cuts a wish to rmem_max; a privileged process
/// may go beyond, which is tried only where it is needed.
fn size_buffers(fd: BorrowedFd<'_>, options: &SocketOptions) -> Attempt<usize> {
    let failed = |option| move |e: nix::Error| (Step::Configure(option), e.into());
    setsockopt(&fd, sockopt::SndBuf, &options.send_bytes).map_err(failed("SO_SNDBUF"))?;
    setsockopt(&fd, sockopt::RcvBuf, &options.receive_bytes).map_err(failed("SO_RCVBUF"))?;
    let granted = || getsockopt(&fd, sockopt::RcvBuf).map_err(failed("SO_RCVBUF"));
    if granted()? < options.receive_bytes.saturating_mul(2) {
        // Refused to ordinary users: then what was granted has to do.
        let _ = setsockopt(&fd, sockopt::RcvBufForce, &options.receive_bytes);
    }
    granted()
}

fn join(fd: BorrowedFd<'_>, interface: &Interface, group: Group) -> io::Result<()> {
    change(fd, interface.index, group, libc::IP_ADD_MEMBERSHIP, libc::IPV6_ADD_MEMBERSHIP)
}

/// Leaves the group and joins it again, by which the kernel reports the membership once more.
pub(super) fn renew(fd: BorrowedFd<'_>, interface_index: u32, group: Group) -> io::Result<()> {
    // Not a member any more, for a reason of the kernel's: then it is time to become one again.
    let _ = change(fd, interface_index, group, libc::IP_DROP_MEMBERSHIP, libc::IPV6_DROP_MEMBERSHIP);
    change(fd, interface_index, group, libc::IP_ADD_MEMBERSHIP, libc::IPV6_ADD_MEMBERSHIP)
}

fn change(
    fd: BorrowedFd<'_>,
    interface_index: u32,
    group: Group,
    v4: libc::c_int,
    v6: libc::c_int,
) -> io::Result<()> {
    match group.address {
        IpAddr::V4(address) => option::set(fd, libc::IPPROTO_IP, v4, &membership(address, interface_index)),
        IpAddr::V6(address) => {
            let request = libc::ipv6_mreq {
                ipv6mr_multiaddr: libc::in6_addr { s6_addr: address.octets() },
                ipv6mr_interface: interface_index,
            };
            option::set(fd, libc::IPPROTO_IPV6, v6, &request)
        }
    }
}

/// Returns the request to join a group on an interface, named by its index: an address may be on
/// two interfaces, or change.
fn membership(group: Ipv4Addr, interface_index: u32) -> libc::ip_mreqn {
    libc::ip_mreqn {
        imr_multiaddr: libc::in_addr { s_addr: u32::from(group).to_be() },
        imr_address: libc::in_addr { s_addr: 0 },
        imr_ifindex: interface_index as libc::c_int,
    }
}

fn address(interface: &Interface, group: Group) -> SocketAddr {
    match group.address {
        IpAddr::V4(address) => SocketAddrV4::new(address, group.port).into(),
        // The scope ties the socket to the interface.
        IpAddr::V6(address) => SocketAddrV6::new(address, group.port, 0, interface.index).into(),
    }
}

/// Waits until an IPv6 address can be sent from: after the link comes up, an address is tentative
/// until nobody else is seen to have it. A connect chooses the source address, so it tells without
/// sending anything.
fn wait_for_address(group: SocketAddr) -> io::Result<()> {
    let trial = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?;
    let deadline = Instant::now() + ADDRESS_WAIT;
    loop {
        match trial.connect(group) {
            Err(e) if e.kind() == io::ErrorKind::AddrNotAvailable && Instant::now() < deadline => {
                thread::sleep(ADDRESS_PAUSE);
            }
            result => return result,
        }
    }
}

fn configure(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
    option: &'static str,
) -> Attempt<()> {
    option::set(fd, level, name, &value).map_err(|e| (Step::Configure(option), e))
}
