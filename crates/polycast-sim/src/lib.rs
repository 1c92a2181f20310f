//! Collectives in virtual time: every rank runs the schedule and the executor that a job would run, over a network
//! that exists only as numbers. Multicast broadcasts, whose network is worse, have a [module](protocol) of their own.
//!
//! ```
//! use polycast_core::algorithm::Algorithm;
//! use polycast_core::collective::Call;
//! use polycast_core::units::{Bytes, Rank};
//! use polycast_sim::{Network, Simulation};
//!
//! let call = Call::broadcast(16, Rank(0), Bytes(1 << 20));
//! let algorithm: Algorithm = "chain:segment=8KiB".parse()?;
//! let outcome = Simulation::new(Network::ethernet(1e9), call, algorithm).run()?;
//! assert!(outcome.completion_ns < 20_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod buffers;
mod engine;
pub mod event_queue;
mod filled;
mod network;
pub mod protocol;
pub mod random;
mod schedules;
mod simulation;

pub use buffers::{Buffers, Combine};
pub use network::{Network, SharedMemory};
pub use schedules::{Outcome, Schedules, Stuck};
pub use simulation::{Simulation, Wrong};
