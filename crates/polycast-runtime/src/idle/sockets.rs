//! Sleeping until one of this process's network connections has something for MPI.
//!
//! MPI has no call that waits without spinning, but its messages come through sockets, and those are in the process's
//! table of descriptors. Whatever is wrong with what we see there (sockets of the program, of another MPI transport,
//! none at all, another thread that reads them before we look) costs a wake-up too many or a short sleep, never a message: a sleep is
//! bounded, and after each one MPI is asked again.
//!
//! The kernel keeps two sets of them for the process, so that a sleep costs the same with three connections and with thousands.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{AddressFamily, SocketType, sockopt};

use crate::machine::{self, stand_in};
use crate::of_process::{Shared, of_process};

/// Sleep after which the list of connections is read again, if nothing ended it and the list is not
/// fresh. Connections are made at the first message between two ranks, and one that is missing in
/// the list ends no sleep. Reading the list costs some 40 system calls, which at the beginning of a
/// broadcast would delay all ranks that share a processor with this one.
const DOUBTFUL_SLEEP: Duration = Duration::from_millis(1);
const LIST_AGE_LEAST: Duration = Duration::from_millis(50);
/// Age of the list for each socket in it, which takes four system calls: a process of 1,000
/// connections reads it half a second apart.
const LIST_AGE_PER_SOCKET: Duration = Duration::from_micros(500);

/// Looks in a row after which a socket is watched no more: if it has something just after MPI was
/// asked, and never less than before, nobody reads it, and it is not MPI's.
const LOOKS_UNTIL_MUTED: u32 = 32;

/// Longest sleep that MPI's messages do not end.
pub const MAX_BLIND_SLEEP: Duration = Duration::from_millis(1);

/// Most times that the kernel's sets are made anew, where descriptors vanish.
const MAX_SETS: u32 = 8;

/// Most sockets that a wake-up tells of at a time.
const MAX_SEEN: usize = 64;

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Reason for which a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A socket has something.
    Ready,
    /// The socket that the caller named is ready.
    OwnReady,
    /// The time is up.
    TimeIsUp,
    /// No socket was there to sleep on. No time has passed.
    NoSockets,
}

of_process! { static SOCKETS: Mutex<Sockets> = Mutex::new(Sockets::UNKNOWN); }

/// Opens what sleeps need, early: a rank may first sleep long after it began, and programs that
/// count their descriptors would find more then.
pub fn open() {
    if are_there() {
        SOCKETS.change(Sockets::open);
    }
}

/// True unless the machine is a test's stand-in.
fn are_there() -> bool {
    stand_in!(|_machine| false);
    true
}

