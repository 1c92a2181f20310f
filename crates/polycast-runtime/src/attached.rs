//! A communicator as the door holds it: its rules, and a count of its calls. What serves calls is made when the first is to be served; most
//! communicators never have one.

mod beforehand;
mod little_memory;
mod open;
mod own_operations;
mod passing;
mod plan;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use polycast_core::collective::{self, CombinationOrder};
use polycast_core::network::Network;
use polycast_core::policy::{self, By, CallCounts, Capabilities, Choice, CommunicatorShape, Epoch, Policy};
use polycast_core::units::Rank;

use crate::abi::{MpiError, SteadyCalls};
use crate::attach::{View, World};
use crate::call::{Ahead, Buffers, Chosen, Decision, Failure, OperationKey, Wanted, Why};
use crate::communicator::Communicator;
use crate::communicator::visit_retired;
use crate::door::Door;
use crate::fault::{self, Point};
use crate::report::{self, Log};
use crate::settings::{self, Settings};
use crate::trace::CallTrace;
use crate::trials;
use little_memory::LongestCalls;
use open::For;
use passing::Passing;
use plan::Pool;
pub use plan::{Answer, Operation, Plan};

/// The server of a communicator's calls.
enum State {
    /// The stock MPI, so far.
    Unserved,
    /// The stock MPI: some rank cannot serve, or there is no number left.
    Refused,
    Served(Box<Communicator>),
    /// Failed: MPI or polycast failed while ranks agreed: this rank does not know what others do.
    Broken(Failure),
}

/// A communicator as the door holds it: `polycast_communicator` of polycast.h, which knows the
/// first fields.
#[repr(C)]
pub struct Attached {
    /// Calls that the door leaves without asking; none while somebody reads what becomes of calls.
    pub passing: Passing,
    /// Calls alike that are settled to be left: the door counts them, and gives back the rest.
    pub steady: SteadyCalls,
    door: Door,
    rank: Rank,
    ranks: u32,
    view: Option<Arc<View>>,
    policy: Arc<Policy>,
    /// The network between its nodes, if somebody has measured it.
    network: Option<Network>,
    /// The longest calls that may be served, where memory is limited.
    longest: Option<LongestCalls>,
    counts: CallCounts,
    log: Log,
    /// True if somebody reads what becomes of calls.
    is_logged: bool,
    /// True if calls that the policy leaves pass by uncounted: on all ranks or on none.
    passes: bool,
    state: State,
    /// True if an unwaited call lacked a number: ranks agree on one in the next waited call.
    is_wanted: bool,
    /// Plans that were given back, for the next calls.
    pub plans: Pool,
}

impl Attached {
    /// An attached communicator after `earlier_calls` of each collective; `None` if all ranks leave
    /// it to the stock MPI. Local, unless the program has changed settings. Where MPI fails on this
    /// rank, the others may serve: its calls give MPI's error.
    pub fn new(
        door: Door,
        rank: Rank,
        world_ranks: &[u32],
        earlier_calls: [u32; collective::Collective::ALL.len()],
    ) -> Option<Attached> {
        // What goes wrong with others is no matter of this one.
        let _ = catch_unwind(|| {
            visit_retired();
            if world_ranks[rank.index()] == 0 {
                settings::warn_of_problems();
            }
        });
        let attached = match Attached::find_rules(door, rank, world_ranks) {
            Ok(attached) => {
                let mut attached = attached?;
                attached.counts = CallCounts::after(&attached.policy, earlier_calls.map(u64::from));
                attached
            }
            Err(failure) => Attached::broken(door, rank, world_ranks.len() as u32, failure),
        };
        report::attached();
        Some(attached)
    }

