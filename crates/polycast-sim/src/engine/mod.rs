//! The way of a message:
//!
//! ```text
//!   eager        start ─▶ leave ──────────── latency ─▶ reach ─▶ arrive ─▶ taken
//!   rendezvous   start ── latency ─▶ arrive as a question; when its receive is posted
//!                       ── latency ─▶ leave ─ latency ─▶ reach ─▶ arrive ─▶ taken
//! ```
//!
//! *leave* occupies the sender's port and completes the send, *reach* to *arrive* occupies the receiver's port, and before it each link
//! between switches; *taken* costs the receiver's processor its overhead and completes the receive.
//!
//! On a host it leaves by a copy into memory, is there for the receiver after the memory's latency, and is taken by a copy out of it.

mod host;
mod links;
mod published;

use polycast_core::executor::{Limits, StepId};
use polycast_core::schedule::{Action, Partners, Schedule, Slice, partners};
use polycast_core::topology::{Edge, Paths};
use polycast_core::units::Rank;

use crate::buffers::{Combine, Data};
use crate::event_queue::EventQueue;
use crate::network::Network;
use host::Host;
use links::Links;
use published::{Published, Streams};

/// A message, or the question whether it may be sent.
#[derive(Debug)]
pub(crate) struct Message {
    from: Rank,
    to: Rank,
    send: StepId,
    pub receive: StepId,
    source: Slice,
    is_question: bool,
    /// The links before it, the next one last.
    way: Vec<Edge>,
    /// The time at which the message's end is where its beginning is now.
    end_ns: u64,
    is_on_host: bool,
    /// The bytes that the message carries, if data is carried, once it has left.
    data: Vec<u8>,
}

impl Message {
    fn length(&self) -> u64 {
        self.source.length()
    }

    /// The bytes that the message takes in the receiver's memory while it waits for its receive.
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
    /// The beginning of the message is at a further link, the receiver's port in the end.
    Reach(Message),
    /// All of the message has come, or the question has.
    Arrive(Message),
    /// The receiver's processor has dealt with the message.
    Taken(Rank, StepId),
    /// The processor has copied or combined.
    Worked(Rank, StepId, Action),
    /// An event of data that is published and fetched.
    Published(Published),
}

pub(crate) struct Engine<S> {
    pub network: Network,
    pub links: Links,
    pub hosts: Vec<Host<S>>,
    partners: Partners,
    pub streams: Streams,
    pub events: EventQueue<Event>,
    /// Messages that arrived, without questions.
    pub messages: u64,
    /// See [`crate::Schedules::by_rank`].
    pub is_by_rank: bool,
    /// The function that combines data, if data is carried.
    combine: Option<Combine>,
}

impl<S: Schedule> Engine<S> {
    /// An engine in which rank `i` runs `schedules[i]` from `starts_ns[i]` on, with `data[i]` as
    /// its buffers if data is carried.
    pub fn new(
        network: Network,
        paths: Paths,
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
        let links = Links::new(paths);
        Engine { network, links, hosts, partners, streams, events, messages: 0, is_by_rank: false, combine }
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
        let way = self.links.way(rank, to);
        let (is_on_host, length) = (way.is_empty(), source.length());
        let is_question = !is_on_host && self.network.needs_rendezvous(length);
        let data = Vec::new();
        let message =
            Message { from: rank, to, send, receive, source, is_question, way, end_ns: 0, is_on_host, data };
        let work_ns = match is_on_host {
            true => self.network.shared.copy_ns(length),
            false => self.network.send_overhead_ns,
        };
        let started_ns = self.hosts[rank.index()].work(now_ns, work_ns);
        if is_question {
            self.events.schedule(started_ns + self.network.latency_ns, Event::Arrive(message));
        } else {
            self.events.schedule(started_ns, Event::Leave(message));
        }
    }

    fn leave(&mut self, mut message: Message, now_ns: u64) {
        if let Some(data) = &self.hosts[message.from.index()].data {
            message.data = data.at(&message.source).to_vec();
        }
        let (rank, send) = (message.from, message.send);
        let Some(port) = message.way.pop() else {
            self.events.schedule(now_ns + self.network.shared.latency_ns, Event::Arrive(message));
            return self.complete(rank, send, now_ns);
        };
        let (begin_ns, sent_ns) = self.links.occupy(&self.network, port, message.length(), now_ns);
        self.events.schedule(sent_ns, Event::Sent(rank, send));
        message.end_ns = sent_ns + self.network.latency_ns;
        self.go_on(begin_ns + self.network.latency_ns, message);
    }

    fn go_on(&mut self, at_ns: u64, message: Message) {
        let place = if self.is_by_rank { message.from.0 } else { 0 };
        self.events.schedule_from(place, at_ns, Event::Reach(message));
    }

    fn reach(&mut self, mut message: Message, now_ns: u64) {
        let Some(link) = message.way.pop() else { return };
        let (begin_ns, end_ns) = self.links.occupy(&self.network, link, message.length(), now_ns);
        // What comes in slowly does not go on faster.
        message.end_ns = message.end_ns.max(end_ns);
        if message.way.is_empty() {
            self.events.schedule(message.end_ns, Event::Arrive(message));
        } else {
            self.go_on(begin_ns, message);
        }
    }

    /// Goes on with a message that has met its receive: a question is answered, data is taken.
    fn matched(&mut self, mut message: Message, now_ns: u64) {
        if message.is_question {
            message.is_question = false;
            self.events.schedule(now_ns + self.network.latency_ns, Event::Leave(message));
            return;
        }
        let work_ns = match message.is_on_host {
            true => self.network.shared.copy_ns(message.length()),
            false => self.network.receive_overhead_ns,
        };
        let host = &mut self.hosts[message.to.index()];
        if let Some(data) = &mut host.data
            && let Some(target) = host.targets.remove(&message.receive)
        {
            data.at_mut(&target).copy_from_slice(&message.data);
        }
        let taken_ns = host.work(now_ns, work_ns);
        self.events.schedule(taken_ns, Event::Taken(message.to, message.receive));
    }
}
