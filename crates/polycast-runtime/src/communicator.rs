//! One communicator: its rules, its log, its broadcasts.

mod ahead;
mod patience;
mod progress;
mod retired;
mod steady;
mod tune;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use polycast_core::algorithm::Algorithm;
use polycast_core::algorithm::broadcast::Planner;
use polycast_core::collective::CombinationOrder;
use polycast_core::policy::{self, CallCounts, Capabilities, Choice, Collective, Epoch};
use polycast_core::tree::DynamicTimes;
use polycast_core::units::Rank;
use polycast_shm::Processors;

use crate::abi::{GIVES_WAY, MpiError, SteadyCalls};
use crate::attach::{Layout, World};
use crate::call::{Activity, Chosen, Decision, Failure, Wanted, Why};
use crate::door::Door;
use crate::fault::{self, Point};
use crate::idle::Idle;
use crate::messages::{Address, Messages};
use crate::multicast::{Deaf, Driver, NodeMessages, RETRY_AFTER, Seat, Unavailable, set_up};
use crate::node_memory::{self, Found};
use crate::operation::{CellCall, Operations, Shared};
use crate::reason::Reason;
use crate::report::{self, Log};
use crate::say::warn_once;
use crate::settings::{self, Settings};
use crate::tags::{TagSpace, Tags};
use crate::trials::Comparison;
pub use retired::{leave_all_to_mpi, visit as visit_retired};
use steady::Steady;

/// Calls for which multicast would have been chosen, until it is tried again where it did not work;
/// then twice as many, and so on up to the most. So it is tried before twice the time is over after
/// which the leaders hold it worth its time. Such a try takes a second, any other one message to
/// and from each rank.
const RETRY_AFTER_CALLS: u32 = 16;
const MAX_RETRY_AFTER_CALLS: u32 = 1 << 16;

/// Calls for which multicast is chosen, from one look whether a root has told the ranks to leave it
/// to the next. All ranks look before the same calls, when those before are over.
const CALLS_UNTIL_LOOK: u32 = 4;

/// State of the multicast between the communicator's nodes.
pub(crate) enum MulticastState {
    Untried,
    /// Ready: the leaders have a driver.
    Ready,
    /// Unavailable: trees serve; multicast is tried again after `calls_until_retry` calls for which
    /// it would have been chosen.
    Unavailable {
        calls_until_retry: u32,
        interval: u32,
    },
    /// Freed by the program; the neighbours have not yet said goodbye.
    Leaving(Box<NodeMessages>),
}

/// State of the shared memory of the communicator's nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemoryState {
    Untried,
    /// Ready: each node of several ranks has memory.
    Ready,
    /// Used on no node, since not all have it.
    Unavailable,
}

/// A communicator that is served: its state in one process.
pub struct Communicator {
    pub(crate) door: Door,
    /// Number that marks this communicator's messages on the private communicator of all ranks.
    pub(crate) number: u32,
    /// True if something went wrong with the messages. Nobody else may then have the number: some
    /// may be on their way.
    pub(crate) is_spoiled: bool,
    /// Capabilities of this communicator, as far as they were tried; the rest is assumed to be
    /// there.
    pub(crate) capabilities: Capabilities,
    pub(crate) counts: CallCounts,
    pub(crate) layout: Arc<Layout>,
    pub(crate) multicast: MulticastState,
    memory: MemoryState,
    calls_until_look: u32,
    /// Capabilities that unwaited calls would have used, had they been tried: they are, in the next
    /// call that is waited for.
    pub(crate) wanted: Capabilities,
    pub(crate) log: Log,
    pub(crate) comparison: Comparison,
    pub(crate) steady: Steady,
    /// Time in which rank 0 may have ways measured apart from the program's calls.
    pub(crate) tuning_budget: Duration,
    pub(crate) tags: Tags,
    pub(crate) shared: Shared,
    pub(crate) operations: Operations,
    /// The last call of each collective that went through cells.
    pub(crate) cell_calls: [Option<Box<CellCall>>; Collective::ALL.len()],
    pub(crate) idle: Idle,
    /// The calls of each collective that came before ways were judged last.
    judged: [Option<u64>; Collective::ALL.len()],
    /// The failure, if MPI or polycast failed while ranks agreed on something, or in no operation's
    /// own message: this rank then does not know what the others do.
    pub(crate) broken: Option<Failure>,
}

