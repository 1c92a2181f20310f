//! One node of one communicator: what comes in, and what is to be done.
//!
//! ```text
//!    idle ──begin──▶ active ──is_finished──▶ end ──▶ idle         one broadcast at a time
//!                      ▲ │
//!    on_datagram ──────┤ ├──────▶ next_action: datagrams to multicast, a message to a node
//!    on_message  ──────┘ └──────▶ deadline: when to ask for an action again
//! ```
//!
//! Invariants
//! 1. Broadcasts have consecutive numbers, the same on all nodes, that may wrap around. Numbers less than 2⁶³ ahead are later.
//! 2. A datagram of the broadcast in progress is used, of a later one kept within a limit, of an earlier one dropped.
//! 3. A message of a later broadcast is refused until that begins; MPI keeps the order, so what its sender had to say
//!    about the broadcast in progress has been said.
//! 4. When a node leaves, its predecessor may still have messages for it. It knows how many at most, and stays while they are too
//!    many: its channel takes them all while it does something else, since the predecessor waits for that.
//! 5. Nothing is written into the program's buffer except by [`Receiver::take`], under its invariants.
//! 6. A node that has all of the message, or knows that all has been sent, knows the root's size (`size.rs`).

mod active;
mod incoming;
mod left_behind;
mod loss_probe;
mod outgoing;
mod repairs;
mod size;
mod types;

pub use types::{Action, Capacity, Delivery, Membership, Mismatch, Peer};

use active::{Active, Failed, Gate};
use left_behind::LeftBehind;
use loss_probe::LossProbe;
use repairs::TowardsRoot;

use super::answer_time::AnswerTime;
use super::counters::Counters;
use super::data::Data;
use super::datagram_repair::DatagramRepair;
use super::early::Early;
use super::fragmentation::Fragmentation;
use super::hearing::Hearing;
use super::kept::Kept;
use super::message::MAX_FRAGMENT_BYTES;
use super::pacing::Pacer;
use super::question::{Question, Said};
use super::receiver::Receiver;
use super::ring_repair::RingRepair;
use super::root_sync::{Learned, ReceptionReport, RootSync, drawn_receiver};
use super::sender::Sender;
use super::spec::{Form, Multicast};
use polycast_units::Nanos;

/// The state of nodes that do not hear multicast any more, as far as this node knows.
#[derive(Debug, Default)]
struct Deaf {
    /// True if there is such a node.
    is_known: bool,
    /// True if this node has told its predecessor.
    is_said: bool,
    /// True if a root has told all nodes.
    is_told: bool,
}

impl Deaf {
    fn is_due(&self) -> bool {
        self.is_known && !self.is_said
    }
}

/// A node of a communicator; see the module.
#[derive(Debug)]
pub struct Endpoint {
    membership: Membership,
    /// The broadcast in progress, or the next one.
    operation: u64,
    active: Option<Active>,
    /// The last broadcast, for its memory.
    before: Option<(Receiver, RingRepair)>,
    /// Memory, for a parity or a request.
    scratch: Vec<u8>,
    early: Early,
    pacer: Pacer,
    learned: Learned,
    report: ReceptionReport,
    left_behind: LeftBehind,
    towards_root: TowardsRoot,
    answer_time: AnswerTime,
    /// The mean time of the words that this node waits for.
    word_time: AnswerTime,
    said: Said,
    kept: Kept,
    loss_probe: LossProbe,
    hearing: Hearing,
    deaf: Deaf,
    counters: Counters,
}

impl Endpoint {
    /// A node before its first broadcast.
    ///
    /// # Panics
    /// If the membership is none: fewer than 2 nodes, no payload or more than a message takes.
    pub fn new(membership: Membership) -> Endpoint {
        assert!(membership.node < membership.nodes && membership.nodes > 1);
        assert!((1..=MAX_FRAGMENT_BYTES).contains(&(membership.payload_bytes as usize)));
        Endpoint {
            operation: membership.first_operation,
            active: None,
            before: None,
            scratch: Vec::new(),
            early: Early::default(),
            pacer: Pacer::new(membership.bits_per_second),
            learned: Learned::default(),
            report: ReceptionReport::default(),
            left_behind: LeftBehind::default(),
            towards_root: TowardsRoot::default(),
            answer_time: AnswerTime::default(),
            word_time: AnswerTime::default(),
            said: Said::default(),
            kept: Kept::default(),
            loss_probe: LossProbe::default(),
            hearing: Hearing::default(),
            deaf: Deaf::default(),
            counters: Counters::default(),
            membership,
        }
    }

