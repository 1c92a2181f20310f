//! What any schedules take, by list scheduling: each rank's executor starts its steps, and a step takes what it needs of the
//! ranks and links as soon as that is free.
//!
//! ```text
//!   sender's port      ┃ shared with others ┃ turn ┃                   g(m) in all; one turn where sends go in turn
//!   links              a message waits for what other messages have put on them
//!   receiver's port                                   ├── L(m) ──▶┃   it takes g(m), too, one after the other
//!   processor          copies and reductions, one after the other; in and out of shared memory, too; while it is busy no
//!                      send begins and no receive is seen to have ended
//!   multicast          the sender's port and all links once, as long as the slowest link takes; to each receiver as a message
//! ```
//!
//! It knows nothing of algorithms or collectives. `Transfers` says the same of trees without looking at each segment.

mod port;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use port::{Port, Portion, Sending};

use super::network::{MessageTimes, wire_bytes};
use super::transfers::FIRST_TURN;
use super::{CostedNetwork, LinkIndex, Sends};
use crate::executor::{Executor, Limits, StepId};
use crate::schedule::{Action, Fabric, Kind, Lane, LaneIndex, Schedule, partners};
use crate::units::{Nanos, Rank};

/// The most steps of all schedules together that are followed: more would take seconds.
pub const MAX_STEPS: u64 = 2_000_000;

/// The times of local work on a rank's processor. Nobody has measured them; the default is memory
/// at 40 Gb/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Copying, into and out of shared memory too, in nanoseconds per byte.
    pub copy_ns_per_byte: f64,
    /// Combining, in nanoseconds per byte.
    pub combine_ns_per_byte: f64,
}

impl Default for Work {
    fn default() -> Work {
        Work { copy_ns_per_byte: 0.2, combine_ns_per_byte: 0.2 }
    }
}

/// The time until the last rank has ended, if all begin at once; `schedules[rank]` is what `rank`
/// does. `None` if there are more than [`MAX_STEPS`], or if steps never end.
///
/// # Panics
/// If there are other ranks than those of the network.
pub fn list_schedule<S: Schedule>(
    network: &mut CostedNetwork,
    sends: Sends,
    work: Work,
    schedules: Vec<S>,
) -> Option<Nanos> {
    assert_eq!(schedules.len(), network.ranks() as usize, "one schedule per rank");
    let lanes = schedules.iter().flat_map(|schedule| schedule.lanes());
    if lanes.map(|lane| lane.steps).sum::<u64>() > MAX_STEPS {
        return None;
    }
    let ways = ways(network, &schedules);
    let mut links = vec![LinkState::default(); network.links()];
    for (rank, ways) in (0..).map(Rank).zip(&ways) {
        for &link in ways.iter().flatten().flat_map(|way| &way.path) {
            let link = &mut links[link as usize];
            link.is_shared |= *link.sender.get_or_insert(rank) != rank;
        }
    }
    let ranks = schedules.into_iter().map(RankState::new).collect();
    let (agenda, times) = (BTreeMap::new(), HashMap::new());
    let mut run = Run { network, sends, work, ways, ranks, links, agenda, entered: 0, times };
    (0..run.ranks.len()).for_each(|rank| run.start_steps(rank, 0.0));
    run.all_events();
    let ends: Option<Vec<f64>> = run.ranks.iter().map(|state| state.finished_ns).collect();
    Some(Nanos(ends?.into_iter().fold(0.0, f64::max).round() as u64))
}

/// The way from a lane that sends or publishes to the ranks that read it.
struct LaneWay {
    by: CarriedBy,
    /// The ranks that read the data, each with its own lane.
    readers: Vec<(Rank, LaneIndex)>,
    path: Vec<LinkIndex>,
    /// A message alone finds idle links; see `ClassParameters::latency` for what that means where it is negative.
    is_alone: bool,
}

#[derive(Clone, Copy)]
enum CarriedBy {
    /// Messages over links of this class, an index into
    /// [`LinkClass::ALL`](crate::model::LinkClass::ALL).
    Messages(usize),
    /// A multicast: all links carry each byte once, the slowest in this many nanoseconds.
    Multicast(f64),
    Memory,
}

