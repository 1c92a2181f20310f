//! A call over a fabric of tests: what a rank sends to another is a letter on a board that all ranks of the fake door see. It runs any
//! schedule of messages, as `exchange` does, and asks neither the MPI nor shared memory for anything.
//!
//! ```text
//!   start     a send is a letter on the board, and is over; what is to be received is awaited
//!   progress  letters that are awaited are taken from the board; the conversation goes on by them
//! ```
//! It is here to show what a fabric is: this file, its line in `operation/mod.rs`, and the thing itself (`fake_door/board.rs`).

use std::ffi::c_int;
use std::sync::Arc;

use polycast_core::algorithm::Algorithm;
use polycast_core::executor::{
    Completed, Content, Conversation, Limits, Message, MessageId, MessagePart, Outcome, Share,
    Shared as Went, Transport,
};
use polycast_core::schedule::{Action, Direction, Kind, LaneIndex, Slice};

use super::exchange::Scheduler;
use super::way::{Made, Way};
use super::{Call, Shared};
use crate::abi::MpiError;
use crate::call::{Activity, Buffers, Failure, OperationKey, Progress};
use crate::fake_door::board::{Address, Letter, Place, place_here};
use crate::fault::{self, Point};

const LIMITS: Limits = Limits { per_lane: 4, sends: 16 };

/// A call over the board, kept to serve one call after another that is the same.
pub struct BoardCall {
    algorithm: Algorithm,
    conversation: Conversation,
    ends: BoardEnds,
}

/// Makes the way of a schedule of messages, if this job has a board.
pub(super) fn make(algorithm: Algorithm, call: &Call, shared: &mut Shared) -> Made {
    let place = place_here()?;
    let is_mine = algorithm.entry.has_schedules() && !algorithm.entry.shares_memory();
    is_mine.then(|| Ok(Box::new(BoardCall::new(algorithm, call, shared, place)?) as _))
}

impl BoardCall {
    fn new(
        algorithm: Algorithm,
        call: &Call,
        shared: &mut Shared,
        place: Place,
    ) -> Result<BoardCall, Failure> {
        let mut scheduler = Scheduler::among_all(algorithm, call, shared);
        let conversation = Conversation::new(&mut scheduler, call.of.bytes.0, LIMITS);
        let conversation = conversation.ok_or(Failure::Internal)?;
        let ends = BoardEnds {
            place,
            world_ranks: shared.messages.world_ranks(),
            first_tag: 0,
            buffers: call.buffers,
            scratch: vec![0; conversation.scratch_bytes() as usize],
            told: None,
            awaited: Vec::new(),
            firsts: Vec::new(),
            done: Vec::new(),
        };
        Ok(BoardCall { algorithm, conversation, ends })
    }
}

impl Way for BoardCall {
    fn begin(&mut self, _: OperationKey, call: &Call, shared: &mut Shared) -> Result<(), Failure> {
        let BoardCall { conversation, ends, .. } = self;
        ends.awaited.clear();
        ends.firsts.clear();
        ends.done.clear();
        (ends.buffers, ends.told) = (call.buffers, None);
        ends.first_tag = shared.messages.tag(call.tag);
        conversation.begin(false, ends)
    }

    fn progress(&mut self, call: &Call, shared: &mut Shared) -> Result<Progress, Failure> {
        let BoardCall { algorithm, conversation, ends } = self;
        let mut scheduler = Scheduler::among_all(*algorithm, call, shared);
        ends.look();
        let has_come = !ends.done.is_empty();
        for completed in std::mem::take(&mut ends.done) {
            if completed.is_receive && completed.id.part == MessagePart::First {
                ends.hear(completed.total, call.of.bytes.0);
            }
            conversation.complete(completed, &mut scheduler, ends)?;
        }
        let outcome = conversation.advance(&mut scheduler, ends)?;
        if has_come || !ends.done.is_empty() {
            shared.activity = Activity::Messages;
        }
        Ok(match outcome {
            None => Progress::Pending,
            Some(Outcome::Complete) => Progress::Done,
            Some(Outcome::SizesDiffer) => {
                shared.told = ends.told;
                Progress::Failed(Failure::Size)
            }
        })
    }

    fn scratch_bytes(&self) -> usize {
        self.ends.scratch.capacity()
    }
}

/// A message that is to come.
struct Awaited {
    id: MessageId,
    address: Address,
    /// Where its data goes; `None`: it is kept, or thrown away.
    to: Option<Slice>,
}

