//! One rank's messages in one collective call, among ranks that may have called with different sizes.
//!
//! MPI forbids that, but a program that does it must end as it would without polycast: with an error, not with ranks that wait
//! for messages which nobody will send. So each lane begins with the number of bytes that its sender was called with:
//!
//! ```text
//!  lane   ├ total, s0 ┤ s1 ┤ s2 ┤ …       the announcement travels with the first segment, if that is short;
//!  lane   ├ total ┤ s0 ┤ s1 ┤ …           else before it
//! ```
//! A rank that is told another size than its own is *spoiled*. It goes on, so that nobody waits for it: what it has announced to
//! send it sends, as empty messages; what others have announced it takes, and throws it away. An empty message where data was
//! due spoils its receiver in turn. So all ranks end, and those whose data would be wrong know it.
//!
//! # Invariants
//! 1. Every lane that exists for any size carries an announcement, though it may have no data.
//! 2. On a lane nothing but the announcement is received before it is known how many messages follow and how long they are.
//! 3. A rank sends as many messages as its own announcement implies, whatever it is told.

use std::ops::Range;

use super::{Executor, Limits, Operation, StepId, Transport};
use crate::schedule::{Action, Channel, Direction, Lane, LaneIndex, Schedule, Stream};
use crate::units::Rank;

/// The first segment of a lane travels with the announcement, through memory of the transport, if it is not longer.
pub const FIRST_DATA_BYTES_MOST: u64 = 8 << 10;

/// Which of a lane's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The announcement.
    First,
    /// Data of this step.
    Step(u64),
    /// One that is thrown away.
    Scrap,
}

/// Names a message until it completes: at most one of a name is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageId {
    /// The lane.
    pub lane: LaneIndex,
    /// Which of its messages.
    pub part: Part,
}

/// What travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// To send: this total, and these bytes of the buffer. To receive: a total, and up to [`FIRST_DATA_BYTES_MOST`] bytes, into
    /// memory of the transport.
    First {
        /// The bytes of the call.
        total: u64,
        /// The data that goes with it.
        bytes: Range<u64>,
    },
    /// Bytes of the buffer; none, to send, in place of data that is not there.
    Data(Range<u64>),
    /// To receive, up to this many bytes, into memory that nobody looks at.
    Scrap(u64),
}

/// A message to start now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// To be handed back when it has completed.
    pub id: MessageId,
    /// Send or receive.
    pub direction: Direction,
    /// The other end.
    pub peer: Rank,
    /// The stream between the two ranks.
    pub channel: Channel,
    /// What travels.
    pub content: Content,
}

/// A message that has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Which.
    pub id: MessageId,
    /// Of a first message: what it announces. Of none else, and of sends: 0.
    pub total: u64,
    /// The bytes of data that came, without the announcement. Of sends: 0.
    pub received_bytes: u64,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This rank has all data.
    Complete,
    /// The ranks called with different sizes; what is in the buffer is worth nothing.
    SizesDiffer,
}

/// One call, as a schedule for every size that another rank may have called with.
pub trait Call {
    /// What this rank does if all ranks call with `bytes`; `None` if that would go another way.
    fn schedule(&mut self, bytes: u64) -> Option<Box<dyn Schedule>>;

    /// From this many bytes on, all lanes exist that exist for any size.
    fn bytes_for_all_lanes(&self) -> u64;
}

/// What is known of a lane's other end.
enum Lanes {
    /// A lane of sends.
    Sending { is_announced: bool },
    /// A lane of receives whose first message has not come; these operations wait for it.
    Unheard(Vec<Operation>),
    /// Its sender was called with as many bytes as this rank.
    Agreed,
    /// Its sender has this lane of another schedule; the steps from `next` on are still to come.
    Draining { schedule: Box<dyn Schedule>, lane: LaneIndex, next: u64 },
    /// Nothing more comes.
    Closed,
}

/// See the module.
pub struct Conversation<'a, C> {
    call: &'a mut C,
    total: u64,
    executor: Executor<Box<dyn Schedule>>,
    /// Lanes that other sizes have and this one has not.
    further: Vec<Lane>,
    lanes: Vec<Lanes>,
    outstanding: usize,
    is_spoiled: bool,
    completed: Vec<Completed>,
}

