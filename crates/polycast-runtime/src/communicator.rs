//! A communicator: its chooser, which says who serves a call, the log of its calls, and what serves them, which is made when the first is to be
//! served; most communicators never have that.
//!
//! ```text
//!  plan ──▶ chooser.next ──▶ First(exchange) ──▶ learn ──▶ chooser.heard ──▶ chooser.next …
//!                │                               open, exchanges, tune
//!                └──▶ to the MPI, or a plan ──▶ run | start, test, wait: serving
//! ```

mod exchanges;
mod open;
mod patience;
mod plan;
mod progress;
mod retired;
mod serving;
mod tune;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use polycast_core::collective::{self, Collective};
use polycast_core::network::Network;
use polycast_core::policy::chooser::{Chooser, Chosen, Learning, LongestCalls, Request, Waiting, WhoServes};
use polycast_core::policy::trials::Sample;
use polycast_core::policy::{Choice, CommunicatorShape, Policy, ServedSums, ToStock};
use polycast_core::units::{Bytes, Rank};

use crate::abi::{Sizes, SteadyCalls, saturated};
use crate::attach::{View, World};
use crate::call::{Answer, Buffers, Failure, OperationKey};
use crate::door::Door;
use crate::fault::{self, Point};
use crate::report::{self, Log, nanos};
use crate::settings::{self, Settings};
use crate::trace::CallTrace;
use crate::{machine, trials};
use plan::Pool;
pub use plan::{Operation, Plan};
use progress::{Listeners, Over};
pub use retired::leave_all_to_mpi;
use serving::Serving;

/// Sizes of the calls that the door leaves by itself, by collective.
pub type Passing = [Sizes; Collective::ALL.len()];

/// A communicator as the door holds it: `polycast_communicator` of polycast.h, which knows the
/// first fields.
#[repr(C)]
pub struct Communicator {
    /// Calls that the door leaves without asking; none while somebody reads what becomes of calls.
    pub passing: Passing,
    /// Calls that the door leaves as well, and counts: it gives back the rest.
    pub steady: SteadyCalls,
    /// Calls that the door was given so.
    given: u32,
    door: Door,
    rank: Rank,
    ranks: u32,
    /// `None` if this rank does not know the settings of the others.
    view: Option<Arc<View>>,
    /// The network between the nodes, if somebody has measured it.
    network: Option<Network>,
    chooser: Chooser,
    log: Log,
    /// The failure, if MPI or polycast failed while ranks agreed on something: this rank then does
    /// not know what the others do.
    broken: Option<Failure>,
    serving: Option<Box<Serving>>,
    /// Plans that were given back, for the next calls.
    pub plans: Pool,
}

impl Communicator {
    /// A communicator after `earlier_calls` of each collective; `None` if all ranks leave it to the
    /// stock MPI. Local, unless the program has changed settings. Where MPI fails on this rank, the
    /// others may serve: its calls give MPI's error.
    pub fn new(
        door: Door,
        rank: Rank,
        world_ranks: &[u32],
        earlier_calls: [u32; Collective::ALL.len()],
    ) -> Option<Communicator> {
        // What goes wrong with others is no matter of this one.
        let _ = catch_unwind(|| {
            retired::visit();
            if world_ranks[rank.index()] == 0 {
                settings::warn_of_problems();
            }
        });
        let made = match Communicator::find_rules(door, rank, world_ranks, earlier_calls.map(u64::from)) {
            Ok(made) => made?,
            Err(failure) => Communicator::broken(door, rank, world_ranks.len() as u32, failure),
        };
        report::attached();
        Some(made)
    }

    fn find_rules(
        door: Door,
        rank: Rank,
        world_ranks: &[u32],
        earlier_calls: [u64; Collective::ALL.len()],
    ) -> Result<Option<Communicator>, Failure> {
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
        let Settings { trials, tune, .. } = &*view.settings;
        let learning = Learning { tries: *trials, tunes: tune.is_some() };
        let chooser = Chooser::new(policy, learning, longest, earlier_calls, log.is_wanted());
        let of = (rank, world_ranks.len() as u32);
        Ok(Some(Communicator::with(door, of, Some(view), chooser, log)))
    }

