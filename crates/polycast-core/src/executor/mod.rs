//! Runs one rank's schedule: says which messages to start next, and is told which have completed.
//!
//! The executor has no clock and does no I/O; [`drive`] joins it to a [`Transport`]. Receives are started early (they
//! land in their final place, so nothing is gained by waiting); sends start in the order of their step index, then
//! of their lane, so that all children of a rank get segment 0 before any gets segment 1.
//!
//! # Invariants
//! 1. Per lane, `completed <= started <= steps` and `started - completed <= window`.
//! 2. At most `Limits::sends` sends are outstanding over all lanes.
//! 3. A step starts only when what its [`After`] names has completed.

mod transport;

pub use transport::{Transport, drive};

use std::ops::Range;

use crate::schedule::{After, Channel, Direction, LaneIndex, Schedule};
use crate::units::Rank;

/// How many operations may be outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps of one lane, `1..=`[`Limits::MOST_PER_LANE`].
    pub per_lane: u32,
    /// Sends over all lanes, at least 1.
    pub sends: u32,
}

impl Limits {
    /// The largest `per_lane`: one bit each in the executor's record of what completed early.
    pub const MOST_PER_LANE: u32 = 64;
}

impl Default for Limits {
    fn default() -> Self {
        Limits { per_lane: 16, sends: 32 }
    }
}

/// Names a started step until it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId {
    /// The lane.
    pub lane: LaneIndex,
    /// The step in it.
    pub index: u64,
}

/// A message to start now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// To be handed back to [`Executor::complete`].
    pub id: StepId,
    /// Send or receive.
    pub direction: Direction,
    /// The other end.
    pub peer: Rank,
    /// The stream between the two ranks.
    pub channel: Channel,
    /// Which bytes of the buffer.
    pub bytes: Range<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct LaneState {
    started: u64,
    /// Steps below this have completed.
    completed: u64,
    /// Bit `i`: step `completed + 1 + i` has completed already.
    completed_early: u64,
}

/// The state of one rank in one collective call.
pub struct Executor<S> {
    schedule: S,
    limits: Limits,
    lanes: Vec<LaneState>,
    sends_outstanding: u32,
    unfinished_lanes: usize,
}

impl<S: Schedule> Executor<S> {
    /// Starts at the beginning of `schedule`.
    pub fn new(schedule: S, limits: Limits) -> Self {
        assert!((1..=Limits::MOST_PER_LANE).contains(&limits.per_lane) && limits.sends >= 1);
        let lanes = vec![LaneState::default(); schedule.lanes().len()];
        let unfinished_lanes = schedule.lanes().iter().filter(|lane| lane.steps > 0).count();
        Executor { schedule, limits, lanes, sends_outstanding: 0, unfinished_lanes }
    }

    /// All steps of all lanes have completed.
    pub fn is_finished(&self) -> bool {
        self.unfinished_lanes == 0
    }

    /// The next message to start, if any can be started now.
    pub fn next_operation(&mut self) -> Option<Operation> {
        let mut best: Option<(u64, LaneIndex, Range<u64>)> = None;
        for lane in 0..self.lanes.len() {
            let index = self.lanes[lane].started;
            let is_send = self.schedule.lanes()[lane].direction == Direction::Send;
            if is_send && best.as_ref().is_some_and(|(best_index, ..)| *best_index <= index) {
                continue;
            }
            let Some(bytes) = self.startable(lane, index, is_send) else { continue };
            if !is_send {
                best = Some((index, lane, bytes));
                break;
            }
            best = Some((index, lane, bytes));
        }
        let (index, lane, bytes) = best?;
        self.lanes[lane].started += 1;
        let description = &self.schedule.lanes()[lane];
        if description.direction == Direction::Send {
            self.sends_outstanding += 1;
        }
        Some(Operation {
            id: StepId { lane, index },
            direction: description.direction,
            peer: description.peer,
            channel: description.channel,
            bytes,
        })
    }

    fn startable(&self, lane: LaneIndex, index: u64, is_send: bool) -> Option<Range<u64>> {
        let description = &self.schedule.lanes()[lane];
        let state = &self.lanes[lane];
        let window_full = state.started - state.completed >= u64::from(self.limits.per_lane);
        let sends_full = is_send && self.sends_outstanding >= self.limits.sends;
        if index >= description.steps || window_full || sends_full {
            return None;
        }
        if index == 0 && description.opens_after.is_some_and(|opener| !self.is_lane_complete(opener)) {
            return None;
        }
        let step = self.schedule.step(lane, index);
        let is_free = match step.after {
            After::Start => true,
            After::Steps { lane, count } => self.lanes[lane].completed >= count,
            After::LanesBelow(end) => (0..end).all(|lane| {
                self.schedule.lanes()[lane].direction == Direction::Send || self.is_lane_complete(lane)
            }),
        };
        is_free.then_some(step.bytes)
    }

    fn is_lane_complete(&self, lane: LaneIndex) -> bool {
        self.lanes[lane].completed == self.schedule.lanes()[lane].steps
    }

    /// The transport is done with a step: its data has arrived, or its buffer may be used again.
    pub fn complete(&mut self, id: StepId) {
        let state = &mut self.lanes[id.lane];
        debug_assert!((state.completed..state.started).contains(&id.index), "{id:?} is not outstanding");
        if id.index == state.completed {
            let run = state.completed_early.trailing_ones();
            state.completed += 1 + u64::from(run);
            // Shifting in two moves, because all 64 bits may go.
            state.completed_early = state.completed_early.unbounded_shr(run).unbounded_shr(1);
        } else {
            state.completed_early |= 1 << (id.index - state.completed - 1);
        }
        if self.schedule.lanes()[id.lane].direction == Direction::Send {
            self.sends_outstanding -= 1;
        }
        if self.is_lane_complete(id.lane) {
            self.unfinished_lanes -= 1;
        }
    }
}
