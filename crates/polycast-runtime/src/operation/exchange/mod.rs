//! An operation by messages, local work and shared memory: runs a schedule of any collective, among all ranks of a communicator or those
//! of a node.

mod adopted;
mod sharing;
mod transport;

use std::num::NonZeroU64;

use polycast_core::algorithm::Algorithm;
use polycast_core::algorithm::broadcast::{self, Planner};
use polycast_core::collective::{self, Collective};
use polycast_core::executor::{self, Conversation, Limits, MessageId, Outcome};
use polycast_core::policy::{Capabilities, Choice, Epoch, Policy};
use polycast_core::schedule::{self, Nodes, Schedule};
use polycast_core::units::{Bytes, Rank};

use self::adopted::Adopted;
use self::sharing::SharedLanes;
use self::transport::{ANNOUNCEMENT_BYTES, Ends, MAX_SPARE, Transport, TransportShare};
use super::way::{Made, Way};
use super::{Call, Shared};
use crate::abi::MESSAGE_MOST_BYTES;
use crate::call::{Activity, Buffers, Failure, OperationKey, Progress, broadcast_of};
use crate::messages::{Done, SLOTS};
use crate::multicast::Deaf;

/// Most messages outstanding: enough per lane to keep a link busy while a rank waits for its turn
/// on an oversubscribed processor, and enough sends in all that children which have not arrived do
/// not hold up their siblings.
const LIMITS: Limits = Limits { per_lane: 16, sends: 256 };

/// Fewest and most bytes of data that travel with the announcement of a lane.
const LEAST_FIRST: u64 = 8 << 10;
const MOST_FIRST: u64 = 32 << 10;
/// Most bytes that the first messages from all ranks take together, roughly, unless that leaves too
/// little for each.
const MOST_OF_FIRSTS_BYTES: u64 = 2 << 20;

/// Broadcast from a rank to the others on its node by messages: through MPI's shared memory, where
/// messages are cheap and copies are not.
const BY_MESSAGES: Algorithm = Algorithm { segment: NonZeroU64::new(64 << 10), ..broadcast::BINOMIAL };

/// Broadcast on a node through memory that its ranks share. Data that comes over a network goes on
/// an eighth at a time, so that little is left to do when the last of it has come. Pieces are not
/// so small that ranks are woken for nothing, and not larger than what the others fetch while the
/// next piece comes.
fn through_memory(bytes: u64) -> Algorithm {
    let piece = bytes.div_ceil(8).clamp(8 << 10, 512 << 10);
    Algorithm { segment: NonZeroU64::new(piece), ..broadcast::ON_NODE }
}

/// Most bytes of scratch memory that are kept for the next call. Getting more takes no time beside
/// the call that needs it, and programs need their memory.
pub const MAX_KEPT_SCRATCH_BYTES: usize = 4 << 20;

#[cfg(test)]
pub(crate) use self::transport::MARK;

/// The ranks that take part, and how they choose a schedule.
#[derive(Clone, Copy)]
enum Among {
    All {
        /// The algorithm for a call of this size.
        algorithm: Algorithm,
        /// Capabilities by which ranks that were called with another size have chosen.
        capabilities: Capabilities,
        epoch: Epoch,
    },
    Node {
        through_memory: bool,
    },
}

impl Among {
    fn all(algorithm: Algorithm, call: &Call) -> Among {
        Among::All { algorithm, capabilities: call.capabilities, epoch: call.chosen.epoch }
    }

    /// The word on deaf nodes, which travels with the announcements on a node.
    fn carries<'a>(&self, deaf: &'a mut Deaf) -> Option<&'a mut Deaf> {
        matches!(self, Among::Node { .. }).then_some(deaf)
    }
}

/// Maker of this rank's schedules, for whatever size.
pub(super) struct Scheduler<'a> {
    among: Among,
    call: collective::Call,
    policy: &'a Policy,
    planner: &'a mut Planner,
    nodes: &'a Nodes,
    rank: Rank,
}

