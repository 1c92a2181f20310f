use polycast_core::units::Nanos;

use super::node::Node;
use super::outcome::{Failure, ProtocolOutcome, Timing};
use super::random::Random;
use super::scenario::{Broadcast, Scenario};
use super::store::Store;
use super::timeline::Timeline;
use super::totals::Totals;
use super::world::{Content, World, WorldEvent};
use crate::event_queue::EventQueue;

/// Runs scenarios one after the other, in the same memory.
pub struct Simulator {
    events: EventQueue<WorldEvent>,
    store: Store,
    timeline: Timeline,
    is_watched: bool,
}

impl Default for Simulator {
    fn default() -> Self {
        Simulator {
            events: EventQueue::new(),
            store: Store::new(),
            timeline: Timeline::default(),
            is_watched: true,
        }
    }
}

/// A change to the seed of a run, so that what is drawn while a scenario runs is not what the
/// scenario was drawn from.
const RUN: u64 = 0x5ca1_ab1e;

impl Simulator {
    /// A simulator that checks every step.
    pub fn new() -> Simulator {
        Simulator::default()
    }

    /// A simulator that checks only each node's result: for measuring with thousands of nodes.
    /// Nodes then do things in the order of a job's driver, not in any order.
    pub fn for_measuring() -> Simulator {
        Simulator { is_watched: false, ..Simulator::default() }
    }

    /// Runs a scenario. The same scenario always has the same outcome.
    ///
    /// # Panics
    /// If the scenario cannot be run: fewer than 2 nodes, a root that is no node, an empty message, more than 255 communicators.
    pub fn run(&mut self, scenario: &Scenario) -> Result<ProtocolOutcome, Failure> {
        assert!(scenario.nodes >= 2 && scenario.communicators.len() <= 255, "{scenario:?}");
        let broadcasts = || scenario.communicators.iter().flat_map(|communicator| &communicator.broadcasts);
        assert!(broadcasts().all(|b| b.root < scenario.nodes && b.bytes > 0), "{scenario:?}");
        self.events.clear();
        self.store.clear();
        let mut random = Random::new(scenario.seed ^ RUN);
        let threads = scenario.threads();
        let mut scratch = Vec::new();
        // All are drawn before anything else; each is drawn once more when it is called for.
        let mut draw = |broadcast: &Broadcast| {
            let before = random.clone();
            scratch.resize(broadcast.bytes as usize, 0);
            random.fill(&mut scratch);
            Content { drawn_from: before, bytes: Vec::new() }
        };
        let messages = scenario.communicators.iter();
        let messages = messages.map(|it| it.broadcasts.iter().map(&mut draw).collect()).collect();
        drop(scratch);
        let nodes = (0..scenario.nodes)
            .map(|node| Node::new(scenario, node, threads.len(), self.store.key(), &mut random))
            .collect();
        let timings = |communicator: &super::scenario::Communicator| {
            vec![Timing::default(); communicator.broadcasts.len()]
        };
        let world = World {
            timings: scenario.communicators.iter().map(timings).collect(),
            scenario,
            threads,
            messages,
            nodes,
            now: Nanos(0),
            events: &mut self.events,
            store: &mut self.store,
            random,
            totals: Totals::default(),
            timeline: &mut self.timeline,
            is_watched: self.is_watched,
            captured: Vec::new(),
            has_sabotaged: false,
            out: Vec::new(),
            scratch: Vec::new(),
        };
        world.run()
    }

    /// Runs a scenario so that each broadcast is over, at all nodes, when the next one begins: with
    /// a longer period where need be.
    pub fn run_apart(&mut self, mut scenario: Scenario) -> Result<ProtocolOutcome, Failure> {
        loop {
            let outcome = self.run(&scenario)?;
            let overlap = |pair: &[Timing]| pair[1].first_call < pair[0].last_return;
            if !outcome.broadcasts.windows(2).any(overlap) {
                return Ok(outcome);
            }
            scenario.faults.arrivals.period = Nanos(scenario.faults.arrivals.period.0 * 4);
        }
    }

    /// Runs a scenario, and says what happened, a line for each event.
    pub fn narrate(&mut self, scenario: &Scenario) -> (Result<ProtocolOutcome, Failure>, String) {
        self.timeline = Timeline(Some(String::new()));
        let result = self.run(scenario);
        (result, self.timeline.0.take().unwrap_or_default())
    }
}