impl Communicator {
    /// A communicator with a number on which its ranks have agreed, after the calls in `counts`.
    pub fn new(
        door: Door,
        rank: Rank,
        layout: &Arc<Layout>,
        settings: &Settings,
        (number, tags): (u32, TagSpace),
        counts: CallCounts,
        log: Log,
    ) -> Communicator {
        let planner = Planner::new(layout.site.clone());
        let planner = match &settings.parameters {
            Some(parameters) => planner.measured(parameters.content.clone()),
            None => planner,
        };
        let nodes = layout.nodes.clone();
        let planner = planner.on_nodes(nodes.clone());
        let address = Address { world_ranks: layout.world_ranks.clone(), first_tag: tags.first_tag(number) };
        Communicator {
            door,
            number,
            is_spoiled: false,
            capabilities: Capabilities::ALL,
            counts,
            multicast: MulticastState::Untried,
            memory: MemoryState::Untried,
            calls_until_look: CALLS_UNTIL_LOOK,
            wanted: Capabilities::NONE,
            log,
            comparison: Comparison::new(settings.trials, settings.tune.is_some(), layout.shape),
            steady: Steady::NONE,
            tuning_budget: settings.tune.unwrap_or_default(),
            tags: tags.operations(),
            shared: Shared {
                rank,
                policy: layout.policy.clone(),
                planner,
                on_node: Planner::new(layout.node.clone()).on_nodes(Arc::new(nodes.alone(rank))),
                nodes,
                messages: Messages::new(door, address),
                memory: None,
                driver: None,
                deaf: Deaf::default(),
                by_multicast: 0,
                activity: Activity::Nothing,
                dynamic: DynamicTimes::default(),
                early: Vec::new(),
                spare: Vec::new(),
                told: None,
            },
            operations: Operations::default(),
            cell_calls: Default::default(),
            idle: Idle::new(layout.neighbours, door.capabilities() & GIVES_WAY != 0),
            layout: layout.clone(),
            judged: Default::default(),
            broken: None,
        }
    }

    /// Decides who serves a call, alike on all ranks. Collective the first time that a choice needs
    /// something that has not been tried.
    ///
    /// A rank that cannot find out what the others chose must not go to the stock MPI by itself: it says yes, and the call
    /// gives the error.
    pub fn plan(&mut self, call: Wanted) -> Decision {
        if self.broken.is_none()
            && let Some(decision) = self.steady.next(&call)
        {
            return decision;
        }
        self.add_up();
        self.log.begin(&call.of, call.root);
        let epoch = self.counts.next(&self.shared.policy, &call.of);
        self.plan_in(call, epoch)
    }

    /// Decides who serves a call that was counted already and lies in `epoch`.
    pub fn plan_in(&mut self, call: Wanted, epoch: Epoch) -> Decision {
        if self.broken.is_none() {
            match catch_unwind(AssertUnwindSafe(|| self.decide(call, epoch))) {
                Ok(Ok(decision)) => return decision,
                Ok(Err(error)) => self.broken = Some(Failure::Mpi(error)),
                Err(_) => self.broken = Some(Failure::Internal),
            }
        }
        Decision::UNKNOWN
    }

    /// Takes the time of a call that was left to the MPI, which has done it.
    pub fn end_of_left(&mut self) {
        self.comparison.ended(Ok(()));
        self.log.end_of_left();
    }

    fn decide(&mut self, wanted: Wanted, epoch: Epoch) -> Result<Decision, MpiError> {
        fault::point(Point::Choose);
        while self.comparison.is_due() {
            self.finish_all();
            self.comparison.judge(&self.door, &self.shared.policy, self.shared.rank)?;
            self.judged = Collective::ALL.map(|of| Some(self.counts.earlier_calls(of)));
        }
        let Wanted { of: call, root, may_be_compared, is_ordered, .. } = wanted;
        self.try_what_is_wanted()?;
        self.retry_multicast(&call, epoch)?;
        let (choice, why) = loop {
            let decision = *self.shared.policy.choose(&call, self.capabilities, epoch);
            self.learn(decision, &wanted)?;
            if !may_be_compared {
                let choice = self.comparison.unchanging(decision, &call, self.capabilities);
                let choice = if is_ordered { choice.in_order() } else { choice };
                if self.provides(choice)? {
                    break (choice, Why::Rules(decision.by));
                }
                continue;
            }
            let Communicator { comparison, shared, capabilities, .. } = self;
            let (choice, why) = comparison.next(decision, &shared.policy, &call, *capabilities, epoch);
            if self.provides(choice)? {
                break (choice, why);
            }
        };
        self.comparison.starts(&call, self.shared.rank == root);
        let decision = if choice == Choice::Stock {
            let is_logged = self.log.leave(&call, why, || false);
            let is_timed = is_logged || self.comparison.is_timed();
            if is_timed { Decision::LeftAndTimed } else { Decision::Left }
        } else {
            self.log.chosen(&call, choice, why);
            Decision::Served(Chosen { choice, epoch, is_ahead: false })
        };
        self.look_ahead(&wanted, epoch, decision);
        Ok(decision)
    }

