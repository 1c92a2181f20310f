//! Plans, runs and analyses measurements of broadcasts.
//!
//! ```text
//!  sizes  variant  arrival ──▶ plan ──▶ session ──▶ job: mpiexec … polycast-bench-FAMILY  (bench/*.c, in C)
//!                              site ──▶    │              │ lines
//!                                          │           record ──▶ collect
//!  view  report  ◀──  fidelity  ◀──────────┴── point ◀──────────────┘
//!                                               analysis
//! ```

pub mod arrival;
pub mod plan;
pub mod report;
pub mod session;
pub mod site;
pub mod sizes;
pub mod variant;
pub mod view;

mod analysis;
mod collect;
mod environment;
pub mod fidelity;
mod job;
mod point;
mod record;
