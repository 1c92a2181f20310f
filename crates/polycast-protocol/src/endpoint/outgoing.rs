//! What is to be done next.

use super::active::{Active, Gate};
use super::{Action, Capacity, Endpoint, Membership, Peer};
use crate::data::Data;
use crate::fragmentation::Fragmentation;
use crate::kept::Pushed;
use crate::message::{self, MessageHeader};
use crate::sender::Sender;
use crate::spec::Form;
use crate::wire::{HEADER_BYTES, Header, Kind};
use polycast_units::Nanos;

/// The longest message that pushes fragments: they arrive in pieces, so that the successor can forward the first while the
/// last is under way.
const MAX_PUSH_BYTES: usize = 4 << 10;

impl Endpoint {
    /// The next action, with `buffer` replaced by the datagrams or by the message. `None` if there
    /// is nothing to do that there is room for.
    pub fn next_action(
        &mut self,
        now: Nanos,
        capacity: Capacity,
        data: &Data<'_>,
        buffer: &mut Vec<u8>,
    ) -> Option<Action> {
        let active = self.active.as_mut()?;
        if capacity.has_departed && std::mem::take(&mut active.awaits_departure) {
            active.ring.saw_end(now, false);
        }
        if active.question.waits(active.awaited(), now) {
            self.word_time.asked(now);
        }
        let is_push = active.spec.form == Form::Push;
        self.keep_copy(data);
        if is_push {
            // The fast way first.
            let datagrams = self.next_datagrams(now, capacity, data, buffer);
            return datagrams.or_else(|| self.next_message(now, capacity, data, buffer));
        }
        let message = self.next_message(now, capacity, data, buffer);
        message.or_else(|| self.next_datagrams(now, capacity, data, buffer))
    }

    /// Keeps a copy of a pushed message, when nothing waits for it any more. Every node but the
    /// last has something to send when it has all of the message.
    fn keep_copy(&mut self, data: &Data<'_>) {
        let Some(active) = self.active.as_mut().filter(|active| !active.is_kept) else { return };
        if active.receiver.is_complete() && active.sender.as_ref().is_none_or(Sender::is_through) {
            active.is_kept = true;
            // Who is through with a broadcast knows what it tells.
            let (operation, cut, is_root) = (self.operation, active.cut, active.position == 0);
            let pushed = Pushed { operation, cut, is_root, tells_to_leave: self.deaf.is_told };
            self.kept.keep(
                pushed,
                &data.bytes()[..cut.message_bytes() as usize],
                self.loss_probe.sees_losses(),
            );
        }
    }

    fn next_message(
        &mut self,
        now: Nanos,
        capacity: Capacity,
        data: &Data<'_>,
        buffer: &mut Vec<u8>,
    ) -> Option<Action> {
        let like_all = self.header(0);
        let active = self.active.as_mut().filter(|_| capacity.message)?;
        let message_bytes = active.known_bytes().unwrap_or(0);
        let header = MessageHeader { message_bytes, root_waited: active.root_waited, ..like_all };
        if let Some(to) = self.loss_probe.take() {
            message::encode_loss_probe(&header, buffer);
            return Some(Action::Message { to });
        }
        let to = if std::mem::take(&mut active.arrival_is_due) {
            message::encode_arrived(&header, &std::mem::take(&mut self.report), buffer);
            self.said.arrived(now);
            let Membership { node, nodes, .. } = self.membership;
            Peer::Drawn((node + nodes - active.position) % nodes)
        } else if let Some(failed) = &mut active.failed {
            if std::mem::take(&mut failed.predecessor_is_to_know) {
                message::encode_done(&header, buffer);
                self.said.done(self.operation, now);
                Peer::Predecessor
            } else if std::mem::take(&mut failed.successor_is_to_know) {
                message::encode_failed(&header, buffer);
                Peer::Successor
            } else {
                return None;
            }
        } else if self.deaf.is_due() {
            // Before the done, so that a root that waits for that knows it when it begins its next broadcast.
            self.deaf.is_said = true;
            message::encode_deaf(&header, buffer);
            Peer::Predecessor
        } else if self.left_behind.may_leave() && active.ring.says_done(&active.receiver) {
            if self.loss_probe.sees_losses() {
                let is_urgent = self.loss_probe.is_urgent();
                active.repair.says_done(active.cut, self.membership.nodes, is_urgent);
            }
            message::encode_done(&header, buffer);
            self.said.done(self.operation, now);
            Peer::Predecessor
        } else if active.ring.has_to_forward() && active.gate.is_open(now) && active.has_source() {
            // A root that waits with the multicast waits with the ring, too: what it would push first comes in the way of what
            // all wait for.
            let runs = active.ring.forward(fragments_per_message(active.spec.form, active.cut));
            message::encode_fragments(&header, runs, active.cut, data.bytes(), buffer);
            Peer::Successor
        } else if active.ring.requests(&active.receiver) {
            let runs = active.ring.runs();
            message::encode_request(&header, runs, buffer);
            runs.iter().for_each(|run| self.left_behind.expect(run.count));
            self.counters.requests += 1;
            self.loss_probe.saw_loss();
            active.repair.news(&active.receiver, now);
            active.repair.ring_is_asked(now);
            self.answer_time.asked(now);
            Peer::Predecessor
        } else if active.ring.says_end(now) {
            message::encode_end(&header, buffer);
            Peer::Successor
        } else {
            return None;
        };
        self.counters.messages += 1;
        self.towards_root.sent += u64::from(to == Peer::Predecessor);
        self.loss_probe.sent(to);
        Some(Action::Message { to })
    }

