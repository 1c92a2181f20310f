//! A communicator as the door holds it: its rules, and a count of its calls. What serves calls is made when the first is to be served; most
//! communicators never have one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use polycast_core::collective;
use polycast_core::network::Network;
use polycast_core::policy::trials::TOLD;
use polycast_core::policy::{self, By, CallCounts, Capabilities, Choice, CommunicatorShape, Epoch, Policy};
use polycast_core::units::Rank;

use crate::ahead::Ahead;
use crate::asked::{self, COMPARED_WORDS};
use crate::attach::{Agreed, Agreement, Layout, View, World, agree_on_number};
use crate::communicator::{Chosen, Communicator, Decision, Wanted};
use crate::door::{Door, MpiError};
use crate::fault::{self, Point};
use crate::messages::OperationKey;
use crate::multicast::Reuse;
use crate::operation::{Buffers, Failure};
use crate::plan::Pool;
use crate::report::{self, Log};
use crate::settings::{self, Settings};
use crate::trace::CallTrace;
use crate::trials::Why;
use crate::{retired, trials};

/// What serves.
enum State {
    /// The stock MPI, so far.
    Unserved,
    /// The stock MPI: some rank cannot serve, or there is no number left.
    Refused,
    Served(Box<Communicator>),
    /// MPI failed, or polycast did, while ranks agreed on something: this one does not know what the others do.
    Broken(Failure),
}

/// A call that may be served if there is a number.
#[derive(Clone, Copy)]
struct For {
    call: policy::Call,
    epoch: Epoch,
    /// Ways to serve it are to be measured.
    tunes: bool,
    /// What serves it may change from one call to the next, and is not forced.
    is_comparable: bool,
}

impl For {
    fn choice(&self, policy: &Policy) -> Choice {
        policy.choose(&self.call, Capabilities::ALL, self.epoch).choice
    }

    fn wants_number(&self, policy: &Policy) -> bool {
        self.tunes || self.choice(policy) != Choice::Stock
    }
}

/// See the module. `polycast_communicator` of polycast.h.
pub struct Attached {
    door: Door,
    rank: Rank,
    ranks: u32,
    view: Option<Arc<View>>,
    policy: Arc<Policy>,
    /// Between its nodes, if somebody has asked.
    network: Option<Network>,
    counts: CallCounts,
    log: Log,
    state: State,
    /// A call that was not waited for would have been served if the ranks had agreed on a number: they do so in the next one that is.
    is_wanted: bool,
    /// Given back, for the next calls.
    pub plans: Pool,
}

