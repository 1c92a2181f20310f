//! The node: the timing diagrams of Nupairoj 1998, §6.1.2 and §6.2.

use std::collections::VecDeque;

use polycast_study::wormhole::{
    Cost, Costs, Do, Letter, Machine, Node, NodeSettings, Program, Receives, Switching, Topology,
};

/// Every node does what is written for it, and keeps what it has received.
#[derive(Default)]
struct Script {
    steps: Vec<VecDeque<Do<()>>>,
    received: Vec<Letter<()>>,
}

impl Program for Script {
    type Load = ();

    fn urgent(&mut self, _: Node, _: u64) -> Option<Do<()>> {
        None
    }

    fn next(&mut self, node: Node, _: u64) -> Do<()> {
        self.steps[node as usize].pop_front().unwrap_or(Do::Wait)
    }

    fn left(&mut self, _: &Letter<()>) {}

    fn received(&mut self, letter: &Letter<()>) -> Option<Node> {
        self.received.push(*letter);
        None
    }
}

/// t_hold 20, t_out 15, t_recv 20, and t_net 20 over six channels, for messages of 10 bytes.
const COSTS: Costs = Costs {
    hold: Cost { startup: 20, per_byte: 0 },
    network: Cost { startup: 5, per_byte: 1 },
    receive: Cost { startup: 20, per_byte: 0 },
};

fn machine(
    topology: &str,
    send_bytes: u64,
    receive_bytes: u64,
    steps: &[(Node, Vec<Do<()>>)],
) -> Machine<Script> {
    let topology: Topology = topology.parse().unwrap();
    let settings = NodeSettings { costs: COSTS, send_bytes, receive_bytes, receives: Receives::AtOnce };
    let mut script = Script { steps: vec![VecDeque::new(); topology.nodes() as usize], ..Script::default() };
    for (node, steps) in steps {
        script.steps[*node as usize] = steps.iter().copied().collect();
    }
    Machine::new(topology, Switching::plain(1), settings, script)
}

fn send(to: Node, bytes: u64) -> Do<()> {
    Do::Send { to, bytes, load: () }
}

fn run(machine: &mut Machine<Script>) -> Vec<Letter<()>> {
    while machine.step() {}
    std::mem::take(&mut machine.program.received)
}

const BUFFER: u64 = 64 << 10;

/// The link from node `from` of a row of five, eastwards.
fn link(from: u32) -> u32 {
    2 * 10 + 4 * from
}

/// Nupairoj 1998, Figure 6.1: the way out is busy for 50 after the call, and the network delays the message by 15.
#[test]
fn the_papers_message_takes_105() {
    // An earlier message to where nobody is in the way: its last flit leaves at 20 + 5 + 45.
    let mut machine = machine("mesh:5x2", BUFFER, BUFFER, &[(0, vec![send(5, 45), send(4, 10)])]);
    // The head of the other one is at its last link at 70 + 5 + 4.
    machine.fabric().hold(link(3), 70 + 5 + 4 + 15);
    let letter = run(&mut machine).into_iter().find(|letter| letter.to == 4).unwrap();
    assert_eq!(letter.called, 20);
    assert_eq!(letter.queued - letter.called, 20, "t_hold");
    assert_eq!(letter.started - letter.queued, 30, "t_sq");
    assert_eq!(letter.delayed, 15, "t_cont");
    assert_eq!(letter.left - letter.started, 30, "t_out");
    assert_eq!(letter.left - letter.queued, 60, "t_hol");
    assert_eq!(letter.arrived - letter.started, 35, "t_net");
    assert_eq!(letter.taken - letter.arrived, 0, "t_rq");
    assert_eq!(letter.received - letter.arrived, 20, "t_recv");
    assert_eq!(letter.received - letter.called, 105, "t_end");
}

/// Nupairoj 1998, Figure 6.4: a sequential tree of four, alone, and with every message delayed by 15.
#[test]
fn the_papers_sequential_tree_takes_100_and_135() {
    // The middle of a cross: all receivers are four links away.
    let (width, middle) = (9, 4 + 4 * 9);
    let receivers = [middle + 4, middle - 4, middle + 4 * width];
    let steps = vec![(middle, receivers.map(|to| send(to, 10)).to_vec())];
    let latency =
        |machine: &mut Machine<Script>| run(machine).iter().map(|letter| letter.received).max().unwrap();
    let mut alone = machine("mesh:9x9", BUFFER, BUFFER, &steps);
    assert_eq!(latency(&mut alone), 100);
    let mut delayed = machine("mesh:9x9", BUFFER, BUFFER, &steps);
    let last_links = [(middle + 3, 0), (middle - 3, 1), (middle + 3 * width, 2)];
    for (started, (from, direction)) in [20, 50, 80].into_iter().zip(last_links) {
        delayed.fabric().hold(2 * 81 + 4 * from + direction, started + 5 + 4 + 15);
    }
    assert_eq!(latency(&mut delayed), 135);
}

#[test]
fn a_full_send_buffer_blocks_the_sender() {
    let steps = vec![(0, vec![send(1, 60), send(1, 40), send(1, 50), Do::Compute(7), send(1, 1)])];
    let letters = run(&mut machine("mesh:2x1", 100, BUFFER, &steps));
    let called: Vec<u64> = letters.iter().map(|letter| letter.called).collect();
    let queued: Vec<u64> = letters.iter().map(|letter| letter.queued).collect();
    // The first leaves at 20 + 5 + 60; only then is there room for the third.
    assert_eq!((called, queued), (vec![0, 20, 40, 92], vec![20, 40, 85, 112]));
    assert_eq!(letters[1].left, 85 + 5 + 40);
}

#[test]
fn a_full_receive_buffer_keeps_messages_in_the_network() {
    // The receiver computes, and receives when it has done so.
    let steps = [(0, vec![send(2, 60), send(2, 60)]), (2, vec![Do::Compute(1000)])];
    let mut machine = machine("mesh:3x1", BUFFER, 100, &steps);
    let letters = run(&mut machine);
    assert_eq!(letters[0].received, 20 + 5 + 3 + 60 + 20, "computing is interrupted");
    // The second one's head waits for the room of the first.
    assert_eq!(letters[1].arrived, letters[0].received + 60);
    assert!(letters[1].delayed > 0);
    assert_eq!(machine.now(), 1000 + 20 + 20, "and goes on");
}
