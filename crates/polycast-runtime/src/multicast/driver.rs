//! One node of a communicator in a job: drives the endpoint with datagrams, messages and the time.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use polycast_core::protocol::{Acted, ControlChannel, Counters, Data, Endpoint, Multicast, Peer};
use polycast_core::units::{Nanos, Rank};
use rustix::event::PollFlags;

use super::arrival_rate::ArrivalRate;
use super::control::NodeMessages;
use super::deaf::Deaf;
use super::group::{Group, SocketContents};
use super::registry;
use super::setup::Seat;
use crate::call::{Activity, Failure, Heard, Progress};
use crate::idle::{Arm, Watch};
use crate::machine;
use crate::messages::Messages;
use crate::report;

/// Time after which a root looks again whether its datagrams have left its host; and the longest
/// time for which it waits while nothing leaves: a link that is down lets nothing go.
const DEPARTURE_LOOK: Duration = Duration::from_micros(500);
const DEPARTURE_STUCK: Nanos = Nanos::from_micros(20_000);

/// A broadcast that this node takes part in, in its turn.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    number: u64,
    spec: Multicast,
    /// The root's node.
    root: u32,
}

/// The broadcast in progress.
struct Active {
    outcome: Result<(), Failure>,
    rate: ArrivalRate,
    /// Bytes that had not left this host, and the time since when they are so many.
    queued: (usize, Nanos),
    /// Times of the first and the last datagrams that came or went; the counters at the beginning.
    datagrams: (Option<Nanos>, Nanos),
    before: Counters,
}

impl Active {
    /// Notes that datagrams have come or gone.
    fn seen(&mut self, now: Nanos) {
        self.datagrams = (self.datagrams.0.or(Some(now)), now);
    }
}

/// A node of a communicator: drives its endpoint, one broadcast after the other.
pub struct Driver {
    endpoint: Endpoint,
    communicator: u32,
    node: u32,
    group: Arc<Group>,
    /// Number that names the set of leaders.
    set: u64,
    /// Counters of the endpoints before this one.
    before: Counters,
    /// Number of times that multicast was left in mid-job, and that it came back.
    died: u64,
    returned: u64,
    control: NodeMessages,
    /// The leader of each node.
    leaders: Box<[Rank]>,
    epoch: Instant,
    /// Time at which messages were looked at last.
    messages_seen: Nanos,
    active: Option<Active>,
    /// Number of broadcasts that have asked for a turn, and that have had it.
    enqueued: u64,
    served: u64,
    /// Datagrams that the socket had no room for: the size of each, and where the rest begins.
    unsent: Vec<u8>,
    unsent_from: usize,
    datagram_bytes: usize,
    buffer: Vec<u8>,
    /// Number of the last broadcast that was gone on with; bytes of its root's message, if known.
    told: (u64, Option<u64>),
    /// Record of the last broadcast's datagrams, until somebody asks.
    heard: Option<Heard>,
    /// Datagrams that could not be sent for another reason than lack of room; the ring brings what they had.
    send_errors: u64,
}

/// The data that the root's node can send.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// True if this node has failed, and has no data.
    pub is_spoiled: bool,
    /// Bytes, from the beginning on, that are here while more come from the root; `u64::MAX`: all.
    pub there_bytes: u64,
}

impl Driver {
    pub fn new(seat: Seat, leaders: &[Rank]) -> Driver {
        let Seat { endpoint, communicator, group, node, set } = seat;
        let nodes = leaders.len();
        let at = |index: usize| leaders[index % nodes];
        Driver {
            endpoint,
            communicator,
            node,
            group,
            set,
            before: Counters::default(),
            died: 0,
            returned: 0,
            control: NodeMessages::new(at(node as usize + nodes - 1), at(node as usize + 1)),
            leaders: leaders.into(),
            epoch: machine::now(),
            messages_seen: Nanos(0),
            active: None,
            enqueued: 0,
            served: 0,
            unsent: Vec::new(),
            unsent_from: 0,
            datagram_bytes: 0,
            buffer: Vec::new(),
            told: (0, None),
            heard: None,
            send_errors: 0,
        }
    }

