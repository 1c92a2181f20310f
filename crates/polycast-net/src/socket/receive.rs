//! Receiving: what one system call gives, checked, cut into datagrams.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrLike, SockaddrStorage, recvmmsg, recvmsg,
};

use super::Socket;
use crate::Group;

/// The receive buffer's length: joined datagrams are never more than an IP packet can be.
pub(super) const BUFFER_BYTES: usize = 1 << 16;

/// The most datagrams of one call where the kernel does not join them.
const MAX_BATCH: usize = 32;

/// The most reads in a row that give nothing for us, before the caller gets to do something else.
const MAX_FOREIGN_READS: usize = 64;

/// Room for the destination (of either family) and the size of the joined datagrams.
fn control_space() -> Vec<u8> {
    nix::cmsg_space!(libc::in6_pktinfo, libc::in_pktinfo, libc::c_int)
}

pub(super) fn control_buffer() -> Box<[u8]> {
    vec![0; control_space().capacity()].into_boxed_slice()
}

impl Socket {
    /// Hands on what one system call gives, datagram by datagram, and returns how many; 0 if nothing is there. Only
    /// datagrams that are whole, addressed to the group, and came in on the interface are handed on.
    ///
    /// Nothing is allocated per datagram: the bytes are in a buffer that the next call overwrites.
    ///
    /// # Errors
    /// The kernel's; not `WouldBlock`.
    pub fn receive(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<usize> {
        for _ in 0..MAX_FOREIGN_READS {
            let read =
                if self.can_coalesce { self.read_joined(&mut each) } else { self.read_batch(&mut each) };
            match read {
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(count) => return Ok(count),
                Err(Errno::EAGAIN) => return Ok(0),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(0)
    }

    fn read_joined(&mut self, each: &mut impl FnMut(&[u8])) -> nix::Result<usize> {
        let Socket { socket, buffer, control, .. } = self;
        let arrival = {
            let mut parts = [IoSliceMut::new(buffer)];
            let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(control), MsgFlags::empty())?;
            Arrival::of(&message)
        };
        let Some(datagram_bytes) = arrival.accepted(self.group, self.interface_index) else {
            self.refused += 1;
            return Ok(0);
        };
        let mut count = 0;
        for datagram in buffer[..arrival.bytes].chunks(datagram_bytes) {
            each(datagram);
            count += 1;
        }
        Ok(count)
    }

    fn read_batch(&mut self, each: &mut impl FnMut(&[u8])) -> nix::Result<usize> {
        let Socket { socket, buffer, .. } = self;
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(MAX_BATCH, Some(control_space()));
        let mut places: Vec<[IoSliceMut<'_>; 1]> = buffer
            .chunks_exact_mut(self.most_datagram_bytes)
            .take(MAX_BATCH)
            .map(|place| [IoSliceMut::new(place)])
            .collect();
        let arrivals: Vec<Arrival> =
            recvmmsg(socket.as_raw_fd(), &mut headers, places.iter_mut(), MsgFlags::empty(), None)?
                .map(|message| Arrival::of(&message))
                .collect();
        let mut count = 0;
        for (place, arrival) in buffer.chunks_exact(self.most_datagram_bytes).zip(arrivals) {
            if arrival.accepted(self.group, self.interface_index).is_none() {
                self.refused += 1;
                continue;
            }
            each(&place[..arrival.bytes]);
            count += 1;
        }
        Ok(count)
    }
}

/// The kernel's description of the bytes it wrote.
#[derive(Debug, Default)]
struct Arrival {
    bytes: usize,
    is_cut: bool,
    /// The destination in the IP header and the interface it came in on.
    destination: Option<(IpAddr, u32)>,
    /// The size of each joined datagram but the last.
    segment_bytes: Option<usize>,
}

impl Arrival {
    fn of<S: SockaddrLike>(message: &RecvMsg<'_, '_, S>) -> Arrival {
        let mut arrival = Arrival {
            bytes: message.bytes,
            is_cut: message.flags.contains(MsgFlags::MSG_TRUNC),
            ..Arrival::default()
        };
        // An error: the control messages were cut off, so the destination is not known.
        for control in message.cmsgs().into_iter().flatten() {
            match control {
                ControlMessageOwned::Ipv4PacketInfo(info) => {
                    let address = Ipv4Addr::from(u32::from_be(info.ipi_addr.s_addr));
                    arrival.destination = Some((address.into(), info.ipi_ifindex as u32));
                }
                ControlMessageOwned::Ipv6PacketInfo(info) => {
                    let address = Ipv6Addr::from(info.ipi6_addr.s6_addr);
                    arrival.destination = Some((address.into(), info.ipi6_ifindex));
                }
                ControlMessageOwned::UdpGroSegments(bytes) => {
                    arrival.segment_bytes = usize::try_from(bytes).ok();
                }
                _ => {}
            }
        }
        arrival
    }

    /// Returns the size of the datagrams that arrived (at least 1), if they are whole and for us.
    fn accepted(&self, group: Group, interface_index: u32) -> Option<usize> {
        let is_ours = self.destination == Some((group.address, interface_index));
        if self.is_cut || !is_ours || self.bytes == 0 {
            return None;
        }
        Some(self.segment_bytes.filter(|bytes| *bytes > 0).unwrap_or(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_datagrams_for_the_group_on_the_interface_are_accepted() {
        let address: IpAddr = "239.192.1.2".parse().unwrap();
        let group = Group { address, port: 5_000 };
        let other: IpAddr = "239.192.1.3".parse().unwrap();
        let arrival =
            |bytes, destination, is_cut, segment_bytes| Arrival { bytes, is_cut, destination, segment_bytes };
        for (arrival, expected) in [
            (arrival(3_000, Some((address, 4)), false, Some(1_000)), Some(1_000)),
            (arrival(3_000, Some((address, 4)), false, None), Some(3_000)),
            (arrival(3_000, Some((address, 4)), false, Some(0)), Some(3_000)),
            (arrival(3_000, Some((address, 4)), true, Some(1_000)), None),
            (arrival(3_000, Some((address, 5)), false, None), None),
            (arrival(3_000, Some((other, 4)), false, None), None),
            (arrival(3_000, None, false, None), None),
            (arrival(0, Some((address, 4)), false, None), None),
        ] {
            assert_eq!(arrival.accepted(group, 4), expected, "{arrival:?}");
        }
    }
}
