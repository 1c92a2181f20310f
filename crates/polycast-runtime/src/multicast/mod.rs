//! Multicast in a job.
//!
//! ```text
//!     setup      all ranks of a communicator agree that multicast works between its nodes
//!         offer      what they tell each other          registry   what this process knows already
//!         probe      does it arrive?
//!     ring       one node: drives the protocol
//!         group      the socket, shared by communicators over the same nodes
//!         mail       messages over MPI
//! ```

mod choose_group;
mod group;
mod mail;
mod offer;
mod probe;
mod registry;
mod ring;
mod setup;

pub use group::Dropped;
pub use ring::{Resources, Ring};
pub use setup::{Unavailable, set_up};
