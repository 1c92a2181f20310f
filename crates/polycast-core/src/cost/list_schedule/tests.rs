use super::*;
use crate::model::{ClassParameters, Curve, LinkClass, Parameters, Point, Provenance};
use crate::schedule::{After, Direction, Posting, Slice, Step, Stream};
use crate::topology::Topology;

/// `g(m) = m`, `L = 10`.
fn network(ranks: usize) -> CostedNetwork {
    let latency = Curve::new(vec![Point::exact(1, 10.0)]).unwrap();
    let gap = Curve::new([1, 1 << 20].map(|bytes| Point::exact(bytes, bytes as f64)).to_vec()).unwrap();
    let classes = [(LinkClass::SameSwitch, ClassParameters::new(latency, gap))].into();
    let names: Vec<String> = (0..ranks).map(|rank| format!("h{rank}")).collect();
    let parameters = Parameters::new(Provenance::default(), classes).unwrap();
    CostedNetwork::new(&Topology::flat(names.clone()).place(&names), &parameters)
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
    let (lanes, steps) =
        steps.into_iter().map(|(kind, action, after)| (Lane::new(kind, 1), Step { action, after })).unzip();
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
    list_schedule(&mut network, Sends::InTurn, Work::default(), schedules).map(|time| time.0)
}

/// Both directions of a link at once.
#[test]
fn two_ranks_that_exchange_do_not_wait_for_each_other() {
    let rank = |peer| written(vec![receive(peer, 1000), send(peer, 1000, After::Start)]);
    assert_eq!(time(vec![rank(1), rank(0)]), Some(1010));
}

/// The receiver's port takes one after the other, as at the end of a gather. Full packets: links that several use carry headers, too.
#[test]
fn messages_to_one_rank_queue_at_its_port() {
    let sender = || written(vec![send(0, 1448, After::Start)]);
    let root = written((1..4).map(|peer| receive(peer, 1448)).collect());
    assert_eq!(time(vec![root, sender(), sender(), sender()]), Some(3 * 1448 + 10));
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

/// Each step is copied in and then out, 100 ns each, the second one in while the first goes out.
#[test]
fn shared_memory_is_copied_in_and_out() {
    let (fabric, channel) = (Fabric::Shared, 0);
    let publish = Kind::Publish { fabric, channel, readers: [Rank(1), Rank(2)].into() };
    let fetch = || Kind::Fetch { fabric, channel, writer: Rank(0) };
    let half = |index: u64| Slice::output(500 * index..500 * (index + 1));
    let steps = |kind, of: &dyn Fn(u64) -> Action| {
        let steps = [0, 1].map(|index| Step { action: of(index), after: After::Start });
        Repeated([Lane::new(kind, 2)], steps)
    };
    let reader = || steps(fetch(), &|index| Action::Fetch { at: 500 * index, to: half(index) });
    let schedules = vec![steps(publish, &|index| Action::Publish(half(index))), reader(), reader()];
    assert_eq!(list_schedule(&mut network(3), Sends::InTurn, Work::default(), schedules), Some(Nanos(300)));
}

/// One lane.
struct Repeated([Lane; 1], [Step; 2]);

impl Schedule for Repeated {
    fn lanes(&self) -> &[Lane] {
        &self.0
    }

    fn step(&self, _: LaneIndex, index: u64) -> Step {
        self.1[index as usize].clone()
    }
}

/// A full packet takes all links at once, as its gap was measured, and a message of a byte comes after it.
#[test]
fn a_multicast_leaves_once_and_holds_the_port() {
    let (fabric, channel) = (Fabric::Multicast, 0);
    let publish = Kind::Publish { fabric, channel, readers: [Rank(1), Rank(2)].into() };
    let publish = (publish, Action::Publish(Slice::output(0..1448)), After::Start);
    let fetch = Kind::Fetch { fabric, channel, writer: Rank(0) };
    let fetch = || (fetch.clone(), Action::Fetch { at: 0, to: Slice::output(0..1448) }, After::Start);
    let short = || vec![written(vec![publish.clone()]), written(vec![fetch()]), written(vec![fetch()])];
    assert_eq!(time(short()), Some(1448 + 10));
    let mut long = short();
    long[0] = written(vec![publish.clone(), send(1, 1000, After::Start)]);
    long[1] = written(vec![fetch(), receive(0, 1000)]);
    assert_eq!(time(long), Some(1448 + 1000 + 10));
}

#[test]
fn combining_has_a_rate_of_its_own() {
    let combine = Action::Combine { from: Slice::input(0..1000), into: Slice::output(0..1000) };
    let work = Work { combine_ns_per_byte: 1.5, ..Work::default() };
    let schedules = vec![written(vec![(Kind::Local, combine, After::Start)])];
    assert_eq!(list_schedule(&mut network(1), Sends::InTurn, work, schedules), Some(Nanos(1500)));
}

#[test]
fn what_never_ends_has_no_time() {
    let mute = || written(vec![receive(1, 1000)]);
    assert_eq!(time(vec![mute(), written(Vec::new())]), None);
    let fetch = Kind::Fetch { fabric: Fabric::Shared, channel: 0, writer: Rank(1) };
    let action = Action::Fetch { at: 0, to: Slice::output(0..1) };
    assert_eq!(time(vec![written(vec![(fetch, action, After::Start)]), written(Vec::new())]), None);
    assert_eq!(time(vec![written(Vec::new())]), Some(0));
    let mut long = written(vec![send(1, 1, After::Start)]);
    long.0[0].steps = MAX_STEPS + 1;
    assert_eq!(time(vec![long, mute()]), None);
}
