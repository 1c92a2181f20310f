//! Where everything stands in a segment.
//!
//! ```text
//!   0        64 bytes that say what it is, for `segment`
//!            per writer and channel: heads, then `written`             lines that the writer writes
//!            per reader: `Taken` of each writer and channel            lines that the reader writes
//!   a page   per writer and channel: a ring
//! ```

use std::ptr::NonNull;

use crate::memory::{CHANNELS, Head, Memory, SLOTS, Taken, Way};
use crate::sync::AtomicU64;

const LINE: usize = 64;
const PAGE: usize = 4096;
/// All rings together have at most this, as long as each has at least a page.
const RINGS_BYTES: usize = 512 << 10;
const MAX_RING_BYTES: usize = 64 << 10;

/// How large everything is; all ranks of a node find the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// On the node.
    pub ranks: u32,
    ring_bytes: usize,
}

impl Shape {
    /// For so many ranks, at least 1.
    pub fn new(ranks: u32) -> Shape {
        let share = RINGS_BYTES / (ranks.max(1) as usize * CHANNELS);
        let ring_bytes = 1 << share.clamp(PAGE, MAX_RING_BYTES).ilog2();
        Shape { ranks, ring_bytes }
    }

    fn ways(self) -> usize {
        self.ranks as usize * CHANNELS
    }

    /// A reader's `Taken`s, in lines of their own.
    fn row_bytes(self) -> usize {
        (self.ways() * size_of::<Taken>()).next_multiple_of(LINE)
    }

    fn way_bytes() -> usize {
        SLOTS * size_of::<Head>() + LINE
    }

    fn rows_at(self) -> usize {
        LINE + self.ways() * Shape::way_bytes()
    }

    fn rings_at(self) -> usize {
        (self.rows_at() + self.ranks as usize * self.row_bytes()).next_multiple_of(PAGE)
    }

    /// The whole segment.
    pub fn bytes(self) -> usize {
        self.rings_at() + self.ways() * self.ring_bytes
    }
}

/// Memory of this shape, somewhere.
#[derive(Debug)]
pub struct Raw {
    base: NonNull<u8>,
    shape: Shape,
}

// SAFETY: nothing in it belongs to a thread; what several use at a time is atomic, or goes by the promises of `put` and `get`.
unsafe impl Send for Raw {}

impl Raw {
    /// # Safety
    /// There are as many bytes as the shape has, at the beginning of a page, which stay as long as this does; nobody uses them but by values of
    /// this type. They were zeros when the first one was made.
    pub unsafe fn new(base: NonNull<u8>, shape: Shape) -> Raw {
        Raw { base, shape }
    }

    /// How large it is.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// # Safety
    /// A `T` stands there, all of whose fields are atomic.
    unsafe fn at<T>(&self, offset: usize) -> &T {
        debug_assert!(offset + size_of::<T>() <= self.shape.bytes());
        // SAFETY: the caller's promise, and that of `new`.
        unsafe { self.base.add(offset).cast().as_ref() }
    }

    /// One of the numbers in front.
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < LINE / 8);
        // SAFETY: it is atomic, and in the first line.
        unsafe { self.at(index * 8) }
    }

    fn index(&self, way: Way) -> usize {
        debug_assert!(way.writer < self.shape.ranks && usize::from(way.channel) < CHANNELS);
        way.writer as usize * CHANNELS + usize::from(way.channel)
    }

    fn way_at(&self, way: Way) -> usize {
        LINE + self.index(way) * Shape::way_bytes()
    }

    /// The one or two pieces of a ring that `bytes` at `position` are.
    fn pieces(&self, way: Way, position: u64, bytes: usize) -> [(*mut u8, usize); 2] {
        let length = self.shape.ring_bytes;
        debug_assert!(bytes <= length);
        let ring = self.base.as_ptr().wrapping_add(self.shape.rings_at() + self.index(way) * length);
        let first = position as usize & (length - 1);
        let until_end = bytes.min(length - first);
        [(ring.wrapping_add(first), until_end), (ring, bytes - until_end)]
    }
}

impl Memory for Raw {
    fn ring_bytes(&self) -> u64 {
        self.shape.ring_bytes as u64
    }

    fn written(&self, way: Way) -> &AtomicU64 {
        // SAFETY: behind the way's heads, in a line of its own.
        unsafe { self.at(self.way_at(way) + SLOTS * size_of::<Head>()) }
    }

    fn head(&self, way: Way, slot: usize) -> &Head {
        debug_assert!(slot < SLOTS);
        // SAFETY: the way begins with its heads, each of a line.
        unsafe { self.at(self.way_at(way) + slot * size_of::<Head>()) }
    }

    fn taken(&self, way: Way, reader: u32) -> &Taken {
        debug_assert!(reader < self.shape.ranks);
        let row = self.shape.rows_at() + reader as usize * self.shape.row_bytes();
        // SAFETY: each row has one for each way.
        unsafe { self.at(row + self.index(way) * size_of::<Taken>()) }
    }

    unsafe fn put(&self, way: Way, position: u64, source: *const u8, bytes: usize) {
        let [(first, length), (second, rest)] = self.pieces(way, position, bytes);
        // SAFETY: the pieces are in the ring; the rest is the caller's promise.
        unsafe {
            first.copy_from_nonoverlapping(source, length);
            second.copy_from_nonoverlapping(source.wrapping_add(length), rest);
        }
    }

    unsafe fn get(&self, way: Way, position: u64, place: *mut u8, bytes: usize) {
        let [(first, length), (second, rest)] = self.pieces(way, position, bytes);
        // SAFETY: as for `put`.
        unsafe {
            place.copy_from_nonoverlapping(first, length);
            place.wrapping_add(length).copy_from_nonoverlapping(second, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_has_some_hundred_kibibytes() {
        let [one, two, eight, most] = [1, 2, 8, 64].map(Shape::new);
        assert_eq!([one, two, eight, most].map(|shape| shape.ring_bytes >> 10), [64, 64, 32, 4]);
        assert!([one, two, eight, most].iter().all(|shape| shape.bytes() < 800 << 10), "{most:?}");
        assert_eq!(Shape::new(1000).ring_bytes, PAGE);
    }
}