/// The buffers and letters of one call.
struct BoardEnds {
    place: Place,
    world_ranks: Arc<[u32]>,
    /// Tag of channel 0.
    first_tag: c_int,
    buffers: Buffers,
    scratch: Vec<u8>,
    /// The first size that another rank calls with, if it is another one.
    told: Option<u64>,
    awaited: Vec<Awaited>,
    /// First messages that have come, and were not asked for yet.
    firsts: Vec<(LaneIndex, Vec<u8>)>,
    done: Vec<Completed>,
}

impl BoardEnds {
    fn address(&mut self, slice: &Slice) -> *mut u8 {
        self.buffers.address(slice, self.scratch.as_mut_ptr())
    }

    fn read(&mut self, slice: &Slice) -> Vec<u8> {
        let mut data = vec![0; slice.length() as usize];
        // SAFETY: the slice is inside its buffer (see `Operations::start`), its bytes are there, and this memory is new.
        unsafe { self.address(slice).copy_to_nonoverlapping(data.as_mut_ptr(), data.len()) };
        data
    }

    fn write(&mut self, data: &[u8], slice: &Slice) {
        assert!(data.len() as u64 <= slice.length(), "{} bytes for {slice:?}", data.len());
        // SAFETY: the slice is inside its buffer (see `Operations::start`), and nobody else uses it now: what the checker of schedules proves.
        unsafe { self.address(slice).copy_from_nonoverlapping(data.as_ptr(), data.len()) };
    }

    fn hear(&mut self, total: u64, mine: u64) {
        if total != mine {
            self.told.get_or_insert(total);
        }
    }

    /// Takes the letters that are awaited and there. Those of one address are taken in the order in
    /// which they are awaited.
    fn look(&mut self) {
        for Awaited { id, address, to } in std::mem::take(&mut self.awaited) {
            let is_behind = self.awaited.iter().any(|other| other.address == address);
            let letter = if is_behind { None } else { self.place.take(address) };
            let Some(Letter { total, data }) = letter else {
                self.awaited.push(Awaited { id, address, to });
                continue;
            };
            let received_bytes = data.len() as u64;
            match to {
                Some(to) => self.write(&data, &to),
                None if id.part == MessagePart::First => self.firsts.push((id.lane, data)),
                None => {}
            }
            self.done.push(Completed { id, is_receive: true, total, received_bytes });
        }
    }
}

impl Transport for BoardEnds {
    type Error = Failure;

    fn start(&mut self, message: &Message) -> Result<(), Failure> {
        fault::point(Point::Message);
        let peer = self.world_ranks[message.peer.index()];
        let tag = self.first_tag + c_int::from(message.channel);
        let id = message.id;
        match (message.direction, &message.content) {
            (Direction::Send, content) => {
                let letter = match content {
                    Content::First { total, data } => Letter { total: *total, data: self.read(data) },
                    Content::Data(data) => Letter { total: 0, data: self.read(data) },
                    Content::Scrap(_) => Letter::default(),
                };
                self.place.post(peer, tag, letter);
                self.done.push(Completed { id, is_receive: false, total: 0, received_bytes: 0 });
            }
            (Direction::Receive, content) => {
                let to = if let Content::Data(to) = content { Some(to.clone()) } else { None };
                self.awaited.push(Awaited { id, address: self.place.address_from(peer, tag), to });
            }
        }
        Ok(())
    }

    fn keep(&mut self, lane: LaneIndex, to: Option<Slice>) {
        let Some(at) = self.firsts.iter().position(|(of, _)| *of == lane) else { return };
        let (_, data) = self.firsts.swap_remove(at);
        to.into_iter().for_each(|to| self.write(&data, &to));
    }

    fn adopt(&mut self, total: u64, _: u64) -> bool {
        self.told.get_or_insert(total);
        false
    }

    fn work(&mut self, action: &Action) -> Result<(), Failure> {
        let (Some(from), Some(to)) = (action.source(), action.target()) else {
            return Err(Failure::Internal);
        };
        let data = self.read(from);
        if let Action::Copy { .. } = action {
            self.write(&data, to);
            return Ok(());
        }
        let place = self.address(to);
        // SAFETY: the caller's promise, which is about calls that combine; the slice is inside its buffer, and nobody else uses it now.
        let code = unsafe {
            let reduction = self.buffers.reduction.as_ref().ok_or(Failure::Internal)?;
            reduction.combine(data.as_ptr(), place, data.len())
        };
        if code == 0 { Ok(()) } else { Err(Failure::Mpi(MpiError(code))) }
    }

    fn share(&mut self, _: LaneIndex, _: &Kind, _: Share<'_>) -> Result<Went, Failure> {
        Err(Failure::Internal)
    }
}
