//! Runs one rank's schedule: says which steps to start next, and is told which have completed.
//!
//! The executor has no clock and does no I/O; a [`Conversation`] turns its steps into messages, which a
//! [`Transport`] starts. Receives are started early (they land in their final place, so nothing is gained by waiting); sends start in the
//! order of their lane's phase, then of their step index, then of their lane, so that all children of a rank get segment 0
//! before any gets segment 1. What takes the processor's time, local work and shared memory, comes after what only has to be started.
//!
//! # Invariants
//! 1. Per lane, `completed <= started <= steps` and `started - completed <= window`, which is 1 unless they are messages.
//! 2. At most `Limits::sends` sends are outstanding over all lanes whose receives are posted at once. Others do not count: they
//!    may last until this rank has sent something else.
//! 3. A step starts only when what its [`After`] names has completed.
//! 4. A lane stands in exactly one place: among the startable ones, in the list of those that wait for another
//!    lane, or nowhere because its window is full or its steps are used up. So every event costs time in
//!    proportion to the lanes that it sets free, not to all lanes.

mod conversation;

pub use conversation::{
    Call, Completed, Content, Conversation, Message, MessageId, MessagePart, Outcome, Share, Shared,
    Transport,
};

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::schedule::{Action, After, Direction, Lane, LaneIndex, Posting, Schedule};

/// The limits on operations that are outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most steps of one lane, `1..=`[`Limits::MAX_PER_LANE`].
    pub per_lane: u32,
    /// The most sends over all lanes whose receives are posted at once, at least 1.
    pub sends: u32,
}

impl Limits {
    /// The largest `per_lane`: one bit each in the executor's record of what completed early.
    pub const MAX_PER_LANE: u32 = 64;
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

/// A step to start now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The name of the step, to be handed back to [`Executor::complete`].
    pub id: StepId,
    /// The action to carry out; the lane names the peer.
    pub action: Action,
}

#[derive(Clone, Debug, Default)]
struct LaneState {
    started: u64,
    /// Steps below this have completed.
    completed: u64,
    /// Bit `i`: step `completed + 1 + i` has completed already.
    completed_early: u64,
    /// True while the lane does not look for its next step because too many are outstanding.
    is_window_full: bool,
    /// The action of the next step, while the lane is startable.
    next: Option<Action>,
    /// Head of the list of lanes that wait for this one.
    first_waiting: Option<LaneIndex>,
    /// Link of the list that this lane is in.
    next_waiting: Option<LaneIndex>,
}

/// The urgency of a step: what others wait for goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    Receive,
    Send,
    /// Local work and shared memory, which take the processor's time.
    Work,
}

/// The place of a startable lane in the order in which lanes go: the smallest goes first, by the
/// fields from top to bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LaneTurn {
    urgency: Urgency,
    phase: u8,
    index: u64,
    lane: LaneIndex,
}

/// The state of one rank in one collective call.
pub struct Executor<S> {
    schedule: S,
    limits: Limits,
    lanes: Vec<LaneState>,
    /// The startable lanes but for those in `limited`.
    startable: BinaryHeap<Reverse<LaneTurn>>,
    /// The startable lanes whose sends are limited in number.
    limited: BinaryHeap<Reverse<LaneTurn>>,
    sends_outstanding: u32,
    unfinished_lanes: usize,
}

impl<S: Schedule> Executor<S> {
    /// Starts at the beginning of `schedule`.
    ///
    /// # Panics
    /// If `limits` are out of their ranges.
    pub fn new(schedule: S, limits: Limits) -> Self {
        assert!((1..=Limits::MAX_PER_LANE).contains(&limits.per_lane) && limits.sends >= 1, "{limits:?}");
        let count = schedule.lanes().len();
        let [startable, limited] = [(); 2].map(|()| BinaryHeap::with_capacity(count));
        let lanes = Vec::with_capacity(count);
        let (sends_outstanding, unfinished_lanes) = (0, 0);
        let mut executor =
            Executor { schedule, limits, lanes, startable, limited, sends_outstanding, unfinished_lanes };
        executor.restart();
        executor
    }

    /// Starts at the beginning again, in the same memory. What was outstanding is forgotten.
    pub fn restart(&mut self) {
        let lanes = self.schedule.lanes();
        self.unfinished_lanes = lanes.iter().filter(|lane| lane.steps > 0).count();
        self.lanes.clear();
        self.lanes.resize(lanes.len(), LaneState::default());
        self.startable.clear();
        self.limited.clear();
        self.sends_outstanding = 0;
        (0..self.lanes.len()).for_each(|lane| self.consider(lane));
    }