impl Attached {
    /// Local, unless the program has changed settings. `None`: leave it to the stock MPI, as all ranks do. Where MPI fails on this rank, the
    /// others may serve: its broadcasts give MPI's error.
    pub fn new(door: Door, rank: Rank, world_ranks: &[u32]) -> Option<Attached> {
        // What goes wrong with others is no matter of this one.
        let _ = catch_unwind(|| {
            retired::visit();
            if world_ranks[rank.index()] == 0 {
                settings::warn_of_problems();
            }
        });
        let attached = match Attached::find_rules(door, rank, world_ranks) {
            Ok(attached) => attached?,
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
                Log::new(&view.settings, CallTrace::of(rank, world_ranks)),
            )
        }));
        let (policy, log) = found.map_err(|_| Failure::Internal)?;
        Ok(Some(Attached {
            door,
            rank,
            ranks: world_ranks.len() as u32,
            view: Some(view),
            policy,
            network: None,
            counts: CallCounts::default(),
            log,
            state: State::Unserved,
            is_wanted: false,
            plans: Pool::default(),
        }))
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
            door,
            rank,
            ranks,
            view: None,
            policy: Arc::new(Policy::new(settings.rules(None), shape)),
            network: None,
            counts: CallCounts::default(),
            log: Log::new(&settings, None),
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

    /// Who serves a call; the same on all ranks. Collective the first time that a choice needs something that is not there yet.
    ///
    /// A rank that cannot find out what the others chose must not go to the stock MPI by itself: it says yes, and the call
    /// gives the error.
    #[inline]
    pub fn plan(&mut self, call: Wanted) -> Decision {
        match &mut self.state {
            State::Served(communicator) => communicator.plan(call),
            State::Unserved | State::Refused => {
                let decided = catch_unwind(AssertUnwindSafe(|| self.decide(call)));
                decided.unwrap_or(Err(Failure::Internal)).unwrap_or_else(|failure| {
                    self.state = State::Broken(failure);
                    Decision::UNKNOWN
                })
            }
            State::Broken(_) => Decision::UNKNOWN,
        }
    }

    /// The same for a call that is not waited for.
    pub fn plan_ahead(&mut self, call: Wanted, ahead: Ahead) -> Decision {
        match &mut self.state {
            State::Served(communicator) => communicator.plan_ahead(call, ahead),
            State::Unserved | State::Refused => {
                let decided = catch_unwind(AssertUnwindSafe(|| self.decide_ahead(call, ahead)));
                decided.unwrap_or(Err(Failure::Internal)).unwrap_or_else(|failure| {
                    self.state = State::Broken(failure);
                    Decision::UNKNOWN
                })
            }
            State::Broken(_) => Decision::UNKNOWN,
        }
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
        self.counts.next(&self.policy, call.collective);
        Ok(Decision::Left)
    }

    fn decide(&mut self, wanted: Wanted) -> Result<Decision, Failure> {
        let call = wanted.of;
        self.log.begin(&call, wanted.root);
        let epoch = self.counts.next(&self.policy, call.collective);
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

    /// Ways are measured apart from the program's calls, those among them that the rules leave to the MPI.
    fn tunes(&self) -> bool {
        self.view.as_ref().is_some_and(|view| view.settings.tune.is_some())
    }

    fn capabilities(&self) -> Capabilities {
        match self.state {
            State::Refused => Capabilities::NONE,
            _ => Capabilities::ALL,
        }
    }

    /// What serves. Collective the first time: all ranks agree on a number, or that there is none. `is_by_multicast`: a group
    /// will be needed; if all leaders have one, nothing more is exchanged for it.
    pub fn serve(&mut self, is_by_multicast: bool) -> Result<Option<&mut Communicator>, MpiError> {
        if let State::Unserved = self.state {
            self.open(is_by_multicast, None)?;
        }
        Ok(match &mut self.state {
            State::Served(communicator) => Some(communicator),
            _ => None,
        })
    }

    /// What serves, unless the MPI does. Collective, in one exchange mostly: it tells what the ranks know of the network, where that decides
    /// `for_call`, agrees on a number, and brings what rank 0 knows of trials, where the call is to be compared.
    fn open(&mut self, is_by_multicast: bool, for_call: Option<For>) -> Result<(), MpiError> {
        let (Some(world), Some(view)) = (World::get()?, self.view.clone()) else { return Ok(()) };
        let (door, rank, ranks) = (self.door, self.rank, self.ranks as usize);
        let (asks, network) = (self.policy.asks(), self.network);
        let is_compared = for_call.is_some_and(|call| call.is_comparable);
        let are_told = is_compared && view.settings.trials && view.settings.tune.is_none();
        let found = catch_unwind(AssertUnwindSafe(|| {
            fault::point(Point::Open);
            let world_ranks = door.world_ranks(ranks).ok()?;
            let layout = view.layout(&world, rank, &world_ranks, network);
            let known = if asks { asked::known(&layout) } else { network };
            let policy = view.policy(&world, rank, &world_ranks, known);
            // Where ranks find different things here, because they know different things, no group is taken.
            let is_by_multicast =
                for_call.map_or(is_by_multicast, |call| call.choice(&policy).is_by_multicast());
            let Layout { nodes, hosts, processes, .. } = &*layout;
            let reuse = match is_by_multicast && nodes.count() > 1 {
                true => Reuse::of(rank, nodes, hosts, processes),
                false => Reuse::NOTHING,
            };
            let mut beside = Vec::new();
            if asks {
                beside.extend(asked::compared(known));
            }
            if are_told {
                let shape = CommunicatorShape { network: known, ..layout.shape };
                beside.extend(if rank == Rank(0) { trials::told(shape, &policy) } else { [u64::MAX; TOLD] });
            }
            Some((layout, reuse, beside))
        }));
        let (found, mut beside) = match found.ok().flatten() {
            Some((layout, reuse, beside)) => (Some((layout, reuse)), beside),
            None => (None, vec![0; if asks { COMPARED_WORDS } else { 0 } + if are_told { TOLD } else { 0 }]),
        };
        let more = found.as_ref().map_or([0; 2], |(_, reuse)| reuse.words());
        let mut common = None;
        let agreed = agree_on_number(&world, &door, rank, found.is_some(), more, &mut beside, |beside| {
            common = beside.first_chunk().filter(|_| asks).and_then(asked::in_common);
            let (Some((layout, _)), Some(_)) = (&found, common) else { return true };
            self.network = common;
            self.policy = view.policy(&world, rank, &layout.world_ranks, common);
            for_call.is_none_or(|call| call.wants_number(&self.policy))
        })?;
        let (Agreed { number, more }, (mut layout, reuse)) = match (agreed, found) {
            (Agreement::Number(agreed), Some(found)) => (agreed, found),
            (Agreement::NotWanted, _) => return Ok(()),
            _ => {
                self.state = State::Refused;
                return Ok(());
            }
        };
        let mut is_clean = true;
        if asks && common.is_none() {
            let found = asked::find_out(&door, &layout, world.tags.first_tag(number))?;
            (is_clean, common) = (found.is_clean, Some(found.network));
            beside.clear();
        }
        if asks {
            layout = view.layout(&world, rank, &layout.world_ranks, common);
        }
        let (log, counts) = (std::mem::take(&mut self.log), std::mem::take(&mut self.counts));
        let numbered = (number, world.tags);
        let mut made = Communicator::new(door, rank, &layout, &view.settings, numbered, counts, log);
        made.is_spoiled = !is_clean;
        if let Some(told) = beside.last_chunk().filter(|_| are_told) {
            made.comparison.begin_told(&layout.policy, told);
        }
        if let Some(driver) = reuse.take(more, &layout.nodes) {
            made.begin_multicast(driver);
        }
        self.state = State::Served(Box::new(made));
        Ok(())
    }

    /// What serves a call that was planned.
    fn served(&mut self) -> Result<&mut Communicator, Failure> {
        match &mut self.state {
            State::Served(communicator) => Ok(communicator),
            State::Broken(failure) => Err(*failure),
            State::Unserved | State::Refused => Err(Failure::Internal),
        }
    }

    /// Starts a call as it was chosen. See [`Communicator::start`].
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

    /// See [`Communicator::run`].
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
        unsafe { self.served()?.run(chosen, of, buffers) }
    }

    /// See [`Communicator::test`].
    pub fn test(&mut self, key: OperationKey) -> Option<Result<(), Failure>> {
        match &mut self.state {
            State::Served(communicator) => communicator.test(key),
            _ => Some(Err(Failure::Internal)),
        }
    }

    /// See [`Communicator::wait`].
    pub fn wait(&mut self, key: OperationKey) -> Result<(), Failure> {
        match &mut self.state {
            State::Served(communicator) => communicator.wait(key),
            _ => Err(Failure::Internal),
        }
    }

    /// The MPI has done a call that was left to it, and is timed.
    pub fn end_of_left(&mut self) {
        match &mut self.state {
            State::Served(communicator) => communicator.end_of_left(),
            _ => self.log.end_of_left(),
        }
    }

    /// What serves a call, as far as it is known without trying, and whether it is being compared with other ways.
    pub fn choice(&self, call: &policy::Call) -> (Choice, bool) {
        if let State::Served(communicator) = &self.state {
            return communicator.choice(call);
        }
        let epoch: Epoch = self.counts.peek(&self.policy, call.collective);
        let rules = *self.policy.choose(call, self.capabilities(), epoch);
        let are_tried = self.view.as_ref().is_some_and(|view| view.settings.trials);
        let are_tuned =
            self.tunes() && rules.by != By::Forced && self.capabilities().has(Capabilities::PRIVATE);
        (rules.choice, are_tuned || (are_tried && trials::is_comparable(rules)))
    }

    /// The program frees the communicator. `is_over`: MPI ends, and nobody will ask again.
    pub fn detach(self: Box<Attached>, is_over: bool) {
        match self.state {
            State::Served(communicator) => communicator.detach(is_over),
            _ => {
                report::released(None);
                self.door.close();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs keep thousands that are never served. What they share is counted once; the door has another hundred bytes.
    #[test]
    fn a_communicator_that_is_not_served_is_small() {
        assert!(size_of::<Attached>() <= 320, "{} bytes", size_of::<Attached>());
    }
}
