//! Routers with stages, credits and one buffer per input, as network-on-chip simulators have them: cycle by cycle, one message behind
//! another in a buffer: only to be held against the points of such a simulator.
//!
//! With the parameters of BookSim 2 (Jiang et al. 2013: routing 0, virtual channel 1, switch 1, transfer 1, credit 1, links 1), a flit
//! that is in a buffer at `t`
//!
//! ```text
//!   t        a head is given the output, unless another message has it
//!   t + 1    wins the switch, if there is a credit (other flits: at t)
//!   t + 2    crosses it, and is sent
//!   t + 4    is in the next buffer, and so on
//! ```
//!
//! and 3 cycles after it has won the switch, the router before it has a credit more. An output is free again when the credit of a
//! tail has come. Outputs are given round robin. Sources have queues without limit, whose waiting counts.

use std::collections::VecDeque;

use std::cmp::Ordering;

/// Uniform traffic of equal messages, each node's own included; nodes draw in each cycle whether one begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unicast {
    /// On which network.
    pub network: RouterNetwork,
    /// The length of a message.
    pub flits: u32,
    /// Flits that each input's buffer holds.
    pub buffer_flits: u32,
    /// Flits that a node offers in a cycle.
    pub load: f64,
    /// Messages of the first half of them are not counted.
    pub cycles: u64,
    /// The seed of all that is drawn.
    pub seed: u64,
}

/// Networks of routers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterNetwork {
    /// Along x, then along y.
    Mesh {
        /// Routers along x and along y.
        width: u32,
    },
    /// A k-ary n-tree: up to the nearest common ancestor by ways that are drawn, then down.
    Tree {
        /// k: so many ways up, and as many down.
        arity: u32,
        /// n.
        levels: u32,
    },
}

/// The results of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnicastMeasured {
    /// The time from the drawing of a message until its last flit is with its receiver: the mean in
    /// cycles.
    pub latency: f64,
    /// Flits that each node received in a cycle.
    pub accepted: f64,
    /// Messages that were counted.
    pub messages: u64,
}

/// Cycles from winning the switch to the next buffer, or to the node.
const SWITCH_TO_BUFFER: u64 = 3;
/// Cycles from winning the switch to a credit at the router before, and at a node that sends.
const CREDIT_TO_ROUTER: u64 = 3;
const CREDIT_TO_NODE: u64 = 2;
/// Cycles from a node to its router's buffer.
const NODE_TO_BUFFER: u64 = 2;
/// More than any of these.
const SLOTS: usize = 8;

type Port = usize;
/// Has an output whose last tail has left, and whose credit has not come.
const NOBODY: Port = Port::MAX;

#[derive(Clone, Copy)]
struct Flit {
    message: u32,
    is_head: bool,
    is_tail: bool,
}

#[derive(Clone, Copy)]
enum Event {
    /// A flit is in an input's buffer.
    Buffer(Port, Flit),
    /// An output has a credit more; that of a tail frees it.
    Credit(Port, bool),
    NodeCredit(u32),
    Received(Flit),
}

#[derive(Clone, Copy)]
enum Input {
    Idle,
    /// The message's head asks for an output.
    Asks(Port),
    /// The message has an output, from this cycle on.
    Has(u64),
}

/// The end that an output leads to, or that an input comes from.
#[derive(Clone, Copy)]
enum End {
    Port(Port),
    Node(u32),
    Nothing,
}

struct Message {
    to: u32,
    drawn: u64,
}

struct Source {
    waiting: VecDeque<u32>,
    sent: u32,
    credits: u32,
}

impl RouterNetwork {
    /// The number of nodes.
    pub fn nodes(self) -> u32 {
        match self {
            RouterNetwork::Mesh { width } => width * width,
            RouterNetwork::Tree { arity, levels } => arity.pow(levels),
        }
    }

    fn routers(self) -> u32 {
        match self {
            RouterNetwork::Mesh { width } => width * width,
            RouterNetwork::Tree { arity, levels } => levels * arity.pow(levels - 1),
        }
    }

    fn ports(self) -> u32 {
        match self {
            RouterNetwork::Mesh { .. } => 5,
            RouterNetwork::Tree { arity, .. } => 2 * arity,
        }
    }

