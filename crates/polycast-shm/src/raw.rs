//! Where everything stands in a segment.
//!
//! ```text
//!   a page         says what it is, for `segment`
//!   of each rank   per channel: heads, then `written`         lines that it writes as a writer
//!                  `Taken` of each writer and channel         lines that it writes as a reader
//!                  how far it is, then its cells, each with its stamp
//!     a page       per channel: a ring
//!     a page       its slip and tray
//! ```
//! So what a rank writes stands in pages of its own, which are in the memory of its NUMA node if it was the first to take them.

use std::ops::Range;
use std::ptr::NonNull;
use std::time::Duration;

use crate::cells::{Bell, Board, CELLS};
use crate::futex;
use crate::handed::{Slip, Trays};
use crate::memory::{CHANNELS, Head, Memory, SLOTS, Taken, Way};
use crate::sync::AtomicU64;

const LINE: usize = 64;
const PAGE: usize = 4096;
/// The most bytes of all rings together, as long as each has at least a page.
const RINGS_BYTES: usize = 512 << 10;
const MAX_RING_BYTES: usize = 64 << 10;
/// The most bytes of all cells together, as long as each has room for some cache lines.
const CELLS_BYTES: usize = 256 << 10;
const MIN_ROOM: usize = 1 << 10;
const MAX_ROOM: usize = 8 << 10;
/// The bytes in front of a cell's data: a short message comes with them in one cache line.
const STAMP_BYTES: usize = 16;

/// The sizes of a segment's parts; all ranks of a node compute the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The number of ranks on the node.
    pub ranks: u32,
    ring_bytes: usize,
}

impl Shape {
    /// The shape for so many ranks, at least 1.
    pub fn new(ranks: u32) -> Shape {
        let share = RINGS_BYTES / (ranks.max(1) as usize * CHANNELS);
        let ring_bytes = 1 << share.clamp(PAGE, MAX_RING_BYTES).ilog2();
        Shape { ranks, ring_bytes }
    }

    /// Returns the shape with rings of so many bytes, a power of two.
    pub fn with_ring(self, ring_bytes: usize) -> Shape {
        debug_assert!(ring_bytes.is_power_of_two());
        Shape { ring_bytes, ..self }
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

    // Where they stand in what a rank has.

    fn row_at() -> usize {
        CHANNELS * Shape::way_bytes()
    }

    fn cells_at(self) -> usize {
        Shape::row_at() + self.row_bytes()
    }

    fn rings_at(self) -> usize {
        (self.cells_at() + LINE + CELLS * self.cell_bytes()).next_multiple_of(PAGE)
    }

    fn slip_at(self) -> usize {
        (self.rings_at() + CHANNELS * self.ring_bytes).next_multiple_of(PAGE)
    }

    fn rank_bytes(self) -> usize {
        self.slip_at() + PAGE
    }

    /// The bytes in front of the ranks' parts, which belong to no rank.
    pub(crate) fn of_nobody() -> Range<usize> {
        0..PAGE
    }

    /// The bytes that a rank writes.
    pub(crate) fn of_rank(self, rank: u32) -> Range<usize> {
        let start = PAGE + rank as usize * self.rank_bytes();
        start..start + self.rank_bytes()
    }

    /// Returns the number of bytes that a cell holds: at least one for each rank.
    pub fn room(self) -> usize {
        let share = CELLS_BYTES / (self.ranks.max(1) as usize * CELLS);
        let room = 1 << share.clamp(MIN_ROOM, MAX_ROOM).ilog2();
        room.max(self.ranks.next_power_of_two() as usize)
    }

    fn cell_bytes(self) -> usize {
        self.room() + LINE
    }

    /// The whole segment.
    pub fn bytes(self) -> usize {
        self.of_rank(self.ranks).start
    }
}

/// The memory of a segment of this shape.
#[derive(Debug)]
pub struct Raw {
    base: NonNull<u8>,
    shape: Shape,
    /// The places of cells by the shape, computed once: a short message takes no longer than that.
    cells: CellPlaces,
}

/// The places of the cells in a segment.
#[derive(Clone, Copy, Debug)]
struct CellPlaces {
    /// The offset of rank 0's cells; those of each other rank follow.
    at: usize,
    bytes_per_rank: usize,
    bytes_per_cell: usize,
    room: usize,
}

// SAFETY: nothing in it belongs to a thread; what several use at a time is atomic, or goes by the promises of `put` and `get`.
unsafe impl Send for Raw {}
// SAFETY: the same; it is made for several at a time.
unsafe impl Sync for Raw {}

impl Raw {
    /// # Safety
    /// There are as many bytes as the shape has, at the beginning of a page, which stay as long as this does; nobody uses them but by values of
    /// this type. They were zeros when the first one was made.
    pub unsafe fn new(base: NonNull<u8>, shape: Shape) -> Raw {
        let cells = CellPlaces {
            at: shape.of_rank(0).start + shape.cells_at(),
            bytes_per_rank: shape.rank_bytes(),
            bytes_per_cell: shape.cell_bytes(),
            room: shape.room(),
        };
        Raw { base, shape, cells }
    }

    /// Returns the sizes of the segment's parts.
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

    /// Reads a byte of each page, which others may write meanwhile, so that the pages are mapped:
    /// mapping them one by one in the first calls takes as long for each as a short message.
    pub fn meet(&self) {
        for page in (0..self.shape.bytes()).step_by(PAGE) {
            // SAFETY: it is in the segment; what is read is not looked at.
            unsafe { self.base.add(page).read_volatile() };
        }
    }

