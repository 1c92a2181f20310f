//! Wormhole networks: trees of messages under other traffic, flit by flit (Nupairoj 1998, ch. 5 and 6).
//!
//! ```text
//!   experiment     placements and loads, until the mean is known well enough
//!      machine     nodes that compute, send, receive and forward
//!         fabric   messages that hold channels while they wait for others: by events; `reference` has it cycle by cycle
//! ```
//!
//! Times are whole units; the published parameters take 10 ns for one. `docs/wormhole.md` says what is simulated, and what comes
//! out of it.

mod costs;
mod experiment;
mod fabric;
mod figures;
mod machine;
mod multicast;
mod record;
mod reference;
mod switching;
mod topology;
mod workload;

pub use costs::{Cost, Costs};
pub use experiment::{Effort, Experiment, Measured};
pub use fabric::Fabric;
pub use figures::{Along, FIGURES, Figure, Planned, Quantity};
pub use machine::{Do, Letter, Machine, NodeSettings, Program, Receives};
pub use multicast::{Multicast, MulticastTree};
pub use record::{Hold, Record, Trace, Wait};
pub use reference::CycleByCycle;
pub use switching::{Arbitration, Choice, Message, Notice, Switching};
pub use topology::{Channel, Node, Topology, Ways};
pub use workload::{Background, Counts, Load, Mean, Traffic, Workload};