    fn find_rules(door: Door, rank: Rank, world_ranks: &[u32]) -> Result<Option<Attached>, Failure> {
        let Some(world) = World::get()? else { return Ok(None) };
        let Some(view) = View::of(&world, &door, rank.index(), world_ranks.len())? else { return Ok(None) };
        let found = catch_unwind(AssertUnwindSafe(|| {
            view.tell(rank, world_ranks);
            (
                view.policy(&world, rank, world_ranks, None),
                world.room.map(|room| LongestCalls::new(room, view.shape(&world, world_ranks))),
                Log::new(&view.settings, CallTrace::of(rank, world_ranks)),
            )
        }));
        let (policy, longest, log) = found.map_err(|_| Failure::Internal)?;
        let mut attached = Attached {
            passing: passing::NOTHING,
            steady: SteadyCalls::NONE,
            door,
            rank,
            ranks: world_ranks.len() as u32,
            view: Some(view),
            policy,
            network: None,
            longest,
            counts: CallCounts::default(),
            is_logged: log.is_wanted(),
            log,
            passes: false,
            state: State::Unserved,
            is_wanted: false,
            plans: Pool::default(),
        };
        attached.let_pass();
        Ok(Some(attached))
    }

    fn broken(door: Door, rank: Rank, ranks: u32, failure: Failure) -> Attached {
        let settings = Arc::new(Settings::default());
        let shape = CommunicatorShape {
            ranks,
            nodes: 1,
            ranks_per_node: ranks,
            ranks_per_processor: 1,
            switches: 1,
            network: None,
        };
        Attached {
            passing: passing::NOTHING,
            steady: SteadyCalls::NONE,
            door,
            rank,
            ranks,
            view: None,
            policy: Arc::new(Policy::new(settings.rules(None), shape)),
            network: None,
            longest: None,
            counts: CallCounts::default(),
            log: Log::new(&settings, None),
            is_logged: false,
            passes: false,
            state: State::Broken(failure),
            is_wanted: false,
            plans: Pool::default(),
        }
    }

    pub fn rank(&self) -> Rank {
        self.rank
    }

    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Decides who serves a call, alike on all ranks. Collective if it needs something untried.
    ///
    /// A rank that cannot find out what the others chose must not go to the stock MPI by itself: it says yes, and the call
    /// gives the error.
    #[inline]
    pub fn plan(&mut self, call: Wanted) -> Decision {
        if self.passes && self.policy.leaves(&call.of) {
            return if self.is_logged { self.pass_by_rules(&call) } else { Decision::Left };
        }
        if let Some(why) = self.leaves_beforehand(&call) {
            return self.pass(&call, why);
        }
        self.plan_otherwise(call)
    }

    fn plan_otherwise(&mut self, call: Wanted) -> Decision {
        if !self.passes {
            self.let_pass();
        }
        match &mut self.state {
            State::Served(communicator) => {
                communicator.steady.take_back(&mut self.steady);
                let decision = communicator.plan(call);
                self.steady = communicator.steady.give();
                self.longest.iter().for_each(|longest| longest.cut(&mut self.steady));
                decision
            }
            State::Unserved | State::Refused => {
                let decided = catch_unwind(AssertUnwindSafe(|| self.decide(call)));
                // It may have found out what the network is like.
                self.let_pass();
                decided.unwrap_or(Err(Failure::Internal)).unwrap_or_else(|failure| self.fail(failure))
            }
            State::Broken(_) => Decision::UNKNOWN,
        }
    }

    /// Plans an unwaited call. What it wants and is untried is tried in the next waited call.
    pub fn plan_ahead(&mut self, call: Wanted, ahead: Ahead) -> Decision {
        if let Some(why) = self.leaves_beforehand(&call) {
            return self.pass(&call, why);
        }
        self.let_nothing_pass();
        match &mut self.state {
            State::Served(communicator) => {
                communicator.steady.take_back(&mut self.steady);
                communicator.plan_ahead(call, ahead)
            }
            State::Unserved | State::Refused => {
                let decided = catch_unwind(AssertUnwindSafe(|| self.decide_ahead(call, ahead)));
                decided.unwrap_or(Err(Failure::Internal)).unwrap_or_else(|failure| self.fail(failure))
            }
            State::Broken(_) => Decision::UNKNOWN,
        }
    }

    /// Breaks the communicator. No call passes by any more: others may know another network.
    #[cold]
    fn fail(&mut self, failure: Failure) -> Decision {
        self.view = None;
        self.let_nothing_pass();
        self.state = State::Broken(failure);
        Decision::UNKNOWN
    }

