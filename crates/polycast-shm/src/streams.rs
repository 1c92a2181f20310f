//! One rank's part in the streams of a node.
//!
//! # Invariants (proved by loom in `tests`, for the orders of memory that stand at each access)
//! 1. A reader reads a place of a ring after the writer has filled it: `written` is stored (release) behind the copy, and loaded (acquire)
//!    before the reader's.
//! 2. A writer fills a place again after all readers of what stood there have copied it, or have finished: `position` and `finished` are
//!    stored (release) behind the reader's copy, and loaded (acquire) before the writer's.
//! 3. A head is written again when all readers of its operation have finished. Its `operation` is stored (release) behind the rest of it,
//!    and loaded (acquire) before that is read.
//! 4. Of each channel one stream is open at a time, in the order in which they were announced. So if all ranks announce operations in the
//!    same order, the first one that is not over never waits for a later one.
//! 5. A reader takes the streams of a writer's channel in the same order, and has finished one when it has finished all before it.
//! 6. What a reader needs of one stream says nothing of what any reader needs of the next. In a stream that was spoiled a reader may say that
//!    it needs only what lies behind its end; it takes that back before it has finished.
//! 7. Positions and operations are compared by their distance, so they may wrap around.

mod reader;

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

use crate::memory::{CHANNELS, Memory, SLOTS, Way};
use crate::sync::Ordering::{Acquire, Relaxed, Release};

/// Streams begin at a cache line of their own. Under loom not, so that several are in a small ring.
const LINE: u64 = if cfg!(loom) { 1 } else { 64 };

/// The flag in a head's `state` that says that the stream has addresses, not data.
const BY_ADDRESS: u64 = 1;
/// The flag in a head's `state` that says that the bytes that follow are invalid.
const SPOILED: u64 = 2;
/// The flag in a head's `state` that says that nothing more follows, though more was to.
const ABANDONED: u64 = 4;

/// The content of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Bytes.
    Data,
    /// The places of bytes, in pairs of numbers.
    Addresses,
}

/// The beginning of somebody's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The total that the stream's writer was called with.
    pub total: u64,
    /// The content of the stream.
    pub style: Style,
    start: u64,
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Got {
    /// The number of bytes that were read; 0: nothing yet.
    Bytes(usize),
    /// The bytes are invalid, and no valid ones follow.
    Spoiled,
}

/// A stream of this rank's that has not ended.
struct Announced {
    operation: u64,
    total: u64,
    style: Style,
    readers: Arc<[u32]>,
    is_abandoned: bool,
}

/// A published stream that some reader may need.
struct Kept {
    operation: u64,
    start: u64,
    readers: Arc<[u32]>,
    is_spoiled: bool,
}

#[derive(Default)]
struct Outbox {
    /// The position up to which the ring is filled.
    written: u64,
    /// The position before which nobody needs anything, as far as this rank has looked.
    free_until: u64,
    /// The announced streams, of which the first is open if `is_open`.
    announced: VecDeque<Announced>,
    is_open: bool,
    /// The streams that readers may need, the oldest first; the last is the open one.
    kept: VecDeque<Kept>,
}

/// A rank's part in the streams of a node; see the module.
pub struct Streams<M> {
    memory: M,
    me: u32,
    /// The number of bytes that are copied before others are told.
    buffer_bytes: usize,
    own: [Outbox; CHANNELS],
    /// The operations that this rank reads, by writer and channel, that it has not finished, and
    /// whether it needs no more of each.
    expected: Vec<VecDeque<(u64, bool)>>,
}

/// Returns how far `a` is ahead of `b`, both of which may have wrapped around.
fn distance(a: u64, b: u64) -> i64 {
    a.wrapping_sub(b) as i64
}

fn index(way: Way) -> usize {
    way.writer as usize * CHANNELS + usize::from(way.channel)
}

fn slot(operation: u64) -> usize {
    (operation % SLOTS as u64) as usize
}