    /// The way that would serve a call, as known without trying, and true if ways are being
    /// compared for such calls. `given`: the calls that the door counts itself.
    pub fn choice(&self, call: &policy::Call, given: &SteadyCalls) -> (Choice, bool) {
        let epoch = self.counts_now(given).peek(&self.shared.policy, call.collective);
        let rules = *self.shared.policy.choose(call, self.capabilities, epoch);
        self.comparison.found(rules, &self.shared.policy, call, self.capabilities, epoch)
    }

    /// The order in which an algorithm combines contributions where this communicator's ranks are.
    #[inline]
    pub fn keeps(&self, algorithm: &Algorithm) -> CombinationOrder {
        algorithm.keeps_on(&self.shared.nodes)
    }

    /// True if the communicator has the capabilities that `choice` needs; they are tried the first
    /// time. Those that it has not are missing from `self.capabilities` then.
    pub(crate) fn provides(&mut self, choice: Choice) -> Result<bool, MpiError> {
        self.has(choice.needs())
    }

    pub(crate) fn has(&mut self, needs: Capabilities) -> Result<bool, MpiError> {
        if needs.has(Capabilities::MULTICAST) {
            if !self.has_multicast()? {
                return Ok(false);
            }
            let Layout { nodes, world_ranks, .. } = &*self.layout;
            if (nodes.count() as usize) < world_ranks.len() {
                // Through which ranks of a node hand on what has come; without it they send messages.
                self.has_memory()?;
            }
        }
        Ok(!needs.has(Capabilities::SHARED) || self.has_memory()?)
    }

    /// Capabilities that have not been tried. Where ranks share nodes, data that comes by multicast
    /// is handed on through memory, if there is any: so multicast counts as untried until memory is
    /// tried, or some ranks would go another way later.
    pub(crate) fn untried(&self) -> Capabilities {
        let is_memory_untried = self.memory == MemoryState::Untried;
        let shares_nodes = (self.shared.nodes.count() as usize) < self.layout.world_ranks.len();
        let is_untried =
            matches!(self.multicast, MulticastState::Untried) || shares_nodes && is_memory_untried;
        let multicast = is_untried.then_some(Capabilities::MULTICAST);
        let memory = is_memory_untried.then_some(Capabilities::SHARED);
        multicast.into_iter().chain(memory).fold(Capabilities::NONE, |all, one| all | one)
    }

    /// True if the nodes have shared memory, which is tried the first time.
    fn has_memory(&mut self) -> Result<bool, MpiError> {
        if self.memory == MemoryState::Untried {
            self.try_memory()?;
        }
        Ok(self.memory == MemoryState::Ready)
    }

    #[cold]
    fn try_memory(&mut self) -> Result<(), MpiError> {
        self.finish_all();
        let Layout { nodes, world_ranks, .. } = &*self.layout;
        self.memory = match node_memory::set_up(&self.door, self.shared.rank, nodes, world_ranks)? {
            Found::Memory(mut memory) => {
                if let Some(memory) = &mut memory {
                    let is_crowded = self.idle.is_crowded();
                    memory.cells().set_processors(if is_crowded {
                        Processors::Shared
                    } else {
                        Processors::Own
                    });
                }
                self.shared.memory = memory;
                MemoryState::Ready
            }
            Found::Unavailable => {
                self.capabilities = self.capabilities.without(Capabilities::SHARED);
                MemoryState::Unavailable
            }
        };
        Ok(())
    }

