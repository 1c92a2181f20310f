//! Point-to-point messages through the door, as a transport for the executor.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::ops::Range;

use polycast_core::executor::{self, Completed, Content, FIRST_DATA_BYTES_MOST, Message, Part};
use polycast_core::schedule::{CHANNELS, Direction, LaneIndex};

use crate::door::{Door, MpiError, TAG_MOST};
use crate::fault::{self, Point};
use crate::idle::Idle;
use crate::scratch::Scratch;
use crate::slots::{Purpose, Slots, StepDone};

/// Why a broadcast did not finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// MPI's own error.
    Mpi(MpiError),
    /// The ranks called with different sizes. Nothing is on its way any more.
    Size,
    /// Ours.
    Internal,
}

/// The tags of successive broadcasts: the number of the broadcast above, the channel below, so that a message which an
/// erroneous program left over is not taken for one of the next broadcast. Number 0 is left to [`crate::multicast`].
#[derive(Default)]
pub struct Tags {
    broadcast: c_int,
}

const BROADCASTS_TOLD_APART: c_int = (TAG_MOST + 1) / CHANNELS as c_int;

impl Tags {
    /// The tag of channel 0 of the next broadcast.
    pub fn next(&mut self) -> c_int {
        self.broadcast = self.broadcast % (BROADCASTS_TOLD_APART - 1) + 1;
        self.broadcast * c_int::from(CHANNELS)
    }
}

/// Bytes of an announcement, in front of what travels with it.
const ANNOUNCEMENT_BYTES: usize = 8;
/// The longest first message of a lane.
const FIRST_BYTES_MOST: usize = ANNOUNCEMENT_BYTES + FIRST_DATA_BYTES_MOST as usize;

/// What a communicator's messages need beside their buffer.
pub struct Means<'a> {
    pub door: &'a Door,
    pub slots: &'a mut Slots,
    pub scratch: &'a mut Scratch,
    pub idle: &'a mut Idle,
}

/// One broadcast's messages.
pub struct Transport<'a> {
    buffer: *mut u8,
    tag: c_int,
    means: Means<'a>,
    /// Of each lane, the last announcement with its data, until that is kept.
    firsts: BTreeMap<LaneIndex, Vec<u8>>,
    sends_in_flight: u32,
}

impl<'a> Transport<'a> {
    /// # Safety
    /// `buffer` must be valid for every byte range of the messages that will be started.
    pub unsafe fn new(buffer: *mut u8, tag: c_int, means: Means<'a>) -> Self {
        Transport { buffer, tag, means, firsts: BTreeMap::new(), sends_in_flight: 0 }
    }

    fn place(&self, bytes: &Range<u64>) -> *mut u8 {
        // wrapping_add: an empty message at the end of the buffer points behind it.
        self.buffer.wrapping_add(bytes.start as usize)
    }

    fn send(&mut self, message: &Message, slot: u32) -> Result<(), MpiError> {
        let (data, bytes) = match &message.content {
            Content::First { total, bytes } => {
                let length = (bytes.end - bytes.start) as usize;
                let mut first = self.means.scratch.take();
                first.extend(total.to_le_bytes());
                if length > 0 {
                    // SAFETY: the range is inside the buffer (see `new`), and its bytes are there.
                    first.extend(unsafe { std::slice::from_raw_parts(self.place(bytes), length) });
                }
                (self.means.scratch.send(slot, first), ANNOUNCEMENT_BYTES + length)
            }
            Content::Data(bytes) => (self.place(bytes).cast_const(), (bytes.end - bytes.start) as usize),
            Content::Scrap(_) => (self.buffer.cast_const(), 0),
        };
        self.sends_in_flight += 1;
        let tag = self.tag + c_int::from(message.channel);
        // SAFETY: the bytes are inside the buffer (see `new`), where nobody writes them any more, or stay in `scratch`.
        unsafe { self.means.door.isend(data, bytes, message.peer.0, tag, slot) }
    }

