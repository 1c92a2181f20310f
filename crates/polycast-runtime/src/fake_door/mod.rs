//! A door without an MPI, for tests: the ranks are threads, messages go through memory, and calls fail where a test says so.
//!
//! ```text
//!     job        what the ranks do, and what happens to them
//!         process    one rank: what the doors in C do, and the program before and after
//!             table      the functions of polycast.h
//!             machine    what the rank runs on
//!         environments   what its program has set of floating-point arithmetic
//!         conditions what may happen to the job
//!         world      collectives, contexts, which call fails
//!             mail       messages of private communicators
//!             board      letters of a fabric that only tests have
//!             network    datagrams
//!                 flood      those of strangers
//!             stage      whose turn it is, and what time it is: one rank runs at a time
//!                 segments   the memory that ranks share, by which it is seen whether they go on
//!     random     what may happen at any time happens by a seed; tests/README.md has the commands
//! ```
//! After an MPI error on some rank the job is *aborted*, as by the default error handler, but so that one can look: whoever waits
//! gets [`ABORTED`] from MPI.

mod agreement;
mod ahead;
mod allocations;
mod asked;
pub mod board;
mod collectives;
mod conditions;
mod conformance;
mod deaf;
mod doing;
mod environments;
mod failures;
mod flood;
mod flooded;
mod in_flight;
mod job;
mod lifetimes;
mod locality;
mod machine;
mod mail;
mod memory;
mod multicast;
mod network;
mod policy;
mod process;
pub mod random;
mod room;
mod sabotage;
mod scale;
mod secrets;
mod segments;
mod sizes;
mod stage;
mod sums;
mod table;
mod traced;
mod trials;
mod tune;
mod waits_long;
mod world;
mod wrong;

use std::ffi::c_int;

/// What MPI gives to the other ranks of a job that has failed.
pub const ABORTED: c_int = 101;
/// What a call gives that fails because a test says so.
pub const INJECTED: c_int = 102;
/// What the door gives to a caller that breaks the rules of polycast.h or of MPI.
pub const MISUSED: c_int = 103;
