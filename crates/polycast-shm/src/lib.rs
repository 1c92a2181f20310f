//! Memory that the ranks of a node share: one arena, in which each communicator has a place, and every rank streams there that others read.
//!
//! ```text
//!     segment     a file without a name, mapped by the processes of one node
//!     pages       runs of free places in a bitmap, without a lock
//!     arena       what communicators have of the segment: numbers, and runs of pages
//!     raw         where everything stands in the memory of one communicator
//!     memory      what is shared: heads, counters, rings
//!     streams     one rank's publishing and fetching, over any such memory
//!     cells       one rank's short messages to all, over any such memory
//!     address     bytes of another process, without a copy in between
//!     handed      the same bytes, by way of the segment, for who may not read them
//! ```
//! Nothing here knows of MPI, nor waits: what cannot be done now is tried again. Of each rank one thread at a time works here.

pub mod address;
#[cfg(not(loom))]
mod arena;
mod cells;
#[cfg(not(loom))]
mod futex;
mod handed;
mod memory;
#[cfg(any(not(loom), test))]
mod pages;
#[cfg(not(loom))]
mod raw;
#[cfg(not(loom))]
mod segment;
mod streams;
mod sync;

#[cfg(not(loom))]
pub use arena::{Arena, MAX_SLOTS, Slot};
pub use cells::{Bell, Board, CELLS, Cells, Look, Moment, Processors};
pub use handed::{Handed, Slip, Trays};
pub use memory::{CHANNELS, Head, Memory, SLOTS, Taken, Way};
#[cfg(not(loom))]
pub use raw::{NOTES, Raw, Shape};
#[cfg(not(loom))]
pub use segment::{Offer, Segment, SegmentError};
pub use streams::{Got, Opening, Streams, Style};
