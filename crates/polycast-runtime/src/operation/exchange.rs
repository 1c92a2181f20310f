//! An operation by messages: runs a schedule, among all ranks of a communicator or those of a node.

use std::ffi::c_int;
use std::num::NonZeroU64;
use std::ops::Range;

use polycast_core::algorithm::Algorithm;
use polycast_core::algorithm::broadcast::{self, Planner};
use polycast_core::collective;
use polycast_core::executor::{
    self, Completed, Content, Conversation, FIRST_DATA_BYTES_MOST, Limits, Message, MessageId, Outcome, Part,
};
use polycast_core::policy::{Capabilities, Choice, Epoch, Policy};
use polycast_core::schedule::{Direction, LaneIndex, Nodes, Schedule};
use polycast_core::units::{Bytes, Rank};

use super::{Activity, Call, Failure, Progress, Shared};
use crate::communicator::broadcast_of;
use crate::door::{MESSAGE_MOST_BYTES, MpiError};
use crate::fault::{self, Point};
use crate::messages::{Done, Messages, OperationKey, Purpose, Route};

/// Messages outstanding: enough per lane to keep a link busy while a rank waits for its turn on an oversubscribed
/// processor, and enough sends in all that children which have not arrived do not hold up their siblings.
const LIMITS: Limits = Limits { per_lane: 16, sends: 256 };

/// How data goes from a leader to the others on its node: through MPI's shared memory, where messages are cheap and copies
/// are not.
const ON_NODE: Algorithm = Algorithm { segment: NonZeroU64::new(64 << 10), ..broadcast::BINOMIAL };

/// Bytes of an announcement, in front of what travels with it.
const ANNOUNCEMENT_BYTES: usize = 8;
/// The longest first message of a lane.
const FIRST_BYTES_MOST: usize = ANNOUNCEMENT_BYTES + FIRST_DATA_BYTES_MOST as usize;

/// Memory of first messages that is kept.
const SPARE_MOST: usize = 64;

/// Who takes part, and how they choose a schedule.
enum Among {
    All {
        /// For calls of these bytes.
        algorithm: Algorithm,
        bytes: u64,
        /// By which other ranks have chosen that were called with another size.
        capabilities: Capabilities,
        epoch: Epoch,
    },
    Node,
}

/// What this rank does, for whatever size.
struct Plan<'a> {
    among: &'a Among,
    policy: &'a Policy,
    planner: &'a mut Planner,
    nodes: &'a Nodes,
    ranks: u32,
    rank: Rank,
    root: Rank,
}

impl executor::Call for Plan<'_> {
    /// `None` if this size is not served by messages.
    fn schedule(&mut self, bytes: u64) -> Option<Box<dyn Schedule>> {
        let Plan { policy, planner, ranks, rank, root, .. } = self;
        match *self.among {
            Among::All { algorithm, bytes: own, capabilities, epoch } => {
                let choice = match bytes == own {
                    true => Choice::Algorithm(algorithm),
                    false => policy.choose(&broadcast_of(bytes), capabilities, epoch).choice,
                };
                let Choice::Algorithm(algorithm) = choice else { return None };
                let call = collective::Call::broadcast(*ranks, *root, Bytes(bytes));
                Some(with_possible_messages(algorithm, bytes).schedule(call, *rank, planner))
            }
            Among::Node => {
                let local = self.nodes.local();
                let root = local.position(*root);
                let call = collective::Call::broadcast(local.ranks(), root, Bytes(bytes));
                let schedule = ON_NODE.schedule(call, local.position(*rank), planner);
                Some(Box::new(local.apply(schedule)))
            }
        }
    }

    fn bytes_for_all_lanes(&self) -> u64 {
        match self.among {
            Among::All { .. } => self.ranks.into(),
            Among::Node => self.nodes.local().ranks().into(),
        }
    }
}

/// What is to be sent whole is still cut here: MPI's counts are ints, and a message that takes long shows no progress
/// by which the idle strategy could tell a working transfer from a late rank.
fn with_possible_messages(algorithm: Algorithm, bytes: u64) -> Algorithm {
    let most = NonZeroU64::new(MESSAGE_MOST_BYTES);
    match algorithm.segment {
        Some(segment) if segment.get() <= MESSAGE_MOST_BYTES => algorithm,
        None if bytes <= MESSAGE_MOST_BYTES => algorithm,
        _ => Algorithm { segment: most, ..algorithm },
    }
}