    fn receive(&mut self, message: &Message, slot: u32) -> Result<(), MpiError> {
        let (place, bytes) = match &message.content {
            Content::First { .. } => (self.means.scratch.receive(slot, FIRST_BYTES_MOST), FIRST_BYTES_MOST),
            Content::Data(bytes) => (self.place(bytes), (bytes.end - bytes.start) as usize),
            Content::Scrap(most) => (self.means.scratch.receive(slot, *most as usize), *most as usize),
        };
        let tag = self.tag + c_int::from(message.channel);
        // SAFETY: the place is inside the buffer (see `new`), of which each byte is received once and sent only after that, or
        // stays in `scratch`.
        unsafe { self.means.door.irecv(place, bytes, message.peer.0, tag, slot) }
    }

    /// Takes what a completed message had in `scratch`.
    fn take(&mut self, done: &StepDone) -> Result<Completed, Failure> {
        let id = done.id;
        if !done.is_receive {
            self.sends_in_flight -= 1;
            self.means.scratch.sent(done.slot);
            return Ok(Completed { id, total: 0, received_bytes: 0 });
        }
        let mut completed = Completed { id, total: 0, received_bytes: done.received_bytes as u64 };
        let Some(mut memory) = self.means.scratch.received(done.slot) else { return Ok(completed) };
        if id.part == Part::First {
            memory.truncate(done.received_bytes);
            let (total, data) = memory.split_first_chunk().ok_or(Failure::Internal)?;
            completed.total = u64::from_le_bytes(*total);
            completed.received_bytes = data.len() as u64;
            self.firsts.insert(id.lane, memory);
        } else {
            self.means.scratch.give_back(memory);
        }
        Ok(completed)
    }
}

impl executor::Transport for Transport<'_> {
    type Error = Failure;

    fn start(&mut self, message: &Message) -> Result<(), Failure> {
        fault::point(Point::Message);
        let is_receive = message.direction == Direction::Receive;
        let slot = self.means.slots.take(Purpose::Step { id: message.id, is_receive });
        let started = if is_receive { self.receive(message, slot) } else { self.send(message, slot) };
        started.map_err(Failure::Mpi)
    }

    fn keep(&mut self, lane: LaneIndex, bytes: Range<u64>) {
        let Some(first) = self.firsts.remove(&lane) else { return };
        let data = &first[ANNOUNCEMENT_BYTES..];
        let bytes_most = data.len().min((bytes.end - bytes.start) as usize);
        // SAFETY: the range is inside the buffer (see `new`), which is not this memory.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), self.place(&bytes), bytes_most) };
        self.means.scratch.give_back(first);
    }
}

impl Transport<'_> {
    /// Appends what has completed since the last call.
    pub fn poll(&mut self, completed: &mut Vec<Completed>) -> Result<(), Failure> {
        self.means.slots.poll(self.means.door)?;
        let mut done = std::mem::take(&mut self.means.slots.steps_done);
        for step in done.drain(..) {
            completed.push(self.take(&step)?);
        }
        self.means.slots.steps_done = done;
        if !completed.is_empty() {
            self.means.idle.progress();
        }
        Ok(())
    }

    /// A poll found nothing, for the time `fruitless_polls` in a row.
    pub fn wait(&mut self, fruitless_polls: u32) {
        self.means.idle.wait(fruitless_polls > 1, self.sends_in_flight > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_stay_within_what_every_mpi_has() {
        let mut tags = Tags::default();
        let all: Vec<c_int> = (0..=BROADCASTS_TOLD_APART).map(|_| tags.next()).collect();
        assert!(all.iter().all(|tag| (0..=TAG_MOST - c_int::from(CHANNELS) + 1).contains(tag)));
        assert_ne!(all[0], all[1]);
        assert_eq!(all[0], all[BROADCASTS_TOLD_APART as usize - 1], "they come round");
        assert!(all.iter().all(|tag| *tag >= c_int::from(CHANNELS)), "the first are not ours");
    }
}
