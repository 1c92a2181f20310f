//! Multicast in a job.
//!
//! ```text
//!     setup      all ranks of a communicator agree that multicast works between its nodes
//!         offer      what they tell each other          registry   what this process knows already
//!         probe      does it arrive?                    terms      what suits all
//!         reuse      or all have a group already
//!     driver     one node: drives the protocol
//!         group      a member, shared by communicators over the same nodes
//!         prospect   how fast it would go, and on which interface
//!         verbs      or over InfiniBand and RoCE
//!         datagrams  joins it                              dumps      its key stays out of core dumps
//!         flood      what datagrams may cost that keep coming
//!         control    messages over MPI
//!         deaf       what a rank knows of nodes that hear nothing any more
//!         arrival_rate  how long a receiver may sleep while a message comes in
//! ```

mod arrival_rate;
mod choose_group;
mod control;
mod datagrams;
mod deaf;
mod driver;
mod dumps;
mod flood;
mod group;
mod offer;
mod probe;
mod prospect;
mod registry;
mod reuse;
mod setup;
mod terms;
mod verbs;

pub use control::NodeMessages;
pub use deaf::Deaf;
pub use driver::{Driver, Part, Source};
pub use prospect::{prospect, warning};
pub use registry::{RETRY_AFTER, leave_all as leave_all_groups, left as left_group, visit as visit_groups};
pub use reuse::Reuse;
pub use setup::{Seat, Unavailable, set_up};
