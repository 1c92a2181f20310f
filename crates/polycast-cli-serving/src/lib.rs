//! The verbs that serve users: `run`, `info`, `explain`, `predict`, `report`, `cache`, `topology`, `madcap`.

pub mod commands;
mod discover;
mod report;

use polycast_cli_console::{
    numbers, outcome, picture, plot, settings, terminal, time_stamp, times, topology_input, usage,
};
use polycast_cli_launch::{hosts, install, job_args, jobs, mpi, network, place, reach};
use polycast_cli_results::{arrival_file, chart, operation, point, scaling, sizes, suite, tune, variant};
