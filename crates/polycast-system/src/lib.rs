//! What every program of ours does with the operating system in the same way: files that are replaced
//! whole or may not be there, and processes by their numbers. It knows no MPI and no network.

#![forbid(unsafe_code)]

mod beside;
mod process;
mod text;

pub use beside::{Beside, remove_abandoned, replace};
pub use process::{Process, Status};
pub use text::text_if_there;
