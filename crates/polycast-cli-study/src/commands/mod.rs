//! One file per verb: its arguments and what it does with them.

pub mod generate;
pub mod simulate;
pub mod tree;

use crate::outcome::{Outcome, print, print_json, require_writable, write_file, write_output};
