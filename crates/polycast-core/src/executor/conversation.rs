//! One rank's messages and local work in one collective call, among ranks that may have called with different sizes.
//!
//! MPI forbids that, but a program that does it must end as it would without polycast: with an error, not with ranks that wait
//! for messages which nobody will send. So each lane begins with the number of bytes that its sender was called with:
//!
//! ```text
//!  lane   ├ total, s0 ┤ s1 ┤ s2 ┤ …                     the announcement travels with the first segment, if that is short;
//!  lane   ├ total, head of s0 ┤ rest of s0 ┤ s1 ┤ …     else with its head
//! ```
//! A rank that sends nothing but what comes to it ([`Call::follows`]) announces nothing before it has heard a size, and *adopts* that one: it
//! goes on as if it had been called with it, and [`Transport::adopt`] finds room for what comes. Any other rank that is told another size
//! than its own is *spoiled*. It goes on, so that nobody waits for it: what it has announced to send it sends, as empty messages; what
//! others have announced it takes, and throws it away; it copies and combines nothing. An empty message where data was due spoils its
//! receiver in turn. So all ranks end, and those whose data would be wrong know it.
//!
//! # Invariants
//! 1. Every lane that exists for any size carries an announcement, though it may have no data.
//! 2. On a lane nothing but the announcement is received before it is known how many messages follow and how long they are.
//! 3. Data goes to its place when the step that receives it has started, and not before.
//! 4. A rank sends as many messages as its own announcement implies, whatever it is told.
//! 5. A size is adopted once, and before anything but signals was sent.

mod adopt;
mod further;
mod shared;

pub use shared::{Share, Shared};

use super::{Executor, Limits, StepId};
use crate::schedule::{
    Action, Buffer, Channel, Direction, Fabric, Kind, Lane, LaneIndex, Schedule, Slice, Stream,
};
use crate::units::Rank;
use further::further_lanes;
use shared::{SharedLane, Went};

/// The place of a message in its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessagePart {
    /// The announcement.
    First,
    /// The announcement of a signal that is sent before this rank has been told a size.
    Signal,
    /// Data of this step: of a lane's first, what did not travel with the announcement.
    Step(u64),
    /// A message that is thrown away.
    Scrap,
}

/// Names a message until it completes: at most one of a name is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageId {
    /// The lane.
    pub lane: LaneIndex,
    /// The place of the message in its lane.
    pub part: MessagePart,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// To send: this total, and these bytes. To receive: a total, and up to [`Call::most_first_data_bytes`], into memory of the transport.
    First {
        /// The bytes of the call.
        total: u64,
        /// The data that goes with it.
        data: Slice,
    },
    /// Bytes of a buffer; none, to send, in place of data that is not there.
    Data(Slice),
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
    /// The bytes to send, or the room for those that come.
    pub content: Content,
}

/// A message that has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The name of the message.
    pub id: MessageId,
    /// True if it was received.
    pub is_receive: bool,
    /// The bytes that a first message announces, if it was received; 0 for any other message.
    pub total: u64,
    /// The bytes of data that came, without the announcement. Of sends: 0.
    pub received_bytes: u64,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All data of this rank is there.
    Complete,
    /// The ranks called with different sizes; what is in the buffer is worth nothing.
    SizesDiffer,
}

/// A call, as a schedule for every size that another rank may have called with.
pub trait Call {
    /// Returns what this rank does if all ranks call with `bytes`; `None` if that call would go another way.
    fn schedule(&mut self, bytes: u64) -> Option<Box<dyn Schedule>>;

    /// The number of bytes from which on all lanes exist that exist for any size.
    fn bytes_for_all_lanes(&self) -> u64;

    /// The most bytes of a lane's first segment that travel with the announcement, through memory of the transport. The same on all ranks.
    fn most_first_data_bytes(&self) -> u64;

    /// True if all that this rank sends, but for signals, comes to it from other ranks: what they were called with is what it hands on.
    fn follows(&self) -> bool;
}

/// Starts messages, of which those that have completed go to [`Conversation::complete`], and does local work.
pub trait Transport {
    /// The error of a message or of local work; ends the collective.
    type Error;

