//! Repairs by datagrams, beside the ring: for what its messages do not bring in time.
//!
//! A packet of MPI's connections that got lost twice stays away for 200 ms, and all behind it. So a node that has heard nothing new
//! for a while asks by multicast for what it misses, and its predecessor answers by multicast:
//!
//! ```text
//!     predecessor                                    node                        others, further from the root
//!         │ ◀─ ─ ─ ─ ─ ─ ─ ─  request 3, 7 (MPI) ─ ─ ─ │ stuck                        │ miss 7, too
//!         │                                            │ nothing new for 8 ms         │
//!         │ ◀══════════════════ request 3, 7 ══════════╪════════════════════════════▶ │ somebody nearer asks for it: wait
//!         │ ═══════════════════════ 3, 7 ══════════════╪════════════════════════════▶ │
//! ```
//!
//! Invariants
//! 1. Nothing depends on it: the ring asks for, brings and says everything as if there were no such datagrams, except that a done may
//!    come this way before it comes that way.
//! 2. Of those that miss a fragment nobody keeps the one nearest to the root from asking, and its predecessor has it, and is there.
//! 3. A node asks at most [`MAX_ATTEMPTS`] times before it hears something new. It answers a fragment once in [`ANSWER_ONCE_IN`], and
//!    in a broadcast in all at most what [`ANSWERED_PER_MESSAGE`] and [`ANSWERED_ANYWAY`] say: who sends requests again that he has recorded gets no
//!    flood out of it.

use std::collections::VecDeque;

use super::answer_time::AnswerTime;
use super::fragmentation::{Fragmentation, Run, push_to_runs};
use super::message::{RUN_BYTES, Runs};
use super::receiver::Receiver;
use super::root_sync::mixed;
use super::spec::Form;
use polycast_units::Nanos;

/// The least and the most time for which a node hears nothing new before it asks. More than the
/// least where the ring's answers, or pauses of the message on its way, take longer.
const PATIENCE: Nanos = Nanos::from_micros(8_000);
const MAX_PATIENCE: Nanos = Nanos::from_micros(64_000);
/// Silence begins after this many times the latest answer times of the ring, or this many times the
/// longest pause of the message.
const ANSWER_TIMES: u64 = 4;
const PAUSES: u64 = 2;
/// A node waits this many times as long while the message is still on its way: then mostly the root
/// is silent, and nobody could help.
const ON_ITS_WAY: u64 = 4;
/// The most requests without anything new, each but the second after twice the time of the one
/// before: after a quarter of a second TCP helps itself.
const MAX_ATTEMPTS: u32 = 6;
/// The spread of requests: nodes that lose the same each wait for a time of their own, so that most
/// of them hear another one's request before they send theirs.
const SPREAD_PER_NODE: Nanos = Nanos::from_micros(100);
const MAX_SPREAD: Nanos = Nanos::from_micros(8_000);
/// The most fragments that are asked for at once.
const MAX_ASKED: u32 = 64;
/// A fragment is answered once in this time.
pub(super) const ANSWER_ONCE_IN: Nanos = Nanos::from_micros(4_000);
/// The most fragments that all nodes together answer in a broadcast: one in this many of the
/// message, and so many more, but for what the nodes do not hear of each other. Where all
/// connections stand still, all nodes ask, and each answer goes to all.
const ANSWERED_PER_MESSAGE: u32 = 8;
const ANSWERED_ANYWAY: u32 = 64;
/// The least number of fragments for each node with which a done also goes by multicast: then the
/// dones of all nodes are a few per cent of the message.
const FRAGMENTS_PER_DONE: u32 = 4;
/// The copies of a done that are multicast at once if its sender had to wait for answers by
/// multicast lately, so that its connection to the predecessor may stand still: the sender leaves,
/// and does not repeat it.
pub(super) const URGENT_DONES: u32 = 4;
/// Bytes of a done's payload.
pub(super) const DONE_BYTES: usize = 8;

/// The fragments in the payload of a request; `None` if it is none.
pub fn read_request(payload: &[u8]) -> Option<Runs<'_>> {
    Runs::from_bytes(payload)
}

