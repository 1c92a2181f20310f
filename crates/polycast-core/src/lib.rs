//! The pure core of polycast: no clock, no I/O, no globals, no unsafe code.
//!
//! Modules from the ground up; each may use those to its left only (the `tidy` test checks it):
//!
//! ```text
//! files ◀─ variables ◀─ network ◀─ topology ◀─ model ◀─ tree ◀─ collective ◀─ schedule ◀─ algorithm ◀─ cost ◀─ policy ◀─ executor
//! ```
//!
//! A collective call takes this way through them: [`policy`] picks an [`algorithm`] by a table, the algorithm
//! lays a [`schedule`] over a [`tree`] for this rank, and the [`executor`] runs the schedule over a transport.
#![forbid(unsafe_code)]

pub mod algorithm;
pub mod collective;
pub mod cost;
pub mod executor;
pub mod files;
pub mod model;
pub mod network;
pub mod policy;
pub mod schedule;
pub mod topology;
pub mod tree;
pub mod variables;

pub use polycast_protocol as protocol;
pub use polycast_units as units;