    pub fn counters(&self) -> Counters {
        let mut all = self.before;
        all.add(self.endpoint.counters());
        all
    }

    /// Leaves multicast: some node is deaf to it. Messages of ended broadcasts may still come.
    pub fn leave(&mut self) {
        self.died += 1;
        self.group.is_deaf.store(true, Ordering::Relaxed);
        self.group.leave(self.communicator);
        registry::died(self.set, &self.group);
    }

    /// Returns to multicast in another group: the messages go the same ways as before.
    pub fn return_to(&mut self, seat: Seat) {
        let Seat { endpoint, communicator, group, set, .. } = seat;
        self.before = self.counters();
        report::left_group(self.group.take_dropped());
        (self.endpoint, self.communicator, self.group, self.set) = (endpoint, communicator, group, set);
        self.returned += 1;
    }

    /// Tells `deaf` what this node knows of deaf nodes, itself among them.
    pub fn inform(&self, deaf: &mut Deaf) {
        deaf.is_known |= self.endpoint.knows_of_deaf() || self.group.is_deaf.load(Ordering::Relaxed);
        deaf.is_told |= self.endpoint.is_told_to_leave();
    }

    /// Totals of this node's ring. The group's drops are taken from the group, which others share.
    pub fn totals(&self) -> report::MulticastCounts {
        report::MulticastCounts {
            protocol: self.counters(),
            dropped: self.group.take_dropped(),
            send_errors: self.send_errors,
            died: self.died,
            returned: self.returned,
            verbs: u64::from(!self.group.is_socket()),
        }
    }

    /// Puts a broadcast from node `root` in line for its turn; the order is the same on all nodes.
    pub fn enqueue(&mut self, spec: Multicast, root: u32) -> Part {
        self.enqueued += 1;
        Part { number: self.enqueued, spec, root }
    }

    /// Goes on with a broadcast if it has its turn, until this node owes nobody anything.
    pub fn progress(
        &mut self,
        part: Part,
        source: Source,
        deaf: Deaf,
        data: &mut Data<'_>,
        messages: &mut Messages,
        activity: &mut Activity,
    ) -> Result<Progress, Failure> {
        if part.number != self.served + 1 {
            return Ok(Progress::Pending);
        }
        if self.active.is_none() && !self.begin(part, source.is_spoiled, deaf, data, messages, activity)? {
            return Ok(Progress::Pending);
        }
        if source.is_spoiled && !self.endpoint.has_source() {
            self.fail();
        }
        self.endpoint.limit(source.there_bytes);
        let found = match self.receive(data, messages) {
            Err(Failure::Size) => {
                self.fail();
                Activity::Messages
            }
            received => received?,
        };
        self.told = (part.number, self.endpoint.message_bytes());
        let has_sent = self.send(data, messages)?;
        *activity = found.max(if has_sent { Activity::Messages } else { *activity });
        // What MPI has not sent yet would wait for the program's next call, and the neighbour with it.
        let has_sent_all = self.unsent.is_empty() && !self.control.holds_up();
        if !(self.endpoint.is_finished() && has_sent_all) {
            return Ok(Progress::Pending);
        }
        // The neighbours may have to get rid of more, and would wait for the program's next call.
        let more = [self.endpoint.messages_to_come(), self.endpoint.messages_to_come_from_successor()];
        self.control.post_receives(more, messages)?;
        self.keep_heard(part);
        self.control.ended();
        self.endpoint.end();
        self.served += 1;
        let outcome = self.active.take().map_or(Ok(()), |active| active.outcome);
        Ok(outcome.map_or_else(Progress::Failed, |()| Progress::Done))
    }

    /// Bytes of the root's message, if known, of the last broadcast that was gone on with.
    pub fn told(&self, part: Part) -> Option<u64> {
        self.told.1.filter(|_| self.told.0 == part.number)
    }

    /// True if a broadcast is in progress.
    pub fn is_active(&self) -> bool {
        self.active.is_some()
    }

    /// Bytes of a broadcast in progress that are here, from the beginning on.
    pub fn prefix_bytes(&self, part: Part) -> u64 {
        if part.number == self.served + 1 { self.endpoint.prefix_bytes() } else { 0 }
    }

