//! Nodes on a wormhole network (Nupairoj 1998, §6.1.2): a processor, two buffers and a network interface each.
//!
//! ```text
//!   process ─ t_hold ─▶ send buffer ─▶ interface: t_ns, then flits ─▶ … network … ─▶ receive buffer ─ t_rs + m t_rd ─▶ process
//!           called    queued        started                       left         arrived            taken         received
//!                        └── t_sq ────┴─────────── t_out ───────────┘             └──── t_rq ────────┘
//! ```
//!
//! A send keeps the processor for `t_hold`, and for longer if the send buffer has no room. The interface sends one message after the
//! other. A message that finds no room in the receive buffer stays in the network. Receiving keeps the processor, too; a
//! process that waits for room in its send buffer receives meanwhile, as an MPI does, so that nodes cannot wait for each other in a circle.

use std::collections::VecDeque;

use super::{Costs, Fabric, Message, Node, Notice, Switching, Topology};
use crate::event_queue::EventQueue;

/// The properties that all nodes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSettings {
    /// The costs of the nodes' messages.
    pub costs: Costs,
    /// The bytes of each send buffer; a longer message is sent when the buffer is empty. The
    /// message that is being sent counts.
    pub send_bytes: u64,
    /// The bytes of each receive buffer; the message that is being received counts.
    pub receive_bytes: u64,
    /// The rule for a process that computes: when it receives.
    pub receives: Receives,
}

/// The rule for a process that computes: when it receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receives {
    /// The process receives as soon as a message is there, and goes on computing afterwards.
    AtOnce,
    /// The process receives when it has computed.
    BetweenComputations,
}

/// The next thing that a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Do<L> {
    /// Sends a message.
    Send {
        /// The receiver, another node.
        to: Node,
        /// The length in bytes, at least 1.
        bytes: u64,
        /// The content of the message.
        load: L,
    },
    /// Computes for this many units of time.
    Compute(u64),
    /// Has changed its mind, and is asked again.
    Again,
    /// Waits for a message, or until [`Program::received`] names it.
    Wait,
}

/// The programs of all nodes.
pub trait Program {
    /// The content of a message.
    type Load: Copy;

    /// Returns what a process sends before it receives or computes anything.
    fn urgent(&mut self, node: Node, now: u64) -> Option<Do<Self::Load>>;
    /// Returns what a process does that has nothing to receive and nothing urgent to send.
    fn next(&mut self, node: Node, now: u64) -> Do<Self::Load>;
    /// Notes that a message has left its sender.
    fn left(&mut self, letter: &Letter<Self::Load>);
    /// Notes that a message has been received; may name a node that is to be asked again.
    fn received(&mut self, letter: &Letter<Self::Load>) -> Option<Node>;
}

/// A message, and the times at which it was where; see the [picture](self). A time that has not
/// come is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letter<L> {
    /// The sender.
    pub from: Node,
    /// The receiver.
    pub to: Node,
    /// The length in bytes.
    pub bytes: u64,
    /// The content.
    pub load: L,
    /// The number that the network knows the message by.
    pub number: u64,
    /// The time at which the process calls send.
    pub called: u64,
    /// The time at which the message stands in the send buffer, and the process goes on.
    pub queued: u64,
    /// The time at which the interface begins with the message.
    pub started: u64,
    /// The time at which the last flit has left the node.
    pub left: u64,
    /// The time at which the last flit has arrived.
    pub arrived: u64,
    /// The time at which the receiver begins with the message.
    pub taken: u64,
    /// The time at which the receiver has the message.
    pub received: u64,
    /// The time for which the message's head waited for channels in the network.
    pub delayed: u64,
}

/// Nodes, their network, and the programs that run on them.
#[derive(Debug)]
pub struct Machine<P: Program> {
    settings: NodeSettings,
    fabric: Fabric,
    nodes: Vec<NodeState>,
    letters: Vec<Letter<P::Load>>,
    unused: Vec<usize>,
    sent: u64,
    events: EventQueue<NodeEvent>,
    now: u64,
    /// The programs.
    pub program: P,
}

