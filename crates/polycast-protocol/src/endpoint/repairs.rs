//! Repairs by datagrams: what comes in, and what goes out. Why and when: `datagram_repair.rs`.

use super::active::Gate;
use super::{Action, Active, Endpoint, Membership};
use crate::data::Data;
use crate::datagram_repair::{DONE_BYTES, Due, URGENT_DONES, read_done, read_request};
use crate::kept::Answer;
use crate::message::Body;
use crate::spec::Form;
use crate::wire::{
    FLAG_AGAIN, FLAG_ANSWER, FLAG_KNOWS_END, FLAG_LAST, FLAG_LEAVE, FLAG_REPEATED, HEADER_BYTES, Header,
    Kind, LENGTH_BYTES, seal,
};
use polycast_units::Nanos;

/// The most messages of its sender that a done by multicast may overtake. The node has to receive
/// them in whatever it does next.
const MAX_OVERTAKEN: u64 = 32;
/// Bytes of a datagram with a done.
const DONE_DATAGRAM_BYTES: usize = HEADER_BYTES + DONE_BYTES;

/// The numbers of messages from a node to its predecessor, but for loss probes, which may follow
/// each; since the communicator was made.
#[derive(Debug, Default)]
pub(super) struct TowardsRoot {
    /// Messages that this node has sent.
    pub sent: u64,
    /// Messages that this node has taken from its successor.
    taken: u64,
    /// Messages that the successor said it had sent, when its last done came by multicast.
    announced: u64,
}

impl TowardsRoot {
    /// A message has been taken from the successor.
    pub fn took(&mut self, body: &Body<'_>) {
        self.taken += u64::from(matches!(body, Body::Request(_) | Body::Done | Body::Deaf));
    }

    /// Messages of the successor that are still under way, with the probes behind them.
    pub fn to_come(&self) -> usize {
        2 * self.announced.saturating_sub(self.taken).min(MAX_OVERTAKEN) as usize
    }

    /// The successor is done, and has sent `sent` messages; false if too many of them are under way
    /// for this node to leave.
    fn announce(&mut self, sent: u64) -> bool {
        let is_near = sent.saturating_sub(self.taken) <= MAX_OVERTAKEN;
        if is_near {
            self.announced = self.announced.max(sent);
        }
        is_near
    }
}

impl Endpoint {
    /// Handles a datagram that nodes tell each other, of whatever broadcast.
    pub(super) fn on_repair_datagram(&mut self, header: &Header, payload: &[u8], now: Nanos) {
        let ahead = header.operation.wrapping_sub(self.operation) as i64;
        if header.kind == Kind::Question {
            // Of a broadcast that this node has not begun it asks in vain.
            self.on_question(header, ahead == 0, now);
        } else if ahead < 0 {
            self.counters.late += 1;
            if let (Kind::Request, Some(runs)) = (header.kind, read_request(payload)) {
                self.loss_probe.saw_loss();
                let by_successor = self.is_successor(header.fragment);
                let is_repeated = header.flags & FLAG_REPEATED != 0;
                self.kept.is_asked(header.operation, runs, by_successor, is_repeated, now);
            }
        } else if ahead == 0 && self.active.is_some() {
            self.use_repair_datagram(header, payload, now);
        } else if header.kind == Kind::Done && self.is_successor(header.fragment) {
            self.counters.no_room += u64::from(!self.early.keep(*header, payload));
        }
        // Whoever asks for what this node does not have asks again, by MPI.
    }

    fn is_successor(&self, other: u32) -> bool {
        other == (self.membership.node + 1) % self.membership.nodes
    }

    /// Handles a question: a node waits for a word of its successor, or the root for one of the
    /// receiver that was drawn. That says nothing of losses, since those awaited may be late. But a
    /// word that is asked for long after it was said is stuck.
    fn on_question(&mut self, header: &Header, is_of_this: bool, now: Nanos) {
        let Membership { node, nodes, payload_bytes, .. } = self.membership;
        let is_predecessor = header.fragment == (node + nodes - 1) % nodes;
        let is_root = |active: &Active| header.fragment == (node + nodes - active.position) % nodes;
        let may_say_done = is_predecessor && payload_bytes as usize >= DONE_BYTES;
        let may_say_arrived = is_of_this && self.active.as_ref().is_some_and(is_root);
        if may_say_done && self.said.is_asked_for_done(header.operation, now) {
            self.loss_probe.saw_loss();
            self.loss_probe.waited_long();
        } else if may_say_arrived && self.said.is_asked_for_arrived(now) {
            self.loss_probe.saw_loss();
        }
    }

