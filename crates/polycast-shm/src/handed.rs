//! What a rank that may not read another's memory is handed by it, piece by piece.
//!
//! Ranks read each other where the kernel lets them, and it may change its mind between two calls, or in the middle of one (a filter of system calls, a
//! process that gave up its rights). Who is refused then writes on a slip of its own what it lacks; whose memory it is waits until all have what it
//! shows, looks at the slips meanwhile, and lays the bytes on the tray beside the slip.
//!
//! # Invariants (proved by loom in `tests`)
//! 1. A slip has one request at a time. What it says is stored before its number (release), and loaded behind it (acquire).
//! 2. Who hands has claimed the request before it touches the tray, and only one can. What it lays there is stored before `handed` (release), and loaded
//!    behind it (acquire).
//! 3. A request is written when the one before was handed, or was withdrawn before anybody had claimed it.

use std::ops::Deref;

use crate::memory::Way;
use crate::sync::AtomicU64;
use crate::sync::Ordering::{Acquire, Relaxed, Release};

/// The bit in `asked` that says that some rank hands the bytes, or has.
const CLAIMED: u64 = 1 << 63;

/// The request of a rank.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Slip {
    /// The number of the request, written last; 0: none.
    pub asked: AtomicU64,
    /// The number of the last request whose bytes are on the tray; written by the rank that hands
    /// them.
    pub handed: AtomicU64,
    /// The stream that the bytes are of: its writer and channel.
    pub stream: AtomicU64,
    /// The operation's number.
    pub operation: AtomicU64,
    /// The address of the bytes in the writer's process.
    pub address: AtomicU64,
    /// The number of bytes.
    pub bytes: AtomicU64,
}

/// A segment, or what stands in for one in tests.
pub trait Trays {
    /// Returns the number of bytes that a tray has.
    fn tray_bytes(&self) -> usize;

    /// The flag that is not 0 once some rank has asked.
    fn has_refused(&self) -> &AtomicU64;

    /// The slip of a rank that asks.
    fn slip(&self, rank: u32) -> &Slip;

    /// Copies bytes onto the tray of a rank.
    ///
    /// # Safety
    /// `source` is readable for `bytes`, at most as many as the tray has, and nobody else reads or writes the tray meanwhile.
    unsafe fn lay(&self, rank: u32, source: *const u8, bytes: usize);

    /// Copies bytes from the tray of a rank.
    ///
    /// # Safety
    /// `place` is writable for `bytes`, at most as many as the tray has, and nobody writes the tray meanwhile.
    unsafe fn pick_up(&self, rank: u32, place: *mut u8, bytes: usize);
}

#[derive(Clone, Copy)]
struct Request {
    number: u64,
    way: Way,
    operation: u64,
    bytes: usize,
    /// True if no rank waits for the bytes any more.
    is_left: bool,
}

/// A rank's part in this exchange: asking for bytes, and handing them to others.
pub struct Handed<M> {
    memory: M,
    me: u32,
    /// The number of this rank's last request.
    last: u64,
    open: Option<Request>,
}

fn stream(way: Way) -> u64 {
    u64::from(way.writer) << 8 | u64::from(way.channel)
}

impl<M: Deref<Target: Trays>> Handed<M> {
    /// The part of rank `me` of a node, over memory in which it has asked for nothing.
    pub fn new(memory: M, me: u32) -> Handed<M> {
        Handed { memory, me, last: 0, open: None }
    }

    /// The part of rank `me` over memory in which others had parts before, which have ended.
    pub fn after(memory: M, me: u32) -> Handed<M> {
        let slip = memory.slip(me);
        // Relaxed: who asked by it has left.
        let last = slip.handed.load(Relaxed).max(slip.asked.load(Relaxed) & !CLAIMED);
        Handed { memory, me, last, open: None }
    }

    /// True if some rank of the node was refused when it wanted to read another's memory.
    pub fn has_refused(&self) -> bool {
        // Relaxed: who misses it looks again.
        self.memory.has_refused().load(Relaxed) != 0
    }