/// The receiver that stands in a port's queues for all readers of a multicast, so that multicasts
/// go one after the other.
const EVERYBODY: Rank = Rank(u32::MAX);

#[derive(Clone, Default)]
struct LinkState {
    sender: Option<Rank>,
    is_shared: bool,
    free_ns: f64,
}

struct RankState<S> {
    executor: Executor<S>,
    port: Port,
    posted: BTreeSet<StepId>,
    arrived: BTreeSet<StepId>,
    /// The time until which the port takes in what has been sent to it so far, leaving out
    /// latencies.
    receives_until_ns: f64,
    processor_free_ns: f64,
    finished_ns: Option<f64>,
    /// The lanes that fetch, by index.
    fetches: HashMap<LaneIndex, Fetching>,
}

/// A lane that fetches what another rank publishes.
#[derive(Default)]
struct Fetching {
    /// The number of bytes that can be fetched so far, from the beginning of the lane.
    there: u64,
    /// The step that waits: its id, the end of the bytes it takes, and the nanoseconds that it
    /// copies.
    waiting: Option<(StepId, u64, f64)>,
}

enum Event {
    /// The port's decision of this number comes to its end, unless the port has decided something
    /// else since.
    PortEnds(u64),
    Arrives(StepId),
    /// The processor is free to hand the message to the port.
    Leaves(Rank, Sending),
    /// A lane can fetch this many further bytes.
    Shows(LaneIndex, u64),
    /// A step of local work ends, or a receive that the processor sees now.
    Ends(StepId),
}

struct Run<'a, S> {
    network: &'a CostedNetwork,
    sends: Sends,
    work: Work,
    /// The way of each lane, by rank and lane; `None` for lanes that neither send nor publish.
    ways: Vec<Vec<Option<LaneWay>>>,
    ranks: Vec<RankState<S>>,
    links: Vec<LinkState>,
    /// The events to come, by time in whole nanoseconds; at equal times by rank and in the order of
    /// their entry.
    agenda: BTreeMap<(u64, usize, u64), Event>,
    entered: u64,
    /// The times of messages already asked for, by their bytes.
    times: HashMap<u64, [MessageTimes; 3]>,
}

impl<S: Schedule> RankState<S> {
    fn new(schedule: S) -> RankState<S> {
        RankState {
            executor: Executor::new(schedule, Limits::default()),
            port: Port::default(),
            posted: BTreeSet::new(),
            arrived: BTreeSet::new(),
            receives_until_ns: 0.0,
            processor_free_ns: 0.0,
            finished_ns: None,
            fetches: HashMap::new(),
        }
    }
}

fn ways<S: Schedule>(network: &mut CostedNetwork, schedules: &[S]) -> Vec<Vec<Option<LaneWay>>> {
    let partners = partners(schedules).unwrap_or_default();
    let mut way_of = |rank: Rank, (index, lane): (LaneIndex, &Lane)| {
        let fabric = match lane.kind {
            Kind::Messages(_) if lane.is_send() => None,
            Kind::Publish { fabric, .. } => Some(fabric),
            _ => return None,
        };
        let readers = partners.get(rank.index())?[index].clone();
        let mut path = Vec::new();
        if !matches!(fabric, Some(Fabric::Shared | Fabric::Cell)) {
            path = readers.iter().flat_map(|(to, _)| network.path(rank, *to)).collect();
            path.sort_unstable();
            path.dedup();
        }
        let by = match fabric {
            None => CarriedBy::Messages(network.class(rank, readers.first()?.0) as usize),
            Some(Fabric::Shared | Fabric::Cell) => CarriedBy::Memory,
            Some(Fabric::Multicast) => {
                CarriedBy::Multicast(path.iter().map(|link| network.data_ns(*link, 1)).fold(0.0, f64::max))
            }
        };
        Some(LaneWay { by, readers, path, is_alone: lane.steps == 1 })
    };
    let of_rank = |(rank, schedule): (Rank, &S)| {
        schedule.lanes().iter().enumerate().map(|lane| way_of(rank, lane)).collect()
    };
    (0..).map(Rank).zip(schedules).map(of_rank).collect()
}