    /// Begins the next broadcast; datagrams that have come already are used. `root` is a node.
    ///
    /// # Errors
    /// [`Mismatch`] if they contradict each other, or if there is no room for them.
    ///
    /// # Panics
    /// If one is in progress, if `data` is empty, or longer than 2³² − 1 fragments.
    pub fn begin(
        &mut self,
        spec: Multicast,
        root: u32,
        now: Nanos,
        data: &mut Data<'_>,
    ) -> Result<(), Mismatch> {
        assert!(self.active.is_none(), "a broadcast is in progress");
        let Membership { node, nodes, payload_bytes, .. } = self.membership;
        let cut =
            Fragmentation::new(data.bytes().len() as u64, payload_bytes).expect("a message that can be cut");
        let position = (node + nodes - root) % nodes;
        let is_root = position == 0;
        let drawn = spec.sync.draws_a_receiver().then(|| drawn_receiver(self.operation, nodes));
        let gate = match spec.sync {
            _ if !is_root => Gate::Open,
            RootSync::None => Gate::Open,
            RootSync::Delay(delay) => Gate::At(now + delay),
            RootSync::Random => Gate::Arrival,
            RootSync::Adaptive if self.learned.waits(self.operation) => Gate::Arrival,
            RootSync::Adaptive => Gate::Open,
        };
        let (receiver, ring) = self.before.take().unzip();
        let repair = DatagramRepair::new(spec.form, cut, position, nodes, self.operation, self.answer_time);
        self.active = Some(Active {
            spec,
            cut,
            knows_size: is_root,
            position,
            receiver: match receiver {
                Some(receiver) => receiver.renewed(cut, is_root),
                None => Receiver::new(cut, is_root),
            },
            ring: RingRepair::new(spec.form, cut, position, nodes, ring),
            question: Question::new(self.word_time, repair.spread()),
            repair,
            sender: is_root.then(|| Sender::new(cut, spec)),
            gate,
            awaits_departure: false,
            root_waited: gate == Gate::Arrival,
            arrival_is_due: !is_root && drawn == Some(position),
            is_kept: spec.form == Form::Pull || position + 1 == nodes,
            failed: None,
            datagrams: Active::datagrams_of(cut, spec),
            repaired: 0,
            sent_again: 0,
        });
        if spec.form == Form::Push && !is_root {
            self.left_behind.expect(cut.fragments());
        }
        self.counters.broadcasts += 1;
        self.hearing.begin();
        self.answer_time.begin();
        self.word_time.begin();
        self.said.begin();
        self.kept.begin();
        let operation = self.operation;
        let mut outcome = Ok(());
        while let Some((header, payload)) = self.early.take(|header| header.operation == operation) {
            // Also behind one that does not fit: nobody asks for them later, and they would take the room of others.
            outcome = outcome.and(self.use_datagram(&header, &payload, now, data));
            self.early.give_back(payload);
        }
        outcome
    }

    /// Limits a root to the first `bytes` bytes of its message, because no more are there. It sends
    /// no more before the next call, and answers nobody until all is there. Without a call, all is
    /// there.
    pub fn limit(&mut self, bytes: u64) {
        if let Some(sender) = self.active.as_mut().and_then(|active| active.sender.as_mut()) {
            sender.limit(bytes);
        }
    }

    /// False if this node is the root of the broadcast in progress and does not have all of its
    /// message yet.
    pub fn has_source(&self) -> bool {
        self.active.as_ref().is_none_or(Active::has_source)
    }

    /// True if the broadcast in progress needs nothing from this node any more, and this node
    /// nothing from it.
    pub fn is_finished(&self) -> bool {
        self.active.as_ref().is_some_and(|active| {
            if let Some(failed) = active.failed {
                return !(failed.successor_is_to_know
                    || failed.predecessor_is_to_know
                    || active.arrival_is_due);
            }
            let has_all = active.receiver.is_complete() && self.left_behind.may_leave();
            let has_sent = active.sender.as_ref().is_none_or(Sender::is_through);
            let has_said_all = active.ring.is_settled()
                && !active.arrival_is_due
                && !self.loss_probe.is_due()
                && !active.repair.done_is_due()
                && !self.said.is_due()
                && !self.kept.is_due()
                && !self.deaf.is_due();
            has_sent && has_all && has_said_all
        })
    }

    /// Gives up the message: after a [`Mismatch`], or if the root has none to send. The node goes
    /// on until it is finished, to tell its neighbours; what comes meanwhile is of no interest.
    pub fn fail(&mut self) {
        let nodes = self.membership.nodes;
        let Some(active) = self.active.as_mut().filter(|active| active.failed.is_none()) else { return };
        active.failed = Some(Failed {
            successor_is_to_know: active.position + 1 < nodes,
            predecessor_is_to_know: active.ring.gives_up(),
        });
        self.left_behind = LeftBehind::default();
    }