impl<'a, C: Call> Conversation<'a, C> {
    /// Starts with the announcements. `is_spoiled`: this rank has no data to send, from the beginning. `None` if `call` has no
    /// schedule for `total`, or one that is more than messages.
    pub fn begin<T: Transport>(
        call: &'a mut C,
        total: u64,
        is_spoiled: bool,
        limits: Limits,
        transport: &mut T,
    ) -> Result<Option<Self>, T::Error> {
        let Some(schedule) = call.schedule(total) else { return Ok(None) };
        if schedule.lanes().iter().any(|lane| lane.stream().is_none()) {
            return Ok(None);
        }
        let further =
            if total < call.bytes_for_all_lanes() { further_lanes(call, &*schedule) } else { Vec::new() };
        let mut lanes = Vec::with_capacity(schedule.lanes().len() + further.len());
        lanes.extend(schedule.lanes().iter().chain(&further).map(|lane| match lane.is_send() {
            true => Lanes::Sending { is_announced: false },
            false => Lanes::Unheard(Vec::new()),
        }));
        let executor = Executor::new(schedule, limits);
        let (outstanding, completed) = (0, Vec::new());
        let mut begun =
            Conversation { call, total, executor, further, lanes, outstanding, is_spoiled, completed };
        for lane in 0..begun.lanes.len() {
            if begun.lane(lane).is_receive() || begun.lane(lane).steps == 0 {
                begun.announce(lane, 0..0, transport)?;
            }
        }
        Ok(Some(begun))
    }

    /// Starts what can be started, and takes what has completed. `None`: it is not over; true in `has_progressed` if something
    /// has completed.
    pub fn advance<T: Transport>(
        &mut self,
        transport: &mut T,
        has_progressed: &mut bool,
    ) -> Result<Option<Outcome>, T::Error> {
        while let Some(operation) = self.executor.next_operation() {
            self.start(operation, transport)?;
        }
        if self.executor.is_finished() && self.outstanding == 0 {
            return Ok(Some(if self.is_spoiled { Outcome::SizesDiffer } else { Outcome::Complete }));
        }
        let mut completed = std::mem::take(&mut self.completed);
        transport.poll(&mut completed)?;
        *has_progressed = !completed.is_empty();
        for done in completed.drain(..) {
            self.complete(done, transport)?;
        }
        self.completed = completed;
        Ok(None)
    }

    fn lane(&self, lane: LaneIndex) -> &Lane {
        let own = self.executor.schedule.lanes();
        own.get(lane).unwrap_or_else(|| &self.further[lane - own.len()])
    }

    /// The data of the first step, if it travels with the announcement.
    fn packed(&self, lane: LaneIndex) -> Option<Range<u64>> {
        if self.lane(lane).steps == 0 {
            return None;
        }
        Some(bytes_of(&self.executor.schedule.step(lane, 0).action))
            .filter(|bytes| bytes.end - bytes.start <= FIRST_DATA_BYTES_MOST)
    }

    fn announce<T: Transport>(
        &mut self,
        lane: LaneIndex,
        bytes: Range<u64>,
        transport: &mut T,
    ) -> Result<(), T::Error> {
        self.send_or_receive(lane, Part::First, Content::First { total: self.total, bytes }, transport)
    }

    fn send_or_receive<T: Transport>(
        &mut self,
        lane: LaneIndex,
        part: Part,
        content: Content,
        transport: &mut T,
    ) -> Result<(), T::Error> {
        let Some(Stream { direction, peer, channel, .. }) = self.lane(lane).stream() else { return Ok(()) };
        self.outstanding += 1;
        transport.start(&Message { id: MessageId { lane, part }, direction, peer, channel, content })
    }

    fn start<T: Transport>(&mut self, operation: Operation, transport: &mut T) -> Result<(), T::Error> {
        let StepId { lane, index } = operation.id;
        let bytes = bytes_of(&operation.action);
        match &mut self.lanes[lane] {
            Lanes::Sending { is_announced } => {
                let is_first = !std::mem::replace(is_announced, true);
                let at = bytes.start;
                let is_packed = is_first && self.packed(lane).is_some();
                let data = if self.is_spoiled { at..at } else { bytes };
                if is_packed {
                    return self.announce(lane, data, transport);
                }
                if is_first {
                    self.announce(lane, at..at, transport)?;
                }
                self.send_or_receive(lane, Part::Step(index), Content::Data(data), transport)
            }
            Lanes::Unheard(waiting) => {
                waiting.push(operation);
                Ok(())
            }
            Lanes::Agreed => self.send_or_receive(lane, Part::Step(index), Content::Data(bytes), transport),
            // What comes on this lane is not what this step is about.
            Lanes::Draining { .. } | Lanes::Closed => {
                self.executor.complete(operation.id);
                Ok(())
            }
        }
    }