    fn decide_ahead(&mut self, wanted: Wanted, ahead: Ahead) -> Result<Decision, Failure> {
        let call = wanted.of;
        let epoch = self.counts.peek(&self.policy, call.collective);
        let choice = self.policy.choose(&call, self.capabilities(), epoch).choice;
        // What the network is like may decide, and nobody knows it yet: who opens finds out.
        if choice != Choice::Stock || self.policy.asks_before(&call, self.capabilities(), epoch) {
            if ahead == Ahead::MayWait {
                if let Some(communicator) = self.serve(choice.is_by_multicast())? {
                    return Ok(communicator.plan_ahead(wanted, ahead));
                }
            } else {
                self.is_wanted = true;
            }
        }
        self.counts.next(&self.policy, &call);
        Ok(Decision::Left)
    }

    fn decide(&mut self, wanted: Wanted) -> Result<Decision, Failure> {
        let call = wanted.of;
        self.log.begin(&call, wanted.root);
        let epoch = self.counts.next(&self.policy, &call);
        if std::mem::take(&mut self.is_wanted)
            && let Some(communicator) = self.serve(false)?
        {
            return Ok(communicator.plan_in(wanted, epoch));
        }
        // Most calls of most programs are left to the MPI, and shall not wait for what follows.
        let (there, interval) = (self.capabilities(), self.policy.for_sizes_of(&call, epoch));
        let first = interval.choose(there);
        let tunes = self.tunes() && there.has(Capabilities::PRIVATE) && first.by != By::Forced;
        if first.choice == Choice::Stock && !interval.may_change(there) && !tunes {
            fault::point(Point::Choose);
            let why = Why::Rules(first.by);
            return Ok(self.left(&call, epoch, why));
        }
        let choice = |attached: &Attached| *attached.policy.choose(&call, attached.capabilities(), epoch);
        let may_serve =
            self.policy.asks_before(&call, there, epoch) || choice(self).choice != Choice::Stock || tunes;
        if may_serve && matches!(self.state, State::Unserved) {
            let is_comparable = wanted.may_be_compared && first.by != By::Forced;
            self.open(false, Some(For { call, epoch, tunes, is_comparable }))?;
            if let State::Served(communicator) = &mut self.state {
                return Ok(communicator.plan_in(wanted, epoch));
            }
        }
        let decision = choice(self);
        fault::point(Point::Choose);
        Ok(self.left(&call, epoch, Why::Rules(decision.by)))
    }

    #[inline]
    fn left(&mut self, call: &policy::Call, epoch: Epoch, why: Why) -> Decision {
        let is_refused = || self.policy.choose(call, Capabilities::ALL, epoch).choice != Choice::Stock;
        match self.log.leave(call, why, is_refused) {
            true => Decision::LeftAndTimed,
            false => Decision::Left,
        }
    }

    /// True if ways are measured apart from the program's calls, even if the rules choose the MPI.
    fn tunes(&self) -> bool {
        self.view.as_ref().is_some_and(|view| view.settings.tune.is_some())
    }

    fn capabilities(&self) -> Capabilities {
        match self.state {
            State::Refused => Capabilities::NONE,
            _ => Capabilities::ALL,
        }
    }

    /// The part that serves; `None` if the stock MPI does. Collective the first time: all ranks
    /// agree on a number, or that there is none. `is_by_multicast`: a group will be needed; if all
    /// leaders have one, nothing more is exchanged for it.
    pub fn serve(&mut self, is_by_multicast: bool) -> Result<Option<&mut Communicator>, MpiError> {
        if let State::Unserved = self.state {
            self.open(is_by_multicast, None)?;
        }
        Ok(match &mut self.state {
            State::Served(communicator) => Some(communicator),
            _ => None,
        })
    }

    /// The part that serves, for a call that was planned.
    fn served(&mut self) -> Result<&mut Communicator, Failure> {
        match &mut self.state {
            State::Served(communicator) => Ok(communicator),
            State::Broken(failure) => Err(*failure),
            State::Unserved | State::Refused => Err(Failure::Internal),
        }
    }

