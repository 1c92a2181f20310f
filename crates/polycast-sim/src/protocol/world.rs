//! One run of a scenario: its nodes, its network and its events.
//!
//! ```text
//!             ┌────────────── node ──────────────┐
//!   call ───▶ │ thread ─begin▶ endpoint ─end▶ …  │
//!             │                 ▲     │          │
//!   wake ───▶ │ socket ─────────┤     ├──────────┼─▶ datagrams ─▶ port ─▶ each receiver's channel ─▶ port ─▶ its socket
//!             │ inbox ──────────┘     └──────────┼─▶ message   ─▶ port ─────────────────────────▶ port ─▶ its inbox
//!             └──────────────────────────────────┘
//! ```
//!
//! Invariants
//! 1. A node touches its socket and its inboxes only while a thread of it is in a call; an inbox only while the call is
//!    on its communicator.
//! 2. What one node sends to another one arrives, and in this order; datagrams do as they like.
//! 3. A run depends on its scenario only.

use polycast_core::algorithm::Algorithm;
use polycast_core::units::Nanos;
use polycast_protocol::{Fragmentation, Peer, RECEIVES_PER_NEIGHBOR};

use super::check::{Violation, memory, not_needed};
use super::inbox::ArrivedMessage;
use super::medium::{FRAGMENTS_KIND, REQUEST_KIND};
use super::node::{Active, End, Node};
use super::outcome::{Failure, ProtocolOutcome, Timing};
use super::random::Random;
use super::scenario::{Broadcast, Scenario};
use super::store::{Id, Store};
use super::timeline::Timeline;
use super::totals::Totals;
use crate::event_queue::EventQueue;

#[derive(Clone, Copy, Debug)]
pub(super) enum WorldEvent {
    /// A thread calls its next broadcast.
    Call { node: u32, thread: u32 },
    /// The beginning of a datagram is at a node's port.
    ReachDatagram { node: u32, id: Id },
    /// All of it has come.
    Datagram { node: u32, id: Id },
    /// The beginning of a message is at a node's port.
    ReachMessage { to: u32, from: u32, id: Id, communicator: u8, lane: u8 },
    /// All of it has come.
    Message { to: u32, from: u32, id: Id, communicator: u8, lane: u8 },
    /// A node looks for work.
    Wake { node: u32 },
}

/// The result of a step: the rule that did not hold, and the node at which it did not.
pub(super) type Step = Result<(), (u32, Violation)>;

/// The message that a root broadcasts. Its bytes are kept only from the first call to the last
/// return: all together may be more than fits.
pub(super) struct Content {
    pub drawn_from: Random,
    pub bytes: Vec<u8>,
}

impl Content {
    fn begin(&mut self, bytes: u64) {
        if self.bytes.is_empty() {
            self.bytes.resize(bytes as usize, 0);
            self.drawn_from.clone().fill(&mut self.bytes);
        }
    }
}

pub(super) struct World<'a> {
    pub scenario: &'a Scenario,
    pub threads: Vec<Vec<(usize, usize)>>,
    /// The messages that the roots broadcast, by communicator and broadcast.
    pub messages: Vec<Vec<Content>>,
    pub nodes: Vec<Node>,
    pub now: Nanos,
    pub events: &'a mut EventQueue<WorldEvent>,
    pub store: &'a mut Store,
    pub random: Random,
    pub totals: Totals,
    pub timings: Vec<Vec<Timing>>,
    pub timeline: &'a mut Timeline,
    /// True if each step is checked, not only each result.
    pub is_watched: bool,
    /// Old datagrams, for strangers who send them again.
    pub captured: Vec<Vec<u8>>,
    pub has_sabotaged: bool,
    pub out: Vec<u8>,
    pub scratch: Vec<u8>,
}

/// The steps after which a run counts as endless, besides those for each fragment and node: far
/// more than any run needs, also where a node is slow or asked often.
const MAX_STEPS: u64 = 1_000_000;
const STEPS_PER_FRAGMENT: u64 = 400;