    fn broken(door: Door, rank: Rank, ranks: u32, failure: Failure) -> Communicator {
        let settings = Arc::new(Settings::default());
        let policy = Arc::new(Policy::new(settings.rules(None), CommunicatorShape::on_one_node(ranks)));
        let chooser = Chooser::new(policy, Learning::default(), None, Default::default(), false);
        let log = Log::new(&settings, None);
        let mut made = Communicator::with(door, (rank, ranks), None, chooser, log);
        made.fail(failure);
        made
    }

    fn with(
        door: Door,
        (rank, ranks): (Rank, u32),
        view: Option<Arc<View>>,
        chooser: Chooser,
        log: Log,
    ) -> Communicator {
        let mut made = Communicator {
            passing: [Sizes { below: 0, above: u32::MAX }; Collective::ALL.len()],
            steady: SteadyCalls::NONE,
            given: 0,
            door,
            rank,
            ranks,
            view,
            network: None,
            chooser,
            log,
            broken: None,
            serving: None,
            plans: Pool::default(),
        };
        made.tell_door();
        made
    }

    pub fn rank(&self) -> Rank {
        self.rank
    }

    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The sums that are served.
    #[inline]
    pub fn served_sums(&self) -> ServedSums {
        self.chooser.policy().served_sums()
    }

    /// Decides who serves a call, alike on all ranks. Collective if the ranks must learn something
    /// first, which no call does that is only started. A rank that cannot find out what the others chose must not go to the
    /// stock MPI by itself: it says that it serves the call, which gives the error.
    #[inline]
    pub fn plan(&mut self, request: &Request, root: Rank) -> Answer<Chosen> {
        self.count_passed();
        self.look_for_failures();
        let answer = match self.chooser.at_once(request) {
            Some(next) => self.carry_out(next, request, root, true),
            None => self.decide(request, root),
        };
        self.give_to_door();
        answer
    }

    fn decide(&mut self, request: &Request, root: Rank) -> Answer<Chosen> {
        if request.when == Waiting::Waited {
            self.log.begin(&request.call, root);
        }
        let decided = catch_unwind(AssertUnwindSafe(|| self.learn_and_choose(request, root)));
        let answer = decided.unwrap_or(Err(Failure::Internal)).unwrap_or_else(|failure| self.fail(failure));
        self.tell_door();
        answer
    }

    fn learn_and_choose(&mut self, request: &Request, root: Rank) -> Result<Answer<Chosen>, Failure> {
        loop {
            match self.chooser.next(request) {
                WhoServes::First(exchange) => {
                    let answer = self.learn(exchange, request, root)?;
                    self.hear(answer);
                }
                next => {
                    fault::point(Point::Choose);
                    return Ok(self.carry_out(next, request, root, false));
                }
            }
        }
    }

    /// Notes what was decided. `is_new`: the log does not know the call yet.
    #[inline]
    fn carry_out(&mut self, next: WhoServes, request: &Request, root: Rank, is_new: bool) -> Answer<Chosen> {
        let (call, is_waited) = (&request.call, request.when == Waiting::Waited);
        let (sample, why) = match next {
            WhoServes::Leave { sample, why } | WhoServes::Serve { sample, why, .. } => (sample, why),
            WhoServes::Broken | WhoServes::First(_) => return Answer::UNKNOWN,
        };
        if is_waited && !is_new {
            self.begin_timing(sample);
        }
        let Communicator { log, chooser, .. } = self;
        match (next, why) {
            (WhoServes::Serve { chosen, .. }, Some(why)) => {
                if !is_waited {
                    log.begin(call, root);
                }
                log.chosen(call, chosen.choice, why);
                Answer::Served(chosen)
            }
            (WhoServes::Serve { chosen, .. }, None) => Answer::Served(chosen),
            (_, Some(why)) if is_waited || is_new => {
                if is_new {
                    log.begin(call, root);
                }
                let is_logged = log.leave(call, why, || chooser.is_refused(call));
                if is_logged || sample.is_some() { Answer::ToStockAndTimed } else { Answer::ToStock }
            }
            _ => Answer::ToStock,
        }
    }

