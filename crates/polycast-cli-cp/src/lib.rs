//! The verb `cp`: the same files on many nodes.

pub mod commands;
mod copy;

pub use copy::agent::run as run_agent;

use polycast_cli_console::{numbers, outcome, settings, usage};
use polycast_cli_launch::{fleet, helper_process, hosts, reach};
