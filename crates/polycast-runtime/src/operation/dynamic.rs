//! A broadcast by DYN-tree: who sends to whom is found out on the way.
//!
//! ```text
//!   told      from whomever: the bytes of the call, who it is, and the part of the order that this rank is answerable for
//!   receives  from that one, whole
//!   sends     to one receiver after the other; how long the last one took says how what is left is divided
//! ```
//! Who is told does not know by whom, so what a sender says of a later broadcast, one that is ahead of the others, is kept for that one.
//! A rank whose call has another size takes what comes into memory of its own, and hands that on, so that those behind it have theirs.

use std::cmp::Ordering;
use std::ffi::c_int;
use std::ops::Range;
use std::time::Instant;

use polycast_core::algorithm::Algorithm;
use polycast_core::collective;
use polycast_core::executor::{MessageId, MessagePart};
use polycast_core::tree::{Assignment, IdleTimes, Part, Splits};
use polycast_core::units::{Nanos, Rank};

use super::way::{Made, Way};
use super::{Call, Shared};
use crate::abi::MESSAGE_MOST_BYTES;
use crate::call::{Activity, Failure, OperationKey, Progress};
use crate::fault::{self, Point};
use crate::machine;
use crate::messages::{Done, Purpose, Route, SLOTS};

/// Channel of assignments; that of data is the next.
const ASSIGNMENT: c_int = 0;
const DATA: c_int = 1;

#[derive(Clone, Copy, PartialEq, Eq)]
enum DynamicStage {
    /// Waits to be told its assignment, unless it is the root.
    Told,
    Receives,
    Sends,
    Over,
}

/// A broadcast by DYN-tree, kept to serve one call after another of the same size and root.
pub struct DynamicBroadcast {
    call: collective::Call,
    /// Times of a message of this size where nothing else is under way.
    idle: IdleTimes,
    /// All ranks, from the root on, in the same order on each of them.
    order: Vec<Rank>,
    key: OperationKey,
    tag: c_int,
    number: u64,
    buffer: *mut u8,
    stage: DynamicStage,
    /// Size of the root's message in bytes.
    total: u64,
    part: Part,
    /// Memory in place of the buffer, for a message of another size than this rank's.
    scrap: Vec<u8>,
    /// Messages of this stage that MPI has.
    in_flight: u64,
    since: Instant,
    /// Messages that have completed since the last progress.
    inbox: Vec<Done<MessageId>>,
}

/// Makes the way of an algorithm whose ranks find out on the way who sends to whom.
pub(super) fn make(algorithm: Algorithm, call: &Call, shared: &mut Shared) -> Made {
    let make = || Ok(Box::new(DynamicBroadcast::new(algorithm, call, shared)) as _);
    algorithm.entry.is_dynamic.then(make)
}

impl Way for DynamicBroadcast {
    fn begin(&mut self, key: OperationKey, call: &Call, shared: &mut Shared) -> Result<(), Failure> {
        self.inbox.clear();
        self.scrap.clear();
        (self.key, self.tag, self.number, self.buffer) = (key, call.tag, call.number, call.buffers.output);
        if shared.rank == self.call.root {
            self.total = self.call.bytes.0;
            self.part = Part { begin: 0, end: self.call.ranks, source: 0 };
            return self.send_next(shared);
        }
        (self.stage, self.in_flight) = (DynamicStage::Told, 0);
        match shared.early.iter().position(|early| early.operation == self.number) {
            Some(place) => {
                let told = shared.early.swap_remove(place);
                self.receive(told, shared)
            }
            None => self.listen(vec![0; Assignment::BYTES], shared),
        }
    }

    fn progress(&mut self, _: &Call, shared: &mut Shared) -> Result<Progress, Failure> {
        if !self.inbox.is_empty() {
            shared.activity = Activity::Messages;
        }
        while let Some(done) = self.inbox.pop() {
            let bytes = done.outcome?;
            self.in_flight -= 1;
            match self.stage {
                DynamicStage::Told => {
                    let told =
                        done.memory.get(..bytes).and_then(|told| Assignment::decode(told, self.call.ranks));
                    self.hear(told.ok_or(Failure::Internal)?, done.memory, shared)?;
                }
                DynamicStage::Receives if self.in_flight == 0 => {
                    self.keep();
                    self.send_next(shared)?;
                }
                DynamicStage::Sends if self.in_flight == 0 => {
                    let took = Nanos(machine::now().duration_since(self.since).as_nanos() as u64);
                    // The call of a send that does not wait returns at once.
                    shared.dynamic.left(self.idle.hold + took, self.idle);
                    self.send_next(shared)?;
                }
                _ => {}
            }
        }
        Ok(match self.stage {
            DynamicStage::Over if self.total <= self.call.bytes.0 => Progress::Done,
            DynamicStage::Over => {
                shared.told = Some(self.total);
                Progress::Failed(Failure::Size)
            }
            _ => Progress::Pending,
        })
    }

    fn leave(&mut self, _: &Call, _: &mut Shared) {
        // The MPI may not be through with what it sends.
        std::mem::forget(std::mem::take(&mut self.scrap));
    }

    fn inbox(&mut self) -> Option<&mut Vec<Done<MessageId>>> {
        Some(&mut self.inbox)
    }
}