    /// Starts `message`; never blocks.
    fn start(&mut self, message: &Message) -> Result<(), Self::Error>;

    /// Puts the data that came with the last first message of a lane there, or throws it away. `lane`: as the message was named.
    fn keep(&mut self, lane: LaneIndex, to: Option<Slice>);

    /// Finds room for a call of `total` bytes, with as much scratch memory: what starts from now on is of that call. No data of the
    /// call has come to its place, and none was sent. False: there is no room.
    fn adopt(&mut self, total: u64, scratch_bytes: u64) -> bool;

    /// Copies or combines.
    fn work(&mut self, action: &Action) -> Result<(), Self::Error>;

    /// Does, as far as possible now, what is next on a lane in shared memory. It is asked again until that is done.
    fn share(&mut self, lane: LaneIndex, kind: &Kind, what: Share<'_>) -> Result<Shared, Self::Error>;
}

/// No data.
const NOTHING: Slice = Slice { buffer: Buffer::Output, bytes: 0..0 };

/// The state of a lane: what is known of its other end.
enum Lanes {
    /// A lane of local work, which has no other end.
    Local,
    /// A lane in shared memory; [`SharedLane`] knows more.
    Shared,
    /// A lane of sends.
    Sending { is_announced: bool },
    /// A lane of receives whose first message has not come; its first steps wait for it, this many.
    Unheard { waiting: u64 },
    /// A lane whose sender was called with as many bytes as this rank. `held`: so many bytes of the
    /// first step have come with the announcement, and wait until that step is started.
    Agreed { held: Option<u64> },
    /// A lane whose sender was called with another size, and so has it of `schedule`; the steps from `next` on are still to come.
    Draining { schedule: Box<dyn Schedule>, lane: LaneIndex, next: u64 },
    /// A lane on which nothing more comes.
    Closed,
}

/// A conversation: see the module. It may be used for one call after another of the same size, without new memory.
pub struct Conversation {
    total: u64,
    /// See [`Call::most_first_data_bytes`].
    most_first: u64,
    limits: Limits,
    executor: Executor<Box<dyn Schedule>>,
    /// The lanes that calls of other sizes have and this one has not; whether they have a signal there.
    further: Vec<(Lane, bool)>,
    lanes: Vec<Lanes>,
    /// The lanes in shared memory that are not over.
    sharing: Vec<SharedLane>,
    outstanding: usize,
    is_spoiled: bool,
    /// See [`Call::follows`].
    follows: bool,
    /// True while this rank has not heard a size, and so announces none.
    awaits_size: bool,
    /// The names under which the first messages of lanes were posted, if another size was adopted since.
    posted: Vec<LaneIndex>,
}

impl Conversation {
    /// A conversation for calls of `total` bytes. `None` if `call` has no schedule for that, or one
    /// that is more than messages, local work and shared memory.
    pub fn new(call: &mut impl Call, total: u64, limits: Limits) -> Option<Conversation> {
        let schedule = call.schedule(total)?;
        let is_carried = |lane: &Lane| {
            let is_multicast = |fabric| fabric == Fabric::Multicast;
            !matches!(lane.kind, Kind::Publish { fabric, .. } | Kind::Fetch { fabric, .. } if is_multicast(fabric))
        };
        if !schedule.lanes().iter().all(is_carried) {
            return None;
        }
        let further =
            if total < call.bytes_for_all_lanes() { further_lanes(call, &*schedule) } else { Vec::new() };
        let follows = call.follows() && schedule.lanes().iter().any(Lane::brings_data);
        let executor = Executor::new(schedule, limits);
        Some(Conversation {
            total,
            most_first: call.most_first_data_bytes(),
            limits,
            lanes: Vec::with_capacity(executor.schedule.lanes().len() + further.len()),
            executor,
            further,
            sharing: Vec::new(),
            outstanding: 0,
            is_spoiled: false,
            follows,
            awaits_size: false,
            posted: Vec::new(),
        })
    }

    /// The number of lanes, each of which has one first message.
    pub fn lanes(&self) -> usize {
        self.executor.schedule.lanes().len() + self.further.len()
    }