#[derive(Debug, Default)]
struct NodeState {
    processor: Processor,
    /// The time at which the processor has done what it does.
    busy_until: u64,
    /// The rest of what the process computes, if it was interrupted.
    to_compute: Option<u64>,
    /// The letter that waits for room in the send buffer.
    blocked: Option<usize>,
    to_send: VecDeque<usize>,
    is_sending: bool,
    send_bytes_used: u64,
    to_receive: VecDeque<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Processor {
    #[default]
    Free,
    Sends(usize),
    Receives(usize),
    Computes,
}

#[derive(Clone, Copy, Debug)]
enum NodeEvent {
    /// The processor may have done what it did.
    Processor(Node),
    Left(usize),
    Arrived(usize, u64),
}

/// The bits of a message's number that hold the place of its letter: the lowest. They limit the
/// letters at the same time.
const LETTERS_BITS: u32 = 24;

impl<P: Program> Machine<P> {
    /// A machine of idle nodes, at time 0.
    pub fn new(topology: Topology, switching: Switching, settings: NodeSettings, program: P) -> Machine<P> {
        let nodes = topology.nodes();
        let mut events = EventQueue::new();
        (0..nodes).for_each(|node| events.schedule(0, NodeEvent::Processor(node)));
        Machine {
            settings,
            fabric: Fabric::new(topology, switching, settings.receive_bytes),
            nodes: (0..nodes).map(|_| NodeState::default()).collect(),
            letters: Vec::new(),
            unused: Vec::new(),
            sent: 0,
            events,
            now: 0,
            program,
        }
    }

    /// The network.
    pub fn fabric(&mut self) -> &mut Fabric {
        &mut self.fabric
    }

    /// Units of time since the beginning.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Goes on to the time at which something happens next, and does that; false if nothing will
    /// ever happen.
    pub fn step(&mut self) -> bool {
        let Some(now) = [self.events.soonest(), self.fabric.soonest()].into_iter().flatten().min() else {
            return false;
        };
        self.now = now;
        while self.events.soonest() == Some(now) {
            if let Some((_, event)) = self.events.next() {
                self.happens(event);
            }
        }
        if self.fabric.soonest() == Some(now) {
            let events = &mut self.events;
            self.fabric.step(now, |at, message, notice| {
                let letter = (message.number & ((1 << LETTERS_BITS) - 1)) as usize;
                events.schedule(
                    at,
                    match notice {
                        Notice::Left => NodeEvent::Left(letter),
                        Notice::Arrived { delayed } => NodeEvent::Arrived(letter, delayed),
                    },
                );
            });
        }
        true
    }

    fn happens(&mut self, event: NodeEvent) {
        match event {
            NodeEvent::Processor(node) => self.processor_done(node),
            NodeEvent::Left(letter) => {
                self.letters[letter].left = self.now;
                self.program.left(&self.letters[letter]);
                let node = self.letters[letter].from;
                let state = &mut self.nodes[node as usize];
                state.is_sending = false;
                state.send_bytes_used -= self.letters[letter].bytes;
                self.start_sending(node);
                self.proceed(node);
            }
            NodeEvent::Arrived(letter, delayed) => {
                let node = self.letters[letter].to;
                self.letters[letter].arrived = self.now;
                self.letters[letter].delayed = delayed;
                self.nodes[node as usize].to_receive.push_back(letter);
                self.proceed(node);
            }
        }
    }

    fn processor_done(&mut self, node: Node) {
        let state = &mut self.nodes[node as usize];
        // The event of something that was interrupted.
        if state.busy_until != self.now {
            return;
        }
        match state.processor {
            Processor::Free | Processor::Computes => {}
            Processor::Sends(letter) => state.blocked = Some(letter),
            Processor::Receives(letter) => {
                self.letters[letter].received = self.now;
                let bytes = self.letters[letter].bytes;
                self.fabric.taken(self.now, node, bytes);
                let wake = self.program.received(&self.letters[letter]);
                self.unused.push(letter);
                self.nodes[node as usize].processor = Processor::Free;
                if let Some(other) = wake.filter(|other| *other != node) {
                    self.proceed(other);
                }
            }
        }
        self.nodes[node as usize].processor = Processor::Free;
        self.proceed(node);
    }