    /// True if multicast works. Tries it the first time; looks at times whether it has died.
    fn has_multicast(&mut self) -> Result<bool, MpiError> {
        match self.multicast {
            MulticastState::Untried => self.try_multicast()?,
            MulticastState::Ready if self.calls_until_look == 0 => {
                self.finish_all();
                self.calls_until_look = CALLS_UNTIL_LOOK;
                if self.shared.deaf.is_told {
                    self.leave_multicast();
                }
            }
            _ => {}
        }
        self.calls_until_look = self.calls_until_look.saturating_sub(1);
        Ok(matches!(self.multicast, MulticastState::Ready))
    }

    /// Gives multicast up for a while. All ranks have been told, and nothing is on its way.
    fn leave_multicast(&mut self) {
        self.shared.deaf = Deaf::default();
        if let Some(driver) = &mut self.shared.driver {
            driver.leave();
        }
        if self.shared.rank == Rank(0) {
            warn_once(&format!(
                "multicast has died between the nodes: some node hears nothing any more; trees serve; it is tried again \
                 after {} s, before as many broadcasts have followed as came in these; `polycast doctor --watch` finds out more",
                RETRY_AFTER.as_secs()
            ));
        }
        self.without_multicast(RETRY_AFTER_CALLS);
    }

    fn without_multicast(&mut self, interval: u32) {
        self.multicast = MulticastState::Unavailable { calls_until_retry: interval, interval };
        self.capabilities = self.capabilities.without(Capabilities::MULTICAST);
    }

    /// Tries multicast again where it did not work, after a number of calls, which all ranks count
    /// alike. Whether a try is worth its time by then is for each leader to say in it.
    fn retry_multicast(&mut self, call: &policy::Call, epoch: Epoch) -> Result<(), MpiError> {
        let MulticastState::Unavailable { calls_until_retry, .. } = &mut self.multicast else {
            return Ok(());
        };
        if self.shared.policy.choose(call, Capabilities::ALL, epoch).choice.is_by_multicast() {
            *calls_until_retry = calls_until_retry.saturating_sub(1);
            if *calls_until_retry == 0 {
                self.try_multicast()?;
            }
        }
        Ok(())
    }

    fn multicast_interval(&self) -> Option<u32> {
        match self.multicast {
            MulticastState::Unavailable { interval, .. } => Some(interval),
            _ => None,
        }
    }

    fn try_multicast(&mut self) -> Result<(), MpiError> {
        self.finish_all();
        let (rank, layout) = (self.shared.rank, &*self.layout);
        let outcome = match layout.nodes.count() > 1 {
            true => set_up(&self.door, rank, &layout.nodes, &layout.hosts, &layout.processes)?,
            false => Err(Unavailable::nowhere()),
        };
        match outcome {
            Ok(seat) => self.begin_multicast(seat),
            Err(unavailable) => {
                if let MulticastState::Untried = self.multicast {
                    report::fell_back(unavailable.to_string());
                }
                let is_said = unavailable.reason == Reason::Setting && settings::is_warned_of();
                if let (Rank(0), false) = (rank, is_said) {
                    let alike = || {
                        let world = World::get().ok().flatten();
                        world.map_or(Vec::new(), |world| {
                            let alike = world.on_one_kernel(&self.layout.world_ranks);
                            alike.into_iter().map(|rank| world.told.host_name(rank)).collect()
                        })
                    };
                    unavailable.warning(alike).inspect(|warning| warn_once(warning));
                }
                self.without_multicast(match (self.multicast_interval(), unavailable.reason) {
                    _ if !unavailable.may_pass() => u32::MAX,
                    (Some(interval), Reason::TriedBefore) => {
                        interval.saturating_mul(2).min(MAX_RETRY_AFTER_CALLS)
                    }
                    _ => RETRY_AFTER_CALLS,
                });
            }
        }
        Ok(())
    }

    /// Takes multicast into use: the nodes are connected, and the leaders have a seat.
    pub fn begin_multicast(&mut self, seat: Option<Seat>) {
        match (&mut self.shared.driver, seat) {
            (Some(driver), Some(seat)) => driver.return_to(seat),
            (driver, seat) => {
                let leaders = self.shared.nodes.leaders();
                *driver = seat.map(|seat| Box::new(Driver::new(seat, leaders)));
            }
        }
        self.multicast = MulticastState::Ready;
        self.calls_until_look = CALLS_UNTIL_LOOK;
        self.capabilities = self.capabilities | Capabilities::MULTICAST;
    }
}