    /// The bytes of scratch memory that a call takes.
    pub fn scratch_bytes(&self) -> u64 {
        self.executor.schedule.scratch_bytes()
    }

    /// Begins a call with the announcements; what became of an earlier one is forgotten. `is_spoiled`: this rank has no data to send,
    /// from the beginning.
    pub fn begin<T: Transport>(&mut self, is_spoiled: bool, transport: &mut T) -> Result<(), T::Error> {
        self.executor.restart();
        self.outstanding = 0;
        (self.is_spoiled, self.awaits_size) = (is_spoiled, self.follows && !is_spoiled);
        self.lanes.clear();
        self.sharing.clear();
        let all = self.executor.schedule.lanes().iter().chain(self.further.iter().map(|(lane, _)| lane));
        self.lanes.extend(all.map(|lane| match lane.stream().map(|stream| stream.direction) {
            Some(Direction::Send) => Lanes::Sending { is_announced: false },
            Some(Direction::Receive) => Lanes::Unheard { waiting: 0 },
            None if lane.kind == Kind::Local => Lanes::Local,
            None => Lanes::Shared,
        }));
        for lane in 0..self.lanes.len() {
            if let Lanes::Shared = self.lanes[lane] {
                let sharing = SharedLane::begin(lane, self.opening(lane), self.total, transport)?;
                self.sharing.push(sharing);
                continue;
            }
            if self.lane(lane).is_receive() {
                self.announce(lane, NOTHING, transport)?;
            }
        }
        self.announce_empty(transport)
    }

    /// Tells if messages are on their way, and if something through memory is not over.
    pub fn awaits(&self) -> (bool, bool) {
        (self.outstanding > 0, !self.sharing.is_empty())
    }

    /// Marks that this rank has no data to send from now on.
    pub fn spoil(&mut self) {
        self.is_spoiled = true;
    }

    /// Starts what can be started. Returns `None` while the call is not over. `call`: as it was for [`Conversation::new`].
    pub fn advance<T: Transport>(
        &mut self,
        call: &mut impl Call,
        transport: &mut T,
    ) -> Result<Option<Outcome>, T::Error> {
        loop {
            while let Some(operation) = self.executor.next_operation() {
                self.start(operation.id, &operation.action, transport)?;
            }
            if !self.share(call, transport)? {
                break;
            }
        }
        let is_over = self.executor.is_finished() && self.outstanding == 0 && self.sharing.is_empty();
        Ok(is_over.then_some(if self.is_spoiled { Outcome::SizesDiffer } else { Outcome::Complete }))
    }

    /// Goes on after a message has completed. `call`: as it was for [`Conversation::new`].
    pub fn complete<T: Transport>(
        &mut self,
        done: Completed,
        call: &mut impl Call,
        transport: &mut T,
    ) -> Result<(), T::Error> {
        self.outstanding -= 1;
        let (lane, is_receive) = (done.id.lane, done.is_receive);
        match done.id.part {
            MessagePart::First if is_receive => return self.hear(done, call, transport),
            // Where another size was adopted since, its lane has another name, and is closed.
            MessagePart::Signal if self.posted.is_empty() && self.is_packed(lane) => {
                self.executor.complete(StepId { lane, index: 0 });
            }
            MessagePart::Signal => {}
            MessagePart::First if !self.is_packed(lane) => {}
            MessagePart::First => self.executor.complete(StepId { lane, index: 0 }),
            MessagePart::Step(index) => {
                let length = self.executor.schedule.step(lane, index).action.length();
                let in_front = if index == 0 { self.most_first } else { 0 };
                self.is_spoiled |= is_receive && done.received_bytes != length - in_front;
                self.executor.complete(StepId { lane, index });
            }
            MessagePart::Scrap => return self.drain(lane, transport),
        }
        Ok(())
    }

