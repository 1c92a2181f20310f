//! What goes on between nodes: an algorithm for as many ranks as there are nodes, put into the schedules of the ranks that stand for them.
//!
//! ```text
//!   inner       lane 0  receive           lane 1  combine  0∘own            lane 2  send
//!                        │                         │        ▲                        ▲
//!   put into    lane b  receive           lane b+1 │ wait ▶ combine         lane b+2 send        own is there when the ranks of the
//!   a rank                                         └─ for the node's part ──┘                    node have brought their parts
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use super::members::Members;
use crate::algorithm::build::Build;
use crate::algorithm::{Algorithm, Registry};
use crate::collective::Call;
use crate::schedule::{Action, After, Buffer, Kind, LaneIndex, Listed, Schedule, Slice, Stream};
use crate::units::Rank;

/// A node's part in what goes on between nodes, where ranks are nodes.
pub(super) struct Inner {
    schedule: Listed,
    /// All steps in an order in which they can take place.
    order: Vec<(LaneIndex, u64)>,
}

/// The time from which on bytes can be shared on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// The time when the node has brought its own data together.
    Own,
    /// The time when these bytes have come.
    Come(Brought),
    /// The time when everything has come.
    AllCome,
}

/// The places of the inner schedule's buffers in those of the rank.
pub(super) struct Places {
    pub input: (Buffer, u64),
    pub output: (Buffer, u64),
    pub scratch: u64,
}

/// Bytes, and the step that brings them for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Brought {
    pub bytes: Range<u64>,
    pub lane: LaneIndex,
    /// The number of the lane's steps after which the bytes are there.
    pub count: u64,
}

impl Inner {
    /// Makes a node's part by the algorithm of this name, cut as `algorithm` says.
    pub fn new(name: &str, algorithm: &Algorithm, call: &Call, node: u32) -> Inner {
        let entry = Registry::BUILT_IN.find(call.collective, name);
        let between = entry.map(|entry| Algorithm { segment: algorithm.segment, ..entry.typical() });
        let schedule: Box<dyn Schedule> = match between.map(|between| (between, between.entry.build)) {
            Some((between, Build::Any(schedule))) => schedule(&between, call, Rank(node)),
            Some((between, Build::Lanes(plan, _))) => Box::new(plan(&between, *call, Rank(node)).finish()),
            _ => unreachable!("{name} is not among the ways between nodes"),
        };
        let schedule = Listed::copy_of(&*schedule);
        let order = order(&schedule);
        Inner { schedule, order }
    }

    pub fn scratch_bytes(&self) -> u64 {
        self.schedule.scratch_bytes()
    }

    fn actions(&self) -> impl DoubleEndedIterator<Item = (LaneIndex, u64, Action)> {
        self.order.iter().map(|(lane, index)| (*lane, *index, self.schedule.step(*lane, *index).action))
    }

    /// Returns the bytes that have to be in a buffer before, in the order in which they are needed.
    pub fn needs(&self, buffer: Buffer) -> Vec<Range<u64>> {
        let (mut known, mut needed) = (Covered::default(), Vec::new());
        for (_, _, action) in self.actions() {
            for read in reads(&action).filter(|slice| slice.buffer == buffer) {
                needed.extend(known.add(&read.bytes));
            }
            if let Some(written) = action.target().filter(|slice| slice.buffer == buffer) {
                known.add(&written.bytes);
            }
        }
        needed
    }

    /// Returns the bytes that come into a buffer, in the order in which they are there for good. Of
    /// two steps that write the same place the later one knows of the end of the other, as the
    /// checker proves, so it is enough to wait for the later one.
    pub fn brings(&self, buffer: Buffer) -> Vec<Brought> {
        let (mut known, mut brought) = (Covered::default(), Vec::new());
        for (lane, index, action) in self.actions().rev() {
            if let Some(written) = action.target().filter(|slice| slice.buffer == buffer) {
                let parts = known.add(&written.bytes).into_iter().rev();
                brought.extend(parts.map(|bytes| Brought { bytes, lane, count: index + 1 }));
            }
        }
        brought.reverse();
        brought
    }

