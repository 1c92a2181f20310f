//! A multicast group of this process: a socket, a key, and what has come for each of its communicators.
//!
//! Communicators over the same nodes share a group. Each drains the socket while it waits; what is for another one is
//! laid into that one's inbox, within a limit.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use polycast_core::protocol::Key;
use polycast_core::protocol::wire::{Header, Reject, open};
use polycast_core::units::Nanos;
use polycast_madcap::LeaseRenewer;
use polycast_net::Datagrams;

use super::dumps;
use super::flood::{Drained, Filter, drain};
use crate::idle::Arm;
use crate::machine;
use crate::of_process::of_process;
use crate::report::Dropped;

/// Most bytes that may wait in an inbox.
const MAX_INBOX_BYTES: usize = 4 << 20;
/// Bytes that a datagram in an inbox costs beside its payload.
const OVERHEAD_BYTES: usize = 64;

/// Time after which a membership is reported again. Switches to which no querier speaks forget a
/// member after 260 s (RFC 3376, section 8.4).
const RENEWED_AFTER: Duration = Duration::from_secs(100);

impl Dropped {
    /// The drops since `before`. The kernel counts in 32 bits: in a flood of hours its number
    /// begins again.
    fn since(&self, before: &Dropped) -> Dropped {
        Dropped {
            foreign: self.foreign.saturating_sub(before.foreign),
            forged: self.forged.saturating_sub(before.forged),
            unclaimed: self.unclaimed.saturating_sub(before.unclaimed),
            by_kernel: self.by_kernel.saturating_sub(before.by_kernel),
            failures: self.failures.saturating_sub(before.failures),
        }
    }
}

/// Size and rate of datagrams, the same on all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    pub payload_bytes: u32,
    /// Datagrams that are sent at once.
    pub batch_datagrams: u32,
    /// Rate of sending, in bits per second; `None`: the sender's own link holds it up.
    pub bits_per_second: Option<u64>,
}

#[derive(Default)]
struct Inbox {
    datagrams: VecDeque<(Header, Box<[u8]>)>,
    bytes: usize,
}

struct Inner {
    socket: Datagrams,
    inboxes: BTreeMap<u32, Inbox>,
    dropped: Dropped,
    /// Drops that [`Group::take_dropped`] has returned.
    counted: Dropped,
    filter: Filter,
    /// Time at which the group was joined, or the membership renewed.
    renewed: Instant,
}

/// Outcome of a look into the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketContents {
    /// True if there was a datagram of this job.
    pub is_any: bool,
    /// True if nothing is left in the socket.
    pub is_all: bool,
}

/// Time for which messages wait while datagrams come faster than they are read, in nanoseconds: the
/// end of a broadcast is not to overtake its datagrams among them. Shorter where all that was read
/// in this time was strangers'.
const FLOODED: Nanos = Nanos::from_micros(1000);
const FLOODED_BY_STRANGERS: Nanos = Nanos::from_micros(100);

impl SocketContents {
    /// True if messages have their turn; the last look at them was `since` nanoseconds ago.
    pub fn lets_messages_in(self, since: Nanos) -> bool {
        self.is_all || since >= if self.is_any { FLOODED } else { FLOODED_BY_STRANGERS }
    }
}

of_process! {
    static NUMBERS: AtomicU32 = AtomicU32::new(0);
}

