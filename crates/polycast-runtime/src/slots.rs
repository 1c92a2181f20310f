//! Names for messages in flight: small numbers, the lowest free one first, and what each message is for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use polycast_core::executor::MessageId;

use crate::door::Door;
use crate::transport::Failure;

/// What a started message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A message of a schedule.
    Step { id: MessageId, is_receive: bool },
    /// A message of the multicast protocol; it may stay in flight from one broadcast to the next.
    Letter(Letter),
}

/// Which message of the multicast protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Letter {
    /// The one of this number on a line from a neighbour.
    In { line: usize, number: u64 },
    /// From a drawn receiver.
    Arrival { number: u64 },
    /// To whomever. Told by its number and not by its slot, which may be another letter's before this one is looked at.
    Out { number: u64 },
}

/// A completed message of a schedule.
pub struct StepDone {
    pub id: MessageId,
    pub slot: u32,
    pub is_receive: bool,
    pub received_bytes: usize,
}

/// A completed letter.
pub struct LetterDone {
    pub letter: Letter,
    pub received_bytes: usize,
}

/// All messages in flight on one communicator.
#[derive(Default)]
pub struct Slots {
    in_flight: Vec<Option<Purpose>>,
    free: BinaryHeap<Reverse<u32>>,
    /// Completed and not yet looked at. Letters may complete while a schedule runs; they wait here.
    pub steps_done: Vec<StepDone>,
    pub letters_done: Vec<LetterDone>,
    // What the door reports, kept here so that a poll allocates nothing.
    completed_slots: Vec<u32>,
    received_bytes: Vec<usize>,
}

impl Slots {
    pub fn take(&mut self, purpose: Purpose) -> u32 {
        if let Some(Reverse(slot)) = self.free.pop() {
            self.in_flight[slot as usize] = Some(purpose);
            return slot;
        }
        self.in_flight.push(Some(purpose));
        self.completed_slots.push(0);
        self.received_bytes.push(0);
        (self.in_flight.len() - 1) as u32
    }

    fn give_back(&mut self, slot: u32) -> Option<Purpose> {
        let purpose = self.in_flight.get_mut(slot as usize)?.take();
        if purpose.is_some() {
            self.free.push(Reverse(slot));
        }
        purpose
    }

    /// Lets MPI work, and sorts what has completed.
    pub fn poll(&mut self, door: &Door) -> Result<(), Failure> {
        let count = door.poll(&mut self.completed_slots, &mut self.received_bytes).map_err(Failure::Mpi)?;
        for index in 0..count {
            let (slot, received_bytes) = (self.completed_slots[index], self.received_bytes[index]);
            match self.give_back(slot).ok_or(Failure::Internal)? {
                Purpose::Step { id, is_receive } => {
                    self.steps_done.push(StepDone { id, slot, is_receive, received_bytes });
                }
                Purpose::Letter(letter) => {
                    self.letters_done.push(LetterDone { letter, received_bytes });
                }
            }
        }
        Ok(())
    }

    /// After the door has abandoned everything.
    pub fn clear(&mut self) {
        *self = Slots::default();
    }
}

#[cfg(test)]
mod tests {
    use polycast_core::executor::Part;

    use super::*;

    fn step(index: u64) -> Purpose {
        Purpose::Step { id: MessageId { lane: 0, part: Part::Step(index) }, is_receive: false }
    }

    #[test]
    fn slots_stay_dense() {
        let mut slots = Slots::default();
        assert_eq!([0, 1, 2].map(|index| slots.take(step(index))), [0, 1, 2]);
        assert_eq!(slots.give_back(1), Some(step(1)));
        assert_eq!(slots.give_back(0), Some(step(0)));
        assert!(slots.give_back(0).is_none() && slots.give_back(9).is_none());
        assert_eq!([3, 4, 5].map(|index| slots.take(step(index))), [0, 1, 3]);
    }
}
