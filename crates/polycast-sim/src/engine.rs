//! The way of a message:
//!
//! ```text
//!   eager        start ─▶ leave ──────────── latency ─▶ reach ─▶ arrive ─▶ taken
//!   rendezvous   start ── latency ─▶ arrive as a question; when its receive is posted
//!                       ── latency ─▶ leave ─ latency ─▶ reach ─▶ arrive ─▶ taken
//! ```
//!
//! *leave* occupies the sender's port and completes the send, *reach* to *arrive* occupies the receiver's port,
//! *taken* costs the receiver's processor its overhead and completes the receive.

use polycast_core::executor::{Limits, StepId};
use polycast_core::schedule::{Action, Partners, Schedule, Slice, partners};
use polycast_core::units::Rank;

use crate::event_queue::EventQueue;
use crate::host::{Data, Host};
use crate::network::Network;
use crate::published::{Published, Streams};
use crate::schedules::Combine;

/// A message, or the question whether it may be sent.
#[derive(Debug)]
pub(crate) struct Message {
    from: Rank,
    to: Rank,
    send: StepId,
    pub receive: StepId,
    source: Slice,
    is_question: bool,
    /// What it carries, if data is carried, once it has left.
    data: Vec<u8>,
}

impl Message {
    fn length(&self) -> u64 {
        self.source.length()
    }

    /// What it takes in the receiver's memory while it waits for its receive.
    pub fn buffered_bytes(&self) -> u64 {
        if self.is_question { 0 } else { self.length() }
    }
}

pub(crate) enum Event {
    /// The rank calls the collective.
    Start(Rank),
    /// The message may leave through the sender's port.
    Leave(Message),
    /// The sender's buffer may be used again.
    Sent(Rank, StepId),
    /// The beginning of the message is at the receiver's port.
    Reach(Message),
    /// All of the message has come, or the question has.
    Arrive(Message),
    /// The receiver's processor has dealt with the message.
    Taken(Rank, StepId),
    /// The processor has copied or combined.
    Worked(Rank, StepId, Action),
    /// Of what is published and fetched.
    Published(Published),
}

pub(crate) struct Engine<S> {
    pub network: Network,
    pub hosts: Vec<Host<S>>,
    partners: Partners,
    pub streams: Streams,
    pub events: EventQueue<Event>,
    /// Messages that arrived, without questions.
    pub messages: u64,
    /// See [`crate::Schedules::by_rank`].
    pub is_by_rank: bool,
    /// What combines data, if data is carried.
    combine: Option<Combine>,
}

impl<S: Schedule> Engine<S> {
    /// Rank `i` runs `schedules[i]` from `starts_ns[i]` on, with `data[i]` as its buffers if data is carried.
    pub fn new(
        network: Network,
        schedules: Vec<S>,
        limits: Limits,
        starts_ns: &[u64],
        data: Option<Vec<Data>>,
        combine: Option<Combine>,
    ) -> Self {
        // Nothing moves where lanes do not fit together.
        let partners = partners(&schedules).unwrap_or_else(|_| {
            schedules.iter().map(|schedule| vec![Vec::new(); schedule.lanes().len()]).collect()
        });
        let streams = Streams::new(&schedules, &partners);
        let mut data = data.map(Vec::into_iter);
        let mut events = EventQueue::new();
        let mut hosts = Vec::with_capacity(schedules.len());
        for ((rank, schedule), start_ns) in (0..).map(Rank).zip(schedules).zip(starts_ns) {
            events.schedule(*start_ns, Event::Start(rank));
            let data = data.as_mut().and_then(Iterator::next);
            hosts.push(Host::new(schedule, limits, *start_ns, data));
        }
        Engine { network, hosts, partners, streams, events, messages: 0, is_by_rank: false, combine }
    }

