//! What comes in, and what it changes.

use super::active::Gate;
use super::size::Told;
use super::{Delivery, Endpoint, Mismatch};
use crate::data::Data;
use crate::fragmentation::Run;
use crate::message::{self, Body, Runs};
use crate::parity::Class;
use crate::receiver::Seen;
use crate::spec::Form;
use crate::wire::{FLAG_AGAIN, FLAG_ANSWER, FLAG_LEAVE, FLAG_WAITED, Header, Kind};
use polycast_units::Nanos;

/// The largest part of a message that is multicast again for the successor, one in this many. A
/// successor that misses more was late, or multicast does not reach it: no reason to send the
/// message to all others again.
const AGAIN_PER_MESSAGE: u32 = 8;

impl Endpoint {
    /// Takes a datagram that [`wire::open`](crate::wire::open) has accepted for this communicator.
    /// Without a broadcast in progress, `data` is not touched.
    pub fn on_datagram(
        &mut self,
        header: &Header,
        payload: &[u8],
        now: Nanos,
        data: &mut Data<'_>,
    ) -> Result<(), Mismatch> {
        // An old probe that somebody sends again has a right tag and no broadcast.
        if header.kind == Kind::Probe {
            return Ok(());
        }
        self.counters.received += 1;
        if header.kind.is_of_repairs() {
            self.on_repair_datagram(header, payload, now);
            return Ok(());
        }
        let is_answer = header.flags & FLAG_ANSWER != 0;
        let ahead = header.operation.wrapping_sub(self.operation) as i64;
        if ahead < 0 {
            self.counters.late += 1;
            if !is_answer {
                self.hearing.heard_late(ahead.unsigned_abs());
            }
        } else if ahead == 0 && self.active.is_some() {
            return self.use_datagram(header, payload, now, data);
        } else {
            if !is_answer {
                self.hearing.heard_early(ahead as u64 - u64::from(self.active.is_some()));
            }
            self.counters.no_room += u64::from(!self.early.keep(*header, payload));
        }
        Ok(())
    }

    pub(super) fn use_datagram(
        &mut self,
        header: &Header,
        payload: &[u8],
        now: Nanos,
        data: &mut Data<'_>,
    ) -> Result<(), Mismatch> {
        let mismatch = self.mismatch();
        if header.kind.is_of_repairs() {
            self.use_repair_datagram(header, payload, now);
            return Ok(());
        }
        // An answer says nothing of the root's multicast.
        let is_answer = header.flags & FLAG_ANSWER != 0;
        if !is_answer {
            self.hearing.heard();
        }
        self.deaf.is_told |= header.flags & FLAG_LEAVE != 0;
        let Some(active) = self.active.as_mut().filter(|active| active.failed.is_none()) else {
            return Ok(());
        };
        active.root_waited |= header.flags & FLAG_WAITED != 0;
        if is_answer && header.kind == Kind::Data {
            active.repair.heard_answer();
        }
        match active.hears(header, payload, &mut self.left_behind) {
            Told::Fits if active.has_room(data) => {}
            Told::SaysNothing => return Ok(()),
            Told::Fits | Told::Contradicts => return Err(mismatch),
        }
        match header.kind {
            Kind::Data => match active.receiver.take(header.fragment, payload, data) {
                Seen::New => {
                    active.ring.saw(header.fragment);
                    active.repair.news(&active.receiver, now);
                    if is_answer {
                        active.repaired += 1;
                        self.loss_probe.waited_long();
                    }
                    self.counters.repaired += u64::from(is_answer);
                    self.counters.useful += u64::from(!is_answer);
                }
                Seen::Again => self.counters.duplicate += 1,
                Seen::Mismatch => return Err(mismatch),
            },
            Kind::End => active.saw_end(now),
            Kind::Parity => {
                let class = Class::from_flags(header.flags, active.cut);
                active.receiver.take_parity(class, payload);
                // As good as the end behind it, which may be lost.
                if class.is_last() && active.spec.form == Form::Pull {
                    active.saw_end(now);
                }
            }
            // Taken above.
            Kind::Probe | Kind::Request | Kind::Done | Kind::Question | Kind::Arrived => return Ok(()),
        }
        if header.flags & FLAG_AGAIN == 0 {
            active.repair.streams(now);
            active.receiver.saw_multicast(header.fragment);
        } else {
            self.loss_probe.saw_loss();
            active.question.heard_repair(now);
        }
        self.after_arrival(now, data);
        Ok(())
    }

