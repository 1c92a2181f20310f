//! Messages of the protocol over MPI: to and from the neighbours in the ring, and from drawn receivers to the root.
//!
//! Invariants
//! 1. On each line from a neighbour a few receives are posted; they stay so between broadcasts. What comes on a line is
//!    handed to the endpoint in the order in which it was sent.
//! 2. A message that the endpoint calls early stays where it is, and no further receive is posted for it: a neighbour that
//!    runs ahead is held up by MPI.
//! 3. A communicator goes only when both neighbours have said "bye" and everybody whose word was expected has given it: a
//!    message that MPI still has for a communicator would meet the next one that gets its context.
//! 4. A buffer in flight is neither moved nor freed before MPI is through with it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::c_int;

use polycast_core::protocol::message::{
    self, ARRIVED_BYTES, Body, TO_PREDECESSOR_BYTES_MOST, TO_SUCCESSOR_BYTES_MOST,
};
use polycast_core::protocol::{Delivery, Mismatch};
use polycast_core::units::Rank;

use crate::door::Door;
use crate::slots::{Letter, Purpose, Slots};
use crate::transport::Failure;

const TAG_TO_SUCCESSOR: c_int = 0;
const TAG_TO_PREDECESSOR: c_int = 1;
const TAG_ARRIVED: c_int = 2;

/// Receives on a line, posted or holding a message.
const RECEIVES_PER_LINE: usize = 4;
/// Messages on their way out; more wait until MPI has sent some.
const SENDS_MOST: usize = 64;
/// Receives for drawn receivers that have not called yet. A root this far ahead of a receiver waits.
const ARRIVALS_MOST: usize = 64;
/// Buffers kept for reuse.
const SPARE_MOST: usize = 8;

/// Whom a message goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    Successor,
    Predecessor,
    Root(Rank),
}

/// What comes from one neighbour.
struct Line {
    peer: Rank,
    tag: c_int,
    bytes_most: usize,
    /// The number of the first of `entries`.
    first: u64,
    entries: VecDeque<Entry>,
}

struct Entry {
    buffer: Box<[u8]>,
    /// `None` while MPI has the buffer.
    arrived_bytes: Option<usize>,
}

/// All messages of one node.
pub struct Mail {
    successor: Rank,
    predecessor: Rank,
    lines: [Line; 2],
    arrivals: BTreeMap<u64, Box<[u8]>>,
    next_arrival: u64,
    outgoing: HashMap<u64, Vec<u8>>,
    next_outgoing: u64,
    spare: Vec<Vec<u8>>,
}

impl Mail {
    pub fn new(predecessor: Rank, successor: Rank) -> Mail {
        let line = |peer, tag, bytes_most| Line { peer, tag, bytes_most, first: 0, entries: VecDeque::new() };
        Mail {
            successor,
            predecessor,
            lines: [
                line(predecessor, TAG_TO_SUCCESSOR, TO_SUCCESSOR_BYTES_MOST),
                line(successor, TAG_TO_PREDECESSOR, TO_PREDECESSOR_BYTES_MOST),
            ],
            arrivals: BTreeMap::new(),
            next_arrival: 0,
            outgoing: HashMap::new(),
            next_outgoing: 0,
            spare: Vec::new(),
        }
    }

    /// Posts receives where some are missing.
    pub fn post_receives(&mut self, door: &Door, slots: &mut Slots) -> Result<(), Failure> {
        for (index, line) in self.lines.iter_mut().enumerate() {
            while line.entries.len() < RECEIVES_PER_LINE {
                let buffer = vec![0; line.bytes_most].into_boxed_slice();
                line.post(index, buffer, door, slots)?;
            }
        }
        Ok(())
    }

    /// Posts a receive for the word of a receiver that was drawn.
    pub fn expect_arrival(&mut self, from: Rank, door: &Door, slots: &mut Slots) -> Result<(), Failure> {
        let mut buffer = vec![0; ARRIVED_BYTES].into_boxed_slice();
        let number = self.next_arrival;
        self.next_arrival += 1;
        let slot = slots.take(Purpose::Letter(Letter::Arrival { number }));
        let place = buffer.as_mut_ptr();
        self.arrivals.insert(number, buffer);
        // SAFETY: the buffer stays in `arrivals` until it is reported (invariant 4).
        unsafe { door.irecv(place, ARRIVED_BYTES, from.0, TAG_ARRIVED, slot) }.map_err(Failure::Mpi)
    }

    /// Too many drawn receivers have not called yet.
    pub fn awaits_too_many_arrivals(&self) -> bool {
        self.arrivals.len() >= ARRIVALS_MOST
    }

    /// Whether another message may be sent.
    pub fn has_room(&self) -> bool {
        self.outgoing.len() < SENDS_MOST
    }

