//! What a rank records of its collective calls (`POLYCAST_TRACE`, docs/trace.md): the events, the file that they stand in, and what follows
//! from the files of all ranks.
//!
//! ```text
//!     event      what happened, in four words
//!     layout     where what stands in a file
//!     recorder   the fixed memory of one rank, and how it becomes a file
//!     decode     a file, or what is wrong with it
//!     job        the ranks of a job on one clock
//!         calls      each collective call, with the times of all its ranks
//!         phases     who was last, how long that took, skew in and out
//! ```
//!
//! Nothing here knows a clock, a file or a network: bytes and numbers go in and come out.
#![forbid(unsafe_code)]

mod calls;
mod decode;
mod event;
mod job;
mod layout;
mod phases;
mod recorder;
#[cfg(test)]
mod tests;

pub use calls::{Call, Part, calls};
pub use decode::{Communicator, DecodeError, Trace, decode};
pub use event::{Event, Kind};
pub use job::{Job, JobError};
pub use layout::{Clock, Ending, NOT_NAMED, VERSION};
pub use phases::{Phases, Skew, phases, skew};
pub use recorder::{About, EVENTS, Recorder};

/// Whether a collective has a root, by its number.
pub fn has_root(collective: u8) -> bool {
    [0, 1, 2, 6].contains(&collective)
}
