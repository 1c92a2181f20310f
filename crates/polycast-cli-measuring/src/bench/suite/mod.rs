//! Is polycast ever slower than the MPI below? A grid of measurements, each a job of its own in a lab of its own, kept in a file that the
//! next run goes on with.
//!
//! ```text
//!  grid  ──▶ what the file has not yet ──▶ polycast bench, a job ──▶ file ──▶ page: every point, and those that are slower
//! ```

mod grid;
mod page;
mod store;

pub use grid::{Grid, ParseGridError};
pub use page::page;
pub use polycast_cli_results::suite::{Cell, Measured};
pub use store::Store;
