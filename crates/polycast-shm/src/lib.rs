//! Memory that the ranks of a node share: one segment, in which every rank has streams of its own that others read.
//!
//! ```text
//!     segment     a file without a name, mapped by the ranks of one node
//!     raw         where everything stands in it
//!     memory      what is shared: heads, counters, rings
//!     streams     one rank's publishing and fetching, over any such memory
//!     cells       one rank's short messages to all, over any such memory
//!     address     bytes of another process, without a copy in between
//!     handed      the same bytes, by way of the segment, for who may not read them
//! ```
//! Nothing here knows of MPI, nor waits: what cannot be done now is tried again. Of each rank one thread at a time works here.

pub mod address;
mod cells;
#[cfg(not(loom))]
mod futex;
mod handed;
mod memory;
#[cfg(not(loom))]
mod raw;
#[cfg(not(loom))]
mod segment;
mod streams;
mod sync;

pub use cells::{Bell, Board, CELLS, Cells, Look, Moment, Processors};
pub use handed::{Handed, Slip, Trays};
pub use memory::{CHANNELS, Head, Memory, SLOTS, Taken, Way};
#[cfg(not(loom))]
pub use raw::{Raw, Shape};
#[cfg(not(loom))]
pub use segment::{Offer, Segment, SegmentError};
pub use streams::{Got, Opening, Streams, Style};
