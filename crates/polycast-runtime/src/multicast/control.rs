//! Messages of the protocol over MPI: to and from the neighbours in the ring, and from drawn receivers to the root.
//!
//! Invariants
//! 1. In each neighbour's queue receives are posted for all that may come before the next broadcast. What comes in a queue is handed
//!    to the endpoint in the order in which it was sent.
//! 2. A message that the endpoint calls early stays where it is, and no further receive is posted for it: a neighbour that
//!    runs ahead is held up by MPI.
//! 3. A communicator goes only when both neighbours have said "bye" and everybody whose word was expected has given it: a
//!    message that MPI still has for a communicator would meet the next one that gets its context.

use std::collections::VecDeque;
use std::ffi::c_int;

use polycast_core::protocol::message::{
    self, ARRIVED_BYTES, Body, TO_PREDECESSOR_BYTES_MOST, TO_SUCCESSOR_BYTES_MOST,
};
use polycast_core::protocol::{Delivery, Mismatch, RECEIVES_PER_NEIGHBOR};
use polycast_core::units::Rank;

use crate::door::MpiError;
use crate::messages::{ControlMessage, Messages, Purpose, Route};
use crate::operation::Failure;

const TAG_TO_SUCCESSOR: c_int = 0;
const TAG_TO_PREDECESSOR: c_int = 1;
const TAG_ARRIVED: c_int = 2;

/// Messages on their way out; more wait until MPI has sent some.
const SENDS_MOST: usize = 64;
/// Receives for drawn receivers that have not called yet. A root this far ahead of a receiver waits.
const ARRIVALS_MOST: usize = 64;

/// Whom a message goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    Successor,
    Predecessor,
    Root(Rank),
}

/// What comes from one neighbour.
struct NeighbourQueue {
    from: Route,
    bytes_most: usize,
    /// The number of the first of `entries`.
    first: u64,
    /// `None` while MPI has it; then the message and its bytes.
    entries: VecDeque<Option<(Vec<u8>, usize)>>,
}

/// All messages of one node.
pub struct ControlChannel {
    successor: Rank,
    predecessor: Rank,
    queues: [NeighbourQueue; 2],
    /// Drawn receivers that have not called yet.
    arrivals: usize,
    outgoing: usize,
    spare: Vec<Vec<u8>>,
}

impl ControlChannel {
    pub fn new(predecessor: Rank, successor: Rank) -> ControlChannel {
        let queue = |peer, tag, bytes_most| NeighbourQueue {
            from: Route { peer, tag },
            bytes_most,
            first: 0,
            entries: VecDeque::new(),
        };
        ControlChannel {
            successor,
            predecessor,
            queues: [
                queue(predecessor, TAG_TO_SUCCESSOR, TO_SUCCESSOR_BYTES_MOST),
                queue(successor, TAG_TO_PREDECESSOR, TO_PREDECESSOR_BYTES_MOST),
            ],
            arrivals: 0,
            outgoing: 0,
            spare: Vec::new(),
        }
    }

    /// Posts receives where some are missing, `more` of them for the predecessor; so many stay.
    pub fn post_receives(&mut self, more: usize, messages: &mut Messages) -> Result<(), MpiError> {
        for ((index, queue), more) in self.queues.iter_mut().enumerate().zip([more, 0]) {
            while queue.entries.len() < RECEIVES_PER_NEIGHBOR + more {
                queue.post(index, vec![0; queue.bytes_most], messages)?;
            }
        }
        Ok(())
    }

    /// Posts a receive for the word of a receiver that was drawn.
    pub fn expect_arrival(&mut self, peer: Rank, messages: &mut Messages) -> Result<(), MpiError> {
        let mut memory = self.spare.pop().unwrap_or_default();
        memory.resize(ARRIVED_BYTES, 0);
        self.arrivals += 1;
        let purpose = Purpose::Control(ControlMessage::Arrival);
        messages.receive(purpose, Route { peer, tag: TAG_ARRIVED }, memory, ARRIVED_BYTES)
    }

    /// Too many drawn receivers have not called yet.
    pub fn awaits_too_many_arrivals(&self) -> bool {
        self.arrivals >= ARRIVALS_MOST
    }

    /// Whether another message may be sent.
    pub fn has_room(&self) -> bool {
        self.outgoing < SENDS_MOST
    }

    /// Something is on its way out.
    pub fn is_sending(&self) -> bool {
        self.outgoing > 0
    }