/// The messages to its predecessor that a node has sent when it says "done"; `None` if the payload is none of a done.
pub fn read_done(payload: &[u8]) -> Option<u64> {
    payload.try_into().ok().map(u64::from_le_bytes)
}

/// The kind of datagrams that are to be multicast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// A done: the node has everything.
    Done,
    /// Fragments that the successor has asked for.
    Answers,
    /// An end: the successor has asked whether there are more fragments.
    End,
    /// A request for the fragments that the node misses.
    Request,
}

/// The requests and answers of one node by multicast in one broadcast.
#[derive(Debug)]
pub struct DatagramRepair {
    /// True if a request fits into a datagram.
    is_used: bool,
    form: Form,
    has_predecessor: bool,
    fragments: u32,
    most_runs: usize,
    spread: Nanos,
    /// Gives each node, broadcast and attempt a time of its own.
    seed: u64,
    answer_time: Nanos,
    /// The time at which the root's multicast last brought something, and the longest time between
    /// two of these.
    streamed_at: Option<Nanos>,
    longest_pause: Nanos,
    /// The silence until something new comes, whatever brings it.
    anything: Silence,
    /// The silence until the ring brings something of what it owes: a connection may stand still
    /// while the multicast goes on.
    ring: Silence,
    answers: VecDeque<u32>,
    end_is_due: bool,
    /// The copies of a done that are to be multicast.
    dones_due: u32,
    /// Fragments that may still be answered, by this node or by others.
    may_answer: u32,
    /// Fragments answered since `answered_since`, and whether the end was.
    answered: Vec<u32>,
    has_answered_end: bool,
    answered_since: Nanos,
}

impl DatagramRepair {
    /// The repairs of the node at `position` from the root, in broadcast `operation`.
    pub fn new(
        form: Form,
        cut: Fragmentation,
        position: u32,
        nodes: u32,
        operation: u64,
        answers: AnswerTime,
    ) -> DatagramRepair {
        let most_runs = cut.payload_bytes() as usize / RUN_BYTES;
        DatagramRepair {
            is_used: most_runs > 0,
            form,
            has_predecessor: position > 0,
            fragments: cut.fragments(),
            most_runs,
            spread: Nanos(SPREAD_PER_NODE.0 * u64::from(nodes)).min(MAX_SPREAD),
            seed: mixed(operation ^ u64::from(position) << 40),
            answer_time: answers.mean(),
            streamed_at: None,
            longest_pause: Nanos(0),
            anything: Silence::default(),
            ring: Silence::default(),
            answers: VecDeque::new(),
            end_is_due: false,
            dones_due: 0,
            may_answer: cut.fragments() / ANSWERED_PER_MESSAGE + ANSWERED_ANYWAY,
            answered: Vec::new(),
            has_answered_end: false,
            answered_since: Nanos(0),
        }
    }

    /// Goes on with a message of another length.
    pub fn recut(&mut self, cut: Fragmentation) {
        let [before, after] = [self.fragments, cut.fragments()].map(|all| all / ANSWERED_PER_MESSAGE);
        self.may_answer = (self.may_answer + after).saturating_sub(before);
        self.fragments = cut.fragments();
    }

    /// The most time by which a node may ask later than others, so that it hears their requests
    /// first.
    pub fn spread(&self) -> Nanos {
        self.spread
    }

    /// Begins to wait anew: something new has come, or has been asked for by MPI.
    pub fn news(&mut self, receiver: &Receiver, now: Nanos) {
        if self.may_ask() {
            self.anything.attempts = 0;
            self.wait_for_anything(receiver, now);
        }
    }

    /// Everything has been sent. A node that has waited for the ring long enough asks at once, but
    /// for the time that keeps nodes apart.
    pub fn multicast_is_over(&mut self, receiver: &Receiver, now: Nanos) {
        self.news(receiver, now);
        let own = now + self.own_spread(self.ring.attempts);
        self.ring.ask_at = self.ring.ask_at.map(|at| at.max(own));
    }

    /// The predecessor has been asked by MPI.
    pub fn ring_is_asked(&mut self, now: Nanos) {
        if self.may_ask() && self.ring.ask_at.is_none() {
            self.wait_for_ring(now);
        }
    }