    /// The input that a router's output leads to, and the other way round: links are pairs. Ports of a mesh: east, west, north,
    /// south, node; of a tree those down, then those up.
    fn end(self, router: u32, port: u32) -> End {
        let at = |router: u32, port: u32| End::Port((router * self.ports() + port) as Port);
        match self {
            RouterNetwork::Mesh { width } => {
                let (x, y) = (router % width, router / width);
                match port {
                    0 if x + 1 < width => at(router + 1, 1),
                    1 if x > 0 => at(router - 1, 0),
                    2 if y + 1 < width => at(router + width, 3),
                    3 if y > 0 => at(router - width, 2),
                    4 => End::Node(router),
                    _ => End::Nothing,
                }
            }
            RouterNetwork::Tree { arity, levels } => {
                let row = arity.pow(levels - 1);
                let (level, place) = (router / row, router % row);
                let digit = |digit: u32, of: u32| of / arity.pow(digit) % arity;
                let with = |digit_at: u32, value: u32| {
                    place - digit(digit_at, place) * arity.pow(digit_at) + value * arity.pow(digit_at)
                };
                match port.checked_sub(arity) {
                    None if level == 0 => End::Node(place * arity + port),
                    None => at((level - 1) * row + with(level - 1, port), arity + digit(level - 1, place)),
                    Some(_) if level + 1 == levels => End::Nothing,
                    Some(up) => at((level + 1) * row + with(level, up), digit(level, place)),
                }
            }
        }
    }

    /// The output towards a node.
    fn route(self, router: u32, to: u32, random: &mut Random) -> u32 {
        match self {
            RouterNetwork::Mesh { width } => {
                let ((x, y), (to_x, to_y)) = ((router % width, router / width), (to % width, to / width));
                match (to_x.cmp(&x), to_y.cmp(&y)) {
                    (Ordering::Greater, _) => 0,
                    (Ordering::Less, _) => 1,
                    (_, Ordering::Greater) => 2,
                    (_, Ordering::Less) => 3,
                    _ => 4,
                }
            }
            RouterNetwork::Tree { arity, levels } => {
                let row = arity.pow(levels - 1);
                let (level, place) = (router / row, router % row);
                let below = to / arity;
                match (place / arity.pow(level) == below / arity.pow(level), level) {
                    (false, _) => arity + random.below(arity.into()) as u32,
                    (true, 0) => to % arity,
                    (true, _) => below / arity.pow(level - 1) % arity,
                }
            }
        }
    }
}

struct Network {
    what: Unicast,
    ends: Vec<End>,
    buffers: Vec<VecDeque<Flit>>,
    inputs: Vec<Input>,
    /// The input that has each output.
    owners: Vec<Option<Port>>,
    credits: Vec<u32>,
    /// The input that is asked first: a place among a router's inputs.
    output_turn: Vec<u32>,
    sources: Vec<Source>,
    messages: Vec<Message>,
    events: [Vec<Event>; SLOTS],
    random: Random,
    sum: f64,
    counted: u64,
    received_flits: u64,
}

impl Unicast {
    /// Runs it. The same one always has the same result.
    pub fn run(&self) -> UnicastMeasured {
        let network = self.network;
        let each = |router: u32| (0..network.ports()).map(move |port| network.end(router, port));
        let ends: Vec<End> = (0..network.routers()).flat_map(each).collect();
        let source = || Source { waiting: VecDeque::new(), sent: 0, credits: self.buffer_flits };
        let mut state = Network {
            what: *self,
            buffers: vec![VecDeque::new(); ends.len()],
            inputs: vec![Input::Idle; ends.len()],
            owners: vec![None; ends.len()],
            credits: vec![self.buffer_flits; ends.len()],
            output_turn: vec![0; ends.len()],
            sources: (0..network.nodes()).map(|_| source()).collect(),
            messages: Vec::new(),
            events: Default::default(),
            random: Random::new(self.seed),
            ends,
            sum: 0.0,
            counted: 0,
            received_flits: 0,
        };
        (0..self.cycles).for_each(|cycle| state.cycle(cycle));
        UnicastMeasured {
            latency: state.sum / state.counted.max(1) as f64,
            accepted: state.received_flits as f64
                / (self.cycles - self.cycles / 2) as f64
                / f64::from(network.nodes()),
            messages: state.counted,
        }
    }
}

impl Network {
    fn at(&mut self, cycle: u64, event: Event) {
        self.events[cycle as usize % SLOTS].push(event);
    }

    fn cycle(&mut self, now: u64) {
        for event in std::mem::take(&mut self.events[now as usize % SLOTS]) {
            match event {
                Event::Buffer(port, flit) => {
                    self.buffers[port].push_back(flit);
                    self.look_at(port);
                }
                Event::Credit(port, is_tails) => {
                    self.credits[port] += 1;
                    if is_tails {
                        self.owners[port] = None;
                    }
                }
                Event::NodeCredit(node) => self.sources[node as usize].credits += 1,
                Event::Received(flit) => self.received(now, flit),
            }
        }
        let ports = self.what.network.ports() as usize;
        for router in (0..self.ends.len()).step_by(ports) {
            self.give_outputs(now, router..router + ports);
            self.give_switch(now, router..router + ports);
        }
        (0..self.what.network.nodes()).for_each(|node| self.inject(now, node));
    }

