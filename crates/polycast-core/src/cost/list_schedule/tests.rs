use super::*;
use crate::model::{ClassParameters, Curve, LinkClass, Measured, Parameters, Point};
use crate::schedule::{After, Posting, Slice, Step, Stream};
use crate::topology::Topology;

/// `g(m) = m`, `L = 10`.
fn network(ranks: usize) -> Network {
    let latency = Curve::new(vec![Point::exact(1, 10.0)]).unwrap();
    let gap = Curve::new([1, 1 << 20].map(|bytes| Point::exact(bytes, bytes as f64)).to_vec()).unwrap();
    let classes = [(LinkClass::SameSwitch, ClassParameters::new(latency, gap))].into();
    let names: Vec<String> = (0..ranks).map(|rank| format!("h{rank}")).collect();
    let parameters = Parameters::new(Measured::default(), classes).unwrap();
    Network::new(&Topology::flat(names.clone()).place(&names), &parameters)
}

/// Lanes of one step each.
struct Written(Vec<Lane>, Vec<Step>);

impl Schedule for Written {
    fn lanes(&self) -> &[Lane] {
        &self.0
    }

    fn step(&self, lane: LaneIndex, _: u64) -> Step {
        self.1[lane].clone()
    }
}

fn written(steps: Vec<(Kind, Action, After)>) -> Written {
    let (lanes, steps) = steps.into_iter().map(|(kind, action, after)| (Lane::new(kind, 1), Step { action, after })).unzip();
    Written(lanes, steps)
}

fn stream(direction: Direction, peer: u32) -> Kind {
    Kind::Messages(Stream { peer: Rank(peer), direction, channel: 0, posting: Posting::AtOnce })
}

fn send(peer: u32, bytes: u64, after: After) -> (Kind, Action, After) {
    (stream(Direction::Send, peer), Action::Send(Slice::output(0..bytes)), after)
}

fn receive(peer: u32, bytes: u64) -> (Kind, Action, After) {
    (stream(Direction::Receive, peer), Action::Receive(Slice::output(0..bytes)), After::Start)
}

fn time(schedules: Vec<Written>) -> Option<u64> {
    let mut network = network(schedules.len());
    list_schedule(&mut network, Sends::InTurn, schedules).map(|time| time.0)
}

/// Both directions of a link at once.
#[test]
fn two_ranks_that_exchange_do_not_wait_for_each_other() {
    let rank = |peer| written(vec![receive(peer, 1000), send(peer, 1000, After::Start)]);
    assert_eq!(time(vec![rank(1), rank(0)]), Some(1010));
}

/// The receiver's port takes one after the other, as at the end of a gather.
#[test]
fn messages_to_one_rank_queue_at_its_port() {
    let sender = || written(vec![send(0, 1000, After::Start)]);
    let root = written((1..4).map(|peer| receive(peer, 1000)).collect());
    assert_eq!(time(vec![root, sender(), sender(), sender()]), Some(3010));
}

/// Sent on when two copies are done: 200 ns each, for there is one processor.
#[test]
fn copies_take_the_processor() {
    let copy = |to| {
        let action = Action::Copy { from: Slice::input(0..1000), to: Slice::output(to..to + 1000) };
        (Kind::Local, action, After::Start)
    };
    let first = written(vec![copy(0), copy(1000), send(1, 1000, After::LanesBelow(2))]);
    assert_eq!(time(vec![first, written(vec![receive(0, 1000)])]), Some(400 + 1010));
}

#[test]
fn what_never_ends_or_was_not_measured_has_no_time() {
    let mute = || written(vec![receive(1, 1000)]);
    assert_eq!(time(vec![mute(), written(Vec::new())]), None);
    let fetch = Kind::Fetch { fabric: crate::schedule::Fabric::Shared, channel: 0, writer: Rank(1) };
    let action = Action::Fetch { at: 0, to: Slice::output(0..1) };
    assert_eq!(time(vec![written(vec![(fetch, action, After::Start)]), written(Vec::new())]), None);
    assert_eq!(time(vec![written(Vec::new())]), Some(0));
    let mut long = written(vec![send(1, 1, After::Start)]);
    long.0[0].steps = MAX_STEPS + 1;
    assert_eq!(time(vec![long, mute()]), None);
}
