//! Point-to-point messages through the door, as a transport for the executor.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::c_int;

use polycast_core::executor::{self, Operation, StepId};
use polycast_core::schedule::{CHANNELS, Direction};

use crate::door::{Door, MpiError, TAG_MOST};
use crate::idle::Idle;

/// Why a broadcast did not finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// MPI's own error.
    Mpi(MpiError),
    /// A message of another size came: the ranks called with different sizes.
    Size,
    /// Ours.
    Internal,
}

/// The tags of successive broadcasts: the number of the broadcast above, the channel below, so that a message which an
/// erroneous program left over is not taken for one of the next broadcast.
#[derive(Default)]
pub struct Tags {
    broadcast: c_int,
}

const BROADCASTS_TOLD_APART: c_int = (TAG_MOST + 1) / CHANNELS as c_int;

impl Tags {
    /// The tag of channel 0 of the next broadcast.
    pub fn next(&mut self) -> c_int {
        self.broadcast = (self.broadcast + 1) % BROADCASTS_TOLD_APART;
        self.broadcast * c_int::from(CHANNELS)
    }
}

/// A started message.
#[derive(Clone, Copy)]
struct InFlight {
    id: StepId,
    /// How many bytes must come, for a receive.
    expected_bytes: Option<usize>,
}

/// Names for messages in flight: small numbers, the lowest free one first.
#[derive(Default)]
pub struct Slots {
    in_flight: Vec<Option<InFlight>>,
    free: BinaryHeap<Reverse<u32>>,
    // What the door reports, kept here so that a poll allocates nothing.
    completed_slots: Vec<u32>,
    received_bytes: Vec<usize>,
}

impl Slots {
    fn take(&mut self, message: InFlight) -> u32 {
        if let Some(Reverse(slot)) = self.free.pop() {
            self.in_flight[slot as usize] = Some(message);
            return slot;
        }
        self.in_flight.push(Some(message));
        self.completed_slots.push(0);
        self.received_bytes.push(0);
        (self.in_flight.len() - 1) as u32
    }

    fn give_back(&mut self, slot: u32) -> Option<InFlight> {
        let message = self.in_flight.get_mut(slot as usize)?.take();
        if message.is_some() {
            self.free.push(Reverse(slot));
        }
        message
    }

    fn clear(&mut self) {
        *self = Slots::default();
    }
}

/// One broadcast's messages.
pub struct Transport<'a> {
    door: &'a Door,
    buffer: *mut u8,
    tag: c_int,
    slots: &'a mut Slots,
    idle: &'a mut Idle,
    sends_in_flight: u32,
}

impl<'a> Transport<'a> {
    /// # Safety
    /// `buffer` must be valid for every byte range of the operations that will be started.
    pub unsafe fn new(
        door: &'a Door,
        buffer: *mut u8,
        tag: c_int,
        slots: &'a mut Slots,
        idle: &'a mut Idle,
    ) -> Self {
        Transport { door, buffer, tag, slots, idle, sends_in_flight: 0 }
    }

    fn fail(&mut self, failure: Failure) -> Failure {
        self.door.abandon();
        self.slots.clear();
        failure
    }

    fn poll_door(&mut self, completed: &mut Vec<StepId>) -> Result<(), Failure> {
        let Slots { completed_slots, received_bytes, .. } = self.slots;
        let count = self.door.poll(completed_slots, received_bytes).map_err(Failure::Mpi)?;
        for index in 0..count {
            let (slot, received) = (self.slots.completed_slots[index], self.slots.received_bytes[index]);
            let message = self.slots.give_back(slot).ok_or(Failure::Internal)?;
            match message.expected_bytes {
                Some(expected) if expected != received => return Err(Failure::Size),
                Some(_) => {}
                None => self.sends_in_flight -= 1,
            }
            completed.push(message.id);
        }
        Ok(())
    }
}

impl executor::Transport for Transport<'_> {
    type Error = Failure;

    fn start(&mut self, operation: &Operation) -> Result<(), Failure> {
        let tag = self.tag + c_int::from(operation.channel);
        let bytes = (operation.bytes.end - operation.bytes.start) as usize;
        // wrapping_add: an empty message at the end of the buffer points behind it.
        let data = self.buffer.wrapping_add(operation.bytes.start as usize);
        let is_receive = operation.direction == Direction::Receive;
        let slot =
            self.slots.take(InFlight { id: operation.id, expected_bytes: is_receive.then_some(bytes) });
        let peer = operation.peer.0;
        // SAFETY: the range is inside the buffer (see `new`), and the executor hands out each byte of a receive once,
        // and sends it only after that receive has completed.
        let started = unsafe {
            if is_receive {
                self.door.irecv(data, bytes, peer, tag, slot)
            } else {
                self.sends_in_flight += 1;
                self.door.isend(data, bytes, peer, tag, slot)
            }
        };
        started.map_err(|error| self.fail(Failure::Mpi(error)))
    }

    fn poll(&mut self, completed: &mut Vec<StepId>) -> Result<(), Failure> {
        self.poll_door(completed).map_err(|failure| self.fail(failure))?;
        if !completed.is_empty() {
            self.idle.progress();
        }
        Ok(())
    }

    fn wait(&mut self, fruitless_polls: u32) {
        self.idle.wait(fruitless_polls > 1, self.sends_in_flight > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(index: u64) -> InFlight {
        InFlight { id: StepId { lane: 0, index }, expected_bytes: None }
    }

    #[test]
    fn slots_stay_dense() {
        let mut slots = Slots::default();
        assert_eq!([0, 1, 2].map(|index| slots.take(message(index))), [0, 1, 2]);
        assert_eq!(slots.give_back(1).unwrap().id.index, 1);
        assert_eq!(slots.give_back(0).unwrap().id.index, 0);
        assert!(slots.give_back(0).is_none() && slots.give_back(9).is_none());
        assert_eq!([3, 4, 5].map(|index| slots.take(message(index))), [0, 1, 3]);
    }

    #[test]
    fn tags_stay_within_what_every_mpi_has() {
        let mut tags = Tags::default();
        let all: Vec<c_int> = (0..=BROADCASTS_TOLD_APART).map(|_| tags.next()).collect();
        assert!(all.iter().all(|tag| (0..=TAG_MOST - c_int::from(CHANNELS) + 1).contains(tag)));
        assert_ne!(all[0], all[1]);
        assert_eq!(all[0], all[BROADCASTS_TOLD_APART as usize], "they come round");
    }
}