    fn complete<T: Transport>(&mut self, done: Completed, transport: &mut T) -> Result<(), T::Error> {
        self.outstanding -= 1;
        let lane = done.id.lane;
        let is_receive = self.lane(lane).is_receive();
        match done.id.part {
            Part::First if is_receive => return self.hear(lane, done, transport),
            Part::First if self.packed(lane).is_none() => {}
            Part::First => self.executor.complete(StepId { lane, index: 0 }),
            Part::Step(index) => {
                let bytes = bytes_of(&self.executor.schedule.step(lane, index).action);
                self.is_spoiled |= is_receive && done.received_bytes != bytes.end - bytes.start;
                self.executor.complete(StepId { lane, index });
            }
            Part::Scrap => return self.drain(lane, transport),
        }
        Ok(())
    }

    /// The announcement of a lane has come, and perhaps its first data.
    fn hear<T: Transport>(
        &mut self,
        lane: LaneIndex,
        done: Completed,
        transport: &mut T,
    ) -> Result<(), T::Error> {
        let is_agreed = done.total == self.total;
        let next = if is_agreed { Lanes::Agreed } else { self.draining(lane, done.total) };
        let Lanes::Unheard(waiting) = std::mem::replace(&mut self.lanes[lane], next) else { return Ok(()) };
        let mut waiting = waiting.into_iter();
        if let Some(bytes) = self.packed(lane).filter(|_| is_agreed) {
            if done.received_bytes == bytes.end - bytes.start {
                transport.keep(lane, bytes);
            } else {
                self.is_spoiled = true;
            }
            waiting.next().into_iter().for_each(|first| self.executor.complete(first.id));
        }
        self.is_spoiled |= !is_agreed;
        for operation in waiting {
            self.start(operation, transport)?;
        }
        self.drain(lane, transport)
    }

    /// What follows on a lane whose sender was called with `total`.
    fn draining(&mut self, lane: LaneIndex, total: u64) -> Lanes {
        let stream = self.lane(lane).stream();
        let Some(schedule) = self.call.schedule(total) else { return Lanes::Closed };
        let same = |other: &Lane| other.stream() == stream;
        let Some(lane) = schedule.lanes().iter().position(same) else { return Lanes::Closed };
        let first = bytes_of(&schedule.step(lane, 0).action);
        let next = u64::from(first.end - first.start <= FIRST_DATA_BYTES_MOST);
        Lanes::Draining { schedule, lane, next }
    }

    /// Receives the next message that is thrown away, one after the other.
    fn drain<T: Transport>(&mut self, lane: LaneIndex, transport: &mut T) -> Result<(), T::Error> {
        let Lanes::Draining { schedule, lane: theirs, next } = &mut self.lanes[lane] else { return Ok(()) };
        if *next >= schedule.lanes()[*theirs].steps {
            self.lanes[lane] = Lanes::Closed;
            return Ok(());
        }
        let bytes = bytes_of(&schedule.step(*theirs, *next).action);
        *next += 1;
        self.send_or_receive(lane, Part::Scrap, Content::Scrap(bytes.end - bytes.start), transport)
    }
}

/// The lanes of larger sizes that `schedule` lacks (invariant 1): they carry announcements only.
fn further_lanes(call: &mut impl Call, schedule: &dyn Schedule) -> Vec<Lane> {
    let Some(all) = call.schedule(call.bytes_for_all_lanes()) else { return Vec::new() };
    let is_known = |lane: &Lane| schedule.lanes().iter().any(|known| known.stream() == lane.stream());
    let missing = all.lanes().iter().filter(|lane| !is_known(lane));
    missing.map(|lane| Lane::new(lane.kind.clone(), 0)).collect()
}

/// The bytes of a message; a broadcast has them in one buffer.
fn bytes_of(action: &Action) -> Range<u64> {
    action.source().or(action.target()).map_or(0..0, |slice| slice.bytes.clone())
}

#[cfg(test)]
mod tests;