    /// Begins to time a call, if it counts.
    fn begin_timing(&mut self, sample: Option<Sample>) {
        if let Some(serving) = &mut self.serving {
            (serving.timed, serving.ended) = (sample.map(|sample| (sample, machine::now())), None);
        }
    }

    /// Breaks the communicator.
    #[cold]
    fn fail(&mut self, failure: Failure) -> Answer<Chosen> {
        self.broken = Some(failure);
        if let Some(serving) = &mut self.serving {
            serving.broken.get_or_insert(failure);
        }
        self.chooser.fail();
        self.tell_door();
        Answer::UNKNOWN
    }

    /// Takes note of a failure that was no operation's own.
    #[inline]
    fn look_for_failures(&mut self) {
        let failure = self.serving.as_ref().and_then(|serving| serving.broken);
        if let (None, Some(failure)) = (self.broken, failure) {
            self.fail(failure);
        }
    }

    /// Tells the door which calls it leaves uncounted.
    fn tell_door(&mut self) {
        self.passing = self
            .chooser
            .passing()
            .map(|ToStock { below, above }| Sizes { below: saturated(below), above: saturated(above) });
    }

    /// Gives the door the calls alike that it may leave, and counts.
    #[inline]
    fn give_to_door(&mut self) {
        let Some(counted) = self.chooser.passing_if_counted() else { return };
        let Ok(first) = u32::try_from(*counted.bytes.start()) else { return };
        self.given = saturated(counted.calls);
        let (collective, last) = (counted.collective as u32, saturated(*counted.bytes.end()));
        self.steady = SteadyCalls { collective, first, last, calls: self.given };
    }

    /// Counts the calls that the door has left, and takes back the rest.
    #[inline]
    fn count_passed(&mut self) {
        if self.given > 0 {
            self.chooser.passed(self.passed_by_door());
            (self.given, self.steady) = (0, SteadyCalls::NONE);
        }
    }

    fn passed_by_door(&self) -> u64 {
        u64::from(self.given - self.steady.calls)
    }

    /// What serves, for a call that was planned.
    fn serving(&mut self) -> Result<&mut Serving, Failure> {
        match (self.broken, &mut self.serving) {
            (Some(failure), _) => Err(failure),
            (None, Some(serving)) => Ok(serving),
            (None, None) => Err(Failure::Internal),
        }
    }

    /// Starts a call as it was chosen. All ranks start their calls in the same order.
    ///
    /// # Errors
    /// Nothing was started, and none will be: an earlier failure was not an operation's own.
    ///
    /// # Safety
    /// As for [`Operations::start`](crate::operation::Operations::start), until [`Communicator::test`] or [`Communicator::wait`] says that
    /// the operation has ended.
    pub unsafe fn start(
        &mut self,
        chosen: Chosen,
        of: collective::Call,
        buffers: Buffers,
    ) -> Result<OperationKey, Failure> {
        let (capabilities, traced) = (self.chooser.capabilities(), self.log.number());
        // SAFETY: handed on from the caller.
        unsafe { self.serving()?.start(chosen, capabilities, traced, of, buffers) }
    }

