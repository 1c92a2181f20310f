//! One file per verb: its arguments and what it does with them.

pub mod cache;
pub mod explain;
pub mod info;
pub mod madcap;
pub mod predict;
pub mod report;
pub mod run;
pub mod topology;

use crate::outcome::{
    Outcome, beside, exit_code, file_of, interruption, print, print_json, require_writable, write_file,
    write_file_by, write_output,
};