    /// Takes `message`, leaves an empty buffer in its place.
    pub fn send(&mut self, to: To, message: &mut Vec<u8>, messages: &mut Messages) -> Result<(), MpiError> {
        let (peer, tag) = match to {
            To::Successor => (self.successor, TAG_TO_SUCCESSOR),
            To::Predecessor => (self.predecessor, TAG_TO_PREDECESSOR),
            To::Root(root) => (root, TAG_ARRIVED),
        };
        let memory = std::mem::replace(message, self.spare.pop().unwrap_or_default());
        let bytes = memory.len();
        self.outgoing += 1;
        messages.send(Purpose::Control(ControlMessage::Out), Route { peer, tag }, memory, bytes)
    }

    /// Notes what has completed; what drawn receivers say goes to `give` at once. True if there was anything.
    pub fn sort(
        &mut self,
        messages: &mut Messages,
        mut give: impl FnMut(&[u8]) -> Result<Delivery, Mismatch>,
    ) -> Result<bool, Failure> {
        let is_any = !messages.control_done.is_empty();
        for done in messages.control_done.drain(..) {
            let bytes = done.outcome?;
            match done.purpose {
                ControlMessage::In { queue, number } => {
                    let queue = &mut self.queues[queue];
                    let at = number.checked_sub(queue.first);
                    let entry = at.and_then(|at| queue.entries.get_mut(at as usize));
                    *entry.ok_or(Failure::Internal)? = Some((done.memory, bytes));
                }
                ControlMessage::Arrival => {
                    self.arrivals -= 1;
                    let said = give(done.memory.get(..bytes).ok_or(Failure::Internal)?);
                    self.spare.push(done.memory);
                    said.map_err(|_| Failure::Size)?;
                }
                ControlMessage::Out => {
                    self.outgoing -= 1;
                    if self.spare.len() < SENDS_MOST {
                        self.spare.push(done.memory);
                    }
                }
            }
        }
        Ok(is_any)
    }

    /// Hands on what has come from the neighbours, in order.
    pub fn deliver(
        &mut self,
        messages: &mut Messages,
        mut give: impl FnMut(&[u8]) -> Result<Delivery, Mismatch>,
    ) -> Result<(), Failure> {
        for (index, queue) in self.queues.iter_mut().enumerate() {
            while let Some(Some((memory, bytes))) = queue.entries.front() {
                match give(memory.get(..*bytes).ok_or(Failure::Internal)?).map_err(|_| Failure::Size)? {
                    Delivery::Early => break,
                    Delivery::Taken => {}
                }
                if let Some(Some((memory, _))) = queue.entries.pop_front() {
                    queue.first += 1;
                    queue.post(index, memory, messages)?;
                }
            }
        }
        Ok(())
    }

    /// After the last message has been sent: drops what comes, and says whether MPI has nothing more for this node, and the
    /// node nothing for MPI. Does not wait.
    pub fn is_settled(&mut self, messages: &mut Messages) -> Result<bool, Failure> {
        messages.poll(|_, _| ())?;
        self.sort(messages, |_| Ok(Delivery::Taken))?;
        self.deliver(messages, |message| match message::decode(message) {
            // It stays, so that it is seen below, and nothing is posted in its place.
            Some((_, Body::Bye)) => Ok(Delivery::Early),
            _ => Ok(Delivery::Taken),
        })?;
        let is_closed = |queue: &NeighbourQueue| queue.entries.front().is_some_and(Option::is_some);
        Ok(self.queues.iter().all(is_closed) && self.arrivals == 0 && self.outgoing == 0)
    }

    /// After an error: no receive is in flight any more.
    pub fn forget(&mut self, messages: &mut Messages) {
        messages.cancel(|purpose| matches!(purpose, Purpose::Control(_)));
        messages.control_done.clear();
        self.queues.iter_mut().for_each(|queue| queue.entries.clear());
        (self.arrivals, self.outgoing) = (0, 0);
    }
}

impl NeighbourQueue {
    fn post(&mut self, index: usize, memory: Vec<u8>, messages: &mut Messages) -> Result<(), MpiError> {
        let number = self.first + self.entries.len() as u64;
        self.entries.push_back(None);
        let purpose = Purpose::Control(ControlMessage::In { queue: index, number });
        messages.receive(purpose, self.from, memory, self.bytes_most)
    }
}
