//! Sending: as many datagrams per system call as the kernel takes.

use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg, sendmsg};

use super::Socket;

/// UDP_MAX_SEGMENTS of the kernels before 6.9; later ones take more.
const MAX_SEGMENTS: usize = 64;

/// Wire bytes of one segmented send, all headers counted: 43 datagrams on Ethernet, where 44 would be possible. Queues with a
/// token bucket of 64 KiB, the customary burst, let these pass in one piece and cut more than these into single packets.
const SEGMENTED_WIRE_BYTES: usize = 1 << 16;
const ETHERNET_HEADER_BYTES: usize = 14;

/// The most datagrams of one call where the kernel cannot segment.
const MAX_BATCH: usize = 32;

impl Socket {
    /// Sends a row of datagrams of `datagram_bytes` each, the last may be shorter. Returns the bytes of those that the kernel took,
    /// in order, always whole datagrams; the rest is for the caller to send again, once the socket is writable.
    ///
    /// # Errors
    /// `WouldBlock` if the send buffer had no room for any; `InvalidInput` if datagrams are empty or larger than
    /// [`most_datagram_bytes`](Socket::most_datagram_bytes); otherwise the kernel's (an interface that went down), with none sent.
    pub fn send(&mut self, datagrams: &[u8], datagram_bytes: usize) -> io::Result<usize> {
        if datagram_bytes == 0 || datagram_bytes.min(datagrams.len()) > self.most_datagram_bytes {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("datagrams of {datagram_bytes} bytes; expected 1 to {}", self.most_datagram_bytes),
            ));
        }
        let mut taken = 0;
        while taken < datagrams.len() {
            match self.send_some(&datagrams[taken..], datagram_bytes) {
                Ok(bytes) => taken += bytes,
                Err(Errno::EINTR) => {}
                // It comes again at the next call, if it lasts.
                Err(_) if taken > 0 => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(taken)
    }

    fn send_some(&mut self, datagrams: &[u8], datagram_bytes: usize) -> nix::Result<usize> {
        if datagrams.len() <= datagram_bytes {
            return self.send_message(datagrams, &[]);
        }
        if !self.can_segment {
            return self.send_batch(datagrams, datagram_bytes);
        }
        let wire_bytes = datagram_bytes + self.group.family().header_bytes() + ETHERNET_HEADER_BYTES;
        let count = MAX_SEGMENTS.min(SEGMENTED_WIRE_BYTES / wire_bytes).max(1);
        let most = datagrams.len().min(count * datagram_bytes);
        // 65,527 at most: checked in `send`.
        let segment_bytes = datagram_bytes as u16;
        match self.send_message(&datagrams[..most], &[ControlMessage::UdpGsoSegments(&segment_bytes)]) {
            // The interface, or a tunnel or IPsec on the way to it, cannot compute the checksums.
            Err(Errno::EIO) => {
                self.can_segment = false;
                self.send_batch(datagrams, datagram_bytes)
            }
            result => result,
        }
    }

    fn send_message(&self, bytes: &[u8], control: &[ControlMessage<'_>]) -> nix::Result<usize> {
        let parts = [IoSlice::new(bytes)];
        sendmsg(self.socket.as_raw_fd(), &parts, control, MsgFlags::empty(), Some(&self.destination))
    }

    /// Sends one packet per datagram, with one system call for many.
    fn send_batch(&self, datagrams: &[u8], datagram_bytes: usize) -> nix::Result<usize> {
        let parts: Vec<[IoSlice<'_>; 1]> =
            datagrams.chunks(datagram_bytes).take(MAX_BATCH).map(|d| [IoSlice::new(d)]).collect();
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(parts.len(), None);
        let destinations = vec![Some(self.destination); parts.len()];
        let sent =
            sendmmsg(self.socket.as_raw_fd(), &mut headers, &parts, &destinations, [], MsgFlags::empty())?;
        Ok(datagrams.len().min(sent.count() * datagram_bytes))
    }
}
