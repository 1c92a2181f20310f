//! One communicator: its rules, its log, its broadcasts.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use polycast_core::algorithm::broadcast::Planner;
use polycast_core::policy::{self, CallCounts, Capabilities, Choice, Collective, Epoch};
use polycast_core::schedule::Nodes;
use polycast_core::units::{Bytes, Rank};

use crate::attach::{Agreement, gather};
use crate::door::{Door, MpiError};
use crate::fault::{self, Point};
use crate::idle::Idle;
use crate::machine;
use crate::messages::Messages;
use crate::multicast::{NodeMessages, Reason, Unavailable, left_group, set_up};
use crate::operation::{Activity, Failure, Operations, Shared};
use crate::plan::Pool;
use crate::report::{self, Log};
use crate::retired;
use crate::say::warn_once;
use crate::settings;
use crate::tags::Tags;
use crate::trials::{Comparison, Why};

/// How long freeing a communicator waits for the last messages between its nodes. What takes longer is looked at when the
/// next communicator is attached.
const SETTLING: Duration = Duration::from_millis(1);

/// Calls for which multicast would have been chosen, until it is tried again where it did not work. A try that all leaders hold
/// worth its time takes a second, any other one message to and from each rank.
const RETRY_AFTER_CALLS: u32 = 1024;

/// Whether the door's private communicator is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Private {
    NotYet,
    Open,
    /// MPI could not make it (on some rank); everything is left to stock.
    Refused,
}

/// Whether its nodes are connected by multicast.
enum MulticastState {
    Untried,
    /// Leaders have a driver.
    Ready,
    /// Trees serve; it is tried again after so many calls for which multicast would have been chosen.
    Unavailable {
        calls_until_retry: u32,
    },
    /// The program has freed the communicator, and its neighbours have not yet said goodbye.
    Leaving(Box<NodeMessages>),
}

/// What serves a call, and its epoch, for ranks may have been called with another size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chosen {
    pub choice: Choice,
    pub(crate) epoch: Epoch,
}

/// Who serves a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// The MPI.
    Left,
    /// The MPI, and [`Communicator::end_of_left`] is to be called when it has done it.
    LeftAndTimed,
    /// [`Communicator::start`], in this way.
    Served(Chosen),
}

/// State of one communicator in one process.
pub struct Communicator {
    door: Door,
    /// What this communicator has, as far as it was tried; the rest is assumed.
    pub(crate) capabilities: Capabilities,
    counts: CallCounts,
    hosts: Vec<u64>,
    processes: Vec<u64>,
    private: Private,
    multicast: MulticastState,
    pub(crate) log: Log,
    pub(crate) comparison: Comparison,
    /// Given back, for the next calls.
    pub plans: Pool,
    pub(crate) tags: Tags,
    pub(crate) shared: Shared,
    pub(crate) operations: Operations,
    pub(crate) idle: Idle,
    /// MPI failed, or polycast did, while ranks agreed on something, or in no operation's own message: this one does not know what the
    /// others do.
    pub(crate) broken: Option<Failure>,
}

impl Communicator {
    /// Collective. `None`: leave it to the stock MPI, as all ranks do. Where MPI fails on this rank, the others may serve: its
    /// broadcasts give MPI's error.
    pub fn attach(door: Door, rank: u32, size: u32, is_world: bool) -> Option<Communicator> {
        // What goes wrong with others is no matter of this one.
        let _ = catch_unwind(|| {
            retired::visit();
            if is_world && rank == 0 {
                settings::warn_of_problems();
            }
        });
        let attached = Communicator::agree(door, rank, size, is_world).unwrap_or_else(|error| {
            let mut broken = Communicator::new(door, Rank(rank), size, Agreement::unknown(size as usize));
            broken.broken = Some(Failure::Mpi(error));
            Some(broken)
        });
        if attached.is_some() {
            report::attached();
        }
        attached
    }

    fn agree(door: Door, rank: u32, size: u32, is_world: bool) -> Result<Option<Communicator>, MpiError> {
        let Some(gathered) = gather(&door, rank as usize, size as usize)? else { return Ok(None) };
        let made = catch_unwind(AssertUnwindSafe(|| {
            let agreement = gathered.agreement(rank as usize, is_world);
            Communicator::new(door, Rank(rank), size, agreement)
        }));
        let is_made = [u8::from(made.is_ok())];
        let all = door.allgather(&is_made, size as usize)?;
        Ok(made.ok().filter(|_| all.iter().all(|is_made| *is_made == [1])))
    }