/// The messages of one call.
struct Ends {
    key: OperationKey,
    tag: c_int,
    buffer: *mut u8,
    /// First messages that have come and were not asked for yet.
    firsts: Vec<(LaneIndex, Vec<u8>)>,
}

/// One call after another of the same size and root.
pub struct Exchange {
    among: Among,
    root: Rank,
    /// `None` if there is no schedule.
    conversation: Option<Conversation>,
    ends: Ends,
    /// Messages that have completed since the last progress.
    pub inbox: Vec<Done<MessageId>>,
}

impl Exchange {
    /// Among all ranks of the communicator.
    pub fn among_all(algorithm: Algorithm, call: &Call, shared: &mut Shared) -> Exchange {
        let Call { chosen, capabilities, bytes, root, .. } = *call;
        Exchange::new(Among::All { algorithm, bytes, capabilities, epoch: chosen.epoch }, root, bytes, shared)
    }

    /// Among the ranks of this rank's node, from `root`.
    pub fn on_node(root: Rank, bytes: u64, shared: &mut Shared) -> Exchange {
        Exchange::new(Among::Node, root, bytes, shared)
    }

    fn new(among: Among, root: Rank, bytes: u64, shared: &mut Shared) -> Exchange {
        let (mut plan, ..) = plan(&among, root, shared);
        let conversation = Conversation::new(&mut plan, bytes, LIMITS);
        let ends = Ends { key: OperationKey(0), tag: 0, buffer: std::ptr::null_mut(), firsts: Vec::new() };
        Exchange { among, root, conversation, ends, inbox: Vec::new() }
    }

    /// `is_spoiled`: this rank has nothing to send.
    pub fn begin(
        &mut self,
        key: OperationKey,
        call: &Call,
        is_spoiled: bool,
        shared: &mut Shared,
    ) -> Result<(), Failure> {
        let Exchange { ends, inbox, conversation, .. } = self;
        inbox.clear();
        ends.firsts.clear();
        (ends.key, ends.tag, ends.buffer) = (key, call.tag, call.buffer);
        let Shared { messages, spare, .. } = shared;
        let conversation = conversation.as_mut().ok_or(Failure::Internal)?;
        conversation.begin(is_spoiled, &mut Transport { ends, messages, spare })
    }

    /// Takes what has completed, and starts what can be started.
    pub fn progress(&mut self, shared: &mut Shared) -> Result<Progress, Failure> {
        let Exchange { among, root, conversation, ends, inbox } = self;
        let conversation = conversation.as_mut().ok_or(Failure::Internal)?;
        if !inbox.is_empty() {
            shared.activity = Activity::Messages;
        }
        let (mut plan, messages, spare) = plan(among, *root, shared);
        let mut transport = Transport { ends, messages, spare };
        for done in inbox.drain(..) {
            let completed = transport.take(done)?;
            conversation.complete(completed, &mut plan, &mut transport)?;
        }
        Ok(match conversation.advance(&mut transport)? {
            None => Progress::Pending,
            Some(Outcome::Complete) => Progress::Done,
            Some(Outcome::SizesDiffer) => Progress::Failed(Failure::Size),
        })
    }
}

fn plan<'a>(
    among: &'a Among,
    root: Rank,
    shared: &'a mut Shared,
) -> (Plan<'a>, &'a mut Messages, &'a mut Vec<Vec<u8>>) {
    let Shared { rank, ranks, nodes, policy, planner, on_node, messages, spare, .. } = shared;
    let planner = if let Among::Node = among { on_node } else { planner };
    (Plan { among, policy, planner, nodes, ranks: *ranks, rank: *rank, root }, messages, spare)
}

/// Starts the messages of one call.
struct Transport<'a> {
    ends: &'a mut Ends,
    messages: &'a mut Messages,
    spare: &'a mut Vec<Vec<u8>>,
}

