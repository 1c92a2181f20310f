//! One file per verb: its arguments and what it does with them.

pub mod lab;

use crate::outcome::{Outcome, exit_code, print, print_json};