    /// The predecessor has answered, by the ring.
    pub fn ring_answers(&mut self, now: Nanos) {
        if self.may_ask() {
            self.ring.attempts = 0;
            self.wait_for_ring(now);
        }
    }

    /// The predecessor owes nothing any more, by the ring.
    pub fn ring_is_quiet(&mut self) {
        self.ring = Silence::default();
    }

    fn may_ask(&self) -> bool {
        self.is_used && self.has_predecessor
    }

    /// The root's multicast has brought something, for the first time it has sent that.
    pub fn streams(&mut self, now: Nanos) {
        if let Some(before) = self.streamed_at.replace(now) {
            self.longest_pause = self.longest_pause.max(now - before);
        }
    }

    fn wait_for_anything(&mut self, receiver: &Receiver, now: Nanos) {
        // What is pushed is short, and nobody says that it has been sent.
        let is_over = receiver.is_over() || self.form == Form::Push;
        let on_its_way = if is_over { 1 } else { ON_ITS_WAY };
        let patience = Nanos(on_its_way * self.usual(PAUSES * self.longest_pause.0).0);
        let spread = self.own_spread(self.anything.attempts);
        self.anything.wait(patience, spread, now);
    }

    fn wait_for_ring(&mut self, now: Nanos) {
        let spread = self.own_spread(self.ring.attempts);
        self.ring.wait(self.usual(0), spread, now);
    }

    fn own_spread(&self, attempts: u32) -> Nanos {
        Nanos(mixed(self.seed.wrapping_add(u64::from(attempts))) % (self.spread.0 + 1))
    }

    /// The usual time of the ring's answers, generously, or `pauses` if that is more; within the
    /// limits of patience.
    fn usual(&self, pauses: u64) -> Nanos {
        Nanos((ANSWER_TIMES * self.answer_time.0).max(pauses)).clamp(PATIENCE, MAX_PATIENCE)
    }

    /// The time at which the node asks, if nothing new comes; `None` if it does not.
    pub fn ask_at(&self, receiver: &Receiver) -> Option<Nanos> {
        // What is asked for in the midst of a multicast comes in its way, on all links: parities bring much of it, too.
        let ring = self.ring.ask_at.filter(|_| receiver.is_over());
        let first = [self.anything.ask_at, ring].into_iter().flatten().min();
        first.filter(|_| !receiver.is_complete() && self.may_answer > 0)
    }