impl Transport<'_> {
    fn place(&self, bytes: &Range<u64>) -> *mut u8 {
        // wrapping_add: an empty message at the end of the buffer points behind it.
        self.ends.buffer.wrapping_add(bytes.start as usize)
    }

    fn memory(&mut self, bytes: usize) -> Vec<u8> {
        match bytes > FIRST_BYTES_MOST {
            true => vec![0; bytes],
            false => self.spare.pop().unwrap_or_else(|| vec![0; FIRST_BYTES_MOST]),
        }
    }

    fn give_back(&mut self, memory: Vec<u8>) {
        if self.spare.len() < SPARE_MOST && memory.len() == FIRST_BYTES_MOST {
            self.spare.push(memory);
        }
    }

    fn send(&mut self, purpose: Purpose, to: Route, content: &Content) -> Result<(), MpiError> {
        let bytes = match content {
            Content::First { total, bytes } => {
                let length = (bytes.end - bytes.start) as usize;
                let mut first = self.memory(FIRST_BYTES_MOST);
                first[..ANNOUNCEMENT_BYTES].copy_from_slice(&total.to_le_bytes());
                if length > 0 {
                    // SAFETY: the range is inside the buffer (see `Operations::start`), and its bytes are there.
                    let data = unsafe { std::slice::from_raw_parts(self.place(bytes), length) };
                    first[ANNOUNCEMENT_BYTES..][..length].copy_from_slice(data);
                }
                return self.messages.send(purpose, to, first, ANNOUNCEMENT_BYTES + length);
            }
            Content::Data(bytes) => bytes.clone(),
            Content::Scrap(_) => 0..0,
        };
        let data = self.place(&bytes);
        // SAFETY: the bytes are inside the buffer (see `Operations::start`), where nobody writes them any more.
        unsafe { self.messages.send_from(purpose, to, data, (bytes.end - bytes.start) as usize) }
    }

    fn receive(&mut self, purpose: Purpose, from: Route, content: &Content) -> Result<(), MpiError> {
        let bytes = match content {
            Content::First { .. } => FIRST_BYTES_MOST,
            Content::Scrap(most) => *most as usize,
            Content::Data(bytes) => {
                let place = self.place(bytes);
                // SAFETY: the place is inside the buffer (see `Operations::start`), of which each byte is received once and sent only
                // after that.
                return unsafe {
                    self.messages.receive_into(purpose, from, place, (bytes.end - bytes.start) as usize)
                };
            }
        };
        let memory = self.memory(bytes);
        self.messages.receive(purpose, from, memory, bytes)
    }

    /// Takes what a completed message had in memory of its own.
    fn take(&mut self, done: Done<MessageId>) -> Result<Completed, Failure> {
        let Done { purpose: id, is_receive, outcome, memory } = done;
        let bytes = outcome?;
        let mut completed = Completed { id, total: 0, received_bytes: bytes as u64 };
        if !is_receive {
            completed.received_bytes = 0;
            self.give_back(memory);
        } else if id.part == Part::First {
            let first = memory.get(..bytes).ok_or(Failure::Internal)?;
            let (total, data) = first.split_first_chunk().ok_or(Failure::Internal)?;
            completed.total = u64::from_le_bytes(*total);
            completed.received_bytes = data.len() as u64;
            self.ends.firsts.push((id.lane, memory));
        } else {
            self.give_back(memory);
        }
        Ok(completed)
    }
}

impl executor::Transport for Transport<'_> {
    type Error = Failure;

    fn start(&mut self, message: &Message) -> Result<(), Failure> {
        fault::point(Point::Message);
        let purpose = Purpose::Step { operation: self.ends.key, id: message.id };
        let route = Route { peer: message.peer, tag: self.ends.tag + c_int::from(message.channel) };
        match message.direction {
            Direction::Receive => self.receive(purpose, route, &message.content)?,
            Direction::Send => self.send(purpose, route, &message.content)?,
        }
        Ok(())
    }

    fn keep(&mut self, lane: LaneIndex, bytes: Range<u64>) {
        let Some(at) = self.ends.firsts.iter().position(|(of, _)| *of == lane) else { return };
        let (_, first) = self.ends.firsts.swap_remove(at);
        let data = &first[ANNOUNCEMENT_BYTES..];
        let bytes_most = data.len().min((bytes.end - bytes.start) as usize);
        // SAFETY: the range is inside the buffer (see `Operations::start`), which is not this memory.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), self.place(&bytes), bytes_most) };
        self.give_back(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_message_is_larger_than_the_interface_allows() {
        let whole: Algorithm = "chain".parse().unwrap();
        let huge: Algorithm = "chain:segment=2GiB".parse().unwrap();
        let capped = Algorithm { segment: NonZeroU64::new(MESSAGE_MOST_BYTES), ..whole };
        assert_eq!(with_possible_messages(whole, MESSAGE_MOST_BYTES), whole);
        assert_eq!(with_possible_messages(whole, MESSAGE_MOST_BYTES + 1), capped);
        assert_eq!(with_possible_messages(huge, 5 << 30), capped);
        assert_eq!(with_possible_messages(capped, 5 << 30), capped);
    }
}
