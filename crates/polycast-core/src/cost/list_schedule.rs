//! What any schedules take, by list scheduling: each rank's executor starts its steps, and a step takes what it needs of the
//! ranks and links as soon as that is free.
//!
//! ```text
//!   sender's port      ┃ shared with others ┃ turn ┃                   g(m) in all; one turn where sends go in turn
//!   links              a message waits for what other messages have put on them
//!   receiver's port                                   ├── L(m) ──▶┃   it takes g(m), too, one after the other
//!   processor          copies and reductions, one after the other
//! ```
//!
//! It knows nothing of algorithms or collectives. `Transfers` says the same of trees without looking at each segment.

mod port;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use port::{Port, Portion, Sending};

use super::network::MessageTimes;
use super::transfers::FIRST_TURN;
use super::{LinkIndex, Network, Sends};
use crate::executor::{Executor, Limits, StepId};
use crate::schedule::{Action, Channel, Direction, Kind, Lane, LaneIndex, Schedule};
use crate::units::{Nanos, Rank};

/// Schedules with more steps in all are not followed: it would take seconds.
pub const MAX_STEPS: u64 = 2_000_000;

/// Copying and reducing, in nanoseconds per byte: memory at 40 Gb/s. Nobody has measured it.
const WORK_NS_PER_BYTE: f64 = 0.2;

/// When the last rank has ended, if all begin at once; `schedules[rank]` is what `rank` does. `None` if there are more than
/// [`MAX_STEPS`], or if steps go through memory or multicast, whose times were not measured, or never end.
///
/// # Panics
/// If there are other ranks than those of the network.
pub fn list_schedule<S: Schedule>(network: &mut Network, sends: Sends, schedules: Vec<S>) -> Option<Nanos> {
    assert_eq!(schedules.len(), network.ranks() as usize, "one schedule per rank");
    let lanes = || schedules.iter().flat_map(|schedule| schedule.lanes());
    let is_known = lanes().all(|lane| matches!(lane.kind, Kind::Messages(_) | Kind::Local));
    if !is_known || lanes().map(|lane| lane.steps).sum::<u64>() > MAX_STEPS {
        return None;
    }
    let ways = ways(network, &schedules);
    let mut links = vec![Link::default(); network.links()];
    for (rank, ways) in (0..).map(Rank).zip(&ways) {
        for &link in ways.iter().flatten().flat_map(|way| &way.path) {
            let link = &mut links[link as usize];
            link.is_shared |= *link.sender.get_or_insert(rank) != rank;
        }
    }
    let ranks = schedules.into_iter().map(State::new).collect();
    let (agenda, times) = (BTreeMap::new(), HashMap::new());
    let mut run = Run { network, sends, ways, ranks, links, agenda, entered: 0, times };
    (0..run.ranks.len()).for_each(|rank| run.start_steps(rank, 0.0));
    run.all_events();
    let ends: Option<Vec<f64>> = run.ranks.iter().map(|state| state.finished_ns).collect();
    Some(Nanos(ends?.into_iter().fold(0.0, f64::max).round() as u64))
}

/// Where the messages of a send lane go.
struct Way {
    to: Rank,
    lane: LaneIndex,
    class: usize,
    path: Vec<LinkIndex>,
    /// A message alone finds idle links; see `ClassParameters::latency` for what that means where it is negative.
    is_alone: bool,
}

#[derive(Clone, Default)]
struct Link {
    sender: Option<Rank>,
    is_shared: bool,
    free_ns: f64,
}

struct State<S> {
    executor: Executor<S>,
    port: Port,
    posted: BTreeSet<StepId>,
    arrived: BTreeSet<StepId>,
    /// Until when the port takes in what has been sent to it so far, leaving out latencies.
    receives_until_ns: f64,
    processor_free_ns: f64,
    finished_ns: Option<f64>,
}

enum Event {
    /// Of what the port does, if it has decided nothing else since.
    PortEnds(u64),
    Arrives(StepId),
    /// Of local work.
    Ends(StepId),
}

struct Run<'a, S> {
    network: &'a Network,
    sends: Sends,
    /// By rank and lane.
    ways: Vec<Vec<Option<Way>>>,
    ranks: Vec<State<S>>,
    links: Vec<Link>,
    /// By time, whose bits are in its order since it is not negative, and of equal times in the order of their entry.
    agenda: BTreeMap<(u64, u64), (usize, Event)>,
    entered: u64,
    /// By the bytes of a message.
    times: HashMap<u64, [MessageTimes; 3]>,
}

impl<S: Schedule> State<S> {
    fn new(schedule: S) -> State<S> {
        State {
            executor: Executor::new(schedule, Limits::default()),
            port: Port::default(),
            posted: BTreeSet::new(),
            arrived: BTreeSet::new(),
            receives_until_ns: 0.0,
            processor_free_ns: 0.0,
            finished_ns: None,
        }
    }
}