impl<'a> Scheduler<'a> {
    /// A maker of schedules for all ranks of the communicator, for another way that runs some.
    #[cfg(test)]
    pub(super) fn among_all(algorithm: Algorithm, call: &Call, shared: &'a mut Shared) -> Scheduler<'a> {
        let Shared { rank, nodes, policy, planner, .. } = shared;
        Scheduler { among: Among::all(algorithm, call), call: call.of, policy, planner, nodes, rank: *rank }
    }
}

impl executor::Call for Scheduler<'_> {
    /// The schedule for a call of this size; `None` if the size is not served by messages.
    fn schedule(&mut self, bytes: u64) -> Option<Box<dyn Schedule>> {
        let Scheduler { policy, planner, nodes, rank, .. } = self;
        let call = collective::Call { bytes: Bytes(bytes), ..self.call };
        match self.among {
            Among::All { algorithm, capabilities, epoch } => {
                // Where the rules have one answer to both sizes, whatever was chosen is for both.
                let rule = |bytes| policy.choose(&broadcast_of(bytes), capabilities, epoch).choice;
                let choice = match call == self.call || call.collective != Collective::Broadcast {
                    true => Choice::Algorithm(algorithm),
                    false if rule(bytes) == rule(self.call.bytes.0) => Choice::Algorithm(algorithm),
                    false => rule(bytes),
                };
                let Choice::Algorithm(algorithm) = choice else { return None };
                let has_schedules = algorithm.entry.has_schedules();
                let is_of_elements = bytes.is_multiple_of(call.element.get());
                let algorithm = with_possible_messages(algorithm, bytes);
                (has_schedules && is_of_elements).then(|| {
                    let schedule = algorithm.schedule(call, *rank, planner);
                    // Broadcasts are in segments by now, and to look at every step takes long.
                    let is_long = call.most_bytes_of_a_message() > MESSAGE_MOST_BYTES;
                    match is_long && call.collective != Collective::Broadcast {
                        true => schedule::cut(schedule, MESSAGE_MOST_BYTES),
                        false => schedule,
                    }
                })
            }
            Among::Node { through_memory: is_so } => {
                let algorithm = if is_so { through_memory(bytes) } else { BY_MESSAGES };
                let local = nodes.local();
                let call = collective::Call { ranks: local.ranks(), root: local.position(call.root), ..call };
                let schedule = algorithm.schedule(call, local.position(*rank), planner);
                Some(Box::new(local.apply(schedule)))
            }
        }
    }

    fn follows(&self) -> bool {
        let is_root = self.rank == self.call.root;
        match self.call.collective {
            Collective::Broadcast | Collective::Scatter => !is_root,
            // Who sends nothing follows whoever sends to it.
            Collective::Gather => is_root,
            _ => false,
        }
    }

    fn bytes_for_all_lanes(&self) -> u64 {
        u64::from(self.call.ranks) * self.call.element.get()
    }

    /// Most bytes of data in a first message. A message more between nodes costs several system
    /// calls and perhaps a turn at the processor, and two copies of this length less. On a node it
    /// is the other way around. Each lane has memory for its first message, and ranks may have
    /// lanes from all others.
    fn most_first_data_bytes(&self) -> u64 {
        let between_nodes = MOST_OF_FIRSTS_BYTES / u64::from(self.call.ranks.max(1));
        if self.nodes.count() > 1 { between_nodes.clamp(LEAST_FIRST, MOST_FIRST) } else { LEAST_FIRST }
    }
}

/// Cuts messages to a length that is possible, also where the algorithm sends them whole: MPI's
/// counts are ints, and a message that takes long shows no progress by which the idle strategy
/// could tell a working transfer from a late rank.
fn with_possible_messages(algorithm: Algorithm, bytes: u64) -> Algorithm {
    let most = NonZeroU64::new(MESSAGE_MOST_BYTES);
    match algorithm.segment {
        Some(segment) if segment.get() <= MESSAGE_MOST_BYTES => algorithm,
        None if bytes <= MESSAGE_MOST_BYTES => algorithm,
        _ => Algorithm { segment: most, ..algorithm },
    }
}

/// An exchange by messages and memory, kept to serve one call after another that is the same.
pub struct Exchange {
    among: Among,
    call: collective::Call,
    /// State of the schedule; `None` if there is no schedule.
    conversation: Option<Conversation>,
    ends: Ends,
    is_whole: bool,
    /// Messages that have completed since the last progress.
    inbox: Vec<Done<MessageId>>,
}

impl Exchange {
    /// An exchange among all ranks of the communicator.
    pub fn among_all(algorithm: Algorithm, call: &Call, shared: &mut Shared) -> Exchange {
        Exchange::new(Among::all(algorithm, call), call.of, shared)
    }