    /// Runs until nothing happens any more.
    pub fn run(&mut self) {
        while let Some((now_ns, event)) = self.events.next() {
            match event {
                Event::Start(rank) => self.start_operations(rank, now_ns),
                Event::Leave(message) => self.leave(message, now_ns),
                Event::Sent(rank, id) | Event::Taken(rank, id) => self.complete(rank, id, now_ns),
                Event::Worked(rank, id, action) => {
                    let host = &mut self.hosts[rank.index()];
                    if let (Some(data), Some(combine)) = (&mut host.data, self.combine) {
                        data.work(&action, combine);
                    }
                    self.complete(rank, id, now_ns);
                }
                Event::Published(event) => self.published(event, now_ns),
                Event::Reach(message) => self.reach(message, now_ns),
                Event::Arrive(message) => {
                    self.messages += u64::from(!message.is_question);
                    if let Some(message) = self.hosts[message.to.index()].arrive(message) {
                        self.matched(message, now_ns);
                    }
                }
            }
        }
    }

    pub fn complete(&mut self, rank: Rank, id: StepId, now_ns: u64) {
        self.hosts[rank.index()].executor.complete(id);
        self.start_operations(rank, now_ns);
    }

    fn start_operations(&mut self, rank: Rank, now_ns: u64) {
        while let Some(operation) = self.hosts[rank.index()].executor.next_operation() {
            match operation.action {
                Action::Send(source) => self.start_send(rank, operation.id, source, now_ns),
                Action::Receive(target) => {
                    if let Some(message) = self.hosts[rank.index()].post(operation.id, target) {
                        self.matched(message, now_ns);
                    }
                }
                action @ (Action::Copy { .. } | Action::Combine { .. }) => {
                    let duration_ns = self.network.local_ns(action.length());
                    let done_ns = self.hosts[rank.index()].work(now_ns, duration_ns);
                    self.events.schedule(done_ns, Event::Worked(rank, operation.id, action));
                }
                Action::Publish(source) => self.start_publish(rank, operation.id, source, now_ns),
                Action::Fetch { at, to } => self.start_fetch(rank, operation.id, (at, to), now_ns),
            }
        }
        let host = &mut self.hosts[rank.index()];
        if host.executor.is_finished() && host.finished_ns.is_none() {
            host.finished_ns = Some(now_ns);
        }
    }

    fn start_send(&mut self, rank: Rank, send: StepId, source: Slice, now_ns: u64) {
        let Some(&(to, lane)) = self.partners[rank.index()][send.lane].first() else { return };
        let receive = StepId { lane, index: send.index };
        let mut message =
            Message { from: rank, to, send, receive, source, is_question: false, data: Vec::new() };
        let started_ns = self.hosts[rank.index()].work(now_ns, self.network.send_overhead_ns);
        if self.network.needs_rendezvous(message.length()) {
            message.is_question = true;
            self.events.schedule(started_ns + self.network.latency_ns, Event::Arrive(message));
        } else {
            self.events.schedule(started_ns, Event::Leave(message));
        }
    }

    fn leave(&mut self, mut message: Message, now_ns: u64) {
        let host = &mut self.hosts[message.from.index()];
        if let Some(data) = &host.data {
            message.data = data.at(&message.source).to_vec();
        }
        let begin_ns = host.outgoing_free_ns.max(now_ns);
        host.outgoing_free_ns = begin_ns + self.network.occupancy_ns(message.length());
        self.events.schedule(host.outgoing_free_ns, Event::Sent(message.from, message.send));
        let place = if self.is_by_rank { message.from.0 } else { 0 };
        self.events.schedule_from(place, begin_ns + self.network.latency_ns, Event::Reach(message));
    }

    fn reach(&mut self, message: Message, now_ns: u64) {
        let host = &mut self.hosts[message.to.index()];
        host.incoming_free_ns =
            host.incoming_free_ns.max(now_ns) + self.network.occupancy_ns(message.length());
        self.events.schedule(host.incoming_free_ns, Event::Arrive(message));
    }

    /// A message and its receive have met.
    fn matched(&mut self, mut message: Message, now_ns: u64) {
        if message.is_question {
            message.is_question = false;
            self.events.schedule(now_ns + self.network.latency_ns, Event::Leave(message));
            return;
        }
        let host = &mut self.hosts[message.to.index()];
        if let Some(data) = &mut host.data
            && let Some(target) = host.targets.remove(&message.receive)
        {
            data.at_mut(&target).copy_from_slice(&message.data);
        }
        let taken_ns = host.work(now_ns, self.network.receive_overhead_ns);
        self.events.schedule(taken_ns, Event::Taken(message.to, message.receive));
    }
}
