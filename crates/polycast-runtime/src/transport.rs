//! Point-to-point messages through the door, as a transport for the executor.

use std::ffi::c_int;

use polycast_core::executor::{self, Operation, StepId};
use polycast_core::schedule::{CHANNELS, Direction};

use crate::door::{Door, MpiError, TAG_MOST};
use crate::idle::Idle;
use crate::slots::{Purpose, Slots};

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

    fn poll_door(&mut self, completed: &mut Vec<StepId>) -> Result<(), Failure> {
        self.slots.poll(self.door)?;
        for done in self.slots.steps_done.drain(..) {
            match done.expected_bytes {
                Some(expected) if expected != done.received_bytes => return Err(Failure::Size),
                Some(_) => {}
                None => self.sends_in_flight -= 1,
            }
            completed.push(done.id);
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
        let expected_bytes = is_receive.then_some(bytes);
        let slot = self.slots.take(Purpose::Step { id: operation.id, expected_bytes });
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
        started.map_err(Failure::Mpi)
    }

    fn poll(&mut self, completed: &mut Vec<StepId>) -> Result<(), Failure> {
        self.poll_door(completed)?;
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