    /// A broadcast among the ranks of this rank's node, from `root`; through the memory that they share, if they do.
    pub fn on_node(root: Rank, call: &Call, shared: &mut Shared) -> Exchange {
        let through_memory = shared.memory.is_some();
        Exchange::new(Among::Node { through_memory }, collective::Call { root, ..call.of }, shared)
    }

    /// A broadcast among the ranks of this rank's node, from `root`, by messages. Whatever has to
    /// wait goes so, for all ranks begin what goes through memory in one order.
    pub fn on_node_by_messages(root: Rank, call: &Call, shared: &mut Shared) -> Exchange {
        Exchange::new(Among::Node { through_memory: false }, collective::Call { root, ..call.of }, shared)
    }

    fn new(among: Among, call: collective::Call, shared: &mut Shared) -> Exchange {
        let (mut plan, rest) = plan(&among, call, shared);
        let (conversation, spare) = (Conversation::new(&mut plan, call.bytes.0, LIMITS), rest.spare);
        let most_first_bytes = ANNOUNCEMENT_BYTES + executor::Call::most_first_data_bytes(&plan) as usize;
        let firsts = conversation.as_ref().map_or(0, Conversation::lanes).min(MAX_SPARE);
        spare.reserve(MAX_SPARE);
        spare.resize_with(firsts.max(spare.len()), || vec![0; most_first_bytes]);
        let ends = Ends {
            key: OperationKey(0),
            tag: 0,
            buffers: Buffers::broadcast(std::ptr::null_mut()),
            scratch: Vec::new(),
            scratch_place: std::ptr::null_mut(),
            most_first_bytes,
            available: u64::MAX,
            came: 0,
            total: call.bytes.0,
            told: None,
            firsts: Vec::with_capacity(SLOTS),
            late: Vec::new(),
            sent_from: Vec::new(),
            shared: SharedLanes::default(),
            adopted: None,
        };
        Exchange { among, call, conversation, ends, is_whole: false, inbox: Vec::with_capacity(SLOTS) }
    }

    /// Begins a call. `is_spoiled`: this rank has nothing to send.
    pub fn begin_call(
        &mut self,
        key: OperationKey,
        call: &Call,
        is_spoiled: bool,
        shared: &mut Shared,
    ) -> Result<(), Failure> {
        if self.ends.adopted.is_some() {
            *self = Exchange::new(self.among, self.call, shared);
        }
        let Exchange { ends, inbox, conversation, .. } = self;
        inbox.clear();
        ends.firsts.clear();
        let conversation = conversation.as_mut().ok_or(Failure::Internal)?;
        let scratch_bytes = conversation.scratch_bytes() as usize;
        if ends.scratch.len() != scratch_bytes {
            ends.scratch = vec![0; scratch_bytes];
        }
        ends.scratch_place = ends.scratch.as_mut_ptr();
        (ends.available, ends.came, ends.told, self.is_whole) = (u64::MAX, 0, None, false);
        (ends.key, ends.tag, ends.buffers) = (key, call.tag, call.buffers);
        ends.shared.begin(call.operation);
        let (_, rest) = plan(&self.among, self.call, shared);
        conversation.begin(is_spoiled, &mut Transport { of: self.call, ends, rest })
    }

    /// Where the data of a broadcast stands, and how many bytes it has: others than this rank was called with, if it goes on as they do.
    pub fn data(&self) -> (*mut u8, u64) {
        (self.ends.buffers.output, self.ends.total)
    }

    /// Goes on with what the root of a broadcast, on another node, has sent to this rank: it stands at
    /// `place`, and may be of another size. Nothing was sent yet.
    pub fn go_on_with(&mut self, place: *mut u8, bytes: u64, shared: &mut Shared) -> Result<(), Failure> {
        let Exchange { among, call, conversation, ends, .. } = self;
        ends.buffers.output = place;
        let conversation = conversation.as_mut().ok_or(Failure::Internal)?;
        if bytes == ends.total {
            return Ok(());
        }
        // All of it has its place.
        ends.total = bytes;
        let (mut plan, rest) = plan(among, *call, shared);
        conversation.go_on_as(bytes, &mut plan, &mut Transport { of: *call, ends, rest })
    }

    /// Limits what this rank publishes to the first `available` bytes: for a call that has begun,
    /// until the next limit.
    pub fn limit(&mut self, available: u64) {
        self.ends.available = available;
    }

