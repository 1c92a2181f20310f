//! Words and files of the `polycast` tool: its command line, what it prints and draws, what it reads and writes.

pub mod command_line;
pub mod draft;
pub mod json_lines;
mod narrow_help;
pub mod numbers;
pub mod outcome;
pub mod picture;
pub mod plot;
pub mod settings;
pub mod terminal;
pub mod time_stamp;
pub mod times;
pub mod topology_input;
pub mod usage;