impl DynamicBroadcast {
    pub fn new(algorithm: Algorithm, call: &Call, shared: &mut Shared) -> DynamicBroadcast {
        let order = shared.planner.site().from_root(call.of.root).ranks().to_vec();
        let made_for = shared.planner.made_for(&algorithm, call.of);
        let times = made_for.map_or_else(Default::default, |sent| sent.times);
        DynamicBroadcast {
            call: call.of,
            // A sender that may go on after `t_hold` has no more of the message then.
            idle: IdleTimes { hold: times.hold, out: times.hold, end: times.end },
            order,
            key: OperationKey(0),
            tag: 0,
            number: 0,
            buffer: std::ptr::null_mut(),
            stage: DynamicStage::Over,
            total: 0,
            part: Part { begin: 0, end: 1, source: 0 },
            scrap: Vec::new(),
            in_flight: 0,
            since: machine::now(),
            inbox: Vec::with_capacity(SLOTS),
        }
    }

    /// Listens for an assignment, from whomever it comes.
    fn listen(&mut self, memory: Vec<u8>, shared: &mut Shared) -> Result<(), Failure> {
        fault::point(Point::Message);
        let (purpose, tag) = (self.purpose(MessagePart::First), self.tag + ASSIGNMENT);
        shared.messages.receive_from_any(purpose, tag, memory, Assignment::BYTES)?;
        self.in_flight += 1;
        Ok(())
    }

    /// Takes an assignment that has come: for this broadcast, or for a later one.
    fn hear(&mut self, told: Assignment, memory: Vec<u8>, shared: &mut Shared) -> Result<(), Failure> {
        match told.operation.cmp(&self.number) {
            Ordering::Equal => return self.receive(told, shared),
            Ordering::Greater => shared.early.push(told),
            // An erroneous program has left it over.
            Ordering::Less => {}
        }
        self.listen(memory, shared)
    }

    fn purpose(&self, part: MessagePart) -> Purpose {
        Purpose::Step { operation: self.key, id: MessageId { lane: 0, part } }
    }

    /// Address at which the message stands, or is to stand.
    fn data(&mut self) -> *mut u8 {
        if self.total == self.call.bytes.0 { self.buffer } else { self.scrap.as_mut_ptr() }
    }

    fn receive(&mut self, told: Assignment, shared: &mut Shared) -> Result<(), Failure> {
        (self.total, self.part, self.stage) = (told.total, told.part, DynamicStage::Receives);
        if self.total != self.call.bytes.0 {
            let bytes = usize::try_from(self.total).map_err(|_| Failure::Internal)?;
            self.scrap.try_reserve_exact(bytes).map_err(|_| Failure::Internal)?;
            self.scrap.resize(bytes, 0);
        }
        let data = self.data();
        for (step, piece) in (0..).zip(pieces(self.total)) {
            fault::point(Point::Message);
            let (from, purpose) =
                (Route { peer: told.sender, tag: self.tag + DATA }, self.purpose(MessagePart::Step(step)));
            let (place, bytes) =
                (data.wrapping_add(piece.start as usize), (piece.end - piece.start) as usize);
            // SAFETY: the piece is inside the output (see `Operations::start`), or inside memory of its size; nobody reads or writes it
            // before it has come.
            unsafe { shared.messages.receive_into(purpose, from, place, bytes) }?;
            self.in_flight += 1;
        }
        // The root has no data: all is said.
        if self.in_flight == 0 { self.send_next(shared) } else { Ok(()) }
    }

    /// Copies a message of another size into the buffer, as far as there is room.
    fn keep(&mut self) {
        let bytes = self.scrap.len().min(self.call.bytes.0 as usize);
        if bytes > 0 {
            // SAFETY: the output has as many bytes as the call (see `Operations::start`), and is not this memory.
            unsafe { std::ptr::copy_nonoverlapping(self.scrap.as_ptr(), self.buffer, bytes) };
        }
    }

    fn send_next(&mut self, shared: &mut Shared) -> Result<(), Failure> {
        let ranks = self.part.others() + 1;
        if ranks == 1 {
            self.stage = DynamicStage::Over;
            return Ok(());
        }
        let splits = Splits::optimal(shared.dynamic.expected(self.idle), ranks);
        let part = self.part.give(splits.led(ranks).next().unwrap_or(1));
        let peer = self.order[part.source as usize];
        (self.stage, self.since, self.in_flight) = (DynamicStage::Sends, machine::now(), 1);
        fault::point(Point::Message);
        let told =
            Assignment { operation: self.number, total: self.total, sender: shared.rank, part }.encode();
        let to = Route { peer, tag: self.tag + ASSIGNMENT };
        shared.messages.send(self.purpose(MessagePart::First), to, told.to_vec(), told.len())?;
        let data = self.data();
        for (step, piece) in (0..).zip(pieces(self.total)) {
            fault::point(Point::Message);
            let (to, purpose) = (Route { peer, tag: self.tag + DATA }, self.purpose(MessagePart::Step(step)));
            let (source, bytes) =
                (data.wrapping_add(piece.start as usize), (piece.end - piece.start) as usize);
            // SAFETY: the piece is inside the buffer (see `Operations::start`) or memory that stays, its bytes are there, and nobody writes
            // them before this is done.
            unsafe { shared.messages.send_from(purpose, to, source, bytes) }?;
            self.in_flight += 1;
        }
        Ok(())
    }
}

/// The pieces in which a message of `total` bytes is sent, since whole messages would be too long
/// for MPI's counts.
fn pieces(total: u64) -> impl Iterator<Item = Range<u64>> {
    (0..total.div_ceil(MESSAGE_MOST_BYTES)).map(move |piece| {
        let start = piece * MESSAGE_MOST_BYTES;
        start..total.min(start + MESSAGE_MOST_BYTES)
    })
}
