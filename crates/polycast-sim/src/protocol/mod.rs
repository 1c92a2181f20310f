//! Multicast broadcasts in virtual time: nodes run the protocol that a job runs, on the bytes that a network would carry,
//! while whatever can go wrong does, and everything that must hold is checked at every step.
//!
//! A run depends on its [`Scenario`] only, and a drawn scenario on its seed: what has failed once fails again.
//!
//! ```
//! use polycast_sim::protocol::{Scenario, Simulator};
//!
//! let mut scenario = Scenario::calm(16, &[("multicast-pull", 0, 1000), ("multicast-push", 3, 1)]);
//! scenario.faults.loss = 0.3;
//! let outcome = Simulator::new().run(&scenario)?;
//! assert!(outcome.totals.repaired > 0);
//! # Ok::<(), polycast_sim::protocol::Failure>(())
//! ```
//!
//! `docs/simulation.md` says what goes wrong, and what is checked.

mod channel;
mod check;
mod faults;
mod inbox;
mod lateness;
mod medium;
mod node;
mod outcome;
mod root_sync;
mod scaling;
mod scenario;
mod search;
mod simulator;
mod store;
mod timeline;
mod totals;
mod work;
mod world;

use crate::random;

pub use check::Violation;
pub use faults::{
    Arrivals, Burst, Dead, Delay, Faults, Late, RecordedCall, Sabotage, Saying, Slow, Stalled, Target, Which,
};
pub use outcome::{Failure, ProtocolOutcome, Timing};
pub use root_sync::{RootSyncResult, RootSyncTrial};
pub use scaling::{Cluster, Completion, OfNodes, Scaling};
pub use scenario::{Broadcast, Communicator, Hardware, Scenario};
pub use search::{Found, Search};
pub use simulator::Simulator;
pub use totals::Totals;
