use std::collections::VecDeque;

use polycast_core::units::Nanos;
use polycast_protocol::{Data, Endpoint, Fragmentation, Key, Membership};

use super::check::{Buffer, Said};
use super::inbox::{Inbox, LANES, Receives};
use super::random::Random;
use super::scenario::{Broadcast, Scenario};
use super::store::{Id, JOB};

/// A process: its socket, its calls, and its end of every communicator.
pub(super) struct Node {
    pub socket: Socket,
    pub ends: Vec<End>,
    pub threads: Vec<Thread>,
    /// The time at which the processor has done what it has begun.
    pub busy_until: Nanos,
    /// The time at which the node looks for work without anything coming in.
    pub wake_at: Option<Nanos>,
    pub outgoing_free: Nanos,
    /// The time at which the port is free for messages, where queues are fair.
    pub messages_free: Nanos,
    pub incoming_free: Nanos,
    /// The most that each event costs beyond the hardware's overhead.
    pub slowness: Nanos,
    /// Messages, by sender and communicator, that came while the process was between two calls.
    pub unreceived: Vec<(u32, usize)>,
    /// True if the node's multicast channel is in a bad time.
    pub is_bad_channel: bool,
}

/// The kernel's buffer of datagrams that have not been read.
#[derive(Default)]
pub(super) struct Socket {
    queue: VecDeque<Id>,
    bytes: usize,
}

/// A thread of the program.
pub(super) struct Thread {
    /// The number of the thread's calls that have returned.
    pub returned: usize,
    pub is_calling: bool,
}

/// A node's end of one communicator.
pub(super) struct End {
    pub endpoint: Endpoint,
    pub inbox: Inbox,
    pub receives: [Receives; LANES],
    pub buffer: Buffer,
    pub said: Said,
    pub active: Option<Active>,
    /// Messages that the node has sent and that are under way.
    pub sending: u32,
    /// The time at which the last message on each lane arrives: the next one does not before that.
    pub last_arrival: [Nanos; LANES],
}

/// The call that a node is in.
#[derive(Clone, Copy)]
pub(super) struct Active {
    pub thread: usize,
    pub index: usize,
    pub broadcast: Broadcast,
    pub is_root: bool,
    pub began: Nanos,
    pub cut: Fragmentation,
    /// The number of fragments that had been repaired or restored when the call began.
    pub repaired_before: u64,
}

impl Socket {
    /// Takes in a datagram; false if there is no room.
    pub fn arrive(&mut self, id: Id, bytes: usize, most: Option<usize>) -> bool {
        let has_room = most.is_none_or(|most| self.bytes + bytes <= most);
        if has_room {
            self.bytes += bytes;
            self.queue.push_back(id);
        }
        has_room
    }

    pub fn first(&self) -> Option<Id> {
        self.queue.front().copied()
    }

    pub fn pop(&mut self, bytes: usize) {
        self.queue.pop_front();
        self.bytes -= bytes;
    }
}

impl End {
    fn new(scenario: &Scenario, communicator: usize, node: u32, key: &Key) -> End {
        End {
            endpoint: Endpoint::new(Membership {
                job: JOB,
                communicator: communicator as u32,
                key: key.clone(),
                node,
                nodes: scenario.nodes,
                payload_bytes: scenario.payload_bytes,
                batch_datagrams: scenario.batch_datagrams,
                bits_per_second: scenario.bits_per_second,
                first_operation: scenario.communicators[communicator].first_operation,
            }),
            inbox: Inbox::default(),
            receives: Default::default(),
            buffer: Buffer::default(),
            said: Said::default(),
            active: None,
            sending: 0,
            last_arrival: [Nanos(0); LANES],
        }
    }

    /// The data that the endpoint may read or write now: none, unless a broadcast is in progress.
    pub fn data<'a>(active: Option<&Active>, buffer: &'a mut Buffer, message: &'a [u8]) -> Data<'a> {
        match active {
            None => Data::Source(&[]),
            Some(active) if active.is_root => Data::Source(message),
            Some(_) => Data::Sink(&mut buffer.bytes),
        }
    }
}

impl Node {
    pub fn new(scenario: &Scenario, node: u32, threads: usize, key: &Key, random: &mut Random) -> Node {
        let slow = scenario.faults.slow.filter(|slow| random.chance(slow.part));
        Node {
            socket: Socket::default(),
            ends: (0..scenario.communicators.len())
                .map(|index| End::new(scenario, index, node, key))
                .collect(),
            threads: (0..threads).map(|_| Thread { returned: 0, is_calling: false }).collect(),
            busy_until: Nanos(0),
            wake_at: None,
            outgoing_free: Nanos(0),
            messages_free: Nanos(0),
            incoming_free: Nanos(0),
            slowness: slow.map_or(Nanos(0), |slow| slow.most),
            unreceived: Vec::new(),
            is_bad_channel: false,
        }
    }

    /// True if the process is in a call: only then does it look at the network.
    pub fn is_calling(&self) -> bool {
        self.threads.iter().any(|thread| thread.is_calling)
    }
}