    /// The order in which a choice combines contributions on this communicator.
    pub fn keeps(&self, choice: Choice) -> CombinationOrder {
        match (&self.state, choice) {
            (State::Served(communicator), Choice::Algorithm(algorithm)) => communicator.keeps(&algorithm),
            _ => CombinationOrder::Any,
        }
    }

    /// Starts a call as it was chosen: [`Communicator::start`].
    ///
    /// # Safety
    /// As for [`Communicator::start`].
    pub unsafe fn start(
        &mut self,
        chosen: Chosen,
        of: collective::Call,
        buffers: Buffers,
    ) -> Result<OperationKey, Failure> {
        // SAFETY: handed on from the caller.
        unsafe { self.served()?.start(chosen, of, buffers) }
    }

    /// Runs a call as it was chosen, to its end: [`Communicator::run`].
    ///
    /// # Safety
    /// As for [`Communicator::start`].
    pub unsafe fn run(
        &mut self,
        chosen: Chosen,
        of: collective::Call,
        buffers: Buffers,
    ) -> Result<(), Failure> {
        // SAFETY: handed on from the caller.
        let outcome = unsafe { self.served()?.run(chosen, of, buffers) };
        self.noted(outcome)
    }

    /// Passes on a call's outcome. A failure ends settled decisions: others may serve the next
    /// call.
    fn noted(&mut self, outcome: Result<(), Failure>) -> Result<(), Failure> {
        if outcome.is_err()
            && let State::Served(communicator) = &mut self.state
        {
            communicator.steady.take_back(&mut self.steady);
            communicator.add_up();
        }
        outcome
    }

    /// Lets operations go on: [`Communicator::test`].
    pub fn test(&mut self, key: OperationKey) -> Option<Result<(), Failure>> {
        match &mut self.state {
            State::Served(communicator) => communicator.test(key).map(|outcome| self.noted(outcome)),
            _ => Some(Err(Failure::Internal)),
        }
    }

    /// Waits for an operation: [`Communicator::wait`].
    pub fn wait(&mut self, key: OperationKey) -> Result<(), Failure> {
        match &mut self.state {
            State::Served(communicator) => {
                let outcome = communicator.wait(key);
                self.noted(outcome)
            }
            _ => Err(Failure::Internal),
        }
    }

    /// Takes the time of a call that was left to the MPI, which has done it.
    pub fn end_of_left(&mut self) {
        match &mut self.state {
            State::Served(communicator) => communicator.end_of_left(),
            _ => self.log.end_of_left(),
        }
    }

    /// Takes the time of a served call anew, when the door is through with it.
    #[inline]
    pub fn end_of_served(&mut self) {
        if let State::Served(communicator) = &mut self.state {
            communicator.comparison.unpacked();
        }
    }

    /// The way that would serve a call, as known without trying; true if ways are compared for it.
    pub fn choice(&self, call: &policy::Call) -> (Choice, bool) {
        if let State::Served(communicator) = &self.state {
            return communicator.choice(call, &self.steady);
        }
        let epoch: Epoch = self.counts.peek(&self.policy, call.collective);
        let rules = *self.policy.choose(call, self.capabilities(), epoch);
        let are_tried = self.view.as_ref().is_some_and(|view| view.settings.trials);
        let are_tuned =
            self.tunes() && rules.by != By::Forced && self.capabilities().has(Capabilities::PRIVATE);
        (rules.choice, are_tuned || (are_tried && trials::is_comparable(rules)))
    }

    /// Detaches the communicator, which is freed. `is_over`: MPI ends, and nobody asks again.
    pub fn detach(mut self: Box<Attached>, is_over: bool) {
        match self.state {
            State::Served(mut communicator) => {
                communicator.steady.take_back(&mut self.steady);
                communicator.detach(is_over);
            }
            _ => {
                report::released(None);
                self.door.close();
            }
        }
    }
}

#[cfg(test)]
mod tests;