fn ways<S: Schedule>(network: &mut Network, schedules: &[S]) -> Vec<Vec<Option<Way>>> {
    let mut receiving: HashMap<(Rank, Rank, Channel), LaneIndex> = HashMap::new();
    for (rank, schedule) in (0..).map(Rank).zip(schedules) {
        let streams = schedule.lanes().iter().enumerate().filter_map(|(lane, l)| Some((lane, l.stream()?)));
        let received = streams.filter(|(_, stream)| stream.direction == Direction::Receive);
        receiving.extend(received.map(|(lane, stream)| ((stream.peer, rank, stream.channel), lane)));
    }
    let mut way_of = |rank: Rank, lane: &Lane| {
        let stream = lane.stream().filter(|stream| stream.direction == Direction::Send)?;
        Some(Way {
            to: stream.peer,
            lane: *receiving.get(&(rank, stream.peer, stream.channel))?,
            class: network.class(rank, stream.peer) as usize,
            path: network.path(rank, stream.peer),
            is_alone: lane.steps == 1,
        })
    };
    let of_rank =
        |(rank, schedule): (Rank, &S)| schedule.lanes().iter().map(|lane| way_of(rank, lane)).collect();
    (0..).map(Rank).zip(schedules).map(of_rank).collect()
}

impl<S: Schedule> Run<'_, S> {
    fn all_events(&mut self) {
        while let Some(((at, _), (rank, event))) = self.agenda.pop_first() {
            let now = f64::from_bits(at);
            let state = &mut self.ranks[rank];
            match event {
                Event::Arrives(id) if !state.posted.remove(&id) => {
                    state.arrived.insert(id);
                }
                Event::Arrives(id) | Event::Ends(id) => {
                    state.executor.complete(id);
                    self.start_steps(rank, now);
                }
                Event::PortEnds(decision) if decision == state.port.decisions => {
                    if let Some(id) = state.port.end() {
                        state.executor.complete(id);
                        self.start_steps(rank, now);
                    }
                    self.use_port(rank, now);
                }
                Event::PortEnds(_) => {}
            }
        }
    }

    fn enter(&mut self, at_ns: f64, rank: usize, event: Event) {
        self.entered += 1;
        self.agenda.insert((at_ns.max(0.0).to_bits(), self.entered), (rank, event));
    }

    fn times(&mut self, bytes: u64) -> [MessageTimes; 3] {
        *self.times.entry(bytes).or_insert_with(|| self.network.times(bytes))
    }

    fn start_steps(&mut self, rank: usize, now: f64) {
        while let Some(operation) = self.ranks[rank].executor.next_operation() {
            let (id, bytes) = (operation.id, operation.action.length());
            match operation.action {
                Action::Send(_) => {
                    let Some(way) = &self.ways[rank][id.lane] else { continue };
                    let (to, class) = (way.to, way.class);
                    let whole_ns = self.times(bytes)[class].gap_ns;
                    let turn_ns = match self.sends {
                        Sends::InTurn => whole_ns,
                        Sends::Overlapping => self.times(bytes.min(FIRST_TURN))[class].gap_ns.min(whole_ns),
                    };
                    let message = Sending { id, bytes, whole_ns, turn_ns, left_ns: whole_ns, place: 0 };
                    self.ranks[rank].port.push(to, message);
                }
                Action::Receive(_) => {
                    let state = &mut self.ranks[rank];
                    if state.arrived.remove(&id) {
                        state.executor.complete(id);
                    } else {
                        state.posted.insert(id);
                    }
                }
                _ => {
                    let state = &mut self.ranks[rank];
                    state.processor_free_ns =
                        state.processor_free_ns.max(now) + bytes as f64 * WORK_NS_PER_BYTE;
                    let at = state.processor_free_ns;
                    self.enter(at, rank, Event::Ends(id));
                }
            }
        }
        let state = &mut self.ranks[rank];
        if state.executor.is_finished() {
            state.finished_ns.get_or_insert(now);
        }
        self.use_port(rank, now);
    }

    fn use_port(&mut self, rank: usize, now: f64) {
        let Some((for_ns, portions)) = self.ranks[rank].port.decide(now) else { return };
        let decision = self.ranks[rank].port.decisions;
        self.enter(now + for_ns, rank, Event::PortEnds(decision));
        for Portion { id, bytes, share, began_ns, ends_after_ns } in portions {
            let wait_ns = self.occupy(rank, id.lane, bytes, share, began_ns);
            let (Some(way), Some(turn_ns)) = (&self.ways[rank][id.lane], ends_after_ns) else { continue };
            let (to, lane, class, is_alone) = (way.to.index(), way.lane, way.class, way.is_alone);
            let latency_ns = self.times(bytes)[class].latency_ns;
            let latency_ns = if is_alone { latency_ns } else { latency_ns.max(0.0) };
            let at = (now + turn_ns + latency_ns + wait_ns).max(now);
            self.enter(at, to, Event::Arrives(StepId { lane, index: id.index }));
        }
    }

    /// Puts a share of a message on its links and on the receiver's port, each of which serves one after the other, and returns how
    /// long it waits for the one that is busy for longest.
    fn occupy(&mut self, rank: usize, lane: LaneIndex, bytes: u64, share: f64, now: f64) -> f64 {
        let times = self.times(bytes);
        let Some(way) = &self.ways[rank][lane] else { return 0.0 };
        let mut wait_ns: f64 = 0.0;
        let mut serve = |free_ns: &mut f64, for_ns: f64| {
            wait_ns = wait_ns.max(*free_ns - now);
            *free_ns = free_ns.max(now) + share * for_ns;
        };
        for &index in &way.path {
            let link = &mut self.links[index as usize];
            let data_ns = self.network.data_ns(index, bytes);
            let for_ns = if link.is_shared { self.network.occupancy_ns(index, bytes) } else { data_ns };
            serve(&mut link.free_ns, for_ns);
        }
        serve(&mut self.ranks[way.to.index()].receives_until_ns, times[way.class].gap_ns);
        wait_ns
    }
}
