//! Jobs that measure: where they are started, how they run and end, what their lines say, and orders to their ranks.
//!
//! ```text
//!  bench              ── target ──▶ run: mpiexec … polycast-bench-FAMILY         (bench/polycast_bench.c)
//!                     ◀─ record ──  lines
//!
//!  tune               ── plan ────▶ Dialogue: mpiexec … polycast-bench-FAMILY plans            (bench/plan_server.c)
//!                     ◀─ record ──  lines
//!
//!  measure, discover  ── Order ───▶ RankServer: mpiexec … polycast-bench-FAMILY orders     (bench/rank_server.c)
//!                     ◀─ numbers ─
//! ```
//!
//! What to measure next is decided here, where it can be tested; the C program only obeys.

mod counts;
mod dialogue;
mod order;
mod processes;
mod rank_job;
pub mod record;
pub mod run;
pub mod target;

pub use counts::RankCounts;
pub use dialogue::{Dialogue, DialogueError, PLANS};
pub use order::{MAX_SAMPLES, Order};
pub use rank_job::{ARGUMENT, RankJob, RankServerError};

use record::Place;

/// A set of ranks that carries out orders to measure: a job, or a model of a network in a test.
pub trait RankServer {
    /// Carries out an order, and returns its numbers as `bench/rank_server.h` has them.
    fn carry_out(&mut self, order: &Order) -> Result<Vec<i64>, RankServerError>;
}

/// The ranks' greeting, before the first order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The library's name and version.
    pub mpi_version: String,
    /// The place of each rank, by rank.
    pub places: Vec<Place>,
}
