//! Multicast in a job.
//!
//! ```text
//!     setup      all ranks of a communicator agree that multicast works between its nodes
//!         offer      what they tell each other          registry   what this process knows already
//!         probe      does it arrive?                    terms      what suits all
//!     ring       one node: drives the protocol
//!         group      a member, shared by communicators over the same nodes
//!         datagrams  its socket
//!         mail       messages over MPI
//!         stream     how long a receiver may sleep while a message comes in
//! ```

mod choose_group;
mod datagrams;
mod group;
mod mail;
mod offer;
mod probe;
mod registry;
mod ring;
mod setup;
mod stream;
mod terms;

#[cfg(test)]
pub use datagrams::MemorySocket;
pub use group::Dropped;
pub use mail::Mail;
pub use offer::Reason;
pub use registry::{leave_all as leave_all_groups, left as left_group, visit as visit_groups};
pub use ring::{Resources, Ring};
pub use setup::{Unavailable, set_up};
