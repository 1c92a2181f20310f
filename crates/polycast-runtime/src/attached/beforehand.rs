//! Calls that are the MPI's on all ranks, whatever the rules say, but for what is forced.

use polycast_core::policy::{By, Capabilities, Epoch};

use super::Attached;
use crate::call::{Wanted, Why};

impl Attached {
    /// The reason for which a call is left beforehand, if it is.
    #[inline]
    pub(super) fn leaves_beforehand(&self, call: &Wanted) -> Option<Why> {
        let why = if super::own_operations::is_long(call) {
            Why::OwnOperation
        } else if self.longest.as_ref().is_some_and(|longest| longest.are_below(&call.of)) {
            Why::LittleMemory
        } else {
            return None;
        };
        let by = self.policy.choose(&call.of, Capabilities::ALL, Epoch::FIRST).by;
        (by != By::Forced).then_some(why)
    }
}
