//! The messages of one communicator that MPI has: small numbers for them, the lowest free one first, what each is for, and the memory
//! of what does not go straight to or from the program's buffer.
//!
//! Invariant: memory that MPI has is neither moved nor freed before MPI is through with it. So it belongs to the message and not to
//! the operation, which an error may end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::c_int;
use std::sync::Arc;

use polycast_core::executor::MessageId;
use polycast_core::units::Rank;

use crate::abi::{ANY_PEER, Completion, MpiError};
use crate::call::OperationKey;
use crate::door::Door;

/// Messages that MPI may have at a time before there is memory for more.
pub const SLOTS: usize = 64;

/// Looks in which MPI is let work once while no messages are on their way: what is looked for is
/// elsewhere then.
const LOOKS_WITHOUT_MESSAGES: u32 = 8;

/// The purpose of a started message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A message of an operation's schedule.
    Step { operation: OperationKey, id: MessageId },
    /// A message of the multicast protocol; it may stay in flight from one broadcast to the next.
    Control(ControlMessage),
    /// A message that measures the way to another node.
    Probe(ProbeMessage),
}

/// A message of a measurement; see [`crate::asked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeMessage {
    /// A question of any length; an empty one is the last.
    Question,
    /// An answer of one byte.
    Answer,
}

/// A message of the multicast protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlMessage {
    /// The message of this number from a neighbour.
    In { queue: usize, number: u64 },
    /// A word that this node receives from a drawn receiver.
    Arrival,
    /// A message to a neighbour.
    Out,
    /// The word that this node, a drawn receiver, sends to the root.
    Word,
}

/// Destination or source of a message: a rank of the communicator, and one of the communicator's
/// own tags, from 0.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub peer: Rank,
    pub tag: c_int,
}

/// Address of a communicator's messages on the private communicator, which all communicators share.
pub struct Address {
    /// The rank of each rank in MPI_COMM_WORLD.
    pub world_ranks: Arc<[u32]>,
    pub first_tag: c_int,
}

/// A message that MPI is through with.
#[derive(Debug)]
pub struct Done<P> {
    pub purpose: P,
    pub is_receive: bool,
    /// Bytes that came, of a receive.
    pub outcome: Result<usize, MpiError>,
    /// Memory of the message, as it was given.
    pub memory: Vec<u8>,
}

impl Address {
    fn of(&self, route: Route) -> (u32, c_int) {
        (self.world_ranks[route.peer.index()], self.first_tag + route.tag)
    }
}

struct InFlight {
    purpose: Purpose,
    is_receive: bool,
    memory: Vec<u8>,
}

/// The messages of one communicator that MPI has.
pub struct Messages {
    door: Door,
    address: Address,
    in_flight: Vec<Option<InFlight>>,
    free: BinaryHeap<Reverse<u32>>,
    sends_in_flight: usize,
    looks_without_any: u32,
    /// Completed messages of the multicast protocol, not yet looked at: they may complete while a
    /// schedule runs.
    pub control_done: Vec<Done<ControlMessage>>,
    /// Completed messages of a measurement, not yet looked at.
    pub probes_done: Vec<Done<ProbeMessage>>,
    // What the door reports and takes, kept here so that nothing is allocated.
    completions: Vec<Completion>,
    cancelled: Vec<u32>,
}

impl Messages {
    /// Messages of the communicator behind this door.
    pub fn new(door: Door, address: Address) -> Messages {
        Messages {
            door,
            address,
            in_flight: Vec::new(),
            free: BinaryHeap::new(),
            sends_in_flight: 0,
            looks_without_any: 0,
            control_done: Vec::new(),
            probes_done: Vec::new(),
            completions: Vec::new(),
            cancelled: Vec::new(),
        }
    }

    /// The rank of each rank in MPI_COMM_WORLD.
    #[cfg(test)]
    pub fn world_ranks(&self) -> Arc<[u32]> {
        self.address.world_ranks.clone()
    }

    /// The tag for which one of the communicator's own stands.
    #[cfg(test)]
    pub fn tag(&self, own: c_int) -> c_int {
        self.address.first_tag + own
    }

    /// True if a message is on its way out.
    pub fn is_sending(&self) -> bool {
        self.sends_in_flight > 0
    }

    /// True if a message is on its way, in or out.
    pub fn are_any(&self) -> bool {
        self.in_flight.len() > self.free.len()
    }

    fn take(&mut self, message: InFlight) -> u32 {
        self.sends_in_flight += usize::from(!message.is_receive);
        if let Some(Reverse(slot)) = self.free.pop() {
            self.in_flight[slot as usize] = Some(message);
            return slot;
        }
        if self.in_flight.is_empty() {
            // The first message: those of later calls, of which more may be on their way at once, ask for no memory.
            self.in_flight.reserve(SLOTS);
            self.completions.reserve(SLOTS);
            self.free.reserve(SLOTS);
        }
        self.in_flight.push(Some(message));
        self.completions.push(Completion::default());
        (self.in_flight.len() - 1) as u32
    }

    fn give_back(&mut self, slot: u32) -> Option<InFlight> {
        let message = self.in_flight.get_mut(slot as usize)?.take()?;
        self.sends_in_flight -= usize::from(!message.is_receive);
        self.free.push(Reverse(slot));
        Some(message)
    }

    /// Leaves a message to MPI. A receive is dropped. MPI may not be through with a send, so its
    /// memory stays for ever; it is short.
    fn leave_to_mpi(&mut self, slot: u32) {
        if let Some(InFlight { is_receive: false, memory, .. }) = self.give_back(slot) {
            std::mem::forget(memory);
        }
    }

