//! Sleeping until one of this process's network connections has something for MPI.
//!
//! MPI has no call that waits without spinning, but its messages come through sockets, and those are in the process's
//! table of descriptors. Whatever is wrong with what we see there (sockets of the program, of another MPI transport,
//! none at all) costs a wake-up too many or a short sleep, never a message: a sleep is bounded, and after each one MPI
//! is asked again.

use std::os::fd::{BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::net::{AddressFamily, SocketType, sockopt};

use crate::machine::{self, stand_in};

/// Connections are made at the first message between two ranks. That one is missing in the list shows in sleeps that nothing
/// ends: after one as long as this the list is read again, if it is not fresh. Reading it costs some 40 system calls, which
/// at the beginning of a broadcast would delay all ranks that share a processor with this one.
const DOUBTFUL_SLEEP: Duration = Duration::from_millis(1);
const LIST_AGE_LEAST: Duration = Duration::from_millis(50);

/// A socket that is ready again and again although MPI has nothing new is not MPI's, or MPI does not read it now. After so
/// many such wake-ups in a row, sleeps are by time only.
const MAX_WAKES_FOR_NOTHING: u32 = 64;

/// A wake-up for nothing mostly is the first packet of a message of several: the others get time to arrive, so that a
/// message of six packets costs two wake-ups or three and not six.
const PAUSE_AFTER_A_PART: Duration = Duration::from_micros(100);

/// How long a sleep is that MPI's messages do not end.
const MAX_BLIND_SLEEP: Duration = Duration::from_millis(1);

/// Sockets that are watched; more would make the sleep itself expensive.
const MAX_SOCKETS: usize = 1024;

/// Why a sleep ended.
pub enum Wake {
    /// A socket has something.
    Ready,
    /// The socket that the caller named is ready.
    OwnReady,
    /// The time is up.
    TimeIsUp,
    /// There was nothing to sleep on; no time has passed.
    NoSockets,
}

/// The process's stream sockets.
#[derive(Default)]
pub struct Sockets {
    descriptors: Vec<RawFd>,
    /// When the list was read; `None` if it is to be read.
    listed: Option<Instant>,
    wakes_for_nothing: u32,
}

impl Sockets {
    /// MPI found something: the last wake-ups were not for nothing.
    pub fn progress(&mut self) {
        self.wakes_for_nothing = 0;
    }

    /// Sleeps until `own` is ready, until a socket of MPI can be read, or (with `has_sends`) one whose buffer is full can be
    /// written, or for `longest`.
    pub fn wait(
        &mut self,
        own: Option<(BorrowedFd<'_>, PollFlags)>,
        longest: Duration,
        has_sends: bool,
        now: Instant,
    ) -> Wake {
        if self.listed.is_none() {
            self.descriptors = stream_sockets();
            self.listed = Some(now);
        }
        let wake = self.sleep(own, longest, has_sends);
        let is_doubtful = match wake {
            Wake::Ready | Wake::OwnReady => false,
            Wake::TimeIsUp => longest >= DOUBTFUL_SLEEP,
            Wake::NoSockets => true,
        };
        if is_doubtful {
            self.listed = self.listed.filter(|listed| now.duration_since(*listed) < LIST_AGE_LEAST);
        }
        wake
    }

    fn sleep(
        &mut self,
        own: Option<(BorrowedFd<'_>, PollFlags)>,
        longest: Duration,
        has_sends: bool,
    ) -> Wake {
        let own = own.map(|(descriptor, events)| PollFd::from_borrowed_fd(descriptor, events));
        if self.descriptors.is_empty() || self.wakes_for_nothing >= MAX_WAKES_FOR_NOTHING {
            return match own {
                None => Wake::NoSockets,
                // MPI's messages are only noticed when the time is up.
                Some(own) => match machine::poll(&mut [own], longest.min(MAX_BLIND_SLEEP)) {
                    0 => Wake::TimeIsUp,
                    _ => Wake::OwnReady,
                },
            };
        }
        if self.wakes_for_nothing > 0 {
            machine::sleep(PAUSE_AFTER_A_PART);
        }
        let full = if has_sends { self.with_full_buffers() } else { Vec::new() };
        let mut watched = self.as_poll_list(|descriptor| {
            if full.contains(&descriptor) { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
        });
        watched.extend(own);
        match machine::poll(&mut watched, longest) {
            0 => Wake::TimeIsUp,
            _ if watched.len() > self.descriptors.len()
                && watched.last().is_some_and(|own| !own.revents().is_empty()) =>
            {
                Wake::OwnReady
            }
            _ => {
                if watched.iter().any(|fd| fd.revents().contains(PollFlags::NVAL)) {
                    self.listed = None;
                }
                self.wakes_for_nothing += 1;
                Wake::Ready
            }
        }
    }

    /// A socket with room in its buffer is always writable and would always wake us; only one without is worth
    /// watching.
    fn with_full_buffers(&self) -> Vec<RawFd> {
        let mut watched = self.as_poll_list(|_| PollFlags::OUT);
        machine::poll(&mut watched, Duration::ZERO);
        let is_full = |fd: &PollFd<'_>| !fd.revents().contains(PollFlags::OUT);
        self.descriptors.iter().zip(&watched).filter(|(_, fd)| is_full(fd)).map(|(fd, _)| *fd).collect()
    }

    fn as_poll_list<'a>(&self, events: impl Fn(RawFd) -> PollFlags) -> Vec<PollFd<'a>> {
        let entry = |&descriptor: &RawFd| {
            // SAFETY: only asked about, never read or closed; if somebody closes it meanwhile, poll says so.
            PollFd::from_borrowed_fd(unsafe { BorrowedFd::borrow_raw(descriptor) }, events(descriptor))
        };
        self.descriptors.iter().map(entry).collect()
    }
}

fn stream_sockets() -> Vec<RawFd> {
    stand_in!(|_machine| Vec::new());
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let descriptors = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    descriptors.filter(|&descriptor| is_stream_socket(descriptor)).take(MAX_SOCKETS).collect()
}

fn is_stream_socket(descriptor: RawFd) -> bool {
    // SAFETY: only asked about; if it is closed meanwhile, the answer is an error.
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let is_network = sockopt::socket_domain(descriptor)
        .is_ok_and(|domain| domain == AddressFamily::INET || domain == AddressFamily::INET6);
    is_network && sockopt::socket_type(descriptor).is_ok_and(|kind| kind == SocketType::STREAM)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn data_on_a_connection_ends_the_sleep() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_receiver, _) = listener.accept().unwrap();
        let mut sockets = Sockets::default();
        let nap = Duration::from_millis(1);
        assert!(matches!(sockets.wait(None, nap, true, Instant::now()), Wake::TimeIsUp));
        sender.write_all(b"x").unwrap();
        let long = Duration::from_secs(60);
        assert!(matches!(sockets.wait(None, long, true, Instant::now()), Wake::Ready));

        // Nobody reads it: after a while we stop believing that it is for us.
        while let Wake::Ready = sockets.wait(None, long, false, Instant::now()) {}
        assert!(matches!(sockets.wait(None, long, false, Instant::now()), Wake::NoSockets));
        sockets.progress();
        assert!(matches!(sockets.wait(None, long, false, Instant::now()), Wake::Ready));
    }
}
