//! What every program of ours does with the operating system in the same way: files that are replaced
//! whole, and processes by their numbers. It knows no MPI and no network.

#![forbid(unsafe_code)]

mod beside;
mod process;

pub use beside::{Beside, remove_abandoned, replace};
pub use process::{Process, Status};