    /// Handles a datagram that nodes tell each other, of the broadcast in progress.
    pub(super) fn use_repair_datagram(&mut self, header: &Header, payload: &[u8], now: Nanos) {
        let Membership { node, nodes, .. } = self.membership;
        if header.kind == Kind::Question {
            return self.on_question(header, true, now);
        }
        self.deaf.is_told |= header.flags & FLAG_LEAVE != 0;
        let is_successor = self.is_successor(header.fragment);
        let is_drawn = self.expects_arrival_from() == Some(header.fragment);
        let Some(active) = self.active.as_mut().filter(|active| active.failed.is_none()) else { return };
        if header.kind == Kind::Arrived {
            if is_drawn {
                active.gate = Gate::Open;
                self.word_time.begin();
                self.loss_probe.saw_loss();
            }
            return;
        }
        self.loss_probe.saw_loss();
        let own = active.position;
        let is_successor = is_successor && own + 1 < nodes;
        if header.kind == Kind::Done {
            let sent = read_done(payload).filter(|_| is_successor);
            if sent.is_some_and(|sent| self.towards_root.announce(sent)) {
                self.word_time.begin();
                active.ring.successor_is_done();
                active.repair.successor_is_done();
            }
            return;
        }
        active.question.heard_repair(now);
        let Some(runs) = read_request(payload).filter(|_| header.fragment < nodes) else { return };
        let knows_end = header.flags & FLAG_KNOWS_END != 0;
        if is_successor {
            let is_over = active.is_over();
            active.repair.successor_asks(runs, knows_end, is_over, &active.receiver, now);
        } else {
            let root = (node + nodes - own) % nodes;
            let position = (header.fragment + nodes - root) % nodes;
            active.repair.heard_request(position, own, runs, knows_end, &active.receiver, now);
        }
    }

    /// A batch of datagrams that repair, if any are due.
    pub(super) fn next_repair(
        &mut self,
        now: Nanos,
        data: &Data<'_>,
        buffer: &mut Vec<u8>,
    ) -> Option<Action> {
        if self.next_word(now, buffer) {
            let datagram_bytes =
                if buffer.len() == HEADER_BYTES { HEADER_BYTES } else { DONE_DATAGRAM_BYTES };
            return Some(self.multicasts(now, datagram_bytes, buffer));
        }
        if self.kept.is_due() && self.next_kept(buffer) {
            return Some(self.multicasts(now, buffer.len(), buffer));
        }
        let Membership { job, communicator, node, batch_datagrams, ref key, .. } = self.membership;
        let active = self.active.as_mut()?;
        let due = active.repair.due(now, &active.receiver)?;
        let flags = active.flags(self.deaf.is_told);
        let like =
            Header { kind: Kind::Data, flags, job, communicator, operation: self.operation, fragment: node };
        let full = HEADER_BYTES + self.membership.payload_bytes as usize;
        let mut datagram_bytes = full;
        buffer.clear();
        match due {
            Due::Done => {
                let payload = self.towards_root.sent.to_le_bytes();
                datagram_bytes = DONE_DATAGRAM_BYTES;
                for _ in 0..active.repair.take_done() {
                    seal(&Header { kind: Kind::Done, ..like }, &payload, key, buffer);
                }
            }
            Due::End => {
                active.repair.take_end();
                let (flags, fragment) = (flags | FLAG_AGAIN | FLAG_ANSWER, active.cut.fragments());
                let bytes = active.cut.message_bytes().to_le_bytes();
                let has_room = active.cut.payload_bytes() as usize >= LENGTH_BYTES;
                let payload = if has_room { &bytes[..] } else { &[] };
                seal(&Header { kind: Kind::End, flags, fragment, ..like }, payload, key, buffer);
            }
            Due::Request => {
                // A push has none.
                let is_push = active.spec.form == Form::Push;
                let knows_end = if active.receiver.is_over() || is_push { FLAG_KNOWS_END } else { 0 };
                let repeated = if active.repair.is_repeated() { FLAG_REPEATED } else { 0 };
                active.repair.take_request(now, &active.receiver, &mut self.scratch);
                let header = Header { kind: Kind::Request, flags: flags | knows_end | repeated, ..like };
                seal(&header, &self.scratch, key, buffer);
                self.counters.urgent_requests += 1;
                self.loss_probe.waited_long();
            }
            Due::Answers => {
                let flags = flags | FLAG_AGAIN | FLAG_ANSWER;
                for _ in 0..batch_datagrams {
                    let Some(fragment) = active.repair.take_answer() else { break };
                    let Some(range) = active.cut.range(fragment) else { continue };
                    let is_short = range.len() < active.cut.payload_bytes() as usize;
                    let last = if active.cut.is_last(fragment) { FLAG_LAST } else { 0 };
                    let header = Header { flags: flags | last, fragment, ..like };
                    seal(&header, &data.bytes()[range], key, buffer);
                    self.counters.answers += 1;
                    // Those of a batch have one size, but for the last.
                    if is_short {
                        break;
                    }
                }
            }
        }
        Some(self.multicasts(now, datagram_bytes, buffer))
    }