    /// Puts the lanes into the schedule of the rank that stands for the node. What they read waits
    /// for as many steps of lane `up`, which stands before them, as `gate` says.
    pub fn put_into(
        &self,
        list: &mut Listed,
        places: &Places,
        members: &Members,
        up: LaneIndex,
        gate: &dyn Fn(&Slice) -> u64,
    ) -> Ends {
        let lanes = self.schedule.lanes();
        let base = list.lanes().len();
        let steps =
            |lane: LaneIndex| (0..lanes[lane].steps).map(move |index| self.schedule.step(lane, index));
        // What waits beside what it waits for anyway waits in a local lane before it; local steps in their own.
        let mut waits = Vec::with_capacity(lanes.len());
        let mut ends = Vec::with_capacity(lanes.len());
        for (lane, of) in lanes.iter().enumerate() {
            let (mut passed, mut count) = (0, 0);
            let mut waits_of_lane = Vec::new();
            let mut ends_of_lane = Vec::new();
            for step in steps(lane) {
                let need = reads(&step.action).map(gate).max().unwrap_or(0);
                let waits = need > passed && !of.is_receive();
                passed = passed.max(need);
                count += 1 + u64::from(waits && of.kind == Kind::Local);
                waits_of_lane.push(if waits { need } else { 0 });
                ends_of_lane.push(count);
            }
            waits.push(waits_of_lane);
            ends.push(ends_of_lane);
        }
        let map_after = |after: After, ends: &[Vec<u64>]| match after {
            After::Steps { count: 0, .. } | After::Start => After::Start,
            After::Steps { lane, count } => {
                After::Steps { lane: base + lane, count: ends[lane][count as usize - 1] }
            }
            After::LanesBelow(end) => After::LanesBelow(base + end),
        };
        for of in lanes {
            let kind = match &of.kind {
                Kind::Messages(stream) => {
                    Kind::Messages(Stream { peer: members.stands_for(stream.peer.0), ..*stream })
                }
                other => other.clone(),
            };
            let lane = list.lane(kind);
            (list.lane_mut(lane).phase, list.lane_mut(lane).opens_after) =
                (of.phase, of.opens_after.map(|opener| base + opener));
        }
        for (lane, of) in lanes.iter().enumerate() {
            for (step, need) in steps(lane).zip(&waits[lane]) {
                let gate = After::Steps { lane: up, count: *need };
                let after = match map_after(step.after, &ends) {
                    after if *need == 0 => after,
                    after if of.kind == Kind::Local => {
                        list.add(base + lane, Action::nothing(), gate);
                        after
                    }
                    After::Start => gate,
                    // Lane `up` is below.
                    after @ After::LanesBelow(_) => after,
                    after => {
                        let both = list.single(Kind::Local, Action::nothing(), after);
                        After::Steps { lane: both, count: list.add(both, Action::nothing(), gate) }
                    }
                };
                list.add(base + lane, places.map_action(step.action), after);
            }
        }
        let brings = |lane: &LaneIndex| steps(*lane).any(|step| step.action.target().is_some());
        let end = base + (0..lanes.len()).rev().find(brings).map_or(0, |last| last + 1);
        Ends { base, ends, end }
    }
}

/// The places of an inner schedule's steps in the schedule of the rank.
pub(super) struct Ends {
    base: LaneIndex,
    /// The number of the rank's steps after each inner step, by lane.
    ends: Vec<Vec<u64>>,
    /// The index behind the last lane that brings something.
    end: LaneIndex,
}

impl Ends {
    /// The condition that the bytes have come.
    pub fn after(&self, brought: &Brought) -> After {
        let count = self.ends[brought.lane][brought.count as usize - 1];
        After::Steps { lane: self.base + brought.lane, count }
    }

    /// The condition that bytes can be shared on the node; `own` is that of what the node has by
    /// itself.
    pub fn when(&self, when: &When, own: After) -> After {
        match when {
            When::Own => own,
            When::Come(brought) => self.after(brought),
            When::AllCome => After::LanesBelow(self.end),
        }
    }
}