impl<M: Deref<Target: Memory>> Streams<M> {
    /// The part of rank `me` of a node, over memory in which nothing has happened.
    pub fn new(memory: M, me: u32, buffer_bytes: usize) -> Streams<M> {
        Streams::starting_at(memory, me, buffer_bytes, 0)
    }

    /// The part of rank `me` over memory in which others had parts before, which have ended, with
    /// numbers of operations below those to come.
    pub fn after(memory: M, me: u32, buffer_bytes: usize) -> Streams<M> {
        let mut streams = Streams::starting_at(memory, me, buffer_bytes, 0);
        for channel in 0..CHANNELS as u8 {
            // Acquire: with the release in `fill`; who wrote it has left.
            let written = streams.memory.written(streams.way(channel)).load(Acquire);
            let own = &mut streams.own[usize::from(channel)];
            (own.written, own.free_until) = (written, written);
        }
        streams
    }

    /// The part of rank `me` over memory whose positions are all at `position`.
    pub fn starting_at(memory: M, me: u32, buffer_bytes: usize, position: u64) -> Streams<M> {
        let own =
            [(); CHANNELS].map(|()| Outbox { written: position, free_until: position, ..Outbox::default() });
        Streams { memory, me, buffer_bytes, own, expected: Vec::new() }
    }

    /// Returns the memory of the streams.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Returns this rank's number on the node.
    pub fn me(&self) -> u32 {
        self.me
    }

    fn way(&self, channel: u8) -> Way {
        Way { writer: self.me, channel }
    }

    /// Announces that this rank will publish in an operation, to `readers`. To be called on all
    /// ranks in the order of the operations, whose numbers rise.
    pub fn announce(&mut self, channel: u8, operation: u64, total: u64, style: Style, readers: Arc<[u32]>) {
        let announced = Announced { operation, total, style, readers, is_abandoned: false };
        self.own[usize::from(channel)].announced.push_back(announced);
    }

    /// Changes the total of an announced stream that is not open yet.
    pub fn retell(&mut self, channel: u8, operation: u64, total: u64) {
        let own = &mut self.own[usize::from(channel)];
        let not_open = own.announced.iter_mut().skip(usize::from(own.is_open));
        not_open.filter(|one| one.operation == operation).for_each(|one| one.total = total);
    }

    /// Changes the total and the style of an announced stream that is not open yet.
    pub fn announce_again(&mut self, channel: u8, operation: u64, total: u64, style: Style) {
        self.retell(channel, operation, total);
        let own = &mut self.own[usize::from(channel)];
        let not_open = own.announced.iter_mut().skip(usize::from(own.is_open));
        not_open.filter(|one| one.operation == operation).for_each(|one| one.style = style);
    }

    /// True if the stream of this operation is open now, so that its readers know of it.
    pub fn is_open(&mut self, channel: u8, operation: u64) -> bool {
        self.pass_over_abandoned(channel);
        let first = self.own[usize::from(channel)].announced.front();
        first.is_some_and(|first| first.operation == operation) && self.open(channel)
    }

    /// Tells readers of abandoned operations whose turn has come that nothing follows. A rank that
    /// has nothing else to do here does this at times, for the readers wait for it.
    pub fn tell_of_abandoned(&mut self) {
        (0..CHANNELS as u8).for_each(|channel| self.pass_over_abandoned(channel));
    }

    fn pass_over_abandoned(&mut self, channel: u8) {
        let is_abandoned = |own: &Outbox| own.announced.front().is_some_and(|first| first.is_abandoned);
        while is_abandoned(&self.own[usize::from(channel)]) && self.open(channel) {
            self.end(channel, SPOILED | ABANDONED);
        }
    }