    fn multicasts(&mut self, now: Nanos, datagram_bytes: usize, buffer: &[u8]) -> Action {
        self.pacer.sent(now, buffer.len());
        let datagram_bytes = datagram_bytes.min(buffer.len());
        self.counters.sent += buffer.len().div_ceil(datagram_bytes) as u64;
        Action::Datagrams { datagram_bytes }
    }

    /// Puts a fragment of an earlier broadcast into the buffer; false if none is due. Of that
    /// broadcast's flags it has only the order to leave: a node that asks for a fragment has
    /// something of the broadcast already.
    fn next_kept(&mut self, buffer: &mut Vec<u8>) -> bool {
        let Membership { job, communicator, ref key, .. } = self.membership;
        buffer.clear();
        if let Some(Answer { operation, fragment, tells_to_leave, is_last, bytes }) = self.kept.take_answer()
        {
            let flags = FLAG_AGAIN | FLAG_ANSWER;
            let flags = flags | if tells_to_leave { FLAG_LEAVE } else { 0 };
            let flags = flags | if is_last { FLAG_LAST } else { 0 };
            seal(
                &Header { kind: Kind::Data, flags, job, communicator, operation, fragment },
                bytes,
                key,
                buffer,
            );
            self.counters.answers += 1;
        }
        !buffer.is_empty()
    }

    /// Puts a word that is said again, or a question for one, into the buffer; false if none is
    /// due. Neither has flags: what this node knows it may have learned in a later broadcast than
    /// theirs.
    fn next_word(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> bool {
        let Membership { job, communicator, node, ref key, .. } = self.membership;
        let Some(active) = self.active.as_mut() else { return false };
        let operation = self.operation;
        let like = Header { kind: Kind::Done, flags: 0, job, communicator, operation, fragment: node };
        buffer.clear();
        if let Some(operation) = self.said.take_done() {
            let payload = self.towards_root.sent.to_le_bytes();
            // This node may leave, and not hear the question again.
            (0..URGENT_DONES).for_each(|_| seal(&Header { operation, ..like }, &payload, key, buffer));
        } else if self.said.take_arrived() {
            seal(&Header { kind: Kind::Arrived, ..like }, &[], key, buffer);
        } else if !active.repair.is_due()
            && !self.kept.is_due()
            && active.question.ask_at().is_some_and(|at| at <= now)
        {
            active.question.asks();
            self.counters.urgent_requests += 1;
            seal(&Header { kind: Kind::Question, ..like }, &[], key, buffer);
        }
        !buffer.is_empty()
    }
}

impl Active {
    /// True if this node knows that everything has been sent.
    fn is_over(&self) -> bool {
        match &self.sender {
            Some(sender) => sender.is_through(),
            None => self.receiver.is_over() || self.receiver.is_complete(),
        }
    }
}