    /// The fragments that the node misses, as far as it knows: in a push nobody says that all has
    /// been sent.
    fn missing<'a>(&self, receiver: &'a Receiver) -> impl Iterator<Item = u32> + use<'a> {
        let is_push = self.form == Form::Push;
        let most = if is_push { u32::MAX } else { receiver.horizon() };
        receiver.all_absent().take_while(move |fragment| *fragment < most)
    }

    /// A fragment has come in answer to some node.
    pub fn heard_answer(&mut self) {
        self.may_answer = self.may_answer.saturating_sub(1);
    }

    /// A node at `position` has asked, this node being at `own`: one that is nearer to the root and
    /// misses the same spares this node its request.
    pub fn heard_request(
        &mut self,
        position: u32,
        own: u32,
        runs: Runs<'_>,
        knows_end: bool,
        receiver: &Receiver,
        now: Nanos,
    ) {
        if position >= own || self.ask_at(receiver).is_none() {
            return;
        }
        let is_same = match self.missing(receiver).next() {
            Some(first) => runs.iter().any(|run| run.fragments().contains(&first)),
            None => !knows_end,
        };
        if is_same {
            self.wait(receiver, now);
        }
    }

    /// The successor has asked for fragments. `knows_end`: it need not be told that everything has
    /// been sent. `is_over`: everything has been sent, as this node knows.
    pub fn successor_asks(
        &mut self,
        runs: Runs<'_>,
        knows_end: bool,
        is_over: bool,
        receiver: &Receiver,
        now: Nanos,
    ) {
        if !self.is_used {
            return;
        }
        if now - self.answered_since >= ANSWER_ONCE_IN {
            (self.answered_since, self.has_answered_end) = (now, false);
            self.answered.clear();
        }
        if is_over && !knows_end && !std::mem::replace(&mut self.has_answered_end, true) {
            self.end_is_due = true;
        }
        let existing = runs.iter().flat_map(Run::fragments).take_while(|fragment| *fragment < self.fragments);
        for fragment in existing.take(MAX_ASKED as usize) {
            if self.may_answer > 0 && receiver.has(fragment) && !self.answered.contains(&fragment) {
                self.may_answer -= 1;
                self.answered.push(fragment);
                self.answers.push_back(fragment);
            }
        }
    }

    /// The successor has everything.
    pub fn successor_is_done(&mut self) {
        self.answers.clear();
        self.end_is_due = false;
    }

    /// The node has said "done" by MPI while losses are seen. If that costs little, or `is_urgent`,
    /// it says so by multicast as well.
    pub fn says_done(&mut self, cut: Fragmentation, nodes: u32, is_urgent: bool) {
        let is_cheap = cut.fragments() / FRAGMENTS_PER_DONE >= nodes;
        if self.is_used
            && self.form == Form::Pull
            && (is_cheap || is_urgent)
            && cut.payload_bytes() as usize >= DONE_BYTES
        {
            self.dones_due = if is_urgent { URGENT_DONES } else { 1 };
        }
    }

    /// True if something is due that does not wait for a time.
    pub fn is_due(&self) -> bool {
        self.done_is_due() || self.end_is_due || !self.answers.is_empty()
    }

    /// True if a done is still to be multicast: the node cannot leave before.
    pub fn done_is_due(&self) -> bool {
        self.dones_due > 0
    }

    /// The kind of datagrams that is due next.
    pub fn due(&self, now: Nanos, receiver: &Receiver) -> Option<Due> {
        if self.done_is_due() {
            Some(Due::Done)
        } else if !self.answers.is_empty() {
            Some(Due::Answers)
        } else if self.end_is_due {
            Some(Due::End)
        } else {
            self.ask_at(receiver).filter(|at| *at <= now).map(|_| Due::Request)
        }
    }

    /// The number of times that [`Due::Done`] goes out now.
    pub fn take_done(&mut self) -> u32 {
        std::mem::take(&mut self.dones_due)
    }

    /// [`Due::End`] goes out.
    pub fn take_end(&mut self) {
        self.end_is_due = false;
    }

    /// The next fragment of [`Due::Answers`].
    pub fn take_answer(&mut self) -> Option<u32> {
        self.answers.pop_front()
    }

    /// True if the node has asked, and has heard nothing new since.
    pub fn is_repeated(&self) -> bool {
        self.anything.attempts.max(self.ring.attempts) > 0
    }

    /// [`Due::Request`] goes out: replaces `payload` by that of its datagram.
    pub fn take_request(&mut self, now: Nanos, receiver: &Receiver, payload: &mut Vec<u8>) {
        let mut runs = Vec::new();
        for fragment in self.missing(receiver).take(MAX_ASKED as usize) {
            push_to_runs(&mut runs, fragment);
            if runs.len() > self.most_runs {
                runs.pop();
                break;
            }
        }
        payload.clear();
        runs.iter().for_each(|run| run.write(payload));
        self.anything.attempts += 1;
        self.ring.attempts += u32::from(self.ring.ask_at.is_some());
        self.wait(receiver, now);
    }

    fn wait(&mut self, receiver: &Receiver, now: Nanos) {
        self.wait_for_anything(receiver, now);
        if self.ring.ask_at.is_some() {
            self.wait_for_ring(now);
        }
    }
}

/// The wait for something from one side.
#[derive(Debug, Default)]
struct Silence {
    /// The number of requests since something came.
    attempts: u32,
    ask_at: Option<Nanos>,
}

impl Silence {
    fn wait(&mut self, patience: Nanos, spread: Nanos, now: Nanos) {
        self.ask_at = (self.attempts < MAX_ATTEMPTS)
            .then(|| now + Nanos((patience.0 << self.attempts.saturating_sub(1)).saturating_add(spread.0)));
    }
}

#[cfg(test)]
mod tests;
