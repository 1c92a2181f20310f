//! What a step can count on.

use super::memory::StepOfRank;
use crate::schedule::LaneIndex;

/// The number of steps of each lane of the rank that are complete for sure; lanes of which nothing
/// is known are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock(Vec<(LaneIndex, u64)>);

impl Clock {
    /// Records that the first `count` steps of `lane` are complete; returns true if that was not
    /// known.
    pub fn add(&mut self, lane: LaneIndex, count: u64) -> bool {
        match self.0.binary_search_by_key(&lane, |(lane, _)| *lane) {
            _ if count == 0 => false,
            Ok(at) if self.0[at].1 >= count => false,
            Ok(at) => {
                self.0[at].1 = count;
                true
            }
            Err(at) => {
                self.0.insert(at, (lane, count));
                true
            }
        }
    }

    /// Records that what another step could count on is complete too.
    pub fn join(&mut self, other: &Clock) {
        for (lane, count) in &other.0 {
            self.add(*lane, *count);
        }
    }

    pub fn knows(&self, (lane, step): StepOfRank) -> bool {
        let at = self.0.binary_search_by_key(&lane, |(lane, _)| *lane);
        at.is_ok_and(|at| self.0[at].1 > step)
    }

    pub fn lanes(&self) -> impl Iterator<Item = (LaneIndex, u64)> {
        self.0.iter().copied()
    }
}

/// The clocks of a lane's steps at their starts, as far as they differ.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// The clocks that differ from the one before, each with the first step that has it.
    changes: Vec<(u64, Clock)>,
}

impl History {
    pub fn latest(&self) -> Clock {
        self.changes.last().map(|(_, clock)| clock.clone()).unwrap_or_default()
    }

    pub fn record(&mut self, step: u64, clock: &Clock) {
        if self.changes.last().map_or(!clock.0.is_empty(), |(_, latest)| latest != clock) {
            self.changes.push((step, clock.clone()));
        }
    }

    /// Returns the clock of `step`, which must have started: what the step could count on. `None`
    /// if that was nothing.
    pub fn at(&self, step: u64) -> Option<&Clock> {
        let after = self.changes.partition_point(|(from, _)| *from <= step);
        self.changes[..after].last().map(|(_, clock)| clock)
    }
}