    /// Bytes of a broadcast through memory that have come, from the beginning on.
    pub fn came_bytes(&self) -> u64 {
        self.ends.came
    }

    /// Spoils all data that is not published yet, for it will not come.
    pub fn spoil(&mut self) {
        self.conversation.iter_mut().for_each(Conversation::spoil);
    }

    /// Takes what has completed, and starts what can be started.
    pub fn go_on(&mut self, shared: &mut Shared) -> Result<Progress, Failure> {
        let Exchange { among, call, conversation, ends, inbox, .. } = self;
        let conversation = conversation.as_mut().ok_or(Failure::Internal)?;
        if !inbox.is_empty() {
            shared.activity = Activity::Messages;
        }
        let (mut plan, rest) = plan(among, *call, shared);
        let mut transport = Transport { of: *call, ends, rest };
        for done in inbox.drain(..) {
            let completed = transport.take(done)?;
            conversation.complete(completed, &mut plan, &mut transport)?;
        }
        let outcome = conversation.advance(&mut plan, &mut transport)?;
        transport.settle();
        let Some(outcome) = outcome else { return Ok(Progress::Pending) };
        transport.end();
        Ok(match outcome {
            Outcome::Complete if ends.adopted.as_ref().is_none_or(|adopted| adopted.keep(call)) => {
                Progress::Done
            }
            Outcome::Complete | Outcome::SizesDiffer => {
                (shared.told, self.is_whole) = (self.ends.told, outcome == Outcome::Complete);
                Progress::Failed(Failure::Size)
            }
        })
    }

    /// True if the last call ended with [`Failure::Size`] for want of room in the program's buffer alone: all data is there.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Two answers: true if the exchange waits for anything but memory; true if some of it goes
    /// through memory and is not over.
    fn awaits(&self) -> (bool, bool) {
        self.conversation.as_ref().map_or((false, false), Conversation::awaits)
    }
}

/// Makes the way of an algorithm that has a schedule.
pub(super) fn make(algorithm: Algorithm, call: &Call, shared: &mut Shared) -> Made {
    Some(Ok(Box::new(Exchange::among_all(algorithm, call, shared))))
}

impl Way for Exchange {
    fn begin(&mut self, key: OperationKey, call: &Call, shared: &mut Shared) -> Result<(), Failure> {
        self.begin_call(key, call, false, shared)
    }

    fn progress(&mut self, _: &Call, shared: &mut Shared) -> Result<Progress, Failure> {
        self.go_on(shared)
    }

    fn rest(&mut self) {
        if self.ends.scratch.len() > MAX_KEPT_SCRATCH_BYTES {
            self.ends.scratch = Vec::new();
        }
        self.ends.adopted.iter_mut().for_each(Adopted::rest);
    }

    fn leave(&mut self, call: &Call, shared: &mut Shared) {
        if let Some(memory) = &mut shared.memory {
            memory.streams().leave(call.operation);
            memory.handed().leave(call.operation);
        }
        // The MPI may not be through with what it sends.
        let Ends { scratch, sent_from, late, adopted, .. } = &mut self.ends;
        late.drain(..).for_each(|late| sent_from.push(late.memory));
        std::mem::forget((std::mem::take(scratch), std::mem::take(sent_from), adopted.take()));
    }

    fn inbox(&mut self) -> Option<&mut Vec<Done<MessageId>>> {
        Some(&mut self.inbox)
    }

    fn waits_for_memory(&self) -> bool {
        !self.awaits().0
    }

    fn has_memory(&self) -> bool {
        self.awaits().1
    }

    #[cfg(test)]
    fn scratch_bytes(&self) -> usize {
        self.ends.scratch.capacity()
    }
}

fn plan<'a>(
    among: &'a Among,
    call: collective::Call,
    shared: &'a mut Shared,
) -> (Scheduler<'a>, TransportShare<'a>) {
    let Shared { rank, nodes, policy, planner, on_node, messages, spare, deaf, memory, activity, .. } =
        shared;
    let planner = if let Among::Node { .. } = among { on_node } else { planner };
    let deaf = among.carries(deaf);
    let rest = TransportShare { messages, spare, deaf, memory: memory.as_deref_mut(), nodes, activity };
    (Scheduler { among: *among, call, policy, planner, nodes, rank: *rank }, rest)
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