/// Sleeps until `own` is ready, until a socket of MPI can be read, or (with `has_sends`) one whose buffer was full can be
/// written, or for `longest`.
pub fn wait(own: Option<(BorrowedFd<'_>, PollFlags)>, longest: Duration, has_sends: bool) -> Wake {
    let now = machine::now();
    let (sets, is_ready) = SOCKETS.change(|sockets| (sockets.sets(now), sockets.look()));
    if is_ready {
        return Wake::Ready;
    }
    let wake = sleep(sets, own, longest, has_sends);
    if wake == Wake::NoSockets || wake == Wake::TimeIsUp && longest >= DOUBTFUL_SLEEP {
        SOCKETS.change(|sockets| sockets.doubt(now));
    }
    wake
}

/// True if a socket has something. Does not wait.
pub fn have_something() -> bool {
    SOCKETS.change(Sockets::look)
}

/// Two sets of the kernel's: sockets that can be read, and those whose buffers were full and have
/// room now. They are never closed: a program that closes descriptors which it does not know may
/// have closed these, and have others of the same numbers by now.
struct Sets {
    arrivals: OwnedFd,
    room: OwnedFd,
}

/// Bytes that stand unread in a socket that nobody may read.
#[derive(Clone, Copy, Default)]
struct Unread {
    bytes: u64,
    looks: u32,
}

/// The process's stream sockets.
struct Sockets {
    /// The kernel's sets; `None` if there is nothing to sleep on.
    sets: Option<&'static Sets>,
    /// Number of sets that were lost before.
    lost: u32,
    watched: BTreeSet<RawFd>,
    muted: BTreeSet<RawFd>,
    unread: BTreeMap<RawFd, Unread>,
    /// Time at which the list was read; `None` if it is to be read.
    listed: Option<Instant>,
}

impl Sockets {
    const UNKNOWN: Sockets = Sockets {
        sets: None,
        lost: 0,
        watched: BTreeSet::new(),
        muted: BTreeSet::new(),
        unread: BTreeMap::new(),
        listed: None,
    };

    fn sets(&mut self, now: Instant) -> Option<&'static Sets> {
        if self.listed.is_none() {
            self.list();
            self.listed = Some(now);
        }
        self.sets.filter(|_| !self.watched.is_empty())
    }

    /// Doubts the list, after a sleep that no watched socket ended: an old one is read again.
    fn doubt(&mut self, now: Instant) {
        let age = LIST_AGE_LEAST.max(LIST_AGE_PER_SOCKET * self.watched.len() as u32);
        self.listed = self.listed.filter(|listed| now.duration_since(*listed) < age);
    }

    /// Makes the sets. Where descriptors have run out, sleeps are by time.
    fn open(&mut self) {
        if self.sets.is_none() && self.lost < MAX_SETS {
            self.sets = Sets::new().map(|sets| &*Box::leak(Box::new(sets)));
        }
    }

    fn list(&mut self) {
        let found = stream_sockets();
        if found.is_empty() && self.sets.is_none() {
            return;
        }
        self.open();
        let Some(sets) = self.sets else { return };
        self.muted.retain(|muted| found.contains(muted) && is_readable(*muted));
        self.watched.clear();
        for descriptor in found.difference(&self.muted) {
            if sets.add(*descriptor).is_ok() {
                self.watched.insert(*descriptor);
            }
        }
        sets.forget_room();
    }

    /// True if a socket has something. To be called when MPI has just been asked, and has read its
    /// own.
    fn look(&mut self) -> bool {
        let Some(sets) = self.sets else { return false };
        // All of them: one that is not among them has been read.
        let Ok(ready) = sets.readable(self.watched.len()) else {
            self.start_anew();
            return false;
        };
        self.unread.retain(|descriptor, _| ready.contains(descriptor));
        let mut is_ready = false;
        for descriptor in ready {
            let bytes = ioctl_fionread(borrow(descriptor)).unwrap_or(0);
            let unread = self.unread.entry(descriptor).or_default();
            *unread = Unread { bytes, looks: if bytes >= unread.bytes { unread.looks + 1 } else { 0 } };
            if unread.looks < LOOKS_UNTIL_MUTED {
                is_ready = true;
            } else if sets.remove(descriptor).is_ok() {
                self.watched.remove(&descriptor);
                self.muted.insert(descriptor);
            } else {
                // It was closed here, and a child process still has it.
                self.start_anew();
                return true;
            }
        }
        is_ready
    }

    fn start_anew(&mut self) {
        *self = Sockets { lost: self.lost + 1, ..Sockets::UNKNOWN };
    }
}

impl Sets {
    fn new() -> Option<Sets> {
        let [arrivals, room] = [(); 2].map(|()| epoll::create(CreateFlags::CLOEXEC).ok());
        Some(Sets { arrivals: arrivals?, room: room? })
    }