    /// Opens the first announced stream, if its head and ring allow; true if it is open now.
    fn open(&mut self, channel: u8) -> bool {
        let way = self.way(channel);
        let own = &mut self.own[usize::from(channel)];
        if own.is_open {
            return true;
        }
        forget_finished(&*self.memory, way, own);
        let Some(first) = own.announced.front() else { return false };
        let operation = first.operation;
        if own.kept.iter().any(|kept| slot(kept.operation) == slot(operation)) {
            return false;
        }
        let start = own.written.wrapping_add(own.written.wrapping_neg() % LINE);
        let head = self.memory.head(way, slot(operation));
        // Relaxed: behind the acquire of `finished` of all who read them, before the release of `operation`.
        head.start.store(start, Relaxed);
        head.total.store(first.total, Relaxed);
        head.state.store(if first.style == Style::Addresses { BY_ADDRESS } else { 0 }, Relaxed);
        // Release: with the acquire in `hear`.
        head.operation.store(operation, Release);
        own.kept.push_back(Kept { operation, start, readers: first.readers.clone(), is_spoiled: false });
        own.written = start;
        own.is_open = true;
        true
    }

    /// Publishes as many of the bytes as there is room for, and returns how many.
    ///
    /// # Safety
    /// `source` is readable for `bytes`.
    pub unsafe fn put(&mut self, channel: u8, operation: u64, source: *const u8, bytes: usize) -> usize {
        if !self.is_open(channel, operation) {
            return 0;
        }
        self.fill(channel, bytes, |memory, way, position, done, count| {
            // SAFETY: the caller's promise; nobody needs these places any more (invariant 2), or reads them before they are told of (1).
            unsafe { memory.put(way, position, source.wrapping_add(done), count) };
        })
    }

    /// Publishes as many invalid bytes as there is room for, and returns how many: readers are told
    /// that the bytes are invalid.
    pub fn put_nothing(&mut self, channel: u8, operation: u64, bytes: usize) -> usize {
        // Looked at once: what is told of without its flag is taken for data.
        if !self.is_open(channel, operation) {
            return 0;
        }
        self.flag(channel, SPOILED);
        self.fill(channel, bytes, |_, _, _, _, _| {})
    }

    /// Writes as much of the open stream as the ring has room for, and returns how many bytes.
    fn fill(
        &mut self,
        channel: u8,
        bytes: usize,
        copy: impl Fn(&M::Target, Way, u64, usize, usize),
    ) -> usize {
        let (way, mut done) = (self.way(channel), 0);
        while done < bytes {
            let want = self.buffer_bytes.min(bytes - done);
            let room = self.room(way, want as u64);
            let count = want.min(room as usize);
            if count == 0 {
                break;
            }
            let own = &mut self.own[usize::from(channel)];
            copy(&self.memory, way, own.written, done, count);
            own.written = own.written.wrapping_add(count as u64);
            // Release: with the acquire in `get`.
            self.memory.written(way).store(own.written, Release);
            done += count;
        }
        done
    }

    /// Returns how many bytes may be written to this rank's ring; looks again only if that is less
    /// than wanted.
    fn room(&mut self, way: Way, want: u64) -> u64 {
        let own = &mut self.own[usize::from(way.channel)];
        let all = self.memory.ring_bytes();
        let room = |own: &Outbox| all.saturating_sub(own.written.wrapping_sub(own.free_until));
        if room(own) < want {
            forget_finished(&*self.memory, way, own);
            let end = own.kept.get(1).map_or(own.written, |next| next.start);
            let oldest = own.kept.front();
            own.free_until = oldest.map_or(own.written, |kept| needed_from(&*self.memory, way, kept, end));
        }
        room(own)
    }

    /// True if all readers have copied all that was published in the open stream.
    pub fn is_taken(&mut self, channel: u8, operation: u64) -> bool {
        let way = self.way(channel);
        let own = &mut self.own[usize::from(channel)];
        let follows_spoiled = |own: &Outbox| own.kept.iter().rev().skip(1).any(|kept| kept.is_spoiled);
        if follows_spoiled(own) {
            forget_finished(&*self.memory, way, own);
            if follows_spoiled(own) {
                // Readers that are still at that may say more than they have taken of this one (invariant 6).
                return false;
            }
        }
        let open = own.kept.back().filter(|kept| kept.operation == operation);
        open.is_some_and(|kept| needed_from(&*self.memory, way, kept, own.written) == own.written)
    }

