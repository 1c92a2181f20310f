use std::sync::Arc;

use polycast_core::units::Nanos;
use polycast_protocol::message::{self, Body};

use super::random::Random;

/// Everything that can go wrong on the way. The default: nothing does, and nothing takes time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Probability that one receiver misses one datagram.
    pub loss: f64,
    /// Losses in a row, for each receiver on its own.
    pub burst: Option<Burst>,
    /// Probability that a datagram is lost before anybody has it.
    pub uplink_loss: f64,
    /// Datagrams that certain receivers miss.
    pub target: Option<Target>,
    /// A time in which multicast does not work.
    pub dead: Option<Dead>,
    /// Probability that a receiver gets a datagram twice.
    pub duplicate: f64,
    /// Probability that a datagram arrives damaged: a bit flipped, or its end cut off.
    pub corrupt: f64,
    /// The time from root to receiver. Datagrams overtake each other if it varies.
    pub multicast_delay: Delay,
    /// The time from a node to a neighbour. Messages of one pair never overtake each other.
    pub message_delay: Delay,
    /// Connections that stand still.
    pub stalled: Option<Stalled>,
    /// The bytes that the kernel keeps for a node that does not read; `None`: any number.
    pub receive_buffer_bytes: Option<usize>,
    /// Messages that a node can have under way; `None`: any number.
    pub messages_most: Option<u32>,
    /// A message is under way until its receiver is in a call, not only until it has arrived: as when the connection
    /// between them is full.
    pub needs_receiver: bool,
    /// A request or fragments are under way until their receiver has a receive for them, and no node returns while a message of its own
    /// is: as with an MPI that sends nothing unasked but what is very short.
    pub asks_first: bool,
    /// The times at which the nodes call.
    pub arrivals: Arrivals,
    /// Nodes that take their time.
    pub slow: Option<Slow>,
    /// Roots of pulls that get their messages by and by.
    pub trickle: Option<Trickle>,
    /// Per datagram that is multicast, the probability that somebody else sends one to the group, too: noise, of
    /// another job, with a wrong key, for another communicator, or an old one of ours again.
    pub hostile: f64,
    /// A break of what the protocol relies on, to show that it is seen.
    pub sabotage: Option<Sabotage>,
}

/// Gilbert and Elliott's channel, which is good or bad, and stays so for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Probability, per datagram, that a good channel becomes bad.
    pub begins: f64,
    /// Probability, per datagram, that a bad one becomes good.
    pub ends: f64,
    /// Probability that a bad channel loses a datagram.
    pub loss: f64,
}

/// Datagrams, and the receivers that miss them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The datagrams of each broadcast.
    pub which: Which,
    /// The node that misses the datagrams; `None`: all do.
    pub node: Option<u32>,
}

/// Datagrams of a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All of them.
    All,
    /// The first fragment.
    First,
    /// The last one that the root sends: a fragment, the parity, or the end.
    Last,
}

/// A time in which nothing arrives by multicast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dead {
    /// The beginning of the time.
    pub from: Nanos,
    /// The end of the time.
    pub until: Nanos,
    /// The node at which nothing arrives; `None`: at all.
    pub node: Option<u32>,
}

/// A delay of `least`, and up to `jitter` more; now and then up to `straggle` more than that.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delay {
    /// The shortest delay.
    pub least: Nanos,
    /// The most that a delay is longer, usually: uniform from 0 to this.
    pub jitter: Nanos,
    /// The probability that a delay is much longer.
    pub straggler: f64,
    /// The most that such a delay is longer beyond that.
    pub straggle: Nanos,
}

impl Delay {
    /// A delay that is always the same.
    pub fn constant(least: Nanos) -> Delay {
        Delay { least, ..Delay::default() }
    }

    pub(super) fn draw(&self, random: &mut Random) -> Nanos {
        let mut delay = self.least;
        if self.jitter.0 > 0 {
            delay = delay + Nanos(random.below(self.jitter.0 + 1));
        }
        if random.chance(self.straggler) {
            delay = delay + Nanos(random.below(self.straggle.0 + 1));
        }
        delay
    }
}

/// Messages whose packet got lost, and lost again: such a message comes so much later, and all
/// behind it on that connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stalled {
    /// Probability, per message.
    pub part: f64,
    /// The time by which such a message comes later.
    pub by: Nanos,
    /// The messages that this happens to; `None`: all.
    pub only: Option<Saying>,
}

/// The meaning of a message between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saying {
    /// "Send me these."
    Request,
    /// "Here they are."
    Fragments,
    /// "Everything has been sent."
    End,
    /// "I have everything."
    Done,
    /// "I have called."
    Arrived,
}

impl Saying {
    pub(super) fn of(message: &[u8]) -> Option<Saying> {
        match message::decode(message)?.1 {
            Body::Request(_) => Some(Saying::Request),
            Body::Fragments(..) => Some(Saying::Fragments),
            Body::End => Some(Saying::End),
            Body::Done => Some(Saying::Done),
            Body::Arrived(_) => Some(Saying::Arrived),
            _ => None,
        }
    }
}

/// The times at which the nodes call. A node calls when it has returned from the call before, but
/// not before the broadcast's turn, and then it may be late.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrivals {
    /// Broadcast `i` has its turn at `i` times this.
    pub period: Nanos,
    /// The nodes that are late.
    pub late: Late,
}