    /// Something is on its way out.
    pub fn is_sending(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Takes `message`, leaves an empty buffer in its place.
    pub fn send(
        &mut self,
        to: To,
        message: &mut Vec<u8>,
        door: &Door,
        slots: &mut Slots,
    ) -> Result<(), Failure> {
        let (peer, tag) = match to {
            To::Successor => (self.successor, TAG_TO_SUCCESSOR),
            To::Predecessor => (self.predecessor, TAG_TO_PREDECESSOR),
            To::Root(root) => (root, TAG_ARRIVED),
        };
        let letter = std::mem::replace(message, self.spare.pop().unwrap_or_default());
        let number = self.next_outgoing;
        self.next_outgoing += 1;
        let slot = slots.take(Purpose::Letter(Letter::Out { number }));
        let (place, bytes) = (letter.as_ptr(), letter.len());
        self.outgoing.insert(number, letter);
        // SAFETY: the bytes stay in `outgoing` until the letter is reported (invariant 4).
        unsafe { door.isend(place, bytes, peer.0, tag, slot) }.map_err(Failure::Mpi)
    }

    /// Notes what has completed; what drawn receivers say goes to `give` at once. True if there was anything.
    pub fn sort(
        &mut self,
        slots: &mut Slots,
        mut give: impl FnMut(&[u8]) -> Result<Delivery, Mismatch>,
    ) -> Result<bool, Failure> {
        let is_any = !slots.letters_done.is_empty();
        for done in slots.letters_done.drain(..) {
            match done.letter {
                Letter::In { line, number } => {
                    let line = &mut self.lines[line];
                    let entry = number.checked_sub(line.first).and_then(|i| line.entries.get_mut(i as usize));
                    entry.ok_or(Failure::Internal)?.arrived_bytes = Some(done.received_bytes);
                }
                Letter::Arrival { number } => {
                    let letter = self.arrivals.remove(&number).ok_or(Failure::Internal)?;
                    give(&letter[..done.received_bytes]).map_err(|_| Failure::Size)?;
                }
                Letter::Out { number } => {
                    let buffer = self.outgoing.remove(&number).ok_or(Failure::Internal)?;
                    if self.spare.len() < SPARE_MOST {
                        self.spare.push(buffer);
                    }
                }
            }
        }
        Ok(is_any)
    }

    /// Hands on what has come from the neighbours, in order.
    pub fn deliver(
        &mut self,
        door: &Door,
        slots: &mut Slots,
        mut give: impl FnMut(&[u8]) -> Result<Delivery, Mismatch>,
    ) -> Result<(), Failure> {
        for (index, line) in self.lines.iter_mut().enumerate() {
            while let Some(Entry { buffer, arrived_bytes: Some(bytes) }) = line.entries.front() {
                match give(&buffer[..*bytes]).map_err(|_| Failure::Size)? {
                    Delivery::Early => break,
                    Delivery::Taken => {}
                }
                if let Some(entry) = line.entries.pop_front() {
                    line.first += 1;
                    line.post(index, entry.buffer, door, slots)?;
                }
            }
        }
        Ok(())
    }

    /// After the last message has been sent: drops what comes, and says whether MPI has nothing more for this node, and the
    /// node nothing for MPI. Does not wait.
    pub fn is_settled(&mut self, door: &Door, slots: &mut Slots) -> Result<bool, Failure> {
        slots.poll(door)?;
        self.sort(slots, |_| Ok(Delivery::Taken))?;
        self.deliver(door, slots, |message| match message::decode(message) {
            // It stays, so that it is seen below, and nothing is posted in its place.
            Some((_, Body::Bye)) => Ok(Delivery::Early),
            _ => Ok(Delivery::Taken),
        })?;
        let is_closed = |line: &Line| line.entries.front().is_some_and(|entry| entry.arrived_bytes.is_some());
        let are_closed = self.lines.iter().all(is_closed);
        Ok(are_closed && self.arrivals.is_empty() && self.outgoing.is_empty())
    }

    /// After the door has abandoned everything: no receive is in flight any more; sends may be.
    pub fn forget(&mut self) {
        for line in &mut self.lines {
            line.entries.clear();
            line.first = 0;
        }
        self.arrivals.clear();
        // MPI may still read them; they are few and small.
        self.outgoing.drain().for_each(|(_, letter)| std::mem::forget(letter));
    }
}

impl Line {
    fn post(
        &mut self,
        index: usize,
        mut buffer: Box<[u8]>,
        door: &Door,
        slots: &mut Slots,
    ) -> Result<(), Failure> {
        let number = self.first + self.entries.len() as u64;
        let slot = slots.take(Purpose::Letter(Letter::In { line: index, number }));
        let (place, bytes) = (buffer.as_mut_ptr(), buffer.len());
        self.entries.push_back(Entry { buffer, arrived_bytes: None });
        // SAFETY: the buffer stays in `entries` until the slot is reported (invariant 4).
        unsafe { door.irecv(place, bytes, self.peer.0, self.tag, slot) }.map_err(Failure::Mpi)
    }
}