impl World<'_> {
    pub fn run(mut self) -> Result<ProtocolOutcome, Failure> {
        let fragments: u64 = self.calls().map(|(_, _, cut)| u64::from(cut.fragments()) + 4).sum();
        let most = MAX_STEPS + STEPS_PER_FRAGMENT * fragments * u64::from(self.scenario.nodes);
        let mut steps = 0;
        for node in 0..self.scenario.nodes {
            (0..self.threads.len()).for_each(|thread| self.enter_call(node, thread));
        }
        while let Some((now, event)) = self.events.next() {
            self.now = Nanos(now);
            steps += 1;
            let result =
                if steps > most { Err((0, Violation::Endless { steps })) } else { self.handle(event) };
            if let Err((node, violation)) = result {
                return Err(Failure { at: self.now, node, violation });
            }
        }
        self.result()
    }

    fn result(self) -> Result<ProtocolOutcome, Failure> {
        let is_unfinished = |node: &Node| {
            node.threads.iter().zip(&self.threads).any(|(thread, calls)| thread.returned < calls.len())
        };
        let nodes: Vec<u32> =
            (0..).zip(&self.nodes).filter(|(_, node)| is_unfinished(node)).map(|(index, _)| index).collect();
        if let Some(first) = nodes.first() {
            return Err(Failure { at: self.now, node: *first, violation: Violation::Stuck { nodes } });
        }
        let mut totals = self.totals;
        totals.runs = 1;
        totals.broadcasts = self.calls().count() as u64;
        for endpoint in self.nodes.iter().flat_map(|node| &node.ends).map(|end| &end.endpoint) {
            totals.repaired += endpoint.counters().repaired;
            totals.restored += endpoint.counters().restored;
            totals.requests += endpoint.counters().requests;
            totals.urgent_requests += endpoint.counters().urgent_requests;
            totals.answers += endpoint.counters().answers;
        }
        Ok(ProtocolOutcome { totals, broadcasts: self.timings.concat(), took: self.now })
    }

    fn calls(&self) -> impl Iterator<Item = (usize, usize, Fragmentation)> {
        self.scenario.communicators.iter().enumerate().flat_map(move |(communicator, plan)| {
            plan.broadcasts.iter().enumerate().map(move |(index, broadcast)| {
                let cut = Fragmentation::new(broadcast.bytes, self.scenario.payload_bytes);
                (communicator, index, cut.expect("a message that can be cut"))
            })
        })
    }

    fn handle(&mut self, event: WorldEvent) -> Step {
        match event {
            WorldEvent::Call { node, thread } => self.call(node, thread as usize),
            WorldEvent::ReachDatagram { node, id } => {
                let at = self.take_in(node, self.store.bytes(id).len());
                self.events.schedule(at.0, WorldEvent::Datagram { node, id });
                Ok(())
            }
            WorldEvent::ReachMessage { to, from, id, communicator, lane } => {
                let at = self.take_in(to, self.store.bytes(id).len());
                self.events.schedule(at.0, WorldEvent::Message { to, from, id, communicator, lane });
                Ok(())
            }
            WorldEvent::Datagram { node, id } => {
                let bytes = self.store.bytes(id).len();
                let most = self.scenario.faults.receive_buffer_bytes;
                if !self.nodes[node as usize].socket.arrive(id, bytes, most) {
                    self.totals.lost += 1;
                    self.store.release(id);
                    self.timeline.say(self.now, node, || "no room in the receive buffer".to_owned());
                }
                self.work(node)
            }
            WorldEvent::Message { to, from, id, communicator, lane } => {
                self.arrive(to, ArrivedMessage { from, id }, communicator.into(), lane.into())
            }
            WorldEvent::Wake { node } => {
                if self.nodes[node as usize].wake_at == Some(self.now) {
                    self.nodes[node as usize].wake_at = None;
                }
                self.work(node)
            }
        }
    }

    /// Occupies a node's incoming port, and returns the time at which all has come in.
    fn take_in(&mut self, node: u32, bytes: usize) -> Nanos {
        let node = &mut self.nodes[node as usize];
        node.incoming_free = node.incoming_free.max(self.now) + self.scenario.hardware.occupancy(bytes);
        node.incoming_free
    }

    fn arrive(&mut self, to: u32, message: ArrivedMessage, communicator: usize, lane: usize) -> Step {
        let ArrivedMessage { from, id } = message;
        if self.is_watched {
            let [sender, receiver] =
                [from, to].map(|node| &self.nodes[node as usize].ends[communicator].endpoint);
            not_needed(self.store.bytes(id), from, sender, receiver.operation()).map_err(|v| (to, v))?;
        }
        let end = &mut self.nodes[to as usize].ends[communicator];
        end.inbox.arrive(lane, message);
        let kind = self.store.bytes(id).first();
        let is_short = !kind.is_some_and(|kind| [FRAGMENTS_KIND, REQUEST_KIND].contains(kind));
        if self.scenario.faults.asks_first && !end.receives[lane].arrive(from, is_short) {
            // It stays with its sender.
        } else if self.scenario.faults.needs_receiver && self.is_away(to) {
            self.nodes[to as usize].unreceived.push((from, communicator));
        } else {
            self.sent(from, communicator);
        }
        self.work(to)
    }

    /// True if a process is between two calls: its MPI does nothing.
    fn is_away(&self, index: u32) -> bool {
        let node = &self.nodes[index as usize];
        let is_through =
            node.threads.iter().zip(&self.threads).all(|(thread, calls)| thread.returned == calls.len());
        !node.is_calling() && !is_through
    }

    /// Notes that a process is in MPI: messages that waited for that are out of their senders'
    /// hands.
    fn receive(&mut self, index: u32) {
        for (from, communicator) in std::mem::take(&mut self.nodes[index as usize].unreceived) {
            self.sent(from, communicator);
        }
    }

    /// Schedules the next call of a thread.
    pub fn enter_call(&mut self, node: u32, thread: usize) {
        let turn = self.nodes[node as usize].threads[thread].returned;
        if let Some(&(communicator, index)) = self.threads[thread].get(turn) {
            let root = self.scenario.communicators[communicator].broadcasts[index].root;
            let arrivals = &self.scenario.faults.arrivals;
            let at = self.now.max(Nanos(arrivals.period.0 * turn as u64))
                + arrivals.late.lateness(self.scenario, node, root, turn, &mut self.random);
            self.events.schedule(at.0, WorldEvent::Call { node, thread: thread as u32 });
        }
    }

    fn call(&mut self, index: u32, thread: usize) -> Step {
        let node = &mut self.nodes[index as usize];
        let (communicator, turn) = self.threads[thread][node.threads[thread].returned];
        let broadcast = self.scenario.communicators[communicator].broadcasts[turn];
        let message = &mut self.messages[communicator][turn];
        message.begin(broadcast.bytes);
        let message = &message.bytes;
        let end = &mut node.ends[communicator];
        let cut = Fragmentation::new(broadcast.bytes, self.scenario.payload_bytes)
            .expect("a message that can be cut");
        let is_root = broadcast.root == index;
        end.active = Some(Active {
            thread,
            index: turn,
            broadcast,
            is_root,
            began: self.now,
            cut,
            repaired_before: end.endpoint.counters().repaired + end.endpoint.counters().restored,
        });
        if !is_root {
            end.buffer.begin(message);
        }
        if is_root && end.endpoint.knows_of_deaf() {
            end.endpoint.tell_to_leave();
        }
        end.said.begin(cut.fragments());
        end.inbox.begin();
        self.timings[communicator][turn].called(self.now, is_root);
        self.timeline.say(self.now, index, || {
            let Broadcast { spec, root, bytes } = broadcast;
            format!("calls {communicator}:{turn} {} root {root} bytes {bytes}", Algorithm::from(spec))
        });
        let mut data = End::data(end.active.as_ref(), &mut end.buffer, message);
        end.endpoint
            .begin(broadcast.spec, broadcast.root, self.now, &mut data)
            .map_err(|mismatch| (index, mismatch.into()))?;
        if let Some(bytes) = self.scenario.there_bytes(broadcast, Nanos(0)) {
            end.endpoint.limit(bytes);
        }
        let drawn = end.endpoint.expects_arrival_from();
        node.threads[thread].is_calling = true;
        for neighbor in [Peer::Predecessor, Peer::Successor] {
            self.post_all(index, communicator, neighbor, RECEIVES_PER_NEIGHBOR);
        }
        if let Some(drawn) = drawn {
            self.post(index, communicator, 2, drawn);
        }
        self.receive(index);
        self.look_at(index, communicator)?;
        self.work(index)
    }

    /// Checks what must hold after each step; and if the broadcast is finished, lets the call
    /// return.
    pub fn look_at(&mut self, index: u32, communicator: usize) -> Step {
        let fail = |violation| (index, violation);
        let node = &mut self.nodes[index as usize];
        let end = &mut node.ends[communicator];
        if self.is_watched {
            memory(end.endpoint.early_bytes(), end.inbox.kept(), self.scenario.nodes).map_err(fail)?;
        }
        let Some(active) = end.active else { return Ok(()) };
        let message = &self.messages[communicator][active.index].bytes;
        if self.is_watched && !active.is_root {
            end.buffer.check(message).map_err(fail)?;
        }
        if !end.endpoint.is_finished() || self.scenario.faults.asks_first && end.sending > 0 {
            return Ok(());
        }
        if !active.is_root {
            end.buffer.finished(message).map_err(fail)?;
        }
        let receives = RECEIVES_PER_NEIGHBOR + end.endpoint.messages_to_come();
        let from_successor = RECEIVES_PER_NEIGHBOR + end.endpoint.messages_to_come_from_successor();
        end.endpoint.end();
        end.active = None;
        let counters = end.endpoint.counters();
        let repaired = counters.repaired + counters.restored - active.repaired_before;
        let is_told = end.endpoint.is_told_to_leave();
        let timing = &mut self.timings[communicator][active.index];
        timing.returned(self.now, index, repaired);
        if *timing.is_told_to_leave.get_or_insert(is_told) != is_told {
            return Err(fail(Violation::Disagreement { index: active.index, is_told }));
        }
        if timing.has_ended(self.scenario.nodes) {
            self.messages[communicator][active.index].bytes = Vec::new();
        }
        self.timeline.say(self.now, index, || format!("returns from {communicator}:{}", active.index));
        node.threads[active.thread].is_calling = false;
        node.threads[active.thread].returned += 1;
        self.post_all(index, communicator, Peer::Predecessor, receives);
        self.post_all(index, communicator, Peer::Successor, from_successor);
        self.enter_call(index, active.thread);
        if !self.is_away(index) {
            self.receive(index);
        }
        Ok(())
    }
}
