//! Ranks that measure between each other what they are told to: the tool's side of `bench/crew.h`.
//!
//! ```text
//!  measure, discover ── Order ──▶ Crew ── line ──▶ mpiexec … polycast-bench-FAMILY orders   (bench/crew.c)
//!                    ◀─ numbers ─      ◀─ line ──
//! ```
//!
//! What to measure next is decided here, where it can be tested; the C program only obeys.

mod job;
mod order;

pub use job::{ARGUMENT, CrewError, Job};
pub use order::{MAX_SAMPLES, Order};

use crate::bench::record::Place;

/// Somebody who obeys orders: a job, or a model of a network in a test.
pub trait Crew {
    /// Carries out an order, and returns its numbers as `bench/crew.h` has them.
    fn obey(&mut self, order: &Order) -> Result<Vec<i64>, CrewError>;
}

/// What the ranks said before the first order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Muster {
    /// The library's name and version.
    pub mpi_version: String,
    /// By rank.
    pub places: Vec<Place>,
}