    fn add(&self, descriptor: RawFd) -> Result<(), Errno> {
        let (socket, data) = (borrow(descriptor), EventData::new_u64(descriptor as u64));
        // A socket with room in its buffer always has it; worth a word is that it has some again.
        let room = EventFlags::OUT | EventFlags::ET;
        for (set, events) in [(&self.arrivals, EventFlags::IN), (&self.room, room)] {
            match epoll::add(set, socket, data, events) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn remove(&self, descriptor: RawFd) -> Result<(), Errno> {
        epoll::delete(&self.arrivals, borrow(descriptor))?;
        epoll::delete(&self.room, borrow(descriptor))
    }

    fn readable(&self, most: usize) -> Result<Vec<RawFd>, Errno> {
        let mut events = Vec::with_capacity(most.max(1));
        epoll::wait(&self.arrivals, spare_capacity(&mut events), Some(&AT_ONCE))?;
        Ok(events.iter().map(|event| event.data.u64() as RawFd).collect())
    }

    /// Forgets sockets that have had room until now.
    fn forget_room(&self) {
        let mut events = Vec::with_capacity(MAX_SEEN);
        while let Ok(1..) = epoll::wait(&self.room, spare_capacity(&mut events), Some(&AT_ONCE)) {
            events.clear();
        }
    }
}

fn sleep(
    sets: Option<&Sets>,
    own: Option<(BorrowedFd<'_>, PollFlags)>,
    longest: Duration,
    has_sends: bool,
) -> Wake {
    let own = own.map(|(descriptor, events)| PollFd::from_borrowed_fd(descriptor, events));
    let Some(sets) = sets else {
        return match own {
            None => Wake::NoSockets,
            // MPI's messages are only noticed when the time is up.
            Some(own) => match machine::poll(&mut [own], longest.min(MAX_BLIND_SLEEP)) {
                0 => Wake::TimeIsUp,
                _ => Wake::OwnReady,
            },
        };
    };
    let is_set = |set| PollFd::from_borrowed_fd(OwnedFd::as_fd(set), PollFlags::IN);
    // A place without events reports none.
    let nothing = PollFd::from_borrowed_fd(sets.room.as_fd(), PollFlags::empty());
    let room = if has_sends { is_set(&sets.room) } else { nothing.clone() };
    let mut watched = [own.unwrap_or(nothing), is_set(&sets.arrivals), room];
    if machine::poll(&mut watched, longest) == 0 {
        return Wake::TimeIsUp;
    }
    let [own, _, room] = watched.map(|watched| !watched.revents().is_empty());
    if room {
        sets.forget_room();
    }
    if own { Wake::OwnReady } else { Wake::Ready }
}

fn borrow<'a>(descriptor: RawFd) -> BorrowedFd<'a> {
    // SAFETY: only asked about, never read or closed; if somebody closes it meanwhile, the answer is an error.
    unsafe { BorrowedFd::borrow_raw(descriptor) }
}

fn stream_sockets() -> BTreeSet<RawFd> {
    stand_in!(|_machine| BTreeSet::new());
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return BTreeSet::new() };
    let descriptors = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    descriptors.filter(|&descriptor| is_stream_socket(descriptor)).collect()
}

/// Addresses of this host at which the process's connections to other hosts begin; the most
/// frequent first.
pub fn local_addresses() -> Vec<IpAddr> {
    let mut counted: Vec<(IpAddr, usize)> = Vec::new();
    for address in stream_sockets().into_iter().filter_map(local_address) {
        match counted.iter_mut().find(|(known, _)| *known == address) {
            Some((_, count)) => *count += 1,
            None => counted.push((address, 1)),
        }
    }
    counted.sort_by_key(|(_, count)| Reverse(*count));
    counted.into_iter().map(|(address, _)| address).collect()
}

/// Local address of a connection; `None` if there is none, or it leads to this host.
fn local_address(descriptor: RawFd) -> Option<IpAddr> {
    let descriptor = borrow(descriptor);
    let ends = [rustix::net::getsockname(descriptor).ok()?, rustix::net::getpeername(descriptor).ok()??];
    let [local, peer] =
        ends.map(|end| SocketAddr::try_from(end).ok().map(|address| address.ip().to_canonical()));
    local.filter(|local| !local.is_loopback() && peer != Some(*local))
}

fn is_stream_socket(descriptor: RawFd) -> bool {
    let descriptor = borrow(descriptor);
    let is_network = sockopt::socket_domain(descriptor)
        .is_ok_and(|domain| domain == AddressFamily::INET || domain == AddressFamily::INET6);
    is_network && sockopt::socket_type(descriptor).is_ok_and(|kind| kind == SocketType::STREAM)
}

fn is_readable(descriptor: RawFd) -> bool {
    machine::poll(&mut [PollFd::from_borrowed_fd(borrow(descriptor), PollFlags::IN)], Duration::ZERO) > 0
}

#[cfg(test)]
mod tests;
