use super::node::Node;
use super::outcome::{Failure, Outcome, Timing};
use super::random::Random;
use super::scenario::Scenario;
use super::store::Store;
use super::timeline::Timeline;
use super::totals::Totals;
use super::world::{Event, World};
use crate::event_queue::EventQueue;

/// Runs scenarios one after the other, in the same memory.
pub struct Simulator {
    events: EventQueue<Event>,
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

/// So that what is drawn while a scenario runs is not what it was drawn from.
const RUN: u64 = 0x5ca1_ab1e;

impl Simulator {
    /// Every step is checked.
    pub fn new() -> Simulator {
        Simulator::default()
    }

    /// Only each node's result is checked: for measuring with thousands of nodes. Nodes then do things in the order of a
    /// job's driver, not in any order.
    pub fn for_measuring() -> Simulator {
        Simulator { is_watched: false, ..Simulator::default() }
    }

    /// Runs it. The same scenario always has the same outcome.
    ///
    /// # Panics
    /// If the scenario cannot be run: fewer than 2 nodes, a root that is no node, an empty message, more than 255 communicators.
    pub fn run(&mut self, scenario: &Scenario) -> Result<Outcome, Failure> {
        assert!(scenario.nodes >= 2 && scenario.communicators.len() <= 255, "{scenario:?}");
        let broadcasts = || scenario.communicators.iter().flat_map(|communicator| &communicator.broadcasts);
        assert!(broadcasts().all(|b| b.root < scenario.nodes && b.bytes > 0), "{scenario:?}");
        self.events.clear();
        self.store.clear();
        let mut random = Random::new(scenario.seed ^ RUN);
        let threads = scenario.threads();
        let message = |bytes: u64, random: &mut Random| {
            let mut message = vec![0; bytes as usize];
            random.fill(&mut message);
            message
        };
        let messages = scenario.communicators.iter().map(|communicator| {
            communicator.broadcasts.iter().map(|b| message(b.bytes, &mut random)).collect()
        });
        let messages = messages.collect();
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
            now: polycast_core::units::Nanos(0),
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

    /// Runs it, and says what happened, a line for each event.
    pub fn narrate(&mut self, scenario: &Scenario) -> (Result<Outcome, Failure>, String) {
        self.timeline = Timeline(Some(String::new()));
        let result = self.run(scenario);
        (result, self.timeline.0.take().unwrap_or_default())
    }
}