    /// Takes bytes that stand at `address` in the writer's process, as many as the writer has
    /// handed, and returns how many; 0: not yet. To be called with the same request again until the
    /// bytes are there.
    ///
    /// # Safety
    /// `place` is writable for `bytes`.
    pub unsafe fn take(
        &mut self,
        (way, operation): (Way, u64),
        address: u64,
        place: *mut u8,
        bytes: usize,
    ) -> usize {
        let slip = self.memory.slip(self.me);
        if let Some(open) = self.open {
            let is_own = !open.is_left && (open.way, open.operation) == (way, operation);
            // Acquire: with the release in `hand`.
            if !(is_own || open.is_left) || slip.handed.load(Acquire) != open.number {
                return 0;
            }
            self.open = None;
            if is_own {
                let count = open.bytes.min(bytes);
                // SAFETY: the caller's promise; who has handed it is done with the tray (invariant 2).
                unsafe { self.memory.pick_up(self.me, place, count) };
                return count;
            }
        }
        let bytes = bytes.min(self.memory.tray_bytes());
        self.last += 1;
        self.open = Some(Request { number: self.last, way, operation, bytes, is_left: false });
        // Relaxed: before the release of `asked`.
        slip.stream.store(stream(way), Relaxed);
        slip.operation.store(operation, Relaxed);
        slip.address.store(address, Relaxed);
        slip.bytes.store(bytes as u64, Relaxed);
        // Release: with the acquire in `hand`.
        slip.asked.store(self.last, Release);
        self.memory.has_refused().store(1, Relaxed);
        0
    }

    /// Drops this rank's request in an operation, of which it needs nothing more.
    pub fn leave(&mut self, operation: u64) {
        let Some(open) = self.open.as_mut().filter(|open| open.operation == operation) else { return };
        // Relaxed: it is about the number alone. Who has claimed it hands it soon.
        let withdrawn = self.memory.slip(self.me).asked.compare_exchange(open.number, 0, Relaxed, Relaxed);
        open.is_left = true;
        if withdrawn.is_ok() {
            self.open = None;
        }
    }

    /// Lays on the trays of readers the bytes that they ask for of a stream of this rank, out of
    /// the `bytes` at `source` that it shows now. True if some reader was handed some.
    ///
    /// # Safety
    /// `source` is readable for `bytes`.
    pub unsafe fn hand(
        &self,
        (channel, operation): (u8, u64),
        readers: &[u32],
        source: *const u8,
        bytes: u64,
    ) -> bool {
        let mine = stream(Way { writer: self.me, channel });
        let mut has_handed = false;
        for reader in readers {
            let slip = self.memory.slip(*reader);
            // Acquire: with the release in `take`.
            let asked = slip.asked.load(Acquire);
            // Relaxed: they were there before `asked`. If the reader writes others by now, its number is another, and nothing is claimed.
            let is_mine = slip.stream.load(Relaxed) == mine && slip.operation.load(Relaxed) == operation;
            let (address, count) = (slip.address.load(Relaxed), slip.bytes.load(Relaxed));
            let at = address.wrapping_sub(source as u64);
            let is_here = at <= bytes && count <= bytes - at && count <= self.memory.tray_bytes() as u64;
            if asked == 0 || asked & CLAIMED != 0 || !is_mine || !is_here {
                continue;
            }
            // Relaxed: the reader's use of the tray was before the release of `asked`.
            if slip.asked.compare_exchange(asked, asked | CLAIMED, Relaxed, Relaxed).is_ok() {
                // SAFETY: the caller's promise, within what it shows; it is claimed, so nobody else uses the tray (invariants 2 and 3).
                unsafe { self.memory.lay(*reader, source.wrapping_add(at as usize), count as usize) };
                // Release: with the acquire in `take`.
                slip.handed.store(asked, Release);
                has_handed = true;
            }
        }
        has_handed
    }
}

#[cfg(test)]
mod tests;