impl Places {
    fn map(&self, slice: Slice) -> Slice {
        let (buffer, at) = match slice.buffer {
            Buffer::Input => self.input,
            Buffer::Output => self.output,
            Buffer::Scratch => (Buffer::Scratch, self.scratch),
        };
        Slice { buffer, bytes: slice.bytes.start + at..slice.bytes.end + at }
    }

    fn map_action(&self, action: Action) -> Action {
        match action {
            Action::Send(from) => Action::Send(self.map(from)),
            Action::Receive(to) => Action::Receive(self.map(to)),
            Action::Copy { from, to } => Action::Copy { from: self.map(from), to: self.map(to) },
            Action::Combine { from, into } => Action::Combine { from: self.map(from), into: self.map(into) },
            Action::Publish(from) => Action::Publish(self.map(from)),
            Action::Fetch { at, to } => Action::Fetch { at, to: self.map(to) },
        }
    }
}

/// Returns the bytes of this rank that a step reads; both operands of a combination.
fn reads(action: &Action) -> impl Iterator<Item = &Slice> {
    let operand = if let Action::Combine { into, .. } = action { Some(into) } else { None };
    action.source().into_iter().chain(operand)
}

/// Returns the steps in an order in which they can take place: in rounds in which each lane goes a
/// step further if it can, whatever comes from others. So what comes later in a lane stands later.
fn order(schedule: &Listed) -> Vec<(LaneIndex, u64)> {
    let lanes = schedule.lanes();
    let mut done = vec![0; lanes.len()];
    let mut order = Vec::new();
    loop {
        let before = order.len();
        let there = done.clone();
        let is_complete = |lane: LaneIndex| there[lane] == lanes[lane].steps;
        for lane in (0..lanes.len()).filter(|lane| !is_complete(*lane)) {
            let may = match schedule.step(lane, there[lane]).after {
                After::Start => true,
                After::Steps { lane, count } => there[lane] >= count,
                After::LanesBelow(end) => (0..end).all(is_complete),
            };
            if may && (there[lane] > 0 || lanes[lane].opens_after.is_none_or(is_complete)) {
                order.push((lane, there[lane]));
                done[lane] += 1;
            }
        }
        if order.len() == before {
            return order;
        }
    }
}

/// Bytes, as ranges that do not touch.
#[derive(Default)]
pub(super) struct Covered(BTreeMap<u64, u64>);

impl Covered {
    /// Adds bytes; returns those that are new, rising.
    pub fn add(&mut self, bytes: &Range<u64>) -> Vec<Range<u64>> {
        let mut fresh = Vec::new();
        if bytes.is_empty() {
            return fresh;
        }
        let (mut first, mut end, mut at) = (bytes.start, bytes.end, bytes.start);
        if let Some((start, until)) =
            self.0.range(..=bytes.start).next_back().filter(|(_, until)| **until >= at)
        {
            (first, at, end) = (*start, *until, end.max(*until));
        }
        let within: Vec<(u64, u64)> =
            self.0.range(first..=bytes.end).map(|(start, until)| (*start, *until)).collect();
        for (start, until) in within {
            if start > at {
                fresh.push(at..start);
            }
            (at, end) = (at.max(until), end.max(until));
            self.0.remove(&start);
        }
        if at < bytes.end {
            fresh.push(at..bytes.end);
        }
        self.0.insert(first, end);
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_said_once() {
        let mut covered = Covered::default();
        let mut add = |start, end| {
            let fresh = covered.add(&(start..end)).into_iter();
            fresh.map(|bytes| (bytes.start, bytes.end)).collect::<Vec<_>>()
        };
        assert_eq!(add(10, 20), [(10, 20)]);
        assert_eq!(add(5, 12), [(5, 10)]);
        assert_eq!(add(30, 40), [(30, 40)]);
        assert_eq!(add(0, 50), [(0, 5), (20, 30), (40, 50)]);
        assert_eq!(add(0, 50), []);
        assert_eq!(add(50, 51), [(50, 51)]);
        assert_eq!(covered.0.len(), 1);
    }
}
