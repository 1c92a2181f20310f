//! What a rank does that reads others' streams.

use std::collections::VecDeque;
use std::ops::Deref;

use super::{ABANDONED, BY_ADDRESS, Got, Opening, SPOILED, Streams, Style, distance, index, slot};
use crate::memory::{Memory, Way};
use crate::sync::Ordering::{Acquire, Relaxed, Release};

/// The place in a stream that a reader waits for that needs nothing more of it: behind any end.
const NOWHERE: u64 = i64::MAX as u64 / 2;

impl<M: Deref<Target: Memory>> Streams<M> {
    /// Announces that this rank will read in an operation. To be called on all ranks in the order
    /// of the operations.
    pub fn expect(&mut self, way: Way, operation: u64) {
        let index = index(way);
        if self.expected.len() <= index {
            self.expected.resize_with(index + 1, VecDeque::new);
        }
        self.expected[index].push_back((operation, false));
    }

    /// Returns the opening of a stream that this rank expects, if it has begun and those before it
    /// are finished.
    pub fn hear(&self, way: Way, operation: u64) -> Option<Opening> {
        self.expected.get(index(way))?.front().filter(|(first, _)| *first == operation)?;
        let head = self.memory.head(way, slot(operation));
        // Acquire: with the release in `open`.
        if head.operation.load(Acquire) != operation {
            return None;
        }
        // Relaxed: they were there before `operation`, and stay until this rank has finished.
        let style = if head.state.load(Relaxed) & BY_ADDRESS == 0 { Style::Data } else { Style::Addresses };
        Some(Opening { total: head.total.load(Relaxed), style, start: head.start.load(Relaxed) })
    }

    /// Returns how many bytes there are from this position on; `None` if they are invalid.
    fn there(&self, way: Way, operation: u64, position: u64) -> Option<usize> {
        // Acquire: with the release in `fill`.
        let there = distance(self.memory.written(way).load(Acquire), position).max(0) as usize;
        // Acquire: with the release in `flag`; a flag is there before what is worth nothing.
        let state = self.memory.head(way, slot(operation)).state.load(Acquire);
        let is_spoiled = state & SPOILED != 0 && (there > 0 || state & ABANDONED != 0);
        (!is_spoiled).then_some(there)
    }

    /// Copies the bytes that there are of a stream from its byte `at` on, and releases them and all
    /// before them.
    ///
    /// # Safety
    /// `place` is writable for `bytes`.
    pub unsafe fn get(
        &self,
        (way, operation): (Way, u64),
        opening: Opening,
        at: u64,
        place: *mut u8,
        bytes: usize,
    ) -> Got {
        self.release(way, opening, at);
        let mut done = 0;
        while done < bytes {
            let position = opening.start.wrapping_add(at + done as u64);
            let Some(there) = self.there(way, operation, position) else {
                self.release(way, opening, NOWHERE);
                return Got::Spoiled;
            };
            let count = (bytes - done).min(self.buffer_bytes).min(there);
            if count == 0 {
                break;
            }
            // SAFETY: the caller's promise; the writer has filled these places (invariant 1), and leaves them alone until told (2).
            unsafe { self.memory.get(way, position, place.wrapping_add(done), count) };
            done += count;
            self.release(way, opening, at + done as u64);
        }
        Got::Bytes(done)
    }

    /// Copies bytes of a stream from its byte `at` on, as many as `place` has or none, and does not
    /// release them unless they are spoiled.
    pub fn look(&self, (way, operation): (Way, u64), opening: Opening, at: u64, place: &mut [u8]) -> Got {
        let position = opening.start.wrapping_add(at);
        match self.there(way, operation, position) {
            None => {
                self.release(way, opening, NOWHERE);
                Got::Spoiled
            }
            Some(there) if there < place.len() => Got::Bytes(0),
            Some(_) => {
                // SAFETY: the place is as long; for the ring as in `get`.
                unsafe { self.memory.get(way, position, place.as_mut_ptr(), place.len()) };
                Got::Bytes(place.len())
            }
        }
    }

    /// Tells the writer that this rank needs nothing before byte `at` of a stream any more.
    pub fn release(&self, way: Way, opening: Opening, at: u64) {
        // Release: with the acquire in `needed_from`.
        self.memory.taken(way, self.me).position.store(opening.start.wrapping_add(at), Release);
    }

    /// Tells the writer that this rank needs nothing more of a stream, whatever comes.
    pub fn finish(&mut self, way: Way, operation: u64) {
        let Some(expected) = self.expected.get_mut(index(way)) else { return };
        expected.iter_mut().filter(|(of, _)| *of == operation).for_each(|(_, is_over)| *is_over = true);
        while let Some((first, true)) = expected.front().copied() {
            expected.pop_front();
            let (head, taken) = (self.memory.head(way, slot(first)), self.memory.taken(way, self.me));
            // Acquire: with the release in `open`; it stays until this rank has finished.
            if head.operation.load(Acquire) == first {
                // Relaxed: before the release of `finished`. It may have waited for what never came; the next stream may be there already.
                taken.position.store(head.start.load(Relaxed), Relaxed);
            }
            // Release: with the acquire in `needed_from`.
            taken.finished.store(first, Release);
        }
    }
}
