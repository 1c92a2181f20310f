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
    self, ARRIVED_BYTES, Body, MAX_TO_PREDECESSOR_BYTES, MAX_TO_SUCCESSOR_BYTES,
};
use polycast_core::protocol::{ControlChannel, Delivery, Mismatch, Peer, RECEIVES_PER_NEIGHBOR};
use polycast_core::units::Rank;

use crate::abi::MpiError;
use crate::call::Failure;
use crate::messages::{ControlMessage, Messages, Purpose, Route};

const TAG_TO_SUCCESSOR: c_int = 0;
const TAG_TO_PREDECESSOR: c_int = 1;
const TAG_ARRIVED: c_int = 2;

/// Most messages on their way out; more wait until MPI has sent some.
const MAX_SENDS: usize = 64;
/// Most receives for drawn receivers that have not called yet. A root that has so many waits: it is
/// as far ahead of all, or further ahead of some. It learns from them that multicast has died; and
/// what it sends must fit into the memory of those who have not called.
const MAX_ARRIVALS: usize = 8;
/// Most broadcasts that may end while a word to a root is still on its way out. If that is the
/// first message between the two, MPI makes a connection, for which the root has to be in MPI, too,
/// and it may be elsewhere for long. Fewer than [`MAX_ARRIVALS`]: a root that waits for a word
/// waits for a rank that has not called yet, or for one that waits in a call until the word has
/// gone.
const MAX_AFTER_WORD: u32 = MAX_ARRIVALS as u32 - 1;

/// Messages that come from one neighbour.
struct NeighbourQueue {
    from: Route,
    bytes_most: usize,
    /// Number of the first of `entries`.
    first: u64,
    /// Messages in the order of their receives: `None` while MPI has one; then its memory and its
    /// bytes.
    entries: VecDeque<Option<(Vec<u8>, usize)>>,
}

/// All messages of one node.
pub struct NodeMessages {
    successor: Rank,
    predecessor: Rank,
    /// Leader of the root's node, in the broadcast in progress.
    root: Rank,
    queues: [NeighbourQueue; 2],
    /// Number of receives for drawn receivers that have not called yet.
    arrivals: usize,
    /// Number of messages on their way out; `words` counts the words to roots among them.
    outgoing: usize,
    words: usize,
    /// Number of broadcasts that have ended while words were on their way out.
    ended_since_word: u32,
    spare: Vec<Vec<u8>>,
}

/// A node's messages, and the MPI that carries them.
pub struct MpiChannel<'a> {
    of: &'a mut NodeMessages,
    messages: &'a mut Messages,
}

impl NodeMessages {
    pub fn new(predecessor: Rank, successor: Rank) -> NodeMessages {
        let queue = |peer, tag, bytes_most| NeighbourQueue {
            from: Route { peer, tag },
            bytes_most,
            first: 0,
            entries: VecDeque::new(),
        };
        NodeMessages {
            successor,
            predecessor,
            root: successor,
            queues: [
                queue(predecessor, TAG_TO_SUCCESSOR, MAX_TO_SUCCESSOR_BYTES),
                queue(successor, TAG_TO_PREDECESSOR, MAX_TO_PREDECESSOR_BYTES),
            ],
            arrivals: 0,
            outgoing: 0,
            words: 0,
            ended_since_word: 0,
            spare: Vec::new(),
        }
    }

    /// The channel for one call of the endpoint.
    pub fn over<'a>(&'a mut self, messages: &'a mut Messages) -> MpiChannel<'a> {
        MpiChannel { of: self, messages }
    }

    /// Sets the leader of the root's node, as a broadcast begins.
    pub fn set_root(&mut self, root: Rank) {
        self.root = root;
    }

