//! Where datagrams go to and come from: a socket, or in tests a network in memory.

use std::io;
#[cfg(test)]
use std::os::fd::RawFd;
use std::os::fd::{AsFd, BorrowedFd};

use polycast_core::protocol::wire::JOB_AT;
use polycast_net::{Group, Interface, Socket, SocketOptions};

use super::offer::Reason;
use crate::machine::stand_in;

/// The interfaces of this host; none if the kernel does not say.
pub fn interfaces() -> Vec<Interface> {
    stand_in!(|machine| machine.interfaces());
    Interface::all().unwrap_or_default()
}

/// A member of one group.
pub enum Datagrams {
    Socket(Socket),
    #[cfg(test)]
    Memory(Box<dyn MemorySocket>),
}

/// What tests have in place of a [`Socket`]; see there.
#[cfg(test)]
pub trait MemorySocket: Send {
    fn send(&mut self, datagrams: &[u8], datagram_bytes: usize) -> io::Result<usize>;
    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<usize>;
    fn receive_buffer_bytes(&self) -> usize;
    fn dropped(&self) -> u64;
    fn renew_membership(&mut self) -> io::Result<()>;
    fn queued_bytes(&self) -> usize;
    /// A number that the kernel is never asked for: the stand-in of the machine knows it.
    fn descriptor(&self) -> RawFd;
}

/// `$socket` is what is asked in either case.
macro_rules! either {
    ($self:ident, $socket:ident => $real:expr, $memory:expr) => {
        match $self {
            Datagrams::Socket($socket) => $real,
            #[cfg(test)]
            Datagrams::Memory($socket) => $memory,
        }
    };
}

impl Datagrams {
    /// Joins the group.
    pub fn open(interface: &Interface, group: Group) -> Result<Datagrams, Reason> {
        stand_in!(|machine| machine.open(interface, group).map(Datagrams::Memory));
        let opened = Socket::open(interface, group, &SocketOptions::default());
        let reason = |conflict| if conflict { Reason::Conflict } else { Reason::Socket };
        opened.map(Datagrams::Socket).map_err(|error| reason(error.is_conflict()))
    }

    /// See [`Socket::send`].
    #[inline]
    pub fn send(&mut self, datagrams: &[u8], datagram_bytes: usize) -> io::Result<usize> {
        either!(self, socket => socket.send(datagrams, datagram_bytes), socket.send(datagrams, datagram_bytes))
    }

    /// See [`Socket::receive`].
    #[inline]
    pub fn receive(&mut self, each: &mut impl FnMut(&[u8])) -> io::Result<usize> {
        either!(self, socket => socket.receive(each), socket.receive(each))
    }

    /// See [`Socket::renew_membership`].
    pub fn renew_membership(&mut self) -> io::Result<()> {
        either!(self, socket => socket.renew_membership(), socket.renew_membership())
    }

    /// Lets the kernel drop what is of another job; false if it does not.
    pub fn keep_only(&self, job: u32) -> bool {
        either!(self, socket => socket.keep_only(job.to_le_bytes(), JOB_AT as u32).is_ok(), { let _ = (socket, job); false })
    }

    /// See [`Socket::queued_bytes`].
    pub fn queued_bytes(&self) -> usize {
        either!(self, socket => socket.queued_bytes(), socket.queued_bytes())
    }

    /// As the kernel has granted it.
    pub fn receive_buffer_bytes(&self) -> usize {
        either!(self, socket => socket.granted_receive_bytes(), socket.receive_buffer_bytes())
    }

    /// Not for the group on its interface, or cut off.
    pub fn refused(&self) -> u64 {
        either!(self, socket => socket.refused(), { let _ = socket; 0 })
    }

    /// Because the receive buffer was full.
    pub fn dropped_by_kernel(&self) -> u64 {
        either!(self, socket => socket.dropped_by_kernel(), socket.dropped())
    }
}

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Datagrams::Socket(socket) => socket.as_fd(),
            // SAFETY: nobody but the stand-in of the machine gets it.
            #[cfg(test)]
            Datagrams::Memory(socket) => unsafe { BorrowedFd::borrow_raw(socket.descriptor()) },
        }
    }
}
