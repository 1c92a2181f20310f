//! The verbs that study networks: `simulate`, `tree`, `generate`.

pub mod commands;

use polycast_cli_console::{
    command_line, json_lines, numbers, outcome, picture, plot, settings, terminal, times, topology_input,
    usage,
};
use polycast_cli_launch::{hosts, place};
use polycast_cli_results::{arrival_file, operation, scaling, variant};
