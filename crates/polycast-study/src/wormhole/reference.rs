//! A wormhole network cycle by cycle: every flit is moved by itself, as routers would.
//!
//! The simulation is there to be held against [`Fabric`](super::Fabric), in tests and in a
//! benchmark. Both share the rules for where messages can go, and for who goes first. A cycle is a
//! unit of time.

use std::collections::VecDeque;

use super::switching::Rooms;
use super::{Channel, Message, Node, Notice, Switching, Topology, Ways};

/// A network and every flit in it.
#[derive(Debug)]
pub struct CycleByCycle {
    topology: Topology,
    switching: Switching,
    lines: Vec<ReferenceLine>,
    worms: Vec<ReferenceWorm>,
    rooms: Rooms,
    now: u64,
}

#[derive(Clone, Debug, Default)]
struct ReferenceLine {
    is_owned: bool,
    /// The flit on the channel, and when it will be over.
    crossing: Option<(u64, u64)>,
    buffer: VecDeque<u64>,
}

#[derive(Debug)]
struct ReferenceWorm {
    message: Message,
    /// The channel into the receiver's node.
    last_channel: Channel,
    path: Vec<Channel>,
    /// The number of channels of the path that the message has left.
    passed: usize,
    /// The next flit that the sending node gives to the network.
    next: u64,
    /// The time at which the head asks for its next channel.
    asks_at: Option<u64>,
    priority: (u64, u64, u64),
    delayed: u64,
}

impl CycleByCycle {
    /// An empty network whose nodes can keep `receive_bytes` of messages until their processes take them.
    pub fn new(topology: Topology, switching: Switching, receive_bytes: u64) -> CycleByCycle {
        CycleByCycle {
            topology,
            switching,
            lines: vec![ReferenceLine::default(); topology.channels() as usize],
            worms: Vec::new(),
            rooms: Rooms::new(topology.nodes(), receive_bytes),
            now: 0,
        }
    }

    /// Sends a message: its head asks for its node's channel from `at` on.
    pub fn send(&mut self, at: u64, message: Message) {
        let priority = self.switching.priority(message.number, 0, at);
        let last_channel = self.topology.consumption(message.to);
        let (path, asks_at) = (Vec::new(), Some(at));
        self.worms.push(ReferenceWorm {
            message,
            last_channel,
            path,
            passed: 0,
            next: 0,
            asks_at,
            priority,
            delayed: 0,
        });
    }

    /// Notes that a receiver has taken a message out of its buffer.
    pub fn taken(&mut self, node: Node, bytes: u64) {
        self.rooms.give_back(node, bytes);
    }

    /// True if no message is on its way.
    pub fn is_empty(&self) -> bool {
        self.worms.is_empty()
    }

    /// Does what happens in this cycle, and goes to the next. What has happened now is said to
    /// `tell`.
    pub fn step(&mut self, mut tell: impl FnMut(u64, Message, Notice)) {
        let now = self.now;
        for worm in &mut self.worms {
            worm.arrive(now, &self.switching, &mut self.lines, &mut tell);
        }
        let has_left =
            |worm: &ReferenceWorm| worm.path.last().is_some_and(|last| !self.lines[*last as usize].is_owned);
        self.worms.retain(|worm| !has_left(worm));
        self.arbitrate();
        for worm in &mut self.worms {
            worm.start_flits(now, &self.switching, &mut self.lines);
        }
        self.now += 1;
    }

    fn arbitrate(&mut self) {
        let mut asking: Vec<usize> = (0..self.worms.len())
            .filter(|id| self.worms[*id].asks_at.is_some_and(|asks_at| asks_at <= self.now))
            .collect();
        asking.sort_by_key(|id| self.worms[*id].priority);
        let mut full = Vec::new();
        for id in asking {
            let worm = &mut self.worms[id];
            let Message { to, flits, number, .. } = worm.message;
            let ways = match worm.path.last() {
                Some(last) => self.topology.next(*last, to).expect("the last channel is not left"),
                None => Ways::One(self.topology.injection(worm.message.from)),
            };
            let mut free = ways.channels().filter(|channel| !self.lines[*channel as usize].is_owned);
            let channel = match (free.next(), free.next()) {
                (_, Some(other)) if self.switching.prefers_other(number, worm.path.len()) => other,
                (Some(first), _) => first,
                (None, _) => continue,
            };
            let is_last = channel == worm.last_channel;
            if is_last && (full.contains(&channel) || !self.rooms.take(to, flits)) {
                full.push(channel);
                continue;
            }
            let asked_at = worm.asks_at.take().expect("it asks");
            if !worm.path.is_empty() {
                worm.delayed += self.now - asked_at;
            }
            worm.path.push(channel);
            self.lines[channel as usize].is_owned = true;
        }
    }
}

impl ReferenceWorm {
    /// Lets flits come to the ends of channels.
    fn arrive(
        &mut self,
        now: u64,
        switching: &Switching,
        lines: &mut [ReferenceLine],
        tell: &mut impl FnMut(u64, Message, Notice),
    ) {
        for hop in self.passed..self.path.len() {
            let line = &mut lines[self.path[hop] as usize];
            let Some((flit, _)) = line.crossing.take_if(|(_, over_at)| *over_at <= now) else { continue };
            let (is_head, is_last) = (flit == 0, flit + 1 == self.message.flits);
            let to_node = self.path[hop] == self.last_channel;
            if to_node {
                line.is_owned = !is_last;
                if is_last {
                    tell(now, self.message, Notice::Arrived { delayed: self.delayed });
                }
            } else {
                line.buffer.push_back(flit);
            }
            if is_head && !to_node {
                let asks_at = now + switching.router_delay;
                self.asks_at = Some(asks_at);
                self.priority = switching.priority(self.message.number, hop + 1, asks_at);
            }
            if is_last && hop == 0 {
                tell(now, self.message, Notice::Left);
            } else if is_last {
                lines[self.path[hop - 1] as usize].is_owned = false;
                self.passed = hop;
            }
        }
    }

    /// Lets flits start over channels, from the head to the tail, so that one takes the room that
    /// another leaves at this time.
    fn start_flits(&mut self, now: u64, switching: &Switching, lines: &mut [ReferenceLine]) {
        for hop in (self.passed..self.path.len()).rev() {
            let to_node = self.path[hop] == self.last_channel;
            let line = &lines[self.path[hop] as usize];
            let has_room = to_node || (line.buffer.len() as u64) < switching.buffer_flits;
            if line.crossing.is_some() || !has_room {
                continue;
            }
            let flit = match hop.checked_sub(1) {
                Some(before) if before < self.passed => None,
                Some(before) => lines[self.path[before] as usize].buffer.pop_front(),
                None => (self.next < self.message.flits).then(|| {
                    self.next += 1;
                    self.next - 1
                }),
            };
            lines[self.path[hop] as usize].crossing = flit.map(|flit| (flit, now + switching.flit_time));
        }
    }
}
