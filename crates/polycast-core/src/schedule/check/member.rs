//! What the proofs know of one rank.

use super::clock::{Clock, History};
use super::memory::{CheckedMemory, Denied};
use super::value::{Contributors, Run as Values, Value};
use super::{Place, Violation};
use crate::collective::{Call, Collective};
use crate::schedule::{
    After, Buffer, Contract, Direction, Fabric, Holding, Kind, LaneIndex, Posting, Schedule, Slice, Step,
};
use crate::units::Rank;

use super::run::LaneOf;

/// A lane under way.
#[derive(Default)]
pub(super) struct CheckedLane {
    pub completed: u64,
    pub clocks: History,
    /// The lanes that wait for this one.
    pub waiting: Vec<LaneOf>,
    /// The values that a lane that publishes has published, all of them.
    pub stream: Values,
    /// The bytes that a lane has published; or the offset up to which a lane that fetches has got.
    pub stream_bytes: u64,
    /// True if a lane that publishes in shared memory has shown the data of its next step, which
    /// lasts until all readers have it.
    pub is_shown: bool,
    /// The ranks that had arrived when a message or byte was sent or published, or before: one
    /// entry for each step of a barrier's lane that receives, publishes or fetches.
    pub arrived: Vec<Vec<bool>>,
}

pub(super) struct Member<'a, S> {
    pub schedule: &'a S,
    pub lanes: Vec<CheckedLane>,
    /// The contents of input, output and scratch memory.
    pub memory: [CheckedMemory; 3],
}

impl<'a, S: Schedule> Member<'a, S> {
    pub fn new(rank: Rank, schedule: &'a S, contract: &Contract) -> Self {
        let size = |buffer| match buffer {
            Buffer::Scratch => schedule.scratch_bytes(),
            _ => contract.size(rank, buffer),
        };
        let memory =
            [Buffer::Input, Buffer::Output, Buffer::Scratch].map(|buffer| CheckedMemory::new(size(buffer)));
        let lanes = schedule.lanes().iter().map(|_| CheckedLane::default()).collect();
        let mut member = Member { schedule, lanes, memory };
        // A barrier's byte has no meaning: it is there for shared memory, where what has no bytes is not seen.
        let word = || Holding::of(rank.0, Slice::scratch(0..1), 0);
        let word = (contract.call.collective == Collective::Barrier).then(word);
        if let Some(holding) = contract.before(rank).or(word) {
            let value = Value { contributors: Contributors::run(holding.ranks), offset: holding.offset };
            member.memory_of(&holding.slice).fill(&holding.slice.bytes, &value);
        }
        member
    }

    pub fn memory_of(&mut self, slice: &Slice) -> &mut CheckedMemory {
        &mut self.memory[slice.buffer as usize]
    }

    pub fn is_complete(&self, lane: LaneIndex) -> bool {
        self.lanes[lane].completed == self.schedule.lanes()[lane].steps
    }

    /// Returns a lane of this rank for which the next step of `at.lane` has to wait, if there is
    /// one.
    pub fn blocker(&self, at: Place, step: &Step) -> Result<Option<LaneIndex>, Violation> {
        let lanes = self.schedule.lanes();
        let description = &lanes[at.lane];
        let waits = step.after != After::Start || description.opens_after.is_some();
        if waits && is_placed_on_arrival(&description.kind) {
            return Err(Violation::WaitingReceive { at });
        }
        let opener = description.opens_after.filter(|_| at.step == 0);
        let (found, is_there) = match (opener, step.after) {
            (Some(opener), _) if opener >= lanes.len() => (opener, false),
            (_, After::Steps { lane, count }) => {
                (lane, lanes.get(lane).is_some_and(|lane| count <= lane.steps))
            }
            (_, After::LanesBelow(end)) => (end, end <= lanes.len()),
            (_, After::Start) => (0, true),
        };
        if !is_there {
            return Err(Violation::WaitsForNothing { at, found });
        }
        let is_open = |lane: &LaneIndex| self.is_complete(*lane);
        Ok(opener.filter(|opener| !is_open(opener)).or_else(|| match step.after {
            After::Start => None,
            After::Steps { lane, count } => (self.lanes[lane].completed < count).then_some(lane),
            After::LanesBelow(end) => (0..end).find(|lane| !is_open(lane)),
        }))
    }

