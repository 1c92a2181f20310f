//! Where everything stands in the memory of one communicator on a node.
//!
//! ```text
//!   a line         who uses it, and how far they came
//!   some lines     words of who leads to those who come
//!   of each rank   per channel: heads, then `written`         lines that it writes as a writer
//!                  `Taken` of each writer and channel         lines that it writes as a reader
//!                  how far it is, then its cells, each with its stamp
//!                  per channel: a ring
//!                  its slip and tray
//! ```
//! In the usual shape what a rank writes stands in pages of its own; the small one, for nodes on which communicators are many, has no gaps.

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
/// The small shape: rings, the room of a cell, a slip with its tray.
const SMALL_RING_BYTES: usize = 1 << 10;
const SMALL_ROOM: usize = 256;
const SMALL_SLIP_BYTES: usize = 704;
/// Words that who leads may have for those who come.
pub const NOTES: usize = 64;

/// The sizes of the parts; all ranks of a node compute the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The number of ranks on the node.
    pub ranks: u32,
    ring_bytes: usize,
    room: usize,
    slip_bytes: usize,
    /// The bytes to a multiple of which what a rank has begins, and its rings, and its slip.
    unit: usize,
}

impl Shape {
    /// The usual shape for so many ranks, at least 1.
    pub fn new(ranks: u32) -> Shape {
        let share = |bytes: usize, of_each: usize| bytes / (ranks.max(1) as usize * of_each);
        let ring_bytes = 1 << share(RINGS_BYTES, CHANNELS).clamp(PAGE, MAX_RING_BYTES).ilog2();
        let room = 1 << share(CELLS_BYTES, CELLS).clamp(MIN_ROOM, MAX_ROOM).ilog2();
        Shape { ranks, ring_bytes, slip_bytes: PAGE, unit: PAGE, room: 0 }.with_room(room)
    }

    /// The small shape: some ten kibibytes for each rank.
    pub fn small(ranks: u32) -> Shape {
        let (ring_bytes, slip_bytes) = (SMALL_RING_BYTES, SMALL_SLIP_BYTES);
        Shape { ranks, ring_bytes, slip_bytes, unit: LINE, room: 0 }.with_room(SMALL_ROOM)
    }

    /// A cell holds at least a byte for each rank.
    fn with_room(self, room: usize) -> Shape {
        Shape { room: room.max(self.ranks.next_power_of_two() as usize), ..self }
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
        (self.cells_at() + LINE + CELLS * self.cell_bytes()).next_multiple_of(self.unit)
    }

    fn slip_at(self) -> usize {
        (self.rings_at() + CHANNELS * self.ring_bytes).next_multiple_of(self.unit)
    }

    fn rank_bytes(self) -> usize {
        self.slip_at() + self.slip_bytes
    }

    fn front_bytes(self) -> usize {
        (LINE + NOTES * size_of::<AtomicU64>()).next_multiple_of(self.unit)
    }

    /// The beginning of what a rank writes.
    fn rank_at(self, rank: u32) -> usize {
        self.front_bytes() + rank as usize * self.rank_bytes()
    }

    /// Returns the number of bytes that a cell holds: at least one for each rank.
    pub fn room(self) -> usize {
        self.room
    }

    fn cell_bytes(self) -> usize {
        self.room() + LINE
    }

    /// All parts together.
    pub fn bytes(self) -> usize {
        self.rank_at(self.ranks)
    }
}

/// Memory of this shape.
#[derive(Debug)]
pub struct Raw {
    base: NonNull<u8>,
    shape: Shape,
    /// The places of cells by the shape, computed once: a short message takes no longer than that.
    cells: CellPlaces,
}

/// The places of the cells.
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
    /// this type and shape. They were zeros when the first one was made.
    pub unsafe fn new(base: NonNull<u8>, shape: Shape) -> Raw {
        let cells = CellPlaces {
            at: shape.rank_at(0) + shape.cells_at(),
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
    fn word(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < LINE / 8);
        // SAFETY: it is atomic, and in the first line.
        unsafe { self.at(index * 8) }
    }

    /// The number of ranks that use this memory, or have not begun to.
    pub fn users(&self) -> &AtomicU64 {
        self.word(0)
    }

    /// Words of who leads to those who come.
    pub fn notes(&self) -> &[AtomicU64; NOTES] {
        // SAFETY: they are atomic, and behind the first line.
        unsafe { self.at(LINE) }
    }

    /// The highest number of an operation that those who have left it had come to.
    pub fn last_operation(&self) -> &AtomicU64 {
        self.word(1)
    }

    /// Returns the offset in the segment of byte `offset` of a rank's part.
    fn in_rank(&self, rank: u32, offset: usize) -> usize {
        debug_assert!(rank < self.shape.ranks);
        self.shape.front_bytes() + rank as usize * self.cells.bytes_per_rank + offset
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
        self.shape.slip_bytes - size_of::<Slip>()
    }

    fn has_refused(&self) -> &AtomicU64 {
        self.word(2)
    }

    fn slip(&self, rank: u32) -> &Slip {
        // SAFETY: the last part of what a rank has begins with it.
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
    fn a_communicator_has_some_hundred_kibibytes_or_some_ten() {
        let [one, two, eight, most] = [1, 2, 8, 64].map(Shape::new);
        assert_eq!([one, two, eight, most].map(|shape| shape.ring_bytes >> 10), [64, 64, 32, 4]);
        assert!([one, two, eight].iter().all(|shape| shape.bytes() < 872 << 10), "{eight:?}");
        assert!(most.bytes() < 1806 << 10, "{most:?}");
        assert_eq!(
            [one, two, eight, most, Shape::new(5000)].map(|shape| shape.room() >> 10),
            [8, 8, 4, 1, 8]
        );
        assert_eq!(Shape::new(1000).ring_bytes, PAGE);
        assert!(Shape::new(256).bytes() < 10 << 20, "{:?}", Shape::new(256));
        assert!(Shape::small(2).bytes() < 21 << 10, "{}", Shape::small(2).bytes());
        assert_eq!(Shape::small(1000).room(), 1024, "a byte for each rank");
    }

    /// Parts of ranks, and the parts of each, do not overlap, and are where atomics may be.
    #[test]
    fn parts_lie_behind_one_another() {
        for shape in [1, 2, 3, 17, 256].into_iter().flat_map(|ranks| [Shape::new(ranks), Shape::small(ranks)])
        {
            let parts = [0, Shape::row_at(), shape.cells_at(), shape.rings_at(), shape.slip_at()];
            assert!(parts.is_sorted() && parts.iter().all(|at| at % LINE == 0), "{shape:?}: {parts:?}");
            assert!(shape.cells_at() + LINE + CELLS * shape.cell_bytes() <= shape.rings_at());
            assert!(shape.rank_at(0) >= LINE + NOTES * 8 && shape.rank_bytes().is_multiple_of(LINE));
            assert!(shape.slip_bytes > size_of::<Slip>());
        }
    }
}