    /// Gives the processor something to do, if it has nothing or may be interrupted.
    fn proceed(&mut self, node: Node) {
        loop {
            let now = self.now;
            let state = &mut self.nodes[node as usize];
            let computes = match state.processor {
                Processor::Sends(_) | Processor::Receives(_) => return,
                Processor::Computes => Some(state.busy_until - now),
                Processor::Free => state.to_compute,
            };
            if let Some(letter) = state.blocked {
                let bytes = self.letters[letter].bytes;
                if state.send_bytes_used == 0 || state.send_bytes_used + bytes <= self.settings.send_bytes {
                    state.blocked = None;
                    state.send_bytes_used += bytes;
                    state.to_send.push_back(letter);
                    self.letters[letter].queued = now;
                    self.start_sending(node);
                    continue;
                }
            } else if let Some(Do::Send { to, bytes, load }) = self.program.urgent(node, now) {
                self.interrupt(node, computes);
                return self.call_send(node, to, bytes, load);
            }
            let state = &mut self.nodes[node as usize];
            let may_receive = computes.is_none() || self.settings.receives == Receives::AtOnce;
            if let Some(letter) = state.to_receive.front().copied().filter(|_| may_receive) {
                state.to_receive.pop_front();
                self.interrupt(node, computes);
                self.letters[letter].taken = now;
                let cost = self.settings.costs.receive.of(self.letters[letter].bytes);
                return self.occupy(node, Processor::Receives(letter), cost);
            }
            if state.blocked.is_some() || state.processor == Processor::Computes {
                return;
            }
            let next = match state.to_compute.take() {
                Some(rest) => Do::Compute(rest),
                None => self.program.next(node, now),
            };
            match next {
                Do::Send { to, bytes, load } => return self.call_send(node, to, bytes, load),
                Do::Compute(time) => return self.occupy(node, Processor::Computes, time),
                Do::Again => {}
                Do::Wait => return,
            }
        }
    }

    fn interrupt(&mut self, node: Node, computes: Option<u64>) {
        let state = &mut self.nodes[node as usize];
        state.to_compute = computes;
        state.processor = Processor::Free;
    }

    fn occupy(&mut self, node: Node, with: Processor, time: u64) {
        let state = &mut self.nodes[node as usize];
        (state.processor, state.busy_until) = (with, self.now + time);
        self.events.schedule(self.now + time, NodeEvent::Processor(node));
    }

    fn call_send(&mut self, node: Node, to: Node, bytes: u64, load: P::Load) {
        let letter = Letter {
            from: node,
            to,
            bytes,
            load,
            number: 0,
            called: self.now,
            queued: 0,
            started: 0,
            left: 0,
            arrived: 0,
            taken: 0,
            received: 0,
            delayed: 0,
        };
        let place = match self.unused.pop() {
            Some(place) => {
                self.letters[place] = letter;
                place
            }
            None => {
                self.letters.push(letter);
                assert!(self.letters.len() < 1 << LETTERS_BITS, "buffers bound what is under way");
                self.letters.len() - 1
            }
        };
        self.occupy(node, Processor::Sends(place), self.settings.costs.hold.of(bytes));
    }

    /// Lets the interface go on with the next message of the send buffer.
    fn start_sending(&mut self, node: Node) {
        let state = &mut self.nodes[node as usize];
        if state.is_sending {
            return;
        }
        let Some(place) = state.to_send.pop_front() else { return };
        state.is_sending = true;
        let letter = &mut self.letters[place];
        letter.started = self.now;
        let number = self.sent << LETTERS_BITS | place as u64;
        self.sent += 1;
        letter.number = number;
        let message = Message { from: node, to: letter.to, flits: letter.bytes, number };
        self.fabric.send(self.now + self.settings.costs.network.startup, message);
    }
}
