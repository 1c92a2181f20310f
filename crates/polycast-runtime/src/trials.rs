//! What this process knows of [trials](polycast_core::policy::trials), for its communicators and for later jobs.
//!
//! ```text
//!     ledgers    what this process has learned on communicators of each shape
//!         cache      and left to later jobs
//! ```

pub mod cache;
mod ledgers;

pub use ledgers::Ledgers;

use std::sync::Arc;

use polycast_core::policy::trials::{Arm, Recalled, Sameness, TOLD};
use polycast_core::policy::{Choice, CommunicatorShape, Policy};

use crate::report::{self, Found};

/// Words of rank 0 to the others before ways are compared on a communicator.
pub fn told(ledgers: &Ledgers, shape: CommunicatorShape, policy: &Arc<Policy>) -> [u64; TOLD] {
    let (told, recalled) = ledgers.told(shape, policy);
    for Recalled { of, times, arm, .. } in recalled {
        tell(of, shape, times, arm, By::EarlierJob);
    }
    told
}

/// Adds a finding to the report.
pub fn tell(of: Sameness, shape: CommunicatorShape, times: Vec<(Choice, u64)>, stays: Arm, by: By) {
    let (collective, first_bytes, stays) = (of.collective, of.first_bytes(), times[usize::from(stays)].0);
    let (is_tuned, is_remembered) = (of.is_tuned() && by != By::Trial, by == By::EarlierJob);
    report::found(Found {
        collective,
        first_bytes,
        ranks: shape.ranks,
        times,
        stays,
        is_tuned,
        is_remembered,
    });
}

/// Origin of a finding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    Trial,
    Tuning,
    EarlierJob,
}