    /// Starts a call as it was chosen, and waits for its end.
    ///
    /// # Errors
    /// As for [`Communicator::start`], and what goes wrong later.
    ///
    /// # Safety
    /// As for [`Communicator::start`], until this returns.
    pub unsafe fn run(
        &mut self,
        chosen: Chosen,
        of: collective::Call,
        buffers: Buffers,
    ) -> Result<(), Failure> {
        let capabilities = self.chooser.capabilities();
        self.serving()?;
        let Communicator { serving: Some(serving), log, chooser, .. } = self else {
            return Err(Failure::Internal);
        };
        // SAFETY: handed on from the caller.
        let over = unsafe { serving.run(chosen, capabilities, of, buffers, &mut Listeners { log, chooser }) };
        self.end(over)
    }

    /// Lets all operations go on, without waiting; `Some` if `key`'s operation has ended. Whatever
    /// has gone wrong, MPI then touches the buffer no more, and the key names nothing any more.
    pub fn test(&mut self, key: OperationKey) -> Option<Result<(), Failure>> {
        let Communicator { serving, log, chooser, .. } = self;
        let Some(serving) = serving else { return Some(Err(Failure::Internal)) };
        let over = serving.test(key, &mut Listeners { log, chooser })?;
        Some(self.end(over))
    }

    /// Lets operations go on until `key`'s operation has ended, and waits meanwhile.
    pub fn wait(&mut self, key: OperationKey) -> Result<(), Failure> {
        let Communicator { serving, log, chooser, .. } = self;
        let Some(serving) = serving else { return Err(Failure::Internal) };
        let over = serving.wait(key, &mut Listeners { log, chooser });
        self.end(over)
    }

    /// Tells the chooser of a call's end. A failure ends settled decisions: others may serve the
    /// next call.
    fn end(&mut self, Over { outcome, is_ahead }: Over) -> Result<(), Failure> {
        if !is_ahead {
            self.end_timing();
        }
        if let Err(failure) = outcome {
            if failure == Failure::Size {
                self.chooser.sizes_differ();
            }
            self.count_passed();
            self.chooser.add_up();
        }
        outcome
    }

    #[inline]
    fn end_timing(&mut self) {
        let Some(serving) = &mut self.serving else { return };
        serving.ended = serving.timed.take();
        if let Some((sample, begun)) = serving.ended {
            self.chooser.took(sample, nanos(machine::now() - begun));
        }
    }

    /// Takes the time of a call that was left to the MPI, which has done it.
    pub fn end_of_stock(&mut self) {
        self.end_timing();
        self.log.end_of_left();
    }

    /// Takes the time of a served call anew, when the door is through with it and has unpacked the
    /// data: the MPI's time has that, too.
    #[inline]
    pub fn end_of_served(&mut self) {
        let ended = self.serving.as_mut().and_then(|serving| serving.ended.take());
        if let Some((sample, begun)) = ended {
            self.chooser.took(sample, nanos(machine::now() - begun));
        }
    }

    /// The way that would serve a call, as known without trying; true if ways are compared for it.
    pub fn expected(&self, collective: Collective, bytes: Bytes) -> (Choice, bool) {
        self.chooser.expected(collective, bytes, self.passed_by_door())
    }

    /// Bytes of memory that operations keep for their next call.
    #[cfg(test)]
    pub fn scratch_bytes(&self) -> usize {
        self.serving.as_ref().map_or(0, |serving| serving.operations.scratch_bytes())
    }

    /// Detaches the communicator, which is freed. `is_over`: MPI ends, and nobody asks again.
    pub fn detach(mut self: Box<Communicator>, is_over: bool) {
        self.count_passed();
        self.chooser.add_up();
        match self.serving.take() {
            Some(serving) => {
                let shape = serving.layout.shape;
                let policy = self.chooser.policy().clone();
                let trials = self.chooser.trials_mut();
                serving.detach(is_over, || {
                    trials.into_iter().for_each(|trials| trials::ledgers::learn(shape, &policy, trials));
                });
            }
            None => {
                report::released(None);
                self.door.close();
            }
        }
    }
}

#[cfg(test)]
mod tests;