    /// Returns one of the numbers in front of the ranks' parts.
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < LINE / 8);
        // SAFETY: it is atomic, and in the first line.
        unsafe { self.at(index * 8) }
    }

    /// Returns the offset in the segment of byte `offset` of a rank's part.
    fn in_rank(&self, rank: u32, offset: usize) -> usize {
        debug_assert!(rank < self.shape.ranks);
        PAGE + rank as usize * self.cells.bytes_per_rank + offset
    }

    fn way_at(&self, way: Way) -> usize {
        debug_assert!(usize::from(way.channel) < CHANNELS);
        self.in_rank(way.writer, usize::from(way.channel) * Shape::way_bytes())
    }

    #[inline]
    fn cell_at(&self, rank: u32, cell: usize) -> usize {
        debug_assert!(rank < self.shape.ranks && cell < CELLS);
        let of_rank = self.cells.at + rank as usize * self.cells.bytes_per_rank;
        of_rank + LINE + cell * self.cells.bytes_per_cell
    }

    #[inline]
    fn in_cell(&self, (rank, cell): (u32, usize), at: u64, bytes: usize) -> *mut u8 {
        debug_assert!(at as usize + bytes <= self.cells.room);
        self.base.as_ptr().wrapping_add(self.cell_at(rank, cell) + STAMP_BYTES + at as usize)
    }

    fn tray(&self, rank: u32) -> *mut u8 {
        let at = self.in_rank(rank, self.shape.slip_at()) + size_of::<Slip>();
        self.base.as_ptr().wrapping_add(at)
    }

    /// Returns the one or two pieces of a ring in which `bytes` at `position` lie.
    fn pieces(&self, way: Way, position: u64, bytes: usize) -> [(*mut u8, usize); 2] {
        let length = self.shape.ring_bytes;
        debug_assert!(bytes <= length);
        let ring = self.shape.rings_at() + usize::from(way.channel) * length;
        let ring = self.base.as_ptr().wrapping_add(self.in_rank(way.writer, ring));
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
        let index = way.writer as usize * CHANNELS + usize::from(way.channel);
        // SAFETY: each row has one for each way.
        unsafe { self.at(self.in_rank(reader, Shape::row_at() + index * size_of::<Taken>())) }
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

impl Board for Raw {
    fn room(&self) -> u64 {
        self.cells.room as u64
    }

    #[inline]
    fn reached(&self, rank: u32) -> &AtomicU64 {
        // SAFETY: what it has of cells begins with it, in a line of its own.
        unsafe { self.at(self.cell_at(rank, 0) - LINE) }
    }

    #[inline]
    fn bell(&self, rank: u32) -> &Bell {
        // SAFETY: it is behind that, in the same line: who tells something has it at hand.
        unsafe { self.at(self.cell_at(rank, 0) - LINE + size_of::<AtomicU64>()) }
    }

    fn sleep(&self, rank: u32, rung: u32, longest: Duration) {
        futex::sleep(&self.bell(rank).rung, rung, longest);
    }

    fn wake(&self, rank: u32) {
        futex::wake(&self.bell(rank).rung);
    }

    #[inline]
    fn stamp(&self, rank: u32, cell: usize) -> &AtomicU64 {
        // SAFETY: a cell begins with it.
        unsafe { self.at(self.cell_at(rank, cell)) }
    }

    #[inline]
    fn total(&self, rank: u32, cell: usize) -> &AtomicU64 {
        // SAFETY: it is behind the stamp.
        unsafe { self.at(self.cell_at(rank, cell) + size_of::<AtomicU64>()) }
    }

    #[inline]
    unsafe fn fill(&self, (rank, cell): (u32, usize), at: u64, source: *const u8, bytes: usize) {
        // SAFETY: it is in the cell; the rest is the caller's promise.
        unsafe { self.in_cell((rank, cell), at, bytes).copy_from_nonoverlapping(source, bytes) };
    }

    #[inline]
    unsafe fn read<R>(
        &self,
        (rank, cell): (u32, usize),
        at: u64,
        bytes: usize,
        use_it: impl FnOnce(*const u8) -> R,
    ) -> R {
        use_it(self.in_cell((rank, cell), at, bytes))
    }
}

impl Trays for Raw {
    fn tray_bytes(&self) -> usize {
        PAGE - size_of::<Slip>()
    }

    fn has_refused(&self) -> &AtomicU64 {
        self.word(3)
    }

    fn slip(&self, rank: u32) -> &Slip {
        // SAFETY: the last page of what a rank has begins with it.
        unsafe { self.at(self.in_rank(rank, self.shape.slip_at())) }
    }

    unsafe fn lay(&self, rank: u32, source: *const u8, bytes: usize) {
        // SAFETY: it is behind the slip; the rest is the caller's promise.
        unsafe { self.tray(rank).copy_from_nonoverlapping(source, bytes) };
    }

    unsafe fn pick_up(&self, rank: u32, place: *mut u8, bytes: usize) {
        // SAFETY: as for `lay`.
        unsafe { place.copy_from_nonoverlapping(self.tray(rank), bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_has_some_hundred_kibibytes() {
        let [one, two, eight, most] = [1, 2, 8, 64].map(Shape::new);
        assert_eq!([one, two, eight, most].map(|shape| shape.ring_bytes >> 10), [64, 64, 32, 4]);
        assert!([one, two, eight].iter().all(|shape| shape.bytes() < 872 << 10), "{eight:?}");
        assert!(most.bytes() < 1806 << 10, "{most:?}");
        assert_eq!(
            [one, two, eight, most, Shape::new(5000)].map(|shape| shape.room() >> 10),
            [8, 8, 4, 1, 8]
        );
        assert_eq!(Shape::new(1000).ring_bytes, PAGE);
    }
}
