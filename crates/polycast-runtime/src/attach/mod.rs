//! What ranks tell each other before anything is served, and what follows for a communicator.
//!
//! ```text
//!     MPI begins              world     one record of each rank, settings where they differ, names: once, over MPI_COMM_WORLD
//!         record                        the first bytes of all
//!         network                       where hosts are, if somebody knows
//!     a communicator is met   view      by which settings: exchanged only where the program has changed them
//!         layout                        who decides, where its ranks are: found without a word, and shared
//!     its first served call   number    which tags are its own: the ranks agree
//! ```
//!
//! # Invariant
//! Every decision made here is a function of what was gathered and of rank 0's settings, so it is the same on all ranks.

mod layout;
mod network;
mod number;
mod record;
mod texts;
mod view;
mod world;

pub use layout::Layout;
pub use network::named_hosts;
pub use number::{Agreed, Agreement, agree as agree_on_number, give_back as give_back_number};
pub use view::View;
pub use world::{World, begin};
#[cfg(test)]
pub use {number::leave_only as leave_only_numbers, record::RECORD_BYTES};