/// The number of a communicator in its group, drawn by its rank 0. No other communicator gets it:
/// those of a group share its key, and one that comes back after its multicast died may still get
/// messages of its life before.
pub fn next_communicator() -> u32 {
    NUMBERS.with(|numbers| numbers.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
}

/// A multicast group of this process, shared by communicators over the same nodes.
pub struct Group {
    job: u32,
    key: Key,
    pace: Pace,
    receive_buffer_bytes: usize,
    /// The socket's descriptor, to wait on without the lock.
    descriptor: RawFd,
    is_socket: bool,
    inner: Mutex<Inner>,
    /// True if a communicator has left the group because some node does not hear it any more: the
    /// others are to know.
    pub is_deaf: AtomicBool,
    /// Gives the group's address back when it is dropped, if a server gave the address to this
    /// process.
    _renewer: Option<LeaseRenewer>,
}

impl Group {
    /// A group over a socket that its set-up has prepared.
    pub fn new(
        (socket, filter): (Datagrams, Filter),
        job: u32,
        key: Key,
        pace: Pace,
        renewer: Option<LeaseRenewer>,
    ) -> Group {
        dumps::keep_out(&key);
        let receive_buffer_bytes = socket.receive_buffer_bytes();
        let descriptor = socket.as_fd().as_raw_fd();
        let is_socket = matches!(socket, Datagrams::Udp(_));
        let (dropped, counted) = Default::default();
        let (inboxes, renewed) = (BTreeMap::new(), machine::now());
        let inner = Inner { socket, inboxes, dropped, counted, filter, renewed };
        let inner = Mutex::new(inner);
        Group {
            job,
            key,
            pace,
            receive_buffer_bytes,
            descriptor,
            is_socket,
            inner,
            is_deaf: AtomicBool::new(false),
            _renewer: renewer,
        }
    }

    pub fn job(&self) -> u32 {
        self.job
    }

    pub fn key(&self) -> &Key {
        &self.key
    }

    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Size of the socket's receive buffer in bytes, as the kernel has granted it.
    pub fn receive_buffer_bytes(&self) -> usize {
        self.receive_buffer_bytes
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a communicator that begins to use the group an inbox.
    pub fn enroll(&self, communicator: u32) {
        self.lock().inboxes.entry(communicator).or_default();
    }

    /// Reports the membership again, if the last report is long ago: so switches know that there is
    /// still somebody. To be called when a broadcast begins.
    pub fn renew_membership(&self) {
        let (now, mut inner) = (machine::now(), self.lock());
        if now - inner.renewed >= RENEWED_AFTER {
            inner.renewed = now;
            // Who is no member any more hears nothing, and the ring brings everything.
            let _ = inner.socket.renew_membership();
        }
    }

    /// Takes away the inbox of a communicator that does not use the group any more.
    pub fn leave(&self, communicator: u32) {
        self.lock().inboxes.remove(&communicator);
    }

    /// Drops since the last call: communicators that follow each other share the group.
    pub fn take_dropped(&self) -> Dropped {
        let mut inner = self.lock();
        let by_kernel = inner.socket.dropped();
        let for_room = inner.filter.for_room(by_kernel);
        let foreign = inner.dropped.foreign + inner.socket.refused() + (by_kernel - for_room);
        let failures = inner.socket.failures();
        let all = Dropped { foreign, by_kernel: for_room, failures, ..inner.dropped };
        all.since(&std::mem::replace(&mut inner.counted, all))
    }

    /// Hands on the datagrams for `communicator`, for a limited time.
    pub fn receive(
        &self,
        communicator: u32,
        mut each: impl FnMut(&Header, &[u8]),
    ) -> io::Result<SocketContents> {
        let mut inner = self.lock();
        let Inner { socket, inboxes, dropped, filter, .. } = &mut *inner;
        filter.look(dropped.foreign, socket, self.job);
        let mut is_any = false;
        if let Some(inbox) = inboxes.get_mut(&communicator) {
            inbox.bytes = 0;
            for (header, payload) in inbox.datagrams.drain(..) {
                is_any = true;
                each(&header, &payload);
            }
        }
        let strangers = dropped.foreign;
        let Drained { datagrams, is_all } =
            drain(socket, |datagram| match open(datagram, self.job, &self.key) {
                Ok((header, payload)) if header.communicator == communicator => each(&header, payload),
                Ok((header, payload)) => {
                    let inbox = inboxes.get_mut(&header.communicator);
                    let bytes = payload.len() + OVERHEAD_BYTES;
                    match inbox.filter(|inbox| inbox.bytes + bytes <= MAX_INBOX_BYTES) {
                        Some(inbox) => {
                            inbox.bytes += bytes;
                            inbox.datagrams.push_back((header, payload.into()));
                        }
                        None => dropped.unclaimed += 1,
                    }
                }
                Err(Reject::Foreign | Reject::Short) => dropped.foreign += 1,
                Err(Reject::Forged) => dropped.forged += 1,
                Err(Reject::Unknown) => dropped.unclaimed += 1,
            })?;
        is_any |= datagrams > dropped.foreign - strangers;
        Ok(SocketContents { is_any, is_all })
    }

    /// Bytes that have not left this host: [`polycast_net::Datagrams::queued_bytes`].
    pub fn queued_bytes(&self) -> usize {
        self.lock().socket.queued_bytes()
    }

    /// True if a UDP socket carries the datagrams. Anything else has to be armed before one sleeps
    /// on its descriptor.
    pub fn is_socket(&self) -> bool {
        self.is_socket
    }

    /// Sends datagrams: [`polycast_net::Datagrams::send`].
    pub fn send(&self, datagrams: &[u8], datagram_bytes: usize) -> io::Result<usize> {
        self.lock().socket.send(datagrams, datagram_bytes)
    }
}

impl Arm for Group {
    fn arm(&self) -> bool {
        self.lock().socket.arm()
    }
}

impl AsFd for Group {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the socket is never replaced, so it stays open as long as `self`.
        unsafe { BorrowedFd::borrow_raw(self.descriptor) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They are ten times a millisecond while strangers flood the socket, as MPI is asked.
    #[test]
    fn messages_are_acted_upon_in_a_flood() {
        let lets_in = |is_any, is_all, micros| {
            SocketContents { is_any, is_all }.lets_messages_in(Nanos::from_micros(micros))
        };
        assert!(lets_in(false, true, 0) && lets_in(true, true, 0), "nothing is left");
        assert!(lets_in(false, false, 100) && !lets_in(false, false, 99), "only strangers");
        assert!(lets_in(true, false, 1000) && !lets_in(true, false, 999), "ours come first");
    }

    #[test]
    fn a_number_of_the_kernels_may_begin_again() {
        let before = Dropped { foreign: 7, by_kernel: u32::MAX.into(), ..Dropped::default() };
        let now = Dropped { foreign: 9, by_kernel: 3, ..Dropped::default() };
        assert_eq!(now.since(&before), Dropped { foreign: 2, ..Dropped::default() });
    }
}