    /// The schedule that is run.
    pub fn schedule(&self) -> &S {
        &self.schedule
    }

    /// True if all steps of all lanes have completed.
    pub fn is_finished(&self) -> bool {
        self.unfinished_lanes == 0
    }

    /// The next step to start, if any can be started now.
    pub fn next_operation(&mut self) -> Option<Operation> {
        let may_send = self.sends_outstanding < self.limits.sends;
        let limited = self.limited.peek().filter(|_| may_send);
        // Reversed: the greatest goes first.
        let is_limited = limited > self.startable.peek();
        let turns = if is_limited { &mut self.limited } else { &mut self.startable };
        let Reverse(LaneTurn { index, lane, .. }) = turns.pop()?;
        self.sends_outstanding += u32::from(is_limited);
        self.lanes[lane].started += 1;
        let action = self.lanes[lane].next.take()?;
        self.consider(lane);
        Some(Operation { id: StepId { lane, index }, action })
    }

    /// Records that a step is done: its data has arrived or been dealt with, or its buffer may be
    /// used again.
    pub fn complete(&mut self, id: StepId) {
        self.sends_outstanding -= u32::from(is_limited(&self.schedule.lanes()[id.lane]));
        let state = &mut self.lanes[id.lane];
        debug_assert!((state.completed..state.started).contains(&id.index), "{id:?} is not outstanding");
        if id.index > state.completed {
            state.completed_early |= 1 << (id.index - state.completed - 1);
            return;
        }
        let run = 1 + state.completed_early.trailing_ones();
        state.completed += u64::from(run);
        // All 64 bits may go at once.
        state.completed_early = state.completed_early.unbounded_shr(run);
        let had_full_window = std::mem::take(&mut state.is_window_full);
        let mut waiting = state.first_waiting.take();
        if self.is_lane_complete(id.lane) {
            self.unfinished_lanes -= 1;
        }
        if had_full_window {
            self.consider(id.lane);
        }
        while let Some(lane) = waiting {
            waiting = self.lanes[lane].next_waiting.take();
            self.consider(lane);
        }
    }

    /// Puts a lane where it belongs now (invariant 4), after what kept it from its next step has changed.
    fn consider(&mut self, lane: LaneIndex) {
        let description = &self.schedule.lanes()[lane];
        let state = &mut self.lanes[lane];
        let index = state.started;
        if index >= description.steps {
            return;
        }
        let window = description.stream().map_or(1, |_| self.limits.per_lane);
        if state.started - state.completed >= u64::from(window) {
            state.is_window_full = true;
            return;
        }
        let urgency = match description.stream().map(|stream| stream.direction) {
            Some(Direction::Receive) => Urgency::Receive,
            Some(Direction::Send) => Urgency::Send,
            None => Urgency::Work,
        };
        let (is_limited, phase) = (is_limited(description), description.phase);
        let opener = description.opens_after.filter(|opener| index == 0 && !self.is_lane_complete(*opener));
        let step = self.schedule.step(lane, index);
        match opener.or_else(|| self.blocker(step.after)) {
            None => {
                self.lanes[lane].next = Some(step.action);
                let turns = if is_limited { &mut self.limited } else { &mut self.startable };
                turns.push(Reverse(LaneTurn { urgency, phase, index, lane }));
            }
            Some(blocker) => {
                self.lanes[lane].next_waiting = self.lanes[blocker].first_waiting.replace(lane);
            }
        }
    }

    /// Returns a lane whose progress a step that starts `after` this has to await, if there is one.
    fn blocker(&self, after: After) -> Option<LaneIndex> {
        match after {
            After::Start => None,
            After::Steps { lane, count } => (self.lanes[lane].completed < count).then_some(lane),
            After::LanesBelow(end) => (0..end).find(|lane| !self.is_lane_complete(*lane)),
        }
    }

    fn is_lane_complete(&self, lane: LaneIndex) -> bool {
        self.lanes[lane].completed == self.schedule.lanes()[lane].steps
    }
}

/// True if the steps of `lane` are sends that count among [`Limits::sends`].
fn is_limited(lane: &Lane) -> bool {
    lane.stream()
        .is_some_and(|stream| stream.direction == Direction::Send && stream.posting == Posting::AtOnce)
}

#[cfg(test)]
mod tests;
