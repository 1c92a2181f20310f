//! The work of a node while it is in a call.

use std::borrow::Cow;

use polycast_core::units::Nanos;
use polycast_protocol::{Acted, Capacity};

use super::channel::MemoryChannel;
use super::check::Violation;
use super::faults::Sabotage;
use super::inbox::LANES;
use super::node::End;
use super::store::Id;
use super::world::{Step, World, WorldEvent};

#[derive(Clone, Copy, PartialEq)]
enum Task {
    Datagram,
    Message,
    Action,
}

/// The order in which a job's driver looks for work.
const USUAL_ORDER: [Task; 3] = [Task::Datagram, Task::Message, Task::Action];

impl World<'_> {
    /// Lets a node do what there is to do, one thing after the other as its processor allows.
    pub fn work(&mut self, index: u32) -> Step {
        loop {
            let node = &self.nodes[index as usize];
            if !node.is_calling() {
                return Ok(());
            }
            if node.busy_until > self.now {
                self.wake_at(index, node.busy_until);
                return Ok(());
            }
            // Some order is as good as another one; the protocol must not depend on it.
            let first = if self.is_watched { self.random.below(3) as usize } else { 0 };
            let mut tasks = USUAL_ORDER.iter().cycle().skip(first).take(USUAL_ORDER.len());
            let overhead = match tasks.find_map(|task| self.attempt(index, *task).transpose()) {
                None => break,
                Some(overhead) => overhead?,
            };
            let slowness = self.nodes[index as usize].slowness;
            let cost = overhead + Nanos(if slowness.0 > 0 { self.random.below(slowness.0) } else { 0 });
            self.nodes[index as usize].busy_until = self.now + cost;
        }
        self.sleep(index)
    }

    /// Does one thing of this kind, if there is one, and returns the processor time that it cost.
    fn attempt(&mut self, index: u32, task: Task) -> Result<Option<Nanos>, (u32, Violation)> {
        let hardware = self.scenario.hardware;
        if task == Task::Datagram {
            let first = self.nodes[index as usize].socket.first();
            return first
                .map(|id| self.read_datagram(index, id).map(|()| hardware.receive_overhead))
                .transpose();
        }
        for communicator in 0..self.scenario.communicators.len() {
            if self.nodes[index as usize].ends[communicator].active.is_none() {
                continue;
            }
            let has_worked = match task {
                Task::Message => self.read_message(index, communicator)?,
                _ => self.act(index, communicator)?,
            };
            if has_worked {
                let overhead =
                    if task == Task::Message { hardware.receive_overhead } else { hardware.send_overhead };
                return Ok(Some(overhead));
            }
        }
        Ok(None)
    }

    fn read_datagram(&mut self, index: u32, id: Id) -> Step {
        let fail = |violation| (index, violation);
        let node = &mut self.nodes[index as usize];
        node.socket.pop(self.store.bytes(id).len());
        let (opened, is_genuine) = self.store.open(id);
        let Ok((header, payload)) = opened else {
            self.totals.rejected += 1;
            let reject = opened.expect_err("matched above");
            self.timeline.say(self.now, index, || format!("drops a datagram: {reject:?}"));
            self.store.release(id);
            return Ok(());
        };
        if !is_genuine {
            return Err(fail(Violation::Forged));
        }
        let communicator = header.communicator as usize;
        self.timeline.say(self.now, index, || format!("datagram {header:?}"));
        let Some(end) = node.ends.get_mut(communicator) else {
            self.totals.rejected += 1;
            self.store.release(id);
            return Ok(());
        };
        let message = end.active.map_or(&[][..], |active| &self.messages[communicator][active.index].bytes);
        let mut data = End::data(end.active.as_ref(), &mut end.buffer, message);
        if self.scenario.faults.sabotage == Some(Sabotage::DamageAccepted) && !payload.is_empty() {
            self.scratch.clear();
            self.scratch.extend(payload.iter().map(|byte| byte ^ 1));
            end.endpoint.on_datagram(&header, &self.scratch, self.now, &mut data)
        } else {
            end.endpoint.on_datagram(&header, payload, self.now, &mut data)
        }
        .map_err(|mismatch| fail(mismatch.into()))?;
        self.store.release(id);
        self.look_at(index, communicator)
    }

    fn read_message(&mut self, index: u32, communicator: usize) -> Result<bool, (u32, Violation)> {
        let first_lane = if self.is_watched { self.random.below(LANES as u64) as usize } else { 0 };
        let end = &mut self.nodes[index as usize].ends[communicator];
        let content = end.active.map_or(&[][..], |active| &self.messages[communicator][active.index].bytes);
        let mut data = End::data(end.active.as_ref(), &mut end.buffer, content);
        let mut channel = MemoryChannel::new(&mut end.inbox, self.store, self.timeline, self.now, index);
        channel.first_lane = first_lane;
        let received = end.endpoint.receive_messages(self.now, &mut data, &mut channel);
        let has_any = received.map_err(|mismatch| (index, mismatch.into()))?;
        if let Some((lane, from)) = channel.taken.filter(|(lane, _)| *lane < 2) {
            self.post(index, communicator, lane, from);
        }
        if has_any {
            self.look_at(index, communicator)?;
        }
        Ok(has_any)
    }

    fn act(&mut self, index: u32, communicator: usize) -> Result<bool, (u32, Violation)> {
        let capacity = self.capacity(index, communicator);
        let end = &mut self.nodes[index as usize].ends[communicator];
        let Some(active) = end.active else { return Ok(false) };
        let mut out = std::mem::take(&mut self.out);
        let mut content = Cow::Borrowed(&self.messages[communicator][active.index].bytes[..]);
        if let Some(bytes) = self.scenario.there_bytes(active.broadcast, self.now - active.began) {
            end.endpoint.limit(bytes);
            if active.is_root && bytes < active.broadcast.bytes {
                // What is not there yet is something else.
                content.to_mut()[bytes as usize..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
        let data = End::data(Some(&active), &mut end.buffer, &content);
        let mut channel = MemoryChannel::new(&mut end.inbox, self.store, self.timeline, self.now, index);
        channel.has_capacity = capacity.message;
        let acted = end.endpoint.act(
            self.now,
            capacity.datagrams,
            capacity.has_departed,
            &data,
            &mut out,
            &mut channel,
        );
        let acted = acted.map_err(|mismatch| (index, mismatch.into()))?;
        if let Acted::Datagrams { datagram_bytes } = acted {
            self.multicast(index, communicator, &out, datagram_bytes);
        } else if let Some(to) = channel.sent_to {
            self.send(index, to, communicator, &out)?;
        }
        self.out = out;
        if acted != Acted::Nothing {
            self.sabotage_buffer(index, communicator);
            self.look_at(index, communicator)?;
        }
        Ok(acted != Acted::Nothing)
    }

    fn capacity(&self, index: u32, communicator: usize) -> Capacity {
        let node = &self.nodes[index as usize];
        let most = self.scenario.faults.messages_most;
        Capacity {
            datagrams: self.has_port_room(node.outgoing_free),
            has_departed: node.outgoing_free <= self.now,
            message: most.is_none_or(|most| node.ends[communicator].sending < most),
        }
    }

    /// Lets a node with nothing left to do sleep until something comes in, or until a time that an
    /// endpoint names.
    fn sleep(&mut self, index: u32) -> Step {
        for communicator in 0..self.scenario.communicators.len() {
            if self.scenario.faults.asks_first {
                self.look_at(index, communicator)?;
            }
            let node = &self.nodes[index as usize];
            let end = &node.ends[communicator];
            if end.active.is_none() {
                continue;
            }
            let capacity = self.capacity(index, communicator);
            if let (Some(trickle), Some(active), false) =
                (self.scenario.faults.trickle, end.active, end.endpoint.has_source())
            {
                let every = trickle.every.0.max(1);
                let parts = 1 + (self.now - active.began).0 / every;
                self.wake_at(index, active.began + Nanos(parts * every));
            }
            let node = &self.nodes[index as usize];
            let end = &node.ends[communicator];
            let departure = end.endpoint.awaits_departure().then_some(node.outgoing_free);
            if let Some(deadline) = end.endpoint.deadline(capacity.datagrams) {
                if deadline > self.now {
                    self.wake_at(index, deadline);
                } else if capacity.message && capacity.datagrams {
                    return Err((index, Violation::Idle { deadline }));
                }
            }
            if let Some(at) = departure {
                self.wake_at(index, at);
            }
            if !capacity.datagrams {
                let free = self.port_has_room_at(self.nodes[index as usize].outgoing_free);
                self.wake_at(index, free);
            }
        }
        Ok(())
    }

    pub fn wake_at(&mut self, index: u32, at: Nanos) {
        let node = &mut self.nodes[index as usize];
        if node.wake_at.is_none_or(|earlier| at < earlier) {
            node.wake_at = Some(at);
            self.events.schedule(at.0, WorldEvent::Wake { node: index });
        }
    }

    fn sabotage_buffer(&mut self, index: u32, communicator: usize) {
        let end = &mut self.nodes[index as usize].ends[communicator];
        let is_due = self.scenario.faults.sabotage == Some(Sabotage::BufferTouched) && !self.has_sabotaged;
        if is_due && end.active.is_some_and(|active| !active.is_root) && end.endpoint.is_complete() {
            end.buffer.bytes[0] = !end.buffer.bytes[0];
            self.has_sabotaged = true;
        }
    }
}
