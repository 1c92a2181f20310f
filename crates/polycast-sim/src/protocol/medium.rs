//! The way of datagrams and messages from node to node, and what happens to them there.

use polycast_core::units::Nanos;
use polycast_protocol::wire::{Header, Kind, open, seal};
use polycast_protocol::{Form, KEY_BYTES, Key, Peer};

use super::faults::{Burst, Sabotage, Saying, Which};
use super::inbox::lane;
use super::random::Random;
use super::store::{Id, JOB, key};
use super::world::{Step, World, WorldEvent};

/// The number of old datagrams that strangers keep in order to send them again.
const MAX_CAPTURED: usize = 8;
pub(super) const FRAGMENTS_KIND: u8 = 1;
pub(super) const REQUEST_KIND: u8 = 3;

impl World<'_> {
    /// Sends a batch of datagrams out through the root's port.
    pub fn multicast(&mut self, root: u32, communicator: usize, batch: &[u8], datagram_bytes: usize) {
        let started = self.now + self.scenario.hardware.send_overhead;
        for datagram in batch.chunks(datagram_bytes) {
            let leaves = self.leave(root, started, datagram.len());
            self.totals.datagrams += 1;
            self.totals.datagram_bytes += datagram.len() as u64;
            let id = self.store.put(datagram, true);
            let which = self.place(communicator, root, id);
            self.timeline.say(self.now, root, || format!("multicasts {which:?} at {leaves}"));
            if self.random.chance(self.scenario.faults.uplink_loss) {
                self.totals.lost += u64::from(self.scenario.nodes) - 1;
            } else {
                for receiver in (0..self.scenario.nodes).filter(|node| *node != root) {
                    self.carry(receiver, id, which, leaves);
                }
            }
            self.store.release(id);
            if self.scenario.faults.hostile > 0.0 {
                self.hostility(datagram, leaves);
            }
        }
    }

    /// Occupies a node's port from `started` on, or when it is free, and returns the time at which
    /// it begins to send.
    fn leave(&mut self, node: u32, started: Nanos, bytes: usize) -> Nanos {
        let node = &mut self.nodes[node as usize];
        let leaves = node.outgoing_free.max(started);
        node.outgoing_free = leaves + self.scenario.hardware.occupancy(bytes);
        leaves
    }

    pub fn has_port_room(&self, outgoing_free: Nanos) -> bool {
        self.port_has_room_at(outgoing_free) <= self.now
    }

    /// The time from which the rest of what is to leave fits into the send buffer.
    pub fn port_has_room_at(&self, outgoing_free: Nanos) -> Nanos {
        let hardware = &self.scenario.hardware;
        let buffered = |bytes: u64| Nanos((bytes as f64 * hardware.ns_per_byte) as u64);
        hardware.send_buffer_bytes.map_or(Nanos(0), |bytes| outgoing_free - buffered(bytes))
    }

    /// Tells if a datagram is the first of its broadcast, and if it is the last: both, if there is
    /// only one.
    fn place(&mut self, communicator: usize, root: u32, id: Id) -> [bool; 2] {
        let Some(active) = self.nodes[root as usize].ends[communicator].active else { return [false; 2] };
        let (Ok((header, _)), _) = self.store.open(id) else { return [false; 2] };
        let is_last = match (active.broadcast.spec.form, header.kind) {
            (Form::Pull, kind) => kind == Kind::End,
            (Form::Push, Kind::Parity) => true,
            (Form::Push, _) => !active.broadcast.spec.parity && header.fragment + 1 == active.cut.fragments(),
        };
        [header.kind == Kind::Data && header.fragment == 0, is_last]
    }

    /// Carries a datagram to one receiver, which gets one copy, two or none.
    fn carry(&mut self, receiver: u32, id: Id, [is_first, is_last]: [bool; 2], leaves: Nanos) {
        let faults = &self.scenario.faults;
        let is_target = faults.target.is_some_and(|target| {
            let is_meant = match target.which {
                Which::All => true,
                Which::First => is_first,
                Which::Last => is_last,
            };
            is_meant && target.node.is_none_or(|node| node == receiver)
        });
        let is_dead = faults.dead.is_some_and(|dead| {
            (dead.from..dead.until).contains(&leaves) && dead.node.is_none_or(|node| node == receiver)
        });
        let is_bad = &mut self.nodes[receiver as usize].is_bad_channel;
        let in_burst = faults.burst.is_some_and(|burst| burst.loses(is_bad, &mut self.random));
        if is_target || is_dead || in_burst || self.random.chance(faults.loss) {
            self.totals.lost += 1;
            self.timeline.say(self.now, receiver, || "will miss it".to_owned());
            return;
        }
        let copies = if self.random.chance(faults.duplicate) { 2 } else { 1 };
        for _ in 0..copies {
            let copy =
                if self.random.chance(faults.corrupt) { self.damaged(id) } else { self.store.copy(id) };
            let at = leaves + faults.multicast_delay.draw(&mut self.random);
            self.reach(receiver, copy, at);
        }
    }

    fn reach(&mut self, node: u32, id: Id, at: Nanos) {
        let takes_time = self.scenario.hardware.ns_per_byte > 0.0;
        let event = if takes_time {
            WorldEvent::ReachDatagram { node, id }
        } else {
            WorldEvent::Datagram { node, id }
        };
        self.events.schedule(at.0, event);
    }

    fn damaged(&mut self, id: Id) -> Id {
        self.totals.lost += 1;
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        bytes.extend_from_slice(self.store.bytes(id));
        let at = self.random.below(bytes.len() as u64) as usize;
        if self.random.chance(0.3) {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1 << self.random.below(8);
        }
        let damaged = self.store.put(&bytes, false);
        self.scratch = bytes;
        damaged
    }

    /// Lets somebody else send something to the group, perhaps, at any time up to a second later.
    fn hostility(&mut self, datagram: &[u8], leaves: Nanos) {
        if self.random.chance(0.1) {
            if self.captured.len() == MAX_CAPTURED {
                self.captured.remove(self.random.below(MAX_CAPTURED as u64) as usize);
            }
            self.captured.push(datagram.to_vec());
        }
        if !self.random.chance(self.scenario.faults.hostile) {
            return;
        }
        let most = self.random.log_within(100.0, 1e9) as u64;
        let at = leaves + Nanos(self.random.below(most));
        let mut bytes = Vec::new();
        let is_genuine = strange_datagram(&mut self.random, &self.captured, datagram, &mut bytes);
        let id = self.store.put(&bytes, is_genuine);
        self.totals.hostile += 1;
        let only = self.random.chance(0.5).then(|| self.random.below(self.scenario.nodes.into()) as u32);
        for node in (0..self.scenario.nodes).filter(|node| only.is_none_or(|only| only == *node)) {
            let copy = self.store.copy(id);
            self.reach(node, copy, at);
        }
        self.store.release(id);
    }

    /// Sends a message from a node to another one.
    pub fn send(&mut self, from: u32, to: Peer, communicator: usize, message: &[u8]) -> Step {
        let lane = lane(to);
        let to = self.peer(from, to);
        self.totals.messages += 1;
        self.totals.message_bytes += message.len() as u64;
        self.timeline.message(self.now, from, format_args!("sends to {to}"), message);
        let started = self.now + self.scenario.hardware.send_overhead;
        let leaves = if self.scenario.hardware.is_fair {
            // Between two datagrams that wait.
            let node = &mut self.nodes[from as usize];
            let occupancy = self.scenario.hardware.occupancy(message.len());
            let leaves = node.messages_free.max(started);
            node.messages_free = leaves + occupancy;
            node.outgoing_free = node.outgoing_free.max(started) + occupancy;
            leaves
        } else {
            self.leave(from, started, message.len())
        };
        let end = &mut self.nodes[from as usize].ends[communicator];
        if let Some(active) = end.active.filter(|_| self.is_watched) {
            let content = &self.messages[communicator][active.index].bytes;
            let has = |fragment| {
                let range = active.cut.range(fragment);
                active.is_root || range.is_some_and(|range| end.buffer.bytes[range.clone()] == content[range])
            };
            let mut said =
                || end.said.message(message, active.cut, has).map_err(|violation| (from, violation));
            said()?;
            if self.is_sabotage(Sabotage::RequestCountedTwice, message[0] == REQUEST_KIND) {
                return self.nodes[from as usize].ends[communicator]
                    .said
                    .message(message, active.cut, |_| false)
                    .map_err(|violation| (from, violation));
            }
        }
        if self.is_sabotage(Sabotage::MessageLost, message[0] == FRAGMENTS_KIND) {
            return Ok(());
        }
        let mut delay = self.scenario.faults.message_delay.draw(&mut self.random);
        if let Some(stalled) = self.scenario.faults.stalled
            && (stalled.only.is_none() || stalled.only == Saying::of(message))
            && self.random.chance(stalled.part)
        {
            self.timeline.say(self.now, from, || "and it will be late".to_owned());
            delay = delay + stalled.by;
        }
        let end = &mut self.nodes[from as usize].ends[communicator];
        end.sending += 1;
        let last_arrival = &mut end.last_arrival[lane];
        *last_arrival = (*last_arrival).max(leaves + delay);
        let at = last_arrival.0;
        let (id, communicator, lane) = (self.store.put(message, true), communicator as u8, lane as u8);
        let takes_time = self.scenario.hardware.ns_per_byte > 0.0;
        let event = if takes_time {
            WorldEvent::ReachMessage { to, from, id, communicator, lane }
        } else {
            WorldEvent::Message { to, from, id, communicator, lane }
        };
        self.events.schedule(at, event);
        Ok(())
    }

    /// The number of a node's peer.
    pub fn peer(&self, node: u32, peer: Peer) -> u32 {
        let nodes = self.scenario.nodes;
        match peer {
            Peer::Successor => (node + 1) % nodes,
            Peer::Predecessor => (node + nodes - 1) % nodes,
            Peer::Drawn(root) => root,
        }
    }

    /// Posts one receive more at a node.
    pub fn post(&mut self, node: u32, communicator: usize, lane: usize, from: u32) {
        if self.scenario.faults.asks_first
            && self.nodes[node as usize].ends[communicator].receives[lane].post(from)
        {
            self.sent(from, communicator);
        }
    }

    /// Posts receives at a node until it has `count` of them for a neighbour.
    pub fn post_all(&mut self, node: u32, communicator: usize, from: Peer, count: usize) {
        let lane = 1 - lane(from);
        let before = &mut self.nodes[node as usize].ends[communicator].receives[lane].count;
        let missing = count.saturating_sub(*before);
        *before += missing;
        let from = self.peer(node, from);
        (0..missing).for_each(|_| self.post(node, communicator, lane, from));
    }

    fn is_sabotage(&mut self, which: Sabotage, fits: bool) -> bool {
        let is_due = fits && !self.has_sabotaged && self.scenario.faults.sabotage == Some(which);
        self.has_sabotaged |= is_due;
        is_due
    }

    /// Notes that a message is not under way any more: its sender has room for another one.
    pub fn sent(&mut self, from: u32, communicator: usize) {
        self.nodes[from as usize].ends[communicator].sending -= 1;
        if self.scenario.faults.messages_most.is_some() || self.scenario.faults.asks_first {
            self.wake_at(from, self.now);
        }
    }
}

