//! One face for what carries datagrams, so that nobody above knows whether it is a socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::Socket;

/// A carrier of datagrams for one group that is no UDP socket. The functions are those of
/// [`Datagrams`].
#[expect(missing_docs, reason = "one description of each is enough")]
pub trait Carrier: Send {
    fn send(&mut self, datagrams: &[u8], datagram_bytes: usize) -> io::Result<usize>;
    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<usize>;
    fn most_datagram_bytes(&self) -> usize;
    fn receive_buffer_bytes(&self) -> usize;
    fn dropped(&self) -> u64;
    fn queued_bytes(&self) -> usize;
    fn renew_membership(&mut self) -> io::Result<()>;
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Prepares to sleep; most carriers have nothing to do for that.
    fn arm(&mut self) -> bool {
        false
    }

    /// Filters nothing and returns false: nobody outside the job can send to most carriers.
    fn keep_only(&mut self, _bytes: [u8; 4], _at: u32) -> bool {
        false
    }

    fn refused(&self) -> u64 {
        0
    }

    fn failures(&self) -> u64 {
        0
    }
}

/// A member of one group: sends to the group, and receives from it. A socket is called without a
/// detour.
pub enum Datagrams {
    /// UDP through the kernel.
    Udp(Socket),
    /// A carrier that is no UDP socket.
    Other(Box<dyn Carrier>),
}

impl Datagrams {
    /// Sends a row of datagrams of `datagram_bytes` each, the last may be shorter. Returns the bytes of those that were taken, in
    /// order, always whole datagrams; the rest is for the caller to send again when there is room.
    ///
    /// # Errors
    /// `WouldBlock` if there was no room for any; `InvalidInput` if datagrams are empty or too large; otherwise the carrier's, with
    /// none sent.
    #[inline]
    pub fn send(&mut self, datagrams: &[u8], datagram_bytes: usize) -> io::Result<usize> {
        match self {
            Datagrams::Udp(socket) => socket.send(datagrams, datagram_bytes),
            Datagrams::Other(carrier) => carrier.send(datagrams, datagram_bytes),
        }
    }

    /// Hands on what one look gives, datagram by datagram, and returns how many; 0 if nothing is there.
    ///
    /// # Errors
    /// The carrier's; not `WouldBlock`.
    #[inline]
    pub fn receive(&mut self, each: &mut impl FnMut(&[u8])) -> io::Result<usize> {
        match self {
            Datagrams::Udp(socket) => socket.receive(each),
            Datagrams::Other(carrier) => carrier.receive(each),
        }
    }

    /// Prepares the descriptor to tell of datagrams that come; to be called before sleeping until
    /// it can be read. True if something has come already, of which the descriptor may not tell.
    #[inline]
    pub fn arm(&mut self) -> bool {
        match self {
            // A socket always tells.
            Datagrams::Udp(_) => false,
            Datagrams::Other(carrier) => carrier.arm(),
        }
    }

    /// The largest datagram.
    pub fn most_datagram_bytes(&self) -> usize {
        match self {
            Datagrams::Udp(socket) => socket.most_datagram_bytes(),
            Datagrams::Other(carrier) => carrier.most_datagram_bytes(),
        }
    }

    /// Returns the capacity for datagrams that wait to be received, as the kernel counts a socket's
    /// buffer: twice the bytes of the datagrams.
    pub fn receive_buffer_bytes(&self) -> usize {
        match self {
            Datagrams::Udp(socket) => socket.granted_receive_bytes(),
            Datagrams::Other(carrier) => carrier.receive_buffer_bytes(),
        }
    }

    /// Returns the bytes that were sent and have not left this host, as far as known.
    pub fn queued_bytes(&self) -> usize {
        match self {
            Datagrams::Udp(socket) => socket.queued_bytes(),
            Datagrams::Other(carrier) => carrier.queued_bytes(),
        }
    }

    /// Announces the membership to the network once more. Datagrams that arrive meanwhile may be
    /// lost.
    ///
    /// # Errors
    /// The carrier's: then it may not be a member any more.
    pub fn renew_membership(&mut self) -> io::Result<()> {
        match self {
            Datagrams::Udp(socket) => socket.renew_membership(),
            Datagrams::Other(carrier) => carrier.renew_membership(),
        }
    }

    /// Asks that datagrams without these bytes at offset `at` be dropped before this process is
    /// woken for them; false if they are not.
    pub fn keep_only(&mut self, bytes: [u8; 4], at: u32) -> bool {
        match self {
            Datagrams::Udp(socket) => socket.keep_only(bytes, at).is_ok(),
            Datagrams::Other(carrier) => carrier.keep_only(bytes, at),
        }
    }

    /// Datagrams that were cut off, or not addressed to the group, and so were not handed on.
    pub fn refused(&self) -> u64 {
        match self {
            Datagrams::Udp(socket) => socket.refused(),
            Datagrams::Other(carrier) => carrier.refused(),
        }
    }

    /// Counts failures below: requests that failed, memberships that were lost. A socket's errors
    /// are those of its calls.
    pub fn failures(&self) -> u64 {
        match self {
            Datagrams::Udp(_) => 0,
            Datagrams::Other(carrier) => carrier.failures(),
        }
    }

    /// Returns how many datagrams were dropped before they could be received, as far as known.
    pub fn dropped(&self) -> u64 {
        match self {
            Datagrams::Udp(socket) => socket.dropped_by_kernel(),
            Datagrams::Other(carrier) => carrier.dropped(),
        }
    }
}

/// The descriptor to sleep on, after [`Datagrams::arm`].
impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Datagrams::Udp(socket) => socket.as_fd(),
            Datagrams::Other(carrier) => carrier.descriptor(),
        }
    }
}
