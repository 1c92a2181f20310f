//! A socket that is a member of one group on one interface.

mod error;
mod filter;
mod open;
mod option;
mod receive;
mod send;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::libc;
use nix::sys::socket::SockaddrStorage;

pub use error::{OpenError, Step};

use crate::{Group, Interface};

/// The receive buffer that the kernel would grant to a socket with the default options, its book-keeping included.
///
/// # Errors
/// The kernel's: no socket can be had.
pub fn receive_buffer_bytes() -> io::Result<usize> {
    open::granted_receive_bytes(&SocketOptions::default())
}

/// The options of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// Time to live (IPv4) or hop limit (IPv6): 1 stays on the link.
    pub hops: u8,
    /// Receive buffer to ask for. The kernel grants up to net.core.rmem_max unless the process is privileged.
    pub receive_bytes: usize,
    /// Send buffer to ask for, limited by net.core.wmem_max alike. What does not fit is refused with `WouldBlock`, so a
    /// buffer smaller than the interface's queue makes a sender wait where a larger one makes the queue drop.
    pub send_bytes: usize,
    /// True if the sender's own datagrams are to come back to its host. On the loopback interface
    /// they always do.
    pub loop_back: bool,
    /// Use segmentation offload (GSO) where the kernel has it.
    pub segment: bool,
    /// Use receive offload (GRO) where the kernel has it.
    pub coalesce: bool,
}

impl Default for SocketOptions {
    fn default() -> Self {
        SocketOptions {
            hops: 1,
            receive_bytes: 4 << 20,
            send_bytes: 256 << 10,
            loop_back: false,
            segment: true,
            coalesce: true,
        }
    }
}

/// A socket that sends to a group and receives from it. Non-blocking, close-on-exec; membership
/// ends with the socket.
///
/// One process per host (network namespace) can have a group and port: the address is never shared, since whoever
/// shares it could read and inject.
#[derive(Debug)]
pub struct Socket {
    socket: OwnedFd,
    group: Group,
    destination: SockaddrStorage,
    interface_index: u32,
    most_datagram_bytes: usize,
    granted_receive_bytes: usize,
    can_segment: bool,
    can_coalesce: bool,
    /// The buffer for one system call's datagrams, reused for every call.
    buffer: Box<[u8]>,
    /// The control messages that come with the datagrams.
    control: Box<[u8]>,
    refused: u64,
}

impl Socket {
    /// Joins the group on the interface.
    ///
    /// IPv6 waits up to three seconds for the interface's address: for that long after the link comes up it is tentative.
    ///
    /// # Errors
    /// The step that failed and its remedy; [`OpenError::is_conflict`] says whether another group may do.
    pub fn open(interface: &Interface, group: Group, options: &SocketOptions) -> Result<Socket, OpenError> {
        open::open(interface, group, options)
    }

    /// Returns the group that the socket is a member of.
    pub fn group(&self) -> Group {
        self.group
    }

    /// The largest datagram that needs no IP fragments.
    pub fn most_datagram_bytes(&self) -> usize {
        self.most_datagram_bytes
    }

    /// Returns the receive buffer as the kernel counts it: twice the bytes that were asked for, if
    /// granted, to pay for its book-keeping.
    pub fn granted_receive_bytes(&self) -> usize {
        self.granted_receive_bytes
    }

    /// True if many datagrams go out in one system call as one packet that is cut as late as
    /// possible (GSO). Turns false when the interface turns out to refuse it.
    pub fn can_segment(&self) -> bool {
        self.can_segment
    }

    /// True if the kernel joins datagrams that arrive together (GRO).
    pub fn can_coalesce(&self) -> bool {
        self.can_coalesce
    }

    /// Returns the bytes that were sent and have not left this host, as the kernel counts them, its
    /// book-keeping included: in queues of the network layer, or in the interface. 0 if the kernel
    /// does not say.
    pub fn queued_bytes(&self) -> usize {
        option::queued_bytes(self.as_fd())
    }

    /// Leaves the group and joins it at once again, so that the kernel tells switches once more of
    /// the member: switches without a querier forget it after some minutes. Datagrams that arrive
    /// in between are lost.
    ///
    /// # Errors
    /// The kernel's: then it may not be a member any more.
    pub fn renew_membership(&self) -> io::Result<()> {
        open::renew(self.as_fd(), self.interface_index, self.group)
    }

    /// Makes the kernel drop datagrams that do not have these bytes at offset `at`, or are too
    /// short, before this process is woken for them. Among datagrams that the kernel joins only the
    /// first of each row is looked at, so others may still come.
    ///
    /// # Errors
    /// The kernel's; then all still come.
    pub fn keep_only(&self, bytes: [u8; 4], at: u32) -> io::Result<()> {
        filter::keep_only(self.as_fd(), bytes, at)
    }

    /// Datagrams that the kernel dropped since the socket was opened: because the receive buffer was full, a checksum was
    /// wrong, or [`Socket::keep_only`] says so. 32 bits in the kernel; 0 on kernels before 4.12, which do not tell.
    pub fn dropped_by_kernel(&self) -> u64 {
        /// linux/sock_diag.h: SK_MEMINFO_DROPS, SK_MEMINFO_VARS.
        const DROPS: usize = 8;
        const VARIABLES: usize = 9;
        option::get::<[u32; VARIABLES]>(self.as_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO)
            .map_or(0, |memory| u64::from(memory[DROPS]))
    }

    /// Datagrams that were cut off, or not addressed to the group on the interface, and so were not handed on.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