    fn new(door: Door, rank: Rank, size: u32, agreement: Agreement) -> Communicator {
        let nodes = Nodes::new(&agreement.hosts, agreement.site.ring(), rank);
        let planner = match &agreement.settings.parameters {
            Some(parameters) => Planner::new(agreement.site).measured(parameters.content.clone()),
            None => Planner::new(agreement.site),
        };
        Communicator {
            door,
            capabilities: Capabilities::ALL,
            counts: CallCounts::default(),
            hosts: agreement.hosts,
            processes: agreement.processes,
            private: Private::NotYet,
            multicast: MulticastState::Untried,
            log: Log::new(&agreement.settings),
            comparison: Comparison::new(agreement.settings.trials, agreement.shape),
            plans: Pool::default(),
            tags: Tags::default(),
            shared: Shared {
                rank,
                ranks: size,
                policy: agreement.policy,
                planner,
                on_node: Planner::flat(nodes.local().ranks()),
                nodes,
                messages: Messages::new(door),
                driver: None,
                activity: Activity::Nothing,
                spare: Vec::new(),
            },
            operations: Operations::default(),
            idle: Idle::new(agreement.neighbours),
            broken: None,
        }
    }

    /// Who serves a broadcast of this many bytes; the same on all ranks. Collective the first time that a
    /// choice needs something that is not there yet.
    ///
    /// A rank that cannot find out what the others chose must not go to the stock MPI by itself: it says yes, and the broadcast
    /// gives the error.
    pub fn plan(&mut self, bytes: u64) -> Decision {
        self.log.begin();
        if self.broken.is_none() {
            match catch_unwind(AssertUnwindSafe(|| self.decide(bytes))) {
                Ok(Ok(decision)) => return decision,
                Ok(Err(error)) => self.broken = Some(Failure::Mpi(error)),
                Err(_) => self.broken = Some(Failure::Internal),
            }
        }
        Decision::Served(Chosen { choice: Choice::Stock, epoch: Epoch::default() })
    }

    /// The MPI has done a call that was left to it, and is timed.
    pub fn end_of_left(&mut self) {
        self.comparison.ended(Ok(()));
        self.log.end_of_left();
    }

    fn decide(&mut self, bytes: u64) -> Result<Decision, MpiError> {
        fault::point(Point::Choose);
        while self.comparison.is_due() {
            self.finish_all();
            self.comparison.judge(&self.door, &self.shared.policy, self.shared.ranks)?;
        }
        let call = broadcast_of(bytes);
        let epoch = self.counts.next(&self.shared.policy, Collective::Broadcast);
        self.retry_multicast(&call, epoch)?;
        let (choice, why) = loop {
            let decision = *self.shared.policy.choose(&call, self.capabilities, epoch);
            if self.comparison.is_to_begin(decision) {
                self.finish_all();
                self.comparison.begin(&self.door, &self.shared.policy, self.shared.rank)?;
            }
            let Communicator { comparison, shared, capabilities, .. } = self;
            let (choice, why) = comparison.next(decision, &shared.policy, &call, *capabilities, epoch);
            if self.provides(choice)? {
                break (choice, why);
            }
        };
        self.comparison.starts();
        if choice != Choice::Stock {
            return Ok(Decision::Served(Chosen { choice, epoch }));
        }
        let by_rules = matches!(why, Why::Rules(_));
        let Communicator { shared, .. } = self;
        let is_refused =
            || by_rules && shared.policy.choose(&call, Capabilities::ALL, epoch).choice != Choice::Stock;
        let is_logged = self.log.leave(bytes, why, is_refused);
        Ok(match is_logged || self.comparison.is_timed() {
            true => Decision::LeftAndTimed,
            false => Decision::Left,
        })
    }

    pub fn rank(&self) -> Rank {
        self.shared.rank
    }

    pub fn ranks(&self) -> u32 {
        self.shared.ranks
    }

    /// What serves a broadcast of this many bytes, as far as it is known without trying, and whether it is being compared with other ways.
    pub fn choice(&self, bytes: u64) -> (Choice, bool) {
        let epoch = self.counts.peek(&self.shared.policy, Collective::Broadcast);
        let call = broadcast_of(bytes);
        let rules = *self.shared.policy.choose(&call, self.capabilities, epoch);
        self.comparison.found(rules, &self.shared.policy, &call, self.capabilities, epoch)
    }

    /// Whether the communicator has what it needs, which is tried the first time. What it has not is known to
    /// `self.capabilities` then.
    fn provides(&mut self, choice: Choice) -> Result<bool, MpiError> {
        Ok(match choice.needs() {
            Capabilities::NONE => true,
            Capabilities::PRIVATE => self.has_private()?,
            _ => self.has_multicast()?,
        })
    }