    /// Takes a message from another node.
    pub fn on_message(
        &mut self,
        message: &[u8],
        now: Nanos,
        data: &mut Data<'_>,
    ) -> Result<Delivery, Mismatch> {
        let mismatch = self.mismatch();
        let (header, body) = message::decode(message).ok_or(mismatch)?;
        if header.communicator != self.membership.communicator {
            return Ok(Delivery::Taken);
        }
        if let Body::Arrived(report) = body {
            // Of use for the next decisions even if its broadcast is over.
            self.learned.learn(&report);
        }
        let ahead = header.operation.wrapping_sub(self.operation) as i64;
        if ahead < 0 || ahead == 0 && self.active.is_some() {
            self.left_behind.came(&body, ahead == 0);
        }
        if ahead <= 0 {
            // Also from a broadcast that this node has left.
            self.deaf.is_known |= header.knows_of_deaf || body == Body::Deaf;
        }
        if ahead < 0 || ahead == 0 && self.active.is_some() {
            self.towards_root.took(&body);
        }
        if body == Body::Bye {
            // The last on its line, for whoever takes the communicator down.
            return Ok(Delivery::Early);
        }
        if ahead < 0 || body == Body::LossProbe {
            return Ok(Delivery::Taken);
        }
        let Some(active) = self.active.as_mut().filter(|_| ahead == 0) else { return Ok(Delivery::Early) };
        self.deaf.is_told |= header.leaves;
        if active.failed.is_some() {
            return Ok(Delivery::Taken);
        }
        let is_well = match body {
            Body::Done | Body::Request(_) | Body::Arrived(_) | Body::Deaf => true,
            Body::Failed => active.receiver.is_complete(),
            // Its sender does not know how many more there are.
            Body::Fragments(..) if header.message_bytes == 0 => true,
            _ => active.learns_size(header.message_bytes, &mut self.left_behind) && active.has_room(data),
        };
        if !is_well {
            return Err(mismatch);
        }
        active.root_waited |= header.root_waited;
        match body {
            Body::Fragments(runs, bytes) => self.on_fragments(runs.iter(), bytes, now, data)?,
            Body::End => {
                active.saw_end(now);
                active.ring.saw_end(now, true);
            }
            Body::Request(runs) => self.on_request(runs),
            Body::Done => {
                self.word_time.answered(now);
                active.ring.successor_is_done();
                active.repair.successor_is_done();
            }
            Body::Arrived(_) => {
                self.word_time.answered(now);
                active.gate = Gate::Open;
            }
            Body::Bye | Body::LossProbe | Body::Failed | Body::Deaf => {}
        }
        Ok(Delivery::Taken)
    }

    fn on_fragments(
        &mut self,
        runs: impl Iterator<Item = Run>,
        mut bytes: &[u8],
        now: Nanos,
        data: &mut Data<'_>,
    ) -> Result<(), Mismatch> {
        let mismatch = self.mismatch();
        let Some(active) = &mut self.active else { return Ok(()) };
        self.answer_time.answered(now);
        active.repair.ring_answers(now);
        for fragment in runs.flat_map(Run::fragments) {
            // Who has the last one knows the size, and says it.
            let length = match active.knows_size {
                true => active.cut.range(fragment).ok_or(mismatch)?.len(),
                false => active.cut.payload_bytes() as usize,
            };
            let (payload, rest) = bytes.split_at_checked(length).ok_or(mismatch)?;
            bytes = rest;
            if !active.knows_size && !active.sees_more_than(fragment) {
                return Err(mismatch);
            }
            match active.receiver.take(fragment, payload, data) {
                Seen::New => {
                    active.ring.saw(fragment);
                    active.repair.news(&active.receiver, now);
                    active.repaired += 1;
                    self.counters.repaired += 1;
                }
                Seen::Again => {}
                Seen::Mismatch => return Err(mismatch),
            }
        }
        self.after_arrival(now, data);
        Ok(())
    }

    fn on_request(&mut self, runs: Runs<'_>) {
        let Some(active) = &mut self.active else { return };
        self.loss_probe.saw_loss();
        runs.iter().for_each(|run| active.ring.successor_asks(run, &active.receiver));
        let asked_for = runs.iter().map(|run| u64::from(run.count)).sum::<u64>();
        let most = u64::from(active.cut.fragments() / AGAIN_PER_MESSAGE + 1);
        if let Some(sender) = &mut active.sender
            && active.sent_again + asked_for <= most
        {
            active.sent_again += asked_for;
            let fragments = runs.iter().flat_map(Run::fragments);
            fragments.filter(|f| *f < active.cut.fragments()).for_each(|f| sender.send_again(f));
        }
    }

    fn after_arrival(&mut self, now: Nanos, data: &mut Data<'_>) {
        // A root has everything, and has said the end when all it sends has left it, not when somebody answers for it.
        let Some(active) = self.active.as_mut().filter(|active| active.sender.is_none()) else { return };
        while let Some(fragment) = active.receiver.restore(data) {
            active.ring.saw(fragment);
            active.repair.news(&active.receiver, now);
            active.repaired += 1;
            self.counters.restored += 1;
        }
        if !active.ring.is_owed() {
            active.repair.ring_is_quiet();
        }
        if active.receiver.is_complete() || active.receiver.is_over() {
            active.ring.saw_end(now, false);
        }
        self.deaf.is_known |= active.receiver.is_complete() && self.hearing.is_deaf(active.datagrams);
    }

    fn mismatch(&self) -> Mismatch {
        let expected = self.active.as_ref().map_or(0, |active| active.cut.message_bytes());
        Mismatch { operation: self.operation, expected }
    }
}
