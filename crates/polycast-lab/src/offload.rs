//! Offloads at the ends of a link: packets in rows, where packets are lost one by one.

use std::os::fd::AsRawFd;

use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// Lets `interface` of a host hand packets that came together to TCP, and to UDP sockets with `UDP_GRO`, as one: generic
/// receive offload, which is off on a veth.
pub(crate) fn join_packets_on_arrival(interface: &str) {
    set(interface, SET_GRO, 1);
}

/// Says of the switch's end of a link that it sends single packets. Otherwise the kernel takes for granted that packets
/// that can be joined are joined already, and the other end does not try.
pub(crate) fn send_single_packets(port: &str) {
    set(port, SET_TSO, 0);
}

/// `linux/sockios.h` and `linux/ethtool.h`.
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const SET_TSO: u32 = 0x1f;
const SET_GRO: u32 = 0x2c;

/// `struct ethtool_value` of `linux/ethtool.h`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Sets a feature of an interface of this process's network namespace. All that these features do is spare the machine
/// work, so nothing is said where it fails, as it does before Linux 5.13.
fn set(interface: &str, command: u32, data: u32) {
    let Ok(any_socket) = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None) else {
        return;
    };
    let mut value = EthtoolValue { command, data };
    // SAFETY: all fields of ifreq are numbers, bytes or pointers, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // One byte less than there is room for: the name ends with a zero.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request has a name that ends with a zero and points to a value of the layout that both commands take;
    // both outlive the call.
    unsafe { libc::ioctl(any_socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
}
