//! A wormhole network by events: time passes only where a head moves on or a channel is freed.
//!
//! A message's head reserves one channel after the other; its flits follow behind it, and a channel is free again when the
//! last flit has left its buffer. All flits stop where the head stops, as far as buffers make them. So when each flit
//! starts over each channel follows from the times at which the head did. With flit `f`, the message's `i`th channel, the head's
//! times `a`, `t` for a flit over a channel and `B` flits to a buffer, it starts
//!
//! ```text
//!   one flit behind the one before it      s(f,i) ≥ s(f-1,i) + t
//!   when it has come over the last one     s(f,i) ≥ s(f,i-1) + t
//!   when there is room in the buffer       s(f,i) ≥ s(f-B,i+1)
//!   so                                     s(f,i) = max( a(i) + f t ,  max over j > i, (j-i)B ≤ f of  a(j) + (f - (j-i)B) t )
//! ```
//!
//! and nothing has to be done for a flit that is no head. `reference` moves every flit by itself; a test compares them.
//!
//! Invariants:
//! 1. A channel has one owner, from the start of its head to the arrival of its last flit in the next buffer.
//! 2. Heads that wait for a channel are given it in the order of their priorities; one that waits for room at its receiver
//!    is not overtaken by another for the same receiver.
//! 3. What happens at a time depends on what happened before it only: a channel that is freed is free for all who ask
//!    for it at that time.

use super::record::{Hold, Record, Wait};
use super::switching::Rooms;
use super::{Channel, Message, Node, Notice, Switching, Topology, Ways};
use crate::event_queue::EventQueue;

/// A network and the messages in it.
#[derive(Debug)]
pub struct Fabric {
    topology: Topology,
    switching: Switching,
    channels: Vec<Line>,
    worms: Vec<Worm>,
    /// Places in `worms` that can be taken again.
    unused: Vec<usize>,
    events: EventQueue<Event>,
    rooms: Rooms,
    /// Channels whose waiters are looked at in this step.
    touched: Vec<Channel>,
    candidates: Vec<usize>,
    moved: u64,
    record: Option<Record>,
}

#[derive(Clone, Debug)]
struct Line {
    /// The time at which the channel is free; `NEVER` while nobody knows.
    free_at: u64,
    waiting: Vec<usize>,
}

const NEVER: u64 = u64::MAX;

#[derive(Debug)]
struct Worm {
    message: Message,
    /// The channels that the head has started over, and when.
    path: Vec<(Channel, u64)>,
    ways: Ways,
    priority: (u64, u64, u64),
    asked_at: u64,
    delayed: u64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The head of a worm asks for its next channel.
    Head(usize),
    /// A channel may have become free.
    Freed(Channel),
}

impl Fabric {
    /// An empty network whose nodes can keep `receive_bytes` of messages until their processes take them.
    pub fn new(topology: Topology, switching: Switching, receive_bytes: u64) -> Fabric {
        assert!(
            switching.flit_time > 0 && switching.buffer_flits > 0,
            "{switching:?}: flits take time and room"
        );
        Fabric {
            topology,
            switching,
            channels: vec![Line { free_at: 0, waiting: Vec::new() }; topology.channels() as usize],
            worms: Vec::new(),
            unused: Vec::new(),
            events: EventQueue::new(),
            rooms: Rooms::new(topology.nodes(), receive_bytes),
            touched: Vec::new(),
            candidates: Vec::new(),
            moved: 0,
            record: None,
        }
    }

    /// Sends a message: its head asks for its node's channel at `at`, which has not been stepped
    /// over.
    pub fn send(&mut self, at: u64, message: Message) {
        debug_assert!(message.from != message.to && message.flits > 0, "{message:?}");
        let worm = Worm {
            message,
            path: Vec::new(),
            ways: Ways::One(self.topology.injection(message.from)),
            priority: (0, 0, 0),
            asked_at: at,
            delayed: 0,
        };
        let id = match self.unused.pop() {
            Some(id) => {
                self.worms[id] = worm;
                id
            }
            None => {
                self.worms.push(worm);
                self.worms.len() - 1
            }
        };
        self.events.schedule(at, Event::Head(id));
    }

    /// Notes that a receiver has taken a message out of its buffer.
    pub fn taken(&mut self, at: u64, node: Node, bytes: u64) {
        self.rooms.give_back(node, bytes);
        let channel = self.topology.consumption(node);
        if !self.channels[channel as usize].waiting.is_empty() {
            self.events.schedule(at, Event::Freed(channel));
        }
    }

    /// Occupies a free channel for somebody outside, until `until`.
    pub fn hold(&mut self, channel: Channel, until: u64) {
        self.channels[channel as usize].free_at = until;
    }

    /// Keeps from now on who holds which channel when.
    pub fn record(&mut self) {
        self.record.get_or_insert_default();
    }

    /// Takes the record that has been kept, and ends the keeping.
    pub fn recorded(&mut self) -> Record {
        self.record.take().unwrap_or_default()
    }

    /// The time at which something happens next.
    pub fn soonest(&self) -> Option<u64> {
        self.events.soonest()
    }

    /// The number of flits times the channels that each crosses, of messages which have been given
    /// their last channel.
    pub fn flit_hops(&self) -> u64 {
        self.moved
    }

    /// Counts the messages whose heads are on their way.
    pub fn under_way(&self) -> usize {
        self.worms.len() - self.unused.len()
    }