    /// Replaces `message` by the last message of this node, to both neighbours, when its
    /// communicator goes.
    pub fn bye(&self, message: &mut Vec<u8>) {
        message::encode_bye(&self.header(0), message);
    }

    fn header(&self, message_bytes: u64) -> MessageHeader {
        let Membership { communicator, .. } = self.membership;
        MessageHeader {
            communicator,
            operation: self.operation,
            message_bytes,
            root_waited: false,
            leaves: self.deaf.is_told,
            knows_of_deaf: self.deaf.is_known,
        }
    }

    fn next_datagrams(
        &mut self,
        now: Nanos,
        capacity: Capacity,
        data: &Data<'_>,
        buffer: &mut Vec<u8>,
    ) -> Option<Action> {
        let may_send = capacity.datagrams && self.pacer.wait_until(now).is_none();
        self.active.as_ref().filter(|active| may_send && active.failed.is_none())?;
        let has_source = self.active.as_ref().is_some_and(Active::has_source);
        if has_source && let Some(repair) = self.next_repair(now, data, buffer) {
            return Some(repair);
        }
        let active = self.active.as_mut().filter(|active| active.gate.is_open(now))?;
        let flags = active.flags(self.deaf.is_told);
        let sender = active.sender.as_mut().filter(|sender| sender.can_send())?;
        if self.loss_probe.sees_losses() {
            sender.protect();
        }
        buffer.clear();
        let Membership { job, communicator, ref key, batch_datagrams, .. } = self.membership;
        let like =
            Header { kind: Kind::Data, flags, job, communicator, operation: self.operation, fragment: 0 };
        let count = sender.batch(batch_datagrams, &like, data.bytes(), key, &mut self.scratch, buffer);
        self.pacer.sent(now, buffer.len());
        active.awaits_departure = sender.is_through();
        self.counters.sent += u64::from(count);
        self.keep_copy(data);
        let full = HEADER_BYTES + self.membership.payload_bytes as usize;
        Some(Action::Datagrams { datagram_bytes: full.min(buffer.len()) })
    }

    /// The time from which there may be an action without anything coming in; `None` if never.
    /// Datagrams have no time while the socket has no room.
    pub fn deadline(&self, has_room: bool) -> Option<Nanos> {
        let active = self.active.as_ref()?;
        if !has_room {
            return active.ring.deadline();
        }
        let link = self.pacer.wait_until(Nanos(0));
        let may_send = match active.gate {
            Gate::Open => link,
            Gate::At(at) => link.max(Some(at)),
            // Only a message opens it.
            Gate::Arrival => None,
        };
        let is_sending = active.sender.as_ref().is_some_and(Sender::can_send);
        let datagrams = may_send.filter(|_| is_sending);
        let is_well = active.failed.is_none() && active.has_source();
        let is_due = active.repair.is_due() || self.said.is_due() || self.kept.is_due();
        let repairs = link.filter(|_| is_well && is_due);
        let asks = [active.repair.ask_at(&active.receiver), active.question.ask_at()];
        let asks = asks.into_iter().flatten().min().filter(|_| is_well);
        let asks = asks.map(|at| link.map_or(at, |link| at.max(link)));
        [datagrams, repairs, asks, active.ring.deadline()].into_iter().flatten().min()
    }
}

/// The number of fragments in one message to the successor: at least one, however large.
fn fragments_per_message(form: Form, cut: Fragmentation) -> usize {
    let most = match form {
        Form::Push => MAX_PUSH_BYTES,
        Form::Pull => message::MAX_TO_SUCCESSOR_BYTES,
    };
    // Every fragment may be a run of its own.
    let each = message::fragments_bytes(1, 1, cut) - message::fragments_bytes(0, 0, cut);
    ((most - message::fragments_bytes(0, 0, cut)) / each).max(1)
}
