//! One file per verb: its arguments and what it does with them.

pub mod cp;

use crate::outcome::{Outcome, interruption, print, print_json};