    /// Sends the first `bytes` of `memory`.
    pub fn send(
        &mut self,
        purpose: Purpose,
        to: Route,
        memory: Vec<u8>,
        bytes: usize,
    ) -> Result<(), MpiError> {
        let data = memory[..bytes].as_ptr();
        // SAFETY: the memory stays in its message until that is reported, or is left to MPI.
        unsafe { self.start_send(InFlight { purpose, is_receive: false, memory }, to, data, bytes) }
    }

    /// Receives at most `bytes` into `memory`.
    pub fn receive(
        &mut self,
        purpose: Purpose,
        from: Route,
        memory: Vec<u8>,
        bytes: usize,
    ) -> Result<(), MpiError> {
        self.receive_at(self.address.of(from), purpose, memory, bytes)
    }

    /// Receives at most `bytes` into `memory` from whoever sends with one of the communicator's own tags.
    pub fn receive_from_any(
        &mut self,
        purpose: Purpose,
        tag: c_int,
        memory: Vec<u8>,
        bytes: usize,
    ) -> Result<(), MpiError> {
        self.receive_at((ANY_PEER, self.address.first_tag + tag), purpose, memory, bytes)
    }

    fn receive_at(
        &mut self,
        address: (u32, c_int),
        purpose: Purpose,
        mut memory: Vec<u8>,
        bytes: usize,
    ) -> Result<(), MpiError> {
        let place = memory[..bytes].as_mut_ptr();
        let message = InFlight { purpose, is_receive: true, memory };
        // SAFETY: the memory stays in its message until that is reported or cancelled.
        unsafe { self.start_receive(message, address, place, bytes) }
    }

    /// # Safety
    /// `data` must be readable for `bytes` until the message is reported, or cancelled and MPI through with it.
    pub unsafe fn send_from(
        &mut self,
        purpose: Purpose,
        to: Route,
        data: *const u8,
        bytes: usize,
    ) -> Result<(), MpiError> {
        let message = InFlight { purpose, is_receive: false, memory: Vec::new() };
        // SAFETY: handed on from the caller.
        unsafe { self.start_send(message, to, data, bytes) }
    }

    /// # Safety
    /// `place` must be writable for `bytes` and used by nobody else until the message is reported or cancelled.
    pub unsafe fn receive_into(
        &mut self,
        purpose: Purpose,
        from: Route,
        place: *mut u8,
        bytes: usize,
    ) -> Result<(), MpiError> {
        let message = InFlight { purpose, is_receive: true, memory: Vec::new() };
        // SAFETY: handed on from the caller.
        unsafe { self.start_receive(message, self.address.of(from), place, bytes) }
    }

    /// # Safety
    /// As for [`Messages::send_from`].
    unsafe fn start_send(
        &mut self,
        message: InFlight,
        to: Route,
        data: *const u8,
        bytes: usize,
    ) -> Result<(), MpiError> {
        let (peer, tag) = self.address.of(to);
        let slot = self.take(message);
        // SAFETY: handed on from the caller.
        let started = unsafe { self.door.isend(data, bytes, peer, tag, slot) };
        if started.is_err() {
            self.leave_to_mpi(slot);
        }
        started
    }

    /// # Safety
    /// As for [`Messages::receive_into`].
    unsafe fn start_receive(
        &mut self,
        message: InFlight,
        (peer, tag): (u32, c_int),
        place: *mut u8,
        bytes: usize,
    ) -> Result<(), MpiError> {
        let slot = self.take(message);
        // SAFETY: handed on from the caller.
        let started = unsafe { self.door.irecv(place, bytes, peer, tag, slot) };
        if started.is_err() {
            self.give_back(slot);
        }
        started
    }

    /// Lets MPI work, and hands completed messages of schedules to `step`.
    ///
    /// # Errors
    /// MPI's error, if no message can be blamed for it: nothing on this communicator can be relied
    /// on.
    pub fn poll(&mut self, mut step: impl FnMut(OperationKey, Done<MessageId>)) -> Result<(), MpiError> {
        if !self.are_any() {
            self.looks_without_any += 1;
            if !self.looks_without_any.is_multiple_of(LOOKS_WITHOUT_MESSAGES) {
                return Ok(());
            }
        }
        let count = self.door.poll(&mut self.completions)?;
        for index in 0..count {
            let Completion { slot, error, bytes } = self.completions[index];
            let Some(InFlight { purpose, is_receive, memory }) = self.give_back(slot) else { continue };
            let outcome = if error == 0 { Ok(bytes) } else { Err(MpiError(error)) };
            match purpose {
                Purpose::Step { operation, id } => {
                    step(operation, Done { purpose: id, is_receive, outcome, memory });
                }
                Purpose::Control(purpose) => {
                    self.control_done.push(Done { purpose, is_receive, outcome, memory });
                }
                Purpose::Probe(purpose) => {
                    self.probes_done.push(Done { purpose, is_receive, outcome, memory });
                }
            }
        }
        Ok(())
    }

    /// Makes the next [`Messages::poll`] let MPI work, whether polycast has messages or not.
    pub fn is_to_work(&mut self) {
        self.looks_without_any = LOOKS_WITHOUT_MESSAGES - 1;
    }

    /// Cancels the messages that `whose` names: MPI touches no buffer of their receives any more;
    /// their sends are left to it.
    pub fn cancel(&mut self, whose: impl Fn(&Purpose) -> bool) {
        let is_one = |message: &Option<InFlight>| message.as_ref().is_some_and(|one| whose(&one.purpose));
        let slots = (0..).zip(&self.in_flight).filter(|(_, message)| is_one(message)).map(|(slot, _)| slot);
        self.cancelled.extend(slots);
        if self.cancelled.is_empty() {
            return;
        }
        self.door.cancel(&self.cancelled);
        while let Some(slot) = self.cancelled.pop() {
            self.leave_to_mpi(slot);
        }
    }
}