    /// Does what happens at `at`, which is [`soonest`](Self::soonest). What follows from that is
    /// said to `tell` now: when it will happen, later than now, to which message, and what.
    pub fn step(&mut self, at: u64, mut tell: impl FnMut(u64, Message, Notice)) {
        while self.events.soonest() == Some(at) {
            match self.events.next() {
                Some((_, Event::Head(id))) => self.ask(id, at),
                Some((_, Event::Freed(channel))) => self.touched.push(channel),
                None => {}
            }
        }
        self.touched.sort_unstable();
        self.touched.dedup();
        let mut candidates = std::mem::take(&mut self.candidates);
        for channel in self.touched.drain(..) {
            let line = &self.channels[channel as usize];
            if line.free_at <= at {
                candidates.extend_from_slice(&line.waiting);
            }
        }
        candidates.sort_unstable_by_key(|id| self.worms[*id].priority);
        candidates.dedup();
        // Of receivers that have no room for who is first; few.
        let mut full: Vec<Channel> = Vec::new();
        for id in candidates.drain(..) {
            let worm = &self.worms[id];
            let Message { number, to, flits, .. } = worm.message;
            let is_free = |channel: &Channel| self.channels[*channel as usize].free_at <= at;
            let mut free = worm.ways.channels().filter(is_free);
            let first = free.next();
            let other = free.next().filter(|_| self.switching.prefers_other(number, worm.path.len()));
            let Some(channel) = other.or(first).filter(|channel| !full.contains(channel)) else { continue };
            if channel == self.topology.consumption(to) && !self.rooms.take(to, flits) {
                full.push(channel);
                continue;
            }
            self.start(id, channel, at, &mut tell);
        }
        self.candidates = candidates;
    }

    fn ask(&mut self, id: usize, at: u64) {
        let worm = &mut self.worms[id];
        if let Some((channel, _)) = worm.path.last() {
            worm.ways = self.topology.next(*channel, worm.message.to).expect("the last channel is not left");
        }
        worm.asked_at = at;
        worm.priority = self.switching.priority(worm.message.number, worm.path.len(), at);
        for channel in worm.ways.channels() {
            let line = &mut self.channels[channel as usize];
            line.waiting.push(id);
            if line.free_at <= at {
                self.touched.push(channel);
            } else if line.free_at != NEVER {
                self.events.schedule(line.free_at, Event::Freed(channel));
            }
        }
    }

    /// Lets the head of a worm go over a channel.
    fn start(&mut self, id: usize, channel: Channel, at: u64, tell: &mut impl FnMut(u64, Message, Notice)) {
        let Switching { flit_time, router_delay, .. } = self.switching;
        let worm = &mut self.worms[id];
        for way in worm.ways.channels() {
            self.channels[way as usize].waiting.retain(|waiting| *waiting != id);
        }
        self.channels[channel as usize].free_at = NEVER;
        if let Some(record) = self.record.as_mut().filter(|_| at > worm.asked_at) {
            record.waits.push(Wait { message: worm.message, channel, from: worm.asked_at, until: at });
        }
        if !worm.path.is_empty() {
            worm.delayed += at - worm.asked_at;
        }
        worm.path.push((channel, at));
        let has_arrived = channel == self.topology.consumption(worm.message.to);
        let (message, head) = (worm.message, worm.path.len() - 1);
        // The head's `j`th channel decides when the last flit starts over those up to `lag` before.
        let lag = (message.flits - 1) / self.switching.buffer_flits;
        let first = head.saturating_sub(lag as usize);
        let decided = match (has_arrived, lag <= head as u64) {
            (true, _) => first..head + 1,
            (false, true) => first..first + 1,
            (false, false) => 0..0,
        };
        for hop in decided {
            let start = self.worms[id].last_flit_starts(hop, &self.switching);
            if hop == 0 {
                tell(start + flit_time, message, Notice::Left);
            } else {
                self.free(id, hop - 1, start + flit_time);
            }
        }
        if has_arrived {
            let worm = &self.worms[id];
            let arrived = worm.last_flit_starts(head, &self.switching) + flit_time;
            tell(arrived, message, Notice::Arrived { delayed: worm.delayed });
            self.moved += message.flits * worm.path.len() as u64;
            self.free(id, head, arrived);
            self.unused.push(id);
        } else {
            self.events.schedule(at + flit_time + router_delay, Event::Head(id));
        }
    }

    /// Frees the `hop`th channel of a worm, whose last flit is through with it at `at`.
    fn free(&mut self, id: usize, hop: usize, at: u64) {
        let (channel, from) = self.worms[id].path[hop];
        if let Some(record) = &mut self.record {
            record.holds.push(Hold { message: self.worms[id].message, channel, from, until: at });
        }
        let line = &mut self.channels[channel as usize];
        line.free_at = at;
        if !line.waiting.is_empty() {
            self.events.schedule(at, Event::Freed(channel));
        }
    }
}

impl Worm {
    /// The time `s(f,i)` of the last flit and the `hop`th channel; the head has started over all
    /// that it depends on.
    fn last_flit_starts(&self, hop: usize, switching: &Switching) -> u64 {
        let last = self.message.flits - 1;
        let behind = self.path[hop..].iter().zip((0..=last).step_by(switching.buffer_flits as usize));
        behind.map(|((_, head), ahead)| head + (last - ahead) * switching.flit_time).max().unwrap_or(0)
    }
}
