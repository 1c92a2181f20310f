//! Plans, runs and analyses measurements of broadcasts.
//!
//! ```text
//!  sizes  variant  arrival ──▶ plan ──▶ session ──▶ job: mpiexec … polycast-bench-FAMILY  (bench/*.c, in C)
//!                              site ──▶    │              │ lines
//!                                          │           record ──▶ collect
//!  view  report  ◀──  fidelity  ◀──────────┴── figures ◀────────────┘
//!                                               analysis, remark
//! ```

pub mod arrival;
pub mod chart;
pub mod compare;
pub mod plan;
pub mod report;
pub mod session;
pub mod site;
pub mod sizes;
pub mod variant;
pub mod view;

pub mod analysis;
mod collect;
pub mod environment;
pub mod fidelity;
mod figures;
pub mod job;
pub mod point;
mod processes;
pub mod record;
mod remark;
