//! Proof 2: every byte comes once, and nothing can be sent before it came.

use std::ops::Range;

use super::{Place, Violation};
use crate::schedule::byte_set::ByteSet;
use crate::schedule::{After, Lane, LaneIndex, Schedule};
use crate::units::Rank;

pub(super) fn check<S: Schedule>(
    schedule: &S,
    rank: Rank,
    bytes: u64,
    is_root: bool,
) -> Result<(), Violation> {
    everything_comes_once(schedule, rank, bytes, is_root)?;
    for (lane, description) in schedule.lanes().iter().enumerate() {
        if description.is_send() {
            let at = Place { rank, lane, step: 0 };
            sends_what_it_has(schedule, at, description, bytes, is_root)?;
        }
    }
    Ok(())
}

fn everything_comes_once<S: Schedule>(
    schedule: &S,
    rank: Rank,
    bytes: u64,
    is_root: bool,
) -> Result<(), Violation> {
    let mut has = ByteSet::default();
    if is_root {
        has.insert(0..bytes);
    }
    for (lane, description) in receive_lanes(schedule) {
        if description.opens_after.is_some() {
            return Err(Violation::WaitingReceive { at: Place { rank, lane, step: 0 } });
        }
        for step in 0..description.steps {
            let at = Place { rank, lane, step };
            let found = schedule.step(lane, step);
            if found.after != After::Start {
                return Err(Violation::WaitingReceive { at });
            }
            let found = in_bounds(at, super::bytes_of(&found.action), bytes)?;
            if !has.insert(found.clone()) {
                return Err(Violation::Twice { at, found });
            }
        }
    }
    has.first_missing(bytes).map_or(Ok(()), |byte| Err(Violation::Missing { rank, byte }))
}

fn sends_what_it_has<S: Schedule>(
    schedule: &S,
    at: Place,
    description: &Lane,
    bytes: u64,
    is_root: bool,
) -> Result<(), Violation> {
    let mut known = Known::new(schedule);
    if is_root {
        known.bytes.insert(0..bytes);
    }
    if let Some(opener) = description.opens_after {
        let found = Err(Violation::WaitsForNothing { at, found: opener });
        known.lane(opener).map_or(found, Ok)?;
    }
    for step in 0..description.steps {
        let at = Place { step, ..at };
        let found = schedule.step(at.lane, step);
        let named = match found.after {
            After::Start => Ok(()),
            After::Steps { lane, count } => known.steps(lane, count).ok_or(lane),
            After::LanesBelow(end) => known.lanes_below(end).ok_or(end),
        };
        named.map_err(|found| Violation::WaitsForNothing { at, found })?;
        let found = in_bounds(at, super::bytes_of(&found.action), bytes)?;
        if !known.bytes.contains(&found) {
            return Err(Violation::NotYetReceived { at, found });
        }
    }
    Ok(())
}

/// What a send lane can count on: all that its steps have waited for so far.
struct Known<'a, S> {
    schedule: &'a S,
    /// Per lane, how many steps.
    steps: Vec<u64>,
    bytes: ByteSet,
}

impl<'a, S: Schedule> Known<'a, S> {
    fn new(schedule: &'a S) -> Self {
        Known { schedule, steps: vec![0; schedule.lanes().len()], bytes: ByteSet::default() }
    }

    /// Waits for the first `count` steps of `lane`; `None` if that makes no sense.
    fn steps(&mut self, lane: LaneIndex, count: u64) -> Option<()> {
        let description = self.schedule.lanes().get(lane)?;
        if description.is_send() || count > description.steps {
            return None;
        }
        for step in self.steps[lane]..count {
            self.bytes.insert(super::bytes_of(&self.schedule.step(lane, step).action));
        }
        self.steps[lane] = self.steps[lane].max(count);
        Some(())
    }

    fn lane(&mut self, lane: LaneIndex) -> Option<()> {
        self.steps(lane, self.schedule.lanes().get(lane)?.steps)
    }

    fn lanes_below(&mut self, end: LaneIndex) -> Option<()> {
        if end > self.schedule.lanes().len() {
            return None;
        }
        receive_lanes(self.schedule)
            .take_while(|(lane, _)| *lane < end)
            .try_for_each(|(lane, _)| self.lane(lane))
    }
}

fn in_bounds(at: Place, found: Range<u64>, bytes: u64) -> Result<Range<u64>, Violation> {
    let is_within = found.start <= found.end && found.end <= bytes;
    if is_within { Ok(found) } else { Err(Violation::OutOfBounds { at, found, bytes }) }
}

fn receive_lanes<S: Schedule>(schedule: &S) -> impl Iterator<Item = (LaneIndex, &Lane)> {
    schedule.lanes().iter().enumerate().filter(|(_, lane)| lane.is_receive())
}