    /// Returns what a step that can go now may count on, and records it: the steps after it in its
    /// lane may count on that, too.
    pub fn start(&mut self, at: Place, after: After) -> Clock {
        let lanes = self.schedule.lanes();
        let mut clock = self.lanes[at.lane].clocks.latest();
        let is_message = lanes[at.lane].stream().is_some();
        if is_message && after == After::Start && (lanes[at.lane].opens_after.is_none() || at.step > 0) {
            return clock;
        }
        let mut wait = |lane: LaneIndex, count: u64| {
            if clock.add(lane, count)
                && let Some(before) = self.lanes[lane].clocks.at(count - 1)
            {
                clock.join(before);
            }
        };
        if let Some(opener) = lanes[at.lane].opens_after.filter(|_| at.step == 0) {
            wait(opener, lanes[opener].steps);
        }
        match after {
            After::Start => {}
            After::Steps { lane, count } => wait(lane, count),
            After::LanesBelow(end) => (0..end).for_each(|lane| wait(lane, lanes[lane].steps)),
        }
        // What is not a message goes one after the other.
        if !is_message {
            clock.add(at.lane, at.step);
        }
        self.lanes[at.lane].clocks.record(at.step, &clock);
        clock
    }

    pub fn slice(&mut self, at: Place, slice: &Slice) -> Result<&mut CheckedMemory, Violation> {
        let (memory, found) = (self.memory_of(slice), slice.bytes.clone());
        let bytes = memory.size();
        let is_within = found.start <= found.end && found.end <= bytes;
        if is_within { Ok(memory) } else { Err(Violation::OutOfBounds { at, found, bytes }) }
    }

    pub fn read(&mut self, at: Place, slice: &Slice, clock: &Clock) -> Result<Values, Violation> {
        let memory = self.slice(at, slice)?;
        let read = memory.read(&slice.bytes, (at.lane, at.step), clock);
        read.map_err(|_| Violation::NotYetReceived { at, found: slice.bytes.clone() })
    }

    pub fn write(&mut self, at: Place, to: &Slice, values: Values, clock: &Clock) -> Result<(), Violation> {
        if to.buffer == Buffer::Input {
            return Err(Violation::Malformed { at, reason: "writes to the input" });
        }
        let found = to.bytes.clone();
        let written = self.slice(at, to)?.write(found.start, values, (at.lane, at.step), clock);
        written.map_err(|denied| match denied {
            Denied::InUse((lane, step)) => Violation::InUse { at, found, lane, step },
            Denied::Twice | Denied::NotThere => Violation::Twice { at, found },
        })
    }

    pub fn combine(
        &mut self,
        at: Place,
        from: &Slice,
        into: &Slice,
        clock: &Clock,
        call: Call,
    ) -> Result<(), Violation> {
        let element = call.element.get();
        if [from, into].iter().any(|slice| slice.bytes.start % element != 0 || slice.length() % element != 0)
        {
            return Err(Violation::Malformed { at, reason: "combines parts of elements" });
        }
        let (left, right) = (self.read(at, from, clock)?, self.read(at, into, clock)?);
        let mut combined = Values::new();
        let (mut lefts, mut rights) = (left.into_iter(), right.into_iter());
        let (mut left, mut right) = (lefts.next(), rights.next());
        while let (Some((left_bytes, a)), Some((right_bytes, b))) = (left, right) {
            let length = left_bytes.min(right_bytes);
            let both = a.contributors.combine(&b.contributors, &call);
            let contributors = both
                .filter(|_| a.offset == b.offset)
                .ok_or_else(|| Violation::WrongOperands { at, left: a.to_string(), right: b.to_string() })?;
            combined.push((length, Value { contributors, offset: a.offset }));
            let rest =
                |bytes: u64, value: &Value| (bytes > length).then(|| (bytes - length, value.skip(length)));
            left = rest(left_bytes, &a).or_else(|| lefts.next());
            right = rest(right_bytes, &b).or_else(|| rights.next());
        }
        self.write(at, into, combined, clock)
    }
}

/// True if data of such a lane comes by itself, whatever this rank has done.
fn is_placed_on_arrival(kind: &Kind) -> bool {
    match kind {
        Kind::Messages(stream) => stream.direction == Direction::Receive && stream.posting == Posting::AtOnce,
        Kind::Fetch { fabric, .. } => *fabric == Fabric::Multicast,
        Kind::Local | Kind::Publish { .. } => false,
    }
}
