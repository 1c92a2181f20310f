//! What measurements leave behind, for all verbs that write, read or draw it.

pub mod arrival_file;
pub mod chart;
pub mod operation;
pub mod point;
pub mod scaling;
pub mod sizes;
pub mod span;
pub mod suite;
pub mod tune;
pub mod variant;

use polycast_cli_console::{json_lines, numbers, picture, plot, terminal};