    /// Closes the stream of an operation, of which everything was published. False: the stream is
    /// not open yet and has to wait for its turn even to say that.
    pub fn close(&mut self, channel: u8, operation: u64) -> bool {
        let is_over = self.is_open(channel, operation);
        if is_over {
            self.end(channel, 0);
            self.pass_over_abandoned(channel);
        }
        is_over
    }

    /// Ends the stream that is open.
    fn end(&mut self, channel: u8, flags: u64) {
        if flags != 0 {
            self.flag(channel, flags);
        }
        let own = &mut self.own[usize::from(channel)];
        own.is_open = false;
        own.announced.pop_front();
    }

    /// Abandons this rank's stream in an operation after a failure: nothing more is published in
    /// it, and nobody waits for that.
    pub fn abandon(&mut self, channel: u8, operation: u64) {
        let announced = &mut self.own[usize::from(channel)].announced;
        announced.iter_mut().filter(|one| one.operation == operation).for_each(|one| one.is_abandoned = true);
        self.pass_over_abandoned(channel);
    }

    /// Sets flags in the head of the open stream and marks the stream as invalid.
    fn flag(&mut self, channel: u8, flags: u64) {
        let way = self.way(channel);
        let Some(open) = self.own[usize::from(channel)].kept.back_mut() else { return };
        open.is_spoiled = true;
        let state = &self.memory.head(way, slot(open.operation)).state;
        // Relaxed: nobody else writes it. Release: with the acquire in `there`.
        state.store(state.load(Relaxed) | flags, Release);
    }

    /// Leaves an operation after a failure on this rank: it publishes nothing more in it, and reads
    /// nothing.
    pub fn leave(&mut self, operation: u64) {
        (0..CHANNELS as u8).for_each(|channel| self.abandon(channel, operation));
        for index in 0..self.expected.len() {
            let (writer, channel) = (index / CHANNELS, index % CHANNELS);
            self.finish(Way { writer: writer as u32, channel: channel as u8 }, operation);
        }
    }

    /// True if this rank has nothing open and reads nothing, and all it has published was taken.
    pub fn is_quiet(&mut self) -> bool {
        for channel in 0..CHANNELS as u8 {
            let way = self.way(channel);
            let own = &mut self.own[usize::from(channel)];
            forget_finished(&*self.memory, way, own);
            if !own.announced.is_empty() || !own.kept.is_empty() {
                return false;
            }
        }
        self.expected.iter().all(VecDeque::is_empty)
    }
}

/// Returns the position from which on some reader may need the ring's bytes of this stream, which
/// ends at `end`; `end` if no reader does. The bytes behind the end are another stream's: a reader
/// that has gone on to it says nothing of others, which may need it whole.
fn needed_from(memory: &(impl Memory + ?Sized), way: Way, kept: &Kept, end: u64) -> u64 {
    let needs = kept.readers.iter().filter_map(|reader| {
        let taken = memory.taken(way, *reader);
        // Acquire: with the release in `finish` and `get`.
        let is_finished = distance(taken.finished.load(Acquire), kept.operation) >= 0;
        (!is_finished).then(|| distance(taken.position.load(Acquire), kept.start).max(0))
    });
    // A reader that needs only what comes later may be ahead of the writer.
    let most = distance(end, kept.start);
    needs.min().map_or(end, |needed| kept.start.wrapping_add(needed.min(most) as u64))
}

/// Streams that have ended and that all readers have finished.
fn forget_finished(memory: &(impl Memory + ?Sized), way: Way, own: &mut Outbox) {
    while let Some(first) = own.kept.front() {
        let is_finished = |reader: &u32| {
            // Acquire: with the release in `finish`.
            distance(memory.taken(way, *reader).finished.load(Acquire), first.operation) >= 0
        };
        let is_last_open = own.is_open && own.kept.len() == 1;
        if is_last_open || !first.readers.iter().all(is_finished) {
            break;
        }
        own.kept.pop_front();
    }
}

#[cfg(test)]
mod tests;