/// The nodes that are late, and the time by which they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Late {
    /// No node.
    #[default]
    Nobody,
    /// Any node, at any call, with this probability, by up to this time.
    Sometimes(f64, Nanos),
    /// The given node, by this time.
    Node(u32, Nanos),
    /// A receiver, another one each time, by this time.
    One(Nanos),
    /// All receivers, by this time.
    Receivers(Nanos),
    /// All nodes, each by anything up to this time.
    All(Nanos),
    /// The nodes by the times of a job's ranks, one recorded call after the other, and again from
    /// the first; at least one call, with a time for each node.
    Recorded(Arc<[RecordedCall]>),
}

/// The times at which the ranks of a job called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCall {
    /// The rank that was the root.
    pub root: u32,
    /// The time between the first rank's call and that of each.
    pub late: Vec<Nanos>,
}

/// Nodes that take their time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slow {
    /// Probability that a node is one.
    pub part: f64,
    /// The most that each event costs such a node.
    pub most: Nanos,
}

/// A root that has a part of its message when it begins, and further ones at intervals: from a rank of its node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trickle {
    /// The number of parts, at least 1.
    pub parts: u64,
    /// The time from one part to the next.
    pub every: Nanos,
}

impl Trickle {
    /// The number of bytes, of a message of `bytes`, that the root has at the time `since` after
    /// its beginning; `u64::MAX` for all.
    pub(super) fn there_bytes(self, bytes: u64, since: Nanos) -> u64 {
        let parts = 1 + since.0 / self.every.0.max(1);
        if parts >= self.parts { u64::MAX } else { bytes / self.parts * parts }
    }
}

/// A way to break what the protocol relies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// A message with fragments never arrives; one in a run.
    MessageLost,
    /// Datagrams are damaged after their tags have been found right.
    DamageAccepted,
    /// A node's buffer is scribbled on behind the protocol's back; once in a run.
    BufferTouched,
    /// A request is counted as if it had been sent twice; one in a run.
    RequestCountedTwice,
}

impl Faults {
    /// Draws a mixture of faults: each is there or not, weak or strong.
    pub(super) fn draw(random: &mut Random, nodes: u32) -> Faults {
        let micros = |random: &mut Random, most| Nanos(random.log_within(100.0, most) as u64);
        let delay = |random: &mut Random| Delay {
            least: micros(random, 1e5),
            jitter: if random.chance(0.6) { micros(random, 2e5) } else { Nanos(0) },
            straggler: if random.chance(0.3) { random.log_within(0.01, 0.3) } else { 0.0 },
            straggle: micros(random, 2e7),
        };
        let node = |random: &mut Random| random.chance(0.5).then(|| random.below(nodes.into()) as u32);
        Faults {
            loss: if random.chance(0.6) { random.log_within(1e-3, 0.6) } else { 0.0 },
            burst: random.chance(0.2).then(|| Burst {
                begins: random.log_within(1e-3, 0.1),
                ends: random.log_within(0.02, 0.5),
                loss: 0.5 + random.unit() / 2.0,
            }),
            uplink_loss: if random.chance(0.2) { random.log_within(1e-3, 0.3) } else { 0.0 },
            target: random.chance(0.1).then(|| Target {
                which: random.one_of(&[Which::All, Which::First, Which::Last, Which::Last]),
                node: node(random),
            }),
            dead: random.chance(0.1).then(|| {
                let from = micros(random, 1e7);
                let lasts = if random.chance(0.5) { Nanos(u64::MAX) } else { micros(random, 1e8) };
                Dead { from, until: from + lasts, node: node(random) }
            }),
            duplicate: if random.chance(0.3) { random.log_within(1e-3, 0.5) } else { 0.0 },
            corrupt: if random.chance(0.3) { random.log_within(1e-3, 0.3) } else { 0.0 },
            multicast_delay: delay(random),
            message_delay: delay(random),
            receive_buffer_bytes: random.chance(0.4).then(|| random.log_within(100.0, 2e4) as usize),
            messages_most: random.chance(0.3).then(|| random.within(1, 8) as u32),
            needs_receiver: random.chance(0.5),
            arrivals: Arrivals::draw(random, nodes),
            slow: random.chance(0.3).then(|| Slow { part: random.unit(), most: micros(random, 1e6) }),
            hostile: if random.chance(0.3) { random.log_within(0.01, 0.5) } else { 0.0 },
            trickle: random
                .chance(0.3)
                .then(|| Trickle { parts: random.within(2, 9), every: micros(random, 1e4) }),
            asks_first: random.chance(0.3),
            sabotage: None,
            // Behind all else, so that older seeds keep what they had.
            stalled: random.chance(0.3).then(|| Stalled {
                part: random.log_within(1e-3, 0.3),
                by: Nanos(random.log_within(1e6, 3e8) as u64),
                only: None,
            }),
        }
    }
}

impl Arrivals {
    fn draw(random: &mut Random, nodes: u32) -> Arrivals {
        let time = Nanos(random.log_within(1e3, 5e9) as u64);
        let late = match random.below(8) {
            0..=2 => Late::Nobody,
            3..=4 => Late::Sometimes(random.log_within(0.02, 1.0), time),
            5 => Late::Node(random.below(nodes.into()) as u32, time),
            6 if random.below(2) == 0 => Late::One(time),
            6 => Late::All(time),
            _ => Late::Receivers(time),
        };
        let period = if random.chance(0.2) { Nanos(random.below(10_000_000)) } else { Nanos(0) };
        Arrivals { period, late }
    }
}
