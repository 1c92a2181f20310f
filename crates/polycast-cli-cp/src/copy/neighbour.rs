//! A connection to a neighbour in the ring, of which nobody waits for the other.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use polycast_copy::{Frame, MAX_FRAME_BYTES};
use rustix::event::PollFlags;

/// The most bytes that may wait to be sent; the protocol has no more to say then.
const MAX_WAITING_BYTES: usize = 256 << 10;
/// The most bytes that one call reads; a frame fits.
const READ_BYTES: usize = 2 * MAX_FRAME_BYTES;

/// A connection to a neighbour; before it is made, what is to be said waits.
#[derive(Default)]
pub struct Neighbour {
    connection: Option<TcpStream>,
    /// The bytes that have come; the first `come` of them are not used yet.
    incoming: Vec<u8>,
    come: usize,
    /// The number of bytes in front of the neighbour's first frame that say nothing.
    skip: usize,
    outgoing: Vec<u8>,
    sent: usize,
    /// True if the neighbour has closed the connection.
    pub is_gone: bool,
}

impl Neighbour {
    /// Takes the connection that was made; `skip` bytes come before the neighbour's first frame.
    pub fn connected(&mut self, connection: TcpStream, skip: usize) -> io::Result<()> {
        connection.set_nonblocking(true)?;
        (self.connection, self.skip) = (Some(connection), skip);
        Ok(())
    }

    pub fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    pub fn has_room(&self) -> bool {
        self.outgoing.len() - self.sent < MAX_WAITING_BYTES
    }

    pub fn say(&mut self, frame: Frame<'_>) {
        frame.encode(&mut self.outgoing);
    }

    /// Sends what there is room for.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some(mut connection) = self.connection.as_ref().filter(|_| !self.is_gone) else { return Ok(()) };
        while self.sent < self.outgoing.len() {
            match connection.write(&self.outgoing[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.outgoing.clear();
        self.sent = 0;
        Ok(())
    }

    /// Hands over what has come.
    pub fn read(&mut self, mut take: impl FnMut(Frame<'_>)) -> io::Result<()> {
        let Some(mut connection) = self.connection.as_ref().filter(|_| !self.is_gone) else { return Ok(()) };
        self.incoming.resize(READ_BYTES, 0);
        match connection.read(&mut self.incoming[self.come..]) {
            Ok(0) => self.is_gone = true,
            Ok(bytes) => self.come += bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        }
        let mut at = self.skip.min(self.come);
        self.skip -= at;
        let come = &self.incoming[..self.come];
        while let Some((frame, bytes)) = Frame::decode(&come[at..]).map_err(io::Error::other)? {
            take(frame);
            at += bytes;
        }
        self.incoming.copy_within(at..self.come, 0);
        self.come -= at;
        Ok(())
    }

    /// The socket, and the events on it to wait for; `None` without a connection.
    pub fn events(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let connection = self.connection.as_ref().filter(|_| !self.is_gone)?;
        let out = if self.outgoing.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        Some((connection.as_fd(), PollFlags::IN | out))
    }
}