    /// Opens it the first time. Collective.
    pub(crate) fn has_private(&mut self) -> Result<bool, MpiError> {
        if self.private == Private::NotYet {
            self.finish_all();
            self.private = if self.door.open_private()? { Private::Open } else { Private::Refused };
            if self.private == Private::Refused {
                self.capabilities = Capabilities::NONE;
            }
        }
        Ok(self.private == Private::Open)
    }

    /// Tries it the first time.
    fn has_multicast(&mut self) -> Result<bool, MpiError> {
        if let MulticastState::Untried = self.multicast {
            self.try_multicast()?;
        }
        Ok(matches!(self.multicast, MulticastState::Ready))
    }

    /// Where it did not work, it is tried again after a number of calls, which all ranks count alike. Whether a try is worth its time by
    /// then is for each leader to say in it.
    fn retry_multicast(&mut self, call: &policy::Call, epoch: Epoch) -> Result<(), MpiError> {
        let MulticastState::Unavailable { calls_until_retry } = &mut self.multicast else { return Ok(()) };
        if self
            .shared
            .policy
            .choose(call, Capabilities::ALL, epoch)
            .choice
            .needs()
            .has(Capabilities::MULTICAST)
        {
            *calls_until_retry = calls_until_retry.saturating_sub(1);
            if *calls_until_retry == 0 {
                self.try_multicast()?;
            }
        }
        Ok(())
    }

    fn try_multicast(&mut self) -> Result<(), MpiError> {
        let is_possible = self.shared.nodes.count() > 1 && self.has_private()?;
        self.finish_all();
        let Shared { rank, nodes, .. } = &self.shared;
        let rank = *rank;
        let outcome = match is_possible {
            true => set_up(&self.door, rank, nodes, &self.hosts, &self.processes)?,
            false => Err(Unavailable::nowhere()),
        };
        self.multicast = match outcome {
            Ok(driver) => {
                self.shared.driver = driver.map(Box::new);
                MulticastState::Ready
            }
            Err(unavailable) => {
                if let MulticastState::Untried = self.multicast {
                    report::fell_back(unavailable);
                }
                let is_said = unavailable.reason == Reason::Setting && settings::is_warned_of();
                if let (Rank(0), false, Some(warning)) = (rank, is_said, unavailable.warning()) {
                    warn_once(&warning);
                }
                let calls_until_retry = if unavailable.may_pass() { RETRY_AFTER_CALLS } else { u32::MAX };
                MulticastState::Unavailable { calls_until_retry }
            }
        };
        self.capabilities = match self.multicast {
            MulticastState::Ready => self.capabilities | Capabilities::MULTICAST,
            _ => self.capabilities.without(Capabilities::MULTICAST),
        };
        Ok(())
    }

    /// At the end: MPI touches no buffer of ours any more.
    fn abandon(&mut self) {
        self.operations.end_all(Failure::Internal, &mut self.shared);
        self.shared.messages.cancel(|_| true);
    }
}

impl Communicator {
    /// The program frees the communicator: it is counted, and goes when MPI has nothing more for it. `is_over`: MPI ends, and
    /// nobody will ask again.
    pub fn detach(mut self: Box<Communicator>, is_over: bool) {
        report::released(self.shared.driver.as_deref());
        self.comparison.end(&self.shared.policy);
        if let Some(driver) = self.shared.driver.take() {
            if let Ok(control) = driver.say_bye(&mut self.shared.messages) {
                self.multicast = MulticastState::Leaving(Box::new(control));
            }
            left_group();
        }
        let mut is_settled = self.is_settled();
        let patience = if is_over { Duration::ZERO } else { SETTLING };
        let end = machine::now() + patience;
        while !is_settled && machine::now() < end {
            is_settled = self.is_settled();
            machine::give_way();
        }
        if is_settled {
            self.close();
        } else {
            retired::add(self);
        }
    }

    /// Nothing is on its way between its nodes. Does not wait.
    pub fn is_settled(&mut self) -> bool {
        match &mut self.multicast {
            MulticastState::Leaving(control) => control.is_settled(&mut self.shared.messages).unwrap_or(true),
            _ => true,
        }
    }

    /// The door may free what it has.
    pub fn close(mut self: Box<Communicator>) {
        self.abandon();
        self.door.close();
    }

    /// MPI ends: it frees what the door has.
    pub fn leave_to_mpi(mut self: Box<Communicator>) {
        self.abandon();
    }
}

/// A broadcast, as the policy sees it.
pub(crate) fn broadcast_of(bytes: u64) -> policy::Call {
    policy::Call { collective: Collective::Broadcast, bytes: Bytes(bytes) }
}
