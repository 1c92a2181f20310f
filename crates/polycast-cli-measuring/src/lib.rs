//! The verbs that measure: `bench`, `measure`, `tune`, and `table`, which holds what was found.

mod bench;
pub mod commands;
mod measure;
mod native;

pub use bench::suite::ParseGridError;

use polycast_cli_console::{
    command_line, draft, json_lines, numbers, outcome, plot, settings, terminal, time_stamp, topology_input,
    usage,
};
use polycast_cli_launch::{install, job_args, jobs, mpi, network};
use polycast_cli_results::{arrival_file, tune};
