//! What is shared.
//!
//! ```text
//!   writer, channel     head   head   head   head     of its latest streams, by the numbers of their operations
//!                       written                       how far its ring is filled
//!                       ring  ▒▒▒▒▒▒▒▒▒▒░░░░░
//!   reader              per writer and channel: position, finished
//! ```
//! Positions count the bytes of a ring since it was made, and wrap around with the number.

use crate::sync::AtomicU64;

/// The most streams that a rank has in one operation.
pub const CHANNELS: usize = 2;
/// The number of streams of a rank and channel whose heads are kept, which is the number of
/// operations that a rank may be ahead of the others of its node, if the ring has room for them. Of
/// 8 ranks that come late by chance, broadcasts of 8 bytes take the MPI 0.48 s, 0.67 with 16 and
/// 0.50 with 64. Under loom fewer, so that they are used again soon.
pub const SLOTS: usize = if cfg!(loom) { 2 } else { 64 };

/// A channel of a rank, in which its streams follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The rank on the node that publishes.
    pub writer: u32,
    /// The channel of the writer, below [`CHANNELS`].
    pub channel: u8,
}

/// The head of a stream, written by the stream's writer. Half a cache line, so that all heads fit
/// into the pages of a rank.
#[derive(Debug)]
#[repr(C, align(32))]
pub struct Head {
    /// The operation that the rest is about; written last.
    pub operation: AtomicU64,
    /// The position of the stream's first byte.
    pub start: AtomicU64,
    /// The total that the writer was called with, for those who read.
    pub total: AtomicU64,
    /// Flags of [`crate::streams`].
    pub state: AtomicU64,
}

/// The progress of a reader in a writer's stream, written by the reader.
#[derive(Debug)]
#[repr(C)]
pub struct Taken {
    /// The position before which the reader needs nothing any more.
    pub position: AtomicU64,
    /// The last operation that the reader has finished: it needs nothing of it and those before it.
    pub finished: AtomicU64,
}

/// A segment, or what stands in for one in tests.
pub trait Memory {
    /// The length of every ring, a power of two.
    fn ring_bytes(&self) -> u64;

    /// Returns the position up to which a ring is filled.
    fn written(&self, way: Way) -> &AtomicU64;

    /// Returns a head, one of the [`SLOTS`] of this channel.
    fn head(&self, way: Way, slot: usize) -> &Head;

    /// Returns the progress of a reader in the streams of this channel.
    fn taken(&self, way: Way, reader: u32) -> &Taken;

    /// Copies into a ring.
    ///
    /// # Safety
    /// `source` is readable for `bytes`, at most as many as the ring has, and nobody else reads or writes these places of the ring meanwhile.
    unsafe fn put(&self, way: Way, position: u64, source: *const u8, bytes: usize);

    /// Copies out of a ring.
    ///
    /// # Safety
    /// `place` is writable for `bytes`, at most as many as the ring has, and nobody writes these places of the ring meanwhile.
    unsafe fn get(&self, way: Way, position: u64, place: *mut u8, bytes: usize);
}
