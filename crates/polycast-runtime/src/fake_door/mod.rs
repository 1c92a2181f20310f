//! A door without an MPI, for tests: the ranks are threads, messages go through memory, and calls fail where a test says so.
//!
//! ```text
//!     job        ranks run a program as behind a real door; who has not returned after a while is named
//!         table      the functions of polycast.h for one rank
//!             world      collectives of the program's communicator; which call fails
//!             mail       messages of the private communicator
//!     random     what may happen at any time happens by a seed: FAKE_DOOR_SEED=N runs that one alone
//!     conformance, sizes, failures, agreement    the tests
//! ```
//! After an MPI error on some rank the job is *aborted*, as by the default error handler, but so that one can look: whoever waits
//! gets [`ABORTED`] from MPI.

mod agreement;
mod conformance;
mod failures;
mod job;
mod mail;
mod random;
mod sizes;
mod table;
mod world;

use std::ffi::c_int;

/// What MPI gives to the other ranks of a job that has failed.
pub const ABORTED: c_int = 101;
/// What a call gives that fails because a test says so.
pub const INJECTED: c_int = 102;
/// What the door gives to a caller that breaks the rules of polycast.h or of MPI.
pub const MISUSED: c_int = 103;
