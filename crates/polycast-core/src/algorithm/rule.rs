//! A schedule whose steps are computed by a rule.

use crate::schedule::{Lane, LaneIndex, Schedule, Step};

pub(super) struct Rule<F> {
    pub lanes: Vec<Lane>,
    pub scratch_bytes: u64,
    /// Makes step `index` of a lane.
    pub step: F,
}

impl<F: Fn(LaneIndex, u64) -> Step> Schedule for Rule<F> {
    fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    fn step(&self, lane: LaneIndex, index: u64) -> Step {
        (self.step)(lane, index)
    }

    fn scratch_bytes(&self) -> u64 {
        self.scratch_bytes
    }
}