impl<S: Schedule> Run<'_, S> {
    fn all_events(&mut self) {
        while let Some(((at_ns, rank, _), event)) = self.agenda.pop_first() {
            let now = at_ns as f64;
            let state = &mut self.ranks[rank];
            match event {
                Event::Arrives(id) if !state.posted.remove(&id) => {
                    state.arrived.insert(id);
                }
                Event::Arrives(id) => self.enter_when_free(now, rank, Event::Ends(id)),
                Event::Leaves(to, message) => {
                    state.port.push(to, message);
                    self.use_port(rank, now);
                }
                Event::Ends(id) => {
                    state.executor.complete(id);
                    self.start_steps(rank, now);
                }
                Event::Shows(lane, bytes) => {
                    state.fetches.entry(lane).or_default().there += bytes;
                    self.fetch(rank, lane, now);
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
        self.agenda.insert((at_ns.max(0.0).round() as u64, rank, self.entered), event);
    }

    /// Enters an event that the processor must be free for, but that takes it no time. Even if the
    /// processor is free now, the event goes behind those that have been waiting for it: else the
    /// second of two sends would leave first, and with many steps in the same moment all that
    /// follows would come in another order.
    fn enter_when_free(&mut self, now: f64, rank: usize, event: Event) {
        let free_ns = self.ranks[rank].processor_free_ns;
        self.enter(free_ns.max(now), rank, event);
    }

    fn message_times(&mut self, bytes: u64) -> [MessageTimes; 3] {
        *self.times.entry(bytes).or_insert_with(|| self.network.times(bytes))
    }

    fn times(&mut self, by: CarriedBy, bytes: u64) -> MessageTimes {
        match by {
            CarriedBy::Messages(class) => self.message_times(bytes)[class],
            CarriedBy::Multicast(ns_per_byte) => MessageTimes {
                latency_ns: self.network.slowest_hop_ns(0),
                gap_ns: ns_per_byte * wire_bytes(bytes) as f64,
            },
            CarriedBy::Memory => MessageTimes { latency_ns: 0.0, gap_ns: 0.0 },
        }
    }

    fn start_steps(&mut self, rank: usize, now: f64) {
        while let Some(operation) = self.ranks[rank].executor.next_operation() {
            let (id, bytes) = (operation.id, operation.action.length());
            let copy_ns = bytes as f64 * self.work.copy_ns_per_byte;
            match operation.action {
                Action::Send(_) | Action::Publish(_) => {
                    let Some(way) = &self.ways[rank][id.lane] else { continue };
                    let (by, readers) = (way.by, way.readers.clone());
                    let to = match (by, &readers[..]) {
                        (CarriedBy::Memory, _) => {
                            let at = self.occupy_processor(rank, id, copy_ns, now);
                            for (reader, lane) in readers {
                                self.enter(at, reader.index(), Event::Shows(lane, bytes));
                            }
                            continue;
                        }
                        (CarriedBy::Messages(_), [(to, _)]) => *to,
                        _ => EVERYBODY,
                    };
                    let whole_ns = self.times(by, bytes).gap_ns;
                    let turn_ns = match (self.sends, by) {
                        (Sends::Overlapping, CarriedBy::Messages(_)) => {
                            self.times(by, bytes.min(FIRST_TURN)).gap_ns.min(whole_ns)
                        }
                        _ => whole_ns,
                    };
                    let message = Sending { id, bytes, whole_ns, turn_ns, left_ns: whole_ns, place: 0 };
                    self.enter_when_free(now, rank, Event::Leaves(to, message));
                }
                Action::Receive(_) => {
                    let state = &mut self.ranks[rank];
                    if !state.arrived.remove(&id) {
                        state.posted.insert(id);
                    } else {
                        self.enter_when_free(now, rank, Event::Ends(id));
                    }
                }
                Action::Fetch { at, .. } => {
                    // A multicast arrives where it belongs.
                    let Kind::Fetch { fabric, .. } =
                        self.ranks[rank].executor.schedule().lanes()[id.lane].kind
                    else {
                        continue;
                    };
                    let copy_ns = if fabric != Fabric::Multicast { copy_ns } else { 0.0 };
                    let fetching = self.ranks[rank].fetches.entry(id.lane).or_default();
                    fetching.waiting = Some((id, at + bytes, copy_ns));
                    self.fetch(rank, id.lane, now);
                }
                Action::Copy { .. } => {
                    self.occupy_processor(rank, id, copy_ns, now);
                }
                Action::Combine { .. } => {
                    self.occupy_processor(rank, id, bytes as f64 * self.work.combine_ns_per_byte, now);
                }
            }
        }
        let state = &mut self.ranks[rank];
        if state.executor.is_finished() {
            state.finished_ns.get_or_insert(now);
        }
        self.use_port(rank, now);
    }

    /// Gives a step to the processor; returns the time at which the step ends.
    fn occupy_processor(&mut self, rank: usize, id: StepId, for_ns: f64, now: f64) -> f64 {
        let free_ns = &mut self.ranks[rank].processor_free_ns;
        *free_ns = free_ns.max(now) + for_ns.round();
        let at = *free_ns;
        self.enter(at, rank, Event::Ends(id));
        at
    }

    /// Starts the step that a lane waits with, if all of its bytes can be fetched.
    fn fetch(&mut self, rank: usize, lane: LaneIndex, now: f64) {
        let Some(fetching) = self.ranks[rank].fetches.get_mut(&lane) else { return };
        if let Some((id, end, copy_ns)) = fetching.waiting
            && end <= fetching.there
        {
            fetching.waiting = None;
            self.occupy_processor(rank, id, copy_ns, now);
        }
    }

    fn use_port(&mut self, rank: usize, now: f64) {
        let Some((for_ns, portions)) = self.ranks[rank].port.decide(now) else { return };
        let decision = self.ranks[rank].port.decisions;
        self.enter(now + for_ns, rank, Event::PortEnds(decision));
        for portion in portions {
            let Some(way) = &self.ways[rank][portion.id.lane] else { continue };
            let (by, is_alone) = (way.by, way.is_alone);
            let MessageTimes { gap_ns, latency_ns } = self.times(by, portion.bytes);
            let latency_ns = if is_alone { latency_ns } else { latency_ns.max(0.0) };
            for (wait_ns, to, lane) in self.occupy(rank, &portion, gap_ns) {
                let Some(turn_ns) = portion.ends_after_ns else { continue };
                let event = match by {
                    CarriedBy::Messages(_) => Event::Arrives(StepId { lane, index: portion.id.index }),
                    _ => Event::Shows(lane, portion.bytes),
                };
                self.enter((now + turn_ns + latency_ns + wait_ns).max(now), to.index(), event);
            }
        }
    }

    /// Puts a share of a message on its links and on each receiver's port, each of which serves one after the other, and returns
    /// for each receiver how long it waits for the one that is busy for longest.
    fn occupy(&mut self, rank: usize, portion: &Portion, gap_ns: f64) -> Vec<(f64, Rank, LaneIndex)> {
        let Portion { id, bytes, share, began_ns, .. } = *portion;
        let Some(way) = &self.ways[rank][id.lane] else { return Vec::new() };
        let serve = |free_ns: &mut f64, for_ns: f64| {
            let wait_ns = (*free_ns - began_ns).max(0.0);
            *free_ns = free_ns.max(began_ns) + share * for_ns;
            wait_ns
        };
        let mut links_ns: f64 = 0.0;
        for &index in &way.path {
            let link = &mut self.links[index as usize];
            let data_ns = self.network.data_ns(index, bytes);
            let for_ns = if link.is_shared { self.network.occupancy_ns(index, bytes) } else { data_ns };
            links_ns = links_ns.max(serve(&mut link.free_ns, for_ns));
        }
        let at = |&(to, lane): &(Rank, LaneIndex)| {
            let port_ns = serve(&mut self.ranks[to.index()].receives_until_ns, gap_ns);
            (links_ns.max(port_ns), to, lane)
        };
        way.readers.iter().map(at).collect()
    }
}

#[cfg(test)]
mod tests;