    fn begin(
        &mut self,
        part: Part,
        is_spoiled: bool,
        deaf: Deaf,
        data: &mut Data<'_>,
        messages: &mut Messages,
        activity: &mut Activity,
    ) -> Result<bool, Failure> {
        self.control.post_receives([0, 0], messages)?;
        if self.control.awaits_too_many_arrivals() {
            // Nothing has begun, so messages and datagrams only wait for their turn.
            *activity = self.receive(data, messages)?.max(*activity);
            if self.control.awaits_too_many_arrivals() {
                return Ok(false);
            }
        }
        self.group.renew_membership();
        if deaf.is_known {
            self.endpoint.learn_of_deaf();
        }
        // On the root's node, where it comes from the root rank.
        if deaf.is_told && part.root == self.node {
            self.endpoint.tell_to_leave();
        }
        let before = *self.endpoint.counters();
        let begun = self.endpoint.begin(part.spec, part.root, self.now(), data).map_err(Failure::from);
        self.control.set_root(self.leaders[part.root as usize]);
        if let Some(node) = self.endpoint.expects_arrival_from() {
            self.control.expect_arrival(self.leaders[node as usize], messages)?;
        }
        let (rate, datagrams) = (ArrivalRate::new(self.group.receive_buffer_bytes()), (None, Nanos(0)));
        self.active = Some(Active { outcome: begun, rate, queued: (0, Nanos(0)), datagrams, before });
        if is_spoiled || begun.is_err() {
            self.fail();
        }
        Ok(true)
    }

    /// Gives the message up: this node will not have it, and tells the others.
    fn fail(&mut self) {
        self.endpoint.fail();
        if let Some(active) = &mut self.active {
            active.outcome = Err(Failure::Size);
        }
    }

    fn now(&self) -> Nanos {
        Nanos((machine::now() - self.epoch).as_nanos() as u64)
    }

    /// Receives what is there. Datagrams before messages: an end that has come by MPI must not
    /// overtake datagrams in the socket, unless that never gets empty.
    fn receive(&mut self, data: &mut Data<'_>, messages: &mut Messages) -> Result<Activity, Failure> {
        let now = self.now();
        let Driver { endpoint, group, communicator, .. } = self;
        let mut outcome = Ok(());
        let found = group.receive(*communicator, |header, payload| {
            let used = endpoint.on_datagram(header, payload, now, data);
            outcome = outcome.and(used);
        });
        outcome?;
        // A socket that fails brings nothing; the ring brings everything.
        let found = found.unwrap_or(SocketContents { is_any: false, is_all: true });
        if let Some(active) = self.active.as_mut().filter(|_| found.is_any) {
            active.seen(now);
        }
        let Driver { endpoint, control, messages_seen, .. } = self;
        let mut is_any = false;
        if found.lets_messages_in(now - *messages_seen) {
            *messages_seen = now;
            is_any = endpoint.receive_messages(now, data, &mut control.over(messages))?;
        }
        Ok(match found {
            _ if is_any => Activity::Messages,
            SocketContents { is_any: true, .. } | SocketContents { is_all: false, .. } => Activity::Datagrams,
            _ => Activity::Nothing,
        })
    }

    fn send(&mut self, data: &Data<'_>, messages: &mut Messages) -> Result<bool, Failure> {
        let mut has_sent = self.send_rest();
        loop {
            let (now, has_room) = (self.now(), self.unsent.is_empty());
            let has_departed = has_room && self.endpoint.awaits_departure() && self.has_departed(now);
            let mut channel = self.control.over(messages);
            match self.endpoint.act(now, has_room, has_departed, data, &mut self.buffer, &mut channel)? {
                Acted::Nothing => return Ok(has_sent),
                Acted::Message => has_sent = true,
                Acted::Datagrams { datagram_bytes } => {
                    std::mem::swap(&mut self.buffer, &mut self.unsent);
                    self.datagram_bytes = datagram_bytes;
                    self.send_rest();
                    if let Some(active) = &mut self.active {
                        active.seen(now);
                    }
                    // What arrives meanwhile, a request for example, is looked at between batches.
                    return Ok(true);
                }
            }
        }
    }

