//! One file per verb: its arguments and what it does with them.

pub mod bench;
pub mod measure;
mod one_launch;
pub mod table;
pub mod tune;

use crate::outcome::{
    Outcome, beside, file_of, interruption, print, require_writable, write_file, write_output,
};
