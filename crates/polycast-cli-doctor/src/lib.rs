//! The verb `doctor`: why multicast does not work here.

pub mod commands;
mod doctor;

pub use doctor::agent::run as run_agent;

use polycast_cli_console::{numbers, outcome, terminal, usage};
use polycast_cli_launch::{fleet, helper_process, hosts, install, reach};