    /// Goes on in shared memory; returns true if that has ended any step.
    fn share<T: Transport>(&mut self, call: &mut impl Call, transport: &mut T) -> Result<bool, T::Error> {
        let mut has_gone_on = false;
        let mut index = 0;
        while let Some(next) = self.sharing.get_mut(index) {
            let Conversation { total, executor, is_spoiled, awaits_size, .. } = self;
            let went = next.advance((*total, *awaits_size), is_spoiled, executor, transport)?;
            match went {
                Went::Nowhere => index += 1,
                Went::On => (index, has_gone_on) = (index + 1, true),
                Went::ToItsEnd => {
                    self.sharing.swap_remove(index);
                    has_gone_on = true;
                }
                // It is asked again, and then of the size that was adopted, if there is one.
                Went::Told(told) => {
                    (index, has_gone_on) = (0, true);
                    self.learn(told, call, transport)?;
                }
            }
        }
        Ok(has_gone_on)
    }

    fn lane(&self, lane: LaneIndex) -> &Lane {
        let own = self.executor.schedule.lanes();
        own.get(lane).unwrap_or_else(|| &self.further[lane - own.len()].0)
    }

    /// The kind of a lane, its steps, and the bytes of the first of them.
    fn opening(&self, lane: LaneIndex) -> (&Kind, u64, u64) {
        let Lane { kind, steps, .. } = self.lane(lane);
        let has_any = *steps > 0;
        (kind, *steps, if has_any { self.executor.schedule.step(lane, 0).action.length() } else { 0 })
    }

    /// True if all data of the first step travels with the announcement.
    fn is_packed(&self, lane: LaneIndex) -> bool {
        self.lane(lane).steps > 0 && self.executor.schedule.step(lane, 0).action.length() <= self.most_first
    }

    fn announce<T: Transport>(
        &mut self,
        lane: LaneIndex,
        data: Slice,
        transport: &mut T,
    ) -> Result<(), T::Error> {
        let is_signal = self.awaits_size && self.lane(lane).is_send();
        let part = if is_signal { MessagePart::Signal } else { MessagePart::First };
        self.send_or_receive(lane, part, Content::First { total: self.total, data }, transport)
    }

    fn send_or_receive<T: Transport>(
        &mut self,
        lane: LaneIndex,
        part: MessagePart,
        content: Content,
        transport: &mut T,
    ) -> Result<(), T::Error> {
        let Some(Stream { direction, peer, channel, .. }) = self.lane(lane).stream() else { return Ok(()) };
        self.outstanding += 1;
        transport.start(&Message { id: MessageId { lane, part }, direction, peer, channel, content })
    }

    fn start<T: Transport>(
        &mut self,
        id: StepId,
        action: &Action,
        transport: &mut T,
    ) -> Result<(), T::Error> {
        let StepId { lane, index } = id;
        let slice = || action.source().or(action.target()).cloned().unwrap_or(NOTHING);
        match &mut self.lanes[lane] {
            Lanes::Local => {
                if !self.is_spoiled {
                    transport.work(action)?;
                }
                self.executor.complete(id);
                Ok(())
            }
            Lanes::Shared => {
                let sharing = self.sharing.iter_mut().find(|sharing| sharing.lane == lane);
                sharing.into_iter().for_each(|sharing| sharing.start(index, action));
                Ok(())
            }
            Lanes::Sending { is_announced } => {
                let is_first = !std::mem::replace(is_announced, true);
                let mut data = if self.is_spoiled { NOTHING } else { slice() };
                if is_first {
                    let head = data.take_head(self.most_first);
                    self.announce(lane, head, transport)?;
                    if self.is_packed(lane) {
                        return Ok(());
                    }
                }
                self.send_or_receive(lane, MessagePart::Step(index), Content::Data(data), transport)
            }
            Lanes::Unheard { waiting } => {
                *waiting += 1;
                Ok(())
            }
            Lanes::Agreed { held } => {
                let mut data = slice();
                if let Some(held) = held.take() {
                    let head = data.take_head(self.most_first);
                    let is_whole = held == head.length();
                    self.is_spoiled |= !is_whole;
                    transport.keep(self.posted.get(lane).copied().unwrap_or(lane), is_whole.then_some(head));
                    if self.is_packed(lane) {
                        self.executor.complete(id);
                        return Ok(());
                    }
                }
                self.send_or_receive(lane, MessagePart::Step(index), Content::Data(data), transport)
            }
            // What comes on this lane is not what this step is about.
            Lanes::Draining { .. } | Lanes::Closed => {
                self.executor.complete(id);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