    /// Keeps a record of a broadcast that is over, for a trace.
    fn keep_heard(&mut self, part: Part) {
        let Some(Active { datagrams: (first, last), before, .. }) = &self.active else { return };
        let at = |nanos: Nanos| self.epoch + Duration::from_nanos(nanos.0);
        self.heard = Some(Heard {
            first: first.map(at),
            last: first.map(|_| at(*last)),
            is_root: part.root == self.node,
            counters: self.endpoint.counters().since(before),
        });
    }

    /// Takes the record of the last broadcast that is over.
    pub fn take_heard(&mut self) -> Option<Heard> {
        self.heard.take()
    }

    /// True if all that this node has multicast has left its host, or does not leave it.
    fn has_departed(&mut self, now: Nanos) -> bool {
        let bytes = self.group.queued_bytes();
        let Some(active) = &mut self.active else { return true };
        if active.queued.0 != bytes {
            active.queued = (bytes, now);
        }
        bytes == 0 || now - active.queued.1 >= DEPARTURE_STUCK
    }

    /// Sends the datagrams for which the socket has room.
    fn send_rest(&mut self) -> bool {
        if self.unsent.is_empty() {
            return false;
        }
        match self.group.send(&self.unsent[self.unsent_from..], self.datagram_bytes) {
            Ok(bytes) => self.unsent_from += bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(_) => {
                self.send_errors += 1;
                self.unsent_from = self.unsent.len();
            }
        }
        if self.unsent_from >= self.unsent.len() {
            self.unsent.clear();
            self.unsent_from = 0;
        }
        true
    }

    /// Time for which nobody needs to look while a message comes in; `None`: not long.
    pub fn poll_interval(&mut self) -> Option<Duration> {
        let (received, missing) = self.endpoint.bytes_by_multicast()?;
        self.active.as_mut()?.rate.poll_interval(machine::now(), received, missing)
    }

    /// The events that may end a rest while a broadcast is in progress.
    pub fn watch(&self) -> Option<Watch<'_>> {
        self.active.as_ref()?;
        let has_room = self.unsent.is_empty();
        let events = if has_room { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        let deadline = self.endpoint.deadline(has_room).map(|at| Duration::from_nanos((at - self.now()).0));
        let look = self.endpoint.awaits_departure().then_some(DEPARTURE_LOOK);
        let at_most = [deadline, look].into_iter().flatten().min();
        let before_sleep = (!self.group.is_socket()).then_some(&*self.group as &dyn Arm);
        Some(Watch { socket: self.group.as_fd(), events, at_most, before_sleep })
    }

    /// Says goodbye to both neighbours, for the communicator goes. The returned channel is for what
    /// may still come; the group is left.
    pub fn say_bye(mut self, messages: &mut Messages) -> Result<NodeMessages, Failure> {
        self.control.post_receives([0, 0], messages)?;
        for to in [Peer::Successor, Peer::Predecessor] {
            self.endpoint.bye(&mut self.buffer);
            self.control.over(messages).send(to, &mut self.buffer)?;
        }
        // A driver leaves its group when it is dropped, so it cannot be taken apart.
        Ok(std::mem::replace(&mut self.control, NodeMessages::new(Rank(0), Rank(0))))
    }

    /// Ends a broadcast that has failed in this node's turn, which can no longer tell the others.
    pub fn give_up(&mut self, part: Part, messages: &mut Messages) {
        if part.number != self.served + 1 {
            return;
        }
        let number = self.endpoint.operation();
        self.forget(messages);
        if self.endpoint.operation() == number {
            // It had not begun, but the others count it.
            let _ = self.endpoint.begin(part.spec, part.root, self.now(), &mut Data::Sink(&mut [0]));
            self.endpoint.end();
        }
        self.served += 1;
    }

    /// Forgets the broadcast in progress, after an error: its messages are no longer in flight.
    pub fn forget(&mut self, messages: &mut Messages) {
        self.endpoint.end();
        self.active = None;
        self.control.forget(messages);
        self.unsent.clear();
        self.unsent_from = 0;
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.group.leave(self.communicator);
    }
}
