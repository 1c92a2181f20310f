//! Jobs and workers that the `polycast` tool starts: hosts, MPIs, labs, and what is installed here.

pub mod fleet;
pub mod helper_process;
pub mod hosts;
pub mod install;
pub mod job_args;
pub mod jobs;
pub mod line_process;
pub mod mpi;
pub mod network;
pub mod place;
pub mod reach;

use polycast_cli_console::{numbers, settings, topology_input, usage};
