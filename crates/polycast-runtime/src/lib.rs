//! libpolycast.so: what the doors call (`include/polycast.h`).
//!
//! ```text
//! interface   the C functions; checks pointers, stops panics
//!     attach     what ranks tell each other before anything is served, and what follows for a communicator
//!     plan       how a call is served
//!     attached       one communicator as the door holds it: its rules, and a count of its calls
//!     decision       who serves a call
//!     ahead          calls that are not waited for
//!     communicator   one that is served: its broadcasts, its log
//!         retired    freed by the program, not yet by us
//!         multicast  the protocol of polycast-core::protocol over a group of polycast-net and MPI
//!         progress   starts operations, and waits for them
//!             operation  collective calls in flight
//!             messages   what MPI has, and its memory
//!             node_memory   what the ranks of a node share
//!             idle   what a rank does while it waits, on the process's sockets
//!     settings    environment and overrides
//!     report      what was done and why, when MPI ends
//!     trace       when each call was made and returned, and what it waited for, where that is wanted
//!     machine     time, rest and chance
//!     fault       where tests let a rank panic; nothing elsewhere
//! ```
//!
//! Nothing here aborts, and nothing prints unless it was asked for, except one warning line about bad settings.

mod ahead;
mod asked;
mod attach;
mod attached;
mod communicator;
mod decision;
mod digest;
mod door;
#[cfg(test)]
mod fake_door;
mod fault;
mod identity;
mod idle;
mod interface;
mod left;
mod machine;
mod messages;
mod mismatch;
mod multicast;
mod node_memory;
mod of_process;
mod operation;
mod plan;
mod progress;
mod report;
mod retired;
mod say;
mod settings;
mod steady;
mod tags;
mod trace;
mod trials;
mod tune;

pub use settings::check_any_settings;
