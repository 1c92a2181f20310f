//! The verb `lab`: a cluster in a box.

pub mod commands;

use polycast_cli_console::{numbers, outcome, settings, terminal, usage};
use polycast_cli_launch::{hosts, install, job_args, jobs, mpi, network, reach};