    /// Ends the broadcast in progress, finished or given up.
    pub fn end(&mut self) {
        if let Some(active) = self.active.take() {
            self.operation = self.operation.wrapping_add(1);
            self.loss_probe.broadcast_ended();
            self.left_behind.left(active.spec.form == Form::Pull && active.position != 0);
            self.counters.penalty_broadcasts += u64::from(active.repaired > 0);
            if active.position != 0 {
                self.report.add(active.root_waited, active.cut.fragments(), active.repaired);
                self.hearing.end(active.datagrams);
            }
            self.before = Some((active.receiver, active.ring));
        }
    }

    /// The node whose "arrived" comes to this node in the broadcast in progress.
    pub fn expects_arrival_from(&self) -> Option<u32> {
        let Membership { node, nodes, .. } = self.membership;
        let active = self.active.as_ref()?;
        let is_expected = active.position == 0 && active.spec.sync.draws_a_receiver();
        is_expected.then(|| (node + drawn_receiver(self.operation, nodes)) % nodes)
    }

    /// Messages that may still come from the predecessor when this node has left the broadcast in progress, more than
    /// [`RECEIVES_PER_NEIGHBOR`](crate::RECEIVES_PER_NEIGHBOR) take.
    pub fn messages_to_come(&self) -> usize {
        self.left_behind.messages(self.membership.nodes)
    }

    /// Messages that may still come from the successor when this node has left a broadcast after a done by multicast, more than
    /// [`RECEIVES_PER_NEIGHBOR`](crate::RECEIVES_PER_NEIGHBOR) take.
    pub fn messages_to_come_from_successor(&self) -> usize {
        self.towards_root.to_come()
    }

    /// True if, as far as this node knows, some node does not hear multicast any more: this node
    /// itself, or one that it was told of.
    pub fn knows_of_deaf(&self) -> bool {
        self.deaf.is_known
    }

    /// Notes that some node does not hear multicast any more, as this node has learned by other
    /// ways; it tells its predecessor in the next broadcast.
    pub fn learn_of_deaf(&mut self) {
        self.deaf.is_known = true;
    }

    /// Orders the ranks to leave multicast: in its next broadcast as the root this node tells all.
    /// Whatever the other nodes hear of that broadcast, from whomever, says so; when they are
    /// through with it, all know.
    pub fn tell_to_leave(&mut self) {
        self.deaf.is_told = true;
    }

    /// True if the root of the broadcast in progress, or of one before it, has told all that the
    /// ranks are to leave multicast.
    pub fn is_told_to_leave(&self) -> bool {
        self.deaf.is_told
    }

    /// True if the root has sent everything and waits until that has left its host; its patience
    /// begins then. Where packets of other connections overtake those that wait (fair queues), its
    /// end by a message would otherwise come first, and be answered by a request for all that is
    /// still on its way. The driver of the endpoint looks again soon.
    pub fn awaits_departure(&self) -> bool {
        let active = self.active.as_ref().filter(|active| active.failed.is_none());
        active.is_some_and(|active| active.awaits_departure && active.ring.owes_end())
    }

    /// True if the root has multicast all of its message; fragments that it is asked for may still
    /// go again.
    pub fn has_multicast_all(&self) -> bool {
        self.active.as_ref().and_then(|active| active.sender.as_ref()).is_none_or(Sender::is_through)
    }

    /// The number of the broadcast in progress, or of the next one.
    pub fn operation(&self) -> u64 {
        self.operation
    }

    /// True if this node has all of the message.
    pub fn is_complete(&self) -> bool {
        self.active.as_ref().is_none_or(|active| active.receiver.is_complete())
    }

    /// The number of bytes of the broadcast in progress that this node has, from the beginning on.
    /// A node that has any has heard whether the root tells the ranks to leave.
    pub fn prefix_bytes(&self) -> u64 {
        self.active.as_ref().map_or(0, |active| active.receiver.prefix_bytes())
    }

    /// Bytes of the message that the root of the broadcast in progress sends, if this node knows them.
    /// They may be others than it has begun with.
    pub fn message_bytes(&self) -> Option<u64> {
        self.active.as_ref().and_then(Active::known_bytes)
    }

    /// While a message comes in by multicast: the bytes up to the last datagram so far, and those
    /// behind it.
    pub fn bytes_by_multicast(&self) -> Option<(u64, u64)> {
        let active = self.active.as_ref().filter(|active| !active.receiver.is_over())?;
        let payload_bytes = u64::from(active.cut.payload_bytes());
        let received =
            (u64::from(active.receiver.multicast_end()) * payload_bytes).min(active.cut.message_bytes());
        Some((received, active.cut.message_bytes() - received))
    }

    /// Bytes that wait for broadcasts that have not begun.
    pub fn early_bytes(&self) -> usize {
        self.early.bytes()
    }

    /// The counts of what has happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

#[cfg(test)]
mod size_tests;
