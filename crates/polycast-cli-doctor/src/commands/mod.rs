//! One file per verb: its arguments and what it does with them.

pub mod doctor;

use crate::outcome::{Outcome, print};
