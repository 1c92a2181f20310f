//! libpolycast.so: what the doors call (`include/polycast.h`).
//!
//! ```text
//! interface   the C functions; checks pointers, stops panics
//!     attached       one communicator as the door holds it: its rules, and a count of its calls
//!         plan           how a call is served
//!     communicator   one that is served: its calls, its log
//!         ahead          calls that are not waited for
//!         steady         calls like the one before
//!         progress       starts operations, and waits for them
//!         retired        freed by the program, not yet by us
//!         tune           ways measured apart from the program's calls
//!     operation      collective calls in flight
//!     asked          what the network between the nodes is like
//!     multicast      the protocol of polycast-protocol over a group of polycast-net and MPI
//!     trials         ways compared in the program's own calls
//!     attach         what ranks tell each other before anything is served, and what follows for a communicator
//!     report         what was done and why, when MPI ends
//!     trace          when each call was made and returned, and what it waited for, where that is wanted
//!     node_memory    what the ranks of a node share
//!     passing        calls that pass the door before a communicator is attached
//!     idle           what a rank does while it waits, on the process's sockets
//!     settings       environment and overrides
//!     messages       what MPI has, and its memory
//!     machine        time, rest and chance
//!     door           the door's functions, safe to call
//!     call           a call on its way: who serves it, how far it is, how it ended
//!     abi            the words of the C interface
//!     floating_point  the program's traps and rounding, apart from ours
//!     libc_names     functions of libc, though a program has its own by their names
//!     fault          where tests let a rank panic; nothing elsewhere
//! ```
//!
//! Each uses what stands below it only: docs/architecture.md has every arrow, and the `tidy` test holds them.
//!
//! Nothing here aborts, and nothing prints unless it was asked for, except one warning line about bad settings.

mod abi;
mod asked;
mod attach;
mod call;
mod communicator;
mod digest;
mod door;
#[cfg(test)]
mod fake_door;
mod fault;
mod floating_point;
mod identity;
mod idle;
mod interface;
#[cfg(all(not(test), any(target_arch = "x86_64", target_arch = "aarch64")))]
mod libc_names;
mod machine;
mod messages;
mod mismatch;
mod multicast;
mod node_memory;
mod of_process;
mod operation;
mod passing;
mod reason;
mod report;
mod say;
mod settings;
mod tags;
mod trace;
mod trials;

pub use settings::check_any_settings;
