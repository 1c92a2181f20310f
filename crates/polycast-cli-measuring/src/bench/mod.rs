//! Plans, runs and analyses measurements of collectives.
//!
//! ```text
//!  operation  sizes  variant  arrival ──▶ plan ──▶ session ──▶ jobs::run: mpiexec … polycast-bench-FAMILY  (bench/*.c, in C)
//!                      jobs::target ──▶    │              │ lines
//!                                          │        jobs::record ──▶ collect
//!  view  report  ◀──  fidelity  ◀──────────┴── figures ◀───────────────┘
//!                      crossover, beside        remark
//! ```

pub mod arrival;
pub mod beside;
pub mod compare;
pub mod crossover;
pub mod plan;
pub mod report;
pub mod session;
pub mod suite;
pub mod view;

mod collect;
pub mod environment;
pub mod fidelity;
mod figures;
mod remark;
mod withheld;

pub use polycast_cli_results::{chart, operation, point, sizes, variant};