    /// Posts receives where some are missing, `more` than usual for the predecessor and for the
    /// successor; so many stay.
    pub fn post_receives(&mut self, more: [usize; 2], messages: &mut Messages) -> Result<(), MpiError> {
        for ((index, queue), more) in self.queues.iter_mut().enumerate().zip(more) {
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

    /// True if too many drawn receivers have not called yet.
    pub fn awaits_too_many_arrivals(&self) -> bool {
        self.arrivals >= MAX_ARRIVALS
    }

    /// True if a message is on its way out that somebody waits for, or may before this node makes
    /// its next call.
    pub fn holds_up(&self) -> bool {
        self.outgoing > self.words || self.ended_since_word >= MAX_AFTER_WORD
    }

    /// Counts a broadcast that is over for this node.
    pub fn ended(&mut self) {
        self.ended_since_word += u32::from(self.words > 0);
    }

    /// Notes the messages that have completed; those of drawn receivers go to `take` at once. True
    /// if there was any.
    fn sort(
        &mut self,
        messages: &mut Messages,
        take: &mut impl FnMut(&[u8]) -> Result<Delivery, Mismatch>,
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
                    let said = take(done.memory.get(..bytes).ok_or(Failure::Internal)?);
                    self.spare.push(done.memory);
                    said?;
                }
                ControlMessage::Out | ControlMessage::Word => {
                    self.outgoing -= 1;
                    self.words -= usize::from(done.purpose == ControlMessage::Word);
                    if self.words == 0 {
                        self.ended_since_word = 0;
                    }
                    if self.spare.len() < MAX_SENDS {
                        self.spare.push(done.memory);
                    }
                }
            }
        }
        Ok(is_any)
    }

    /// True if MPI has nothing more for this node, and the node nothing for MPI. To be asked after
    /// the last message has been sent; drops what comes. Does not wait.
    pub fn is_settled(&mut self, messages: &mut Messages) -> Result<bool, Failure> {
        messages.poll(|_, _| ())?;
        self.over(messages).receive(|message| match message::decode(message) {
            // It stays, so that it is seen below, and nothing is posted in its place.
            Some((_, Body::Bye)) => Ok(Delivery::Early),
            _ => Ok(Delivery::Taken),
        })?;
        let is_closed = |queue: &NeighbourQueue| queue.entries.front().is_some_and(Option::is_some);
        Ok(self.queues.iter().all(is_closed) && self.arrivals == 0 && self.outgoing == 0)
    }

    /// Cancels all receives, after an error.
    pub fn forget(&mut self, messages: &mut Messages) {
        messages.cancel(|purpose| matches!(purpose, Purpose::Control(_)));
        messages.control_done.clear();
        self.queues.iter_mut().for_each(|queue| queue.entries.clear());
        (self.arrivals, self.outgoing, self.words, self.ended_since_word) = (0, 0, 0, 0);
    }
}

impl ControlChannel for MpiChannel<'_> {
    type Error = Failure;

    fn has_capacity(&self) -> bool {
        self.of.outgoing < MAX_SENDS
    }

    fn send(&mut self, to: Peer, message: &mut Vec<u8>) -> Result<(), Failure> {
        let MpiChannel { of, messages } = self;
        let (peer, tag, what) = match to {
            Peer::Successor => (of.successor, TAG_TO_SUCCESSOR, ControlMessage::Out),
            Peer::Predecessor => (of.predecessor, TAG_TO_PREDECESSOR, ControlMessage::Out),
            Peer::Drawn(_) => (of.root, TAG_ARRIVED, ControlMessage::Word),
        };
        let memory = std::mem::replace(message, of.spare.pop().unwrap_or_default());
        let bytes = memory.len();
        of.outgoing += 1;
        of.words += usize::from(what == ControlMessage::Word);
        messages.send(Purpose::Control(what), Route { peer, tag }, memory, bytes)?;
        Ok(())
    }

    /// Receives messages. True also if MPI has only sent one.
    fn receive(
        &mut self,
        mut take: impl FnMut(&[u8]) -> Result<Delivery, Mismatch>,
    ) -> Result<bool, Failure> {
        let MpiChannel { of, messages } = self;
        let is_any = of.sort(messages, &mut take)?;
        for (index, queue) in of.queues.iter_mut().enumerate() {
            while let Some(Some((memory, bytes))) = queue.entries.front() {
                if take(memory.get(..*bytes).ok_or(Failure::Internal)?)? == Delivery::Early {
                    break;
                }
                if let Some(Some((memory, _))) = queue.entries.pop_front() {
                    queue.first += 1;
                    queue.post(index, memory, messages)?;
                }
            }
        }
        Ok(is_any)
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