impl Burst {
    fn loses(self, is_bad: &mut bool, random: &mut Random) -> bool {
        *is_bad ^= random.chance(if *is_bad { self.ends } else { self.begins });
        *is_bad && random.chance(self.loss)
    }
}

/// Writes a datagram of somebody else, and says whether it is nevertheless one that a node of the job has sent.
fn strange_datagram(random: &mut Random, captured: &[Vec<u8>], recent: &[u8], bytes: &mut Vec<u8>) -> bool {
    let mut header = Header {
        kind: random.one_of(&[Kind::Data, Kind::End, Kind::Parity, Kind::Request, Kind::Done]),
        flags: 0,
        job: JOB,
        communicator: random.below(3) as u32,
        operation: random.number(),
        fragment: random.below(300) as u32,
    };
    match random.below(6) {
        0 => {
            bytes.resize(random.below(100) as usize, 0);
            random.fill(bytes);
            // Noise that names the job gets as far as the tag.
            if bytes.len() >= 8 && random.chance(0.5) {
                bytes[4..8].copy_from_slice(&JOB.to_le_bytes());
            }
            false
        }
        1 => {
            header.job = random.number() as u32 | 1 << 31;
            seal(&header, b"another job", &key(), bytes);
            false
        }
        2 => {
            seal(&header, b"forged", &Key::from_bytes([1; KEY_BYTES]), bytes);
            false
        }
        3 => {
            header.communicator = 1000;
            seal(&header, b"a communicator that has gone", &key(), bytes);
            true
        }
        4 => {
            // From when the group was made: a node's question whether multicast works.
            if let Ok((recent, _)) = open(recent, JOB, &key()) {
                header = Header { fragment: random.below(64) as u32, kind: Kind::Probe, ..recent };
            }
            seal(&header, b"does it work?", &key(), bytes);
            header.kind == Kind::Probe
        }
        _ => {
            let old = random.below(captured.len() as u64 + 1) as usize;
            bytes.extend_from_slice(captured.get(old).map_or(recent, Vec::as_slice));
            true
        }
    }
}