    /// A head that has come to the front asks for an output.
    fn look_at(&mut self, port: Port) {
        let (Input::Idle, Some(flit)) = (self.inputs[port], self.buffers[port].front()) else { return };
        debug_assert!(flit.is_head, "messages are whole");
        let network = self.what.network;
        let router = port as u32 / network.ports();
        let output = network.route(router, self.messages[flit.message as usize].to, &mut self.random);
        self.inputs[port] = Input::Asks((router * network.ports() + output) as Port);
    }

    /// The first from `turn` on of a router's inputs that `wants`.
    fn first(ports: &std::ops::Range<Port>, turn: u32, wants: impl Fn(Port) -> bool) -> Option<Port> {
        let count = ports.len();
        (0..count).map(|step| ports.start + (turn as usize + step) % count).find(|port| wants(*port))
    }

    fn give_outputs(&mut self, now: u64, ports: std::ops::Range<Port>) {
        for output in ports.clone().filter(|output| self.owners[*output].is_none()).collect::<Vec<_>>() {
            let asks = |port: Port| matches!(self.inputs[port], Input::Asks(asked) if asked == output);
            if let Some(input) = Network::first(&ports, self.output_turn[output], asks) {
                self.inputs[input] = Input::Has(now + 1);
                self.owners[output] = Some(input);
                self.output_turn[output] = (input - ports.start + 1) as u32 % ports.len() as u32;
            }
        }
    }

    /// An input has one output at most, and an output one input: there is nothing to choose, but who has credits.
    fn give_switch(&mut self, now: u64, ports: std::ops::Range<Port>) {
        for output in ports {
            let owner = self.owners[output].filter(|input| *input != NOBODY);
            let Some(input) = owner.filter(|_| self.credits[output] > 0) else { continue };
            let is_ready = matches!(self.inputs[input], Input::Has(from) if from <= now);
            let Some(flit) = self.buffers[input].front().copied().filter(|_| is_ready) else { continue };
            self.buffers[input].pop_front();
            self.credits[output] -= 1;
            match self.ends[output] {
                End::Port(next) => self.at(now + SWITCH_TO_BUFFER, Event::Buffer(next, flit)),
                _ => {
                    self.at(now + SWITCH_TO_BUFFER, Event::Received(flit));
                    self.at(now + SWITCH_TO_BUFFER + CREDIT_TO_ROUTER, Event::Credit(output, flit.is_tail));
                }
            }
            match self.ends[input] {
                End::Port(before) => self.at(now + CREDIT_TO_ROUTER, Event::Credit(before, flit.is_tail)),
                End::Node(node) => self.at(now + CREDIT_TO_NODE, Event::NodeCredit(node)),
                End::Nothing => {}
            }
            if flit.is_tail {
                self.owners[output] = Some(NOBODY);
                self.inputs[input] = Input::Idle;
                self.look_at(input);
            }
        }
    }

    fn inject(&mut self, now: u64, node: u32) {
        let Unicast { load, flits, network, .. } = self.what;
        if self.random.chance(load / f64::from(flits)) {
            let to = self.random.below(network.nodes().into()) as u32;
            self.sources[node as usize].waiting.push_back(self.messages.len() as u32);
            self.messages.push(Message { to, drawn: now });
        }
        let source = &mut self.sources[node as usize];
        let Some(message) = source.waiting.front().copied().filter(|_| source.credits > 0) else { return };
        source.credits -= 1;
        let flit = Flit { message, is_head: source.sent == 0, is_tail: source.sent + 1 == flits };
        source.sent = if flit.is_tail { 0 } else { source.sent + 1 };
        if flit.is_tail {
            source.waiting.pop_front();
        }
        let port = self.node_port(node);
        self.at(now + NODE_TO_BUFFER, Event::Buffer(port, flit));
    }

    fn node_port(&self, node: u32) -> Port {
        match self.what.network {
            RouterNetwork::Mesh { .. } => 5 * node as Port + 4,
            RouterNetwork::Tree { arity, .. } => (node / arity * 2 * arity + node % arity) as Port,
        }
    }

    fn received(&mut self, now: u64, flit: Flit) {
        let half = self.what.cycles / 2;
        self.received_flits += u64::from(now >= half);
        let drawn = self.messages[flit.message as usize].drawn;
        if flit.is_tail && drawn >= half {
            self.sum += (now - drawn) as f64;
            self.counted += 1;
        }
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(end)) >> 64) as u64
    }

    fn chance(&mut self, probability: f64) -> bool {
        ((self.number() >> 11) as f64) < probability * (1_u64 << 53) as f64
    }
}
