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
mod open_on_node;
mod patience;
mod plan;
mod process;
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
use polycast_core::policy::{Choice, CommunicatorShape, Policy};
use polycast_core::units::{Bytes, Rank};

use crate::abi::{PassedCounts, Passing};
use crate::attach::{View, World};
use crate::call::{Answer, Buffers, Failure, OperationKey};
use crate::door::Door;
use crate::fault::{self, Point};
use crate::machine;
use crate::report::{self, Log, nanos};
use crate::settings::{self, Settings};
use crate::trace::CallTrace;
use plan::Pool;
pub use plan::{Operation, Plan};
pub(crate) use process::Process;
use progress::{Listeners, Over};
pub use retired::leave_all_to_mpi;
use serving::Serving;

/// A communicator as the door holds it: `polycast_communicator` of polycast.h, which knows the
/// first field.
#[repr(C)]
pub struct Communicator {
    /// Calls that the door leaves without asking, by collective; none while somebody reads what
    /// becomes of calls.
    pub passing: [Passing; Collective::ALL.len()],
    /// The collective whose calls the door counts meanwhile.
    counted: Option<Collective>,
    /// True if all ranks are on one host, whose processes have an arena.
    is_in_arena: bool,
    /// The door's counts, which are 0 but for that collective.
    counts: *mut PassedCounts,
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
    /// A communicator after the calls that the door has counted; `None` if all ranks leave it to the
    /// stock MPI. Local, unless the program has changed settings. Where MPI fails on this rank, the
    /// others may serve: its calls give MPI's error.
    ///
    /// # Safety
    /// The counts stay until the communicator is detached, and nobody else looks at them in a call
    /// of the runtime for it.
    pub unsafe fn new(
        door: Door,
        rank: Rank,
        world_ranks: &[u32],
        counts: *mut PassedCounts,
    ) -> Option<Communicator> {
        // SAFETY: the caller's promise.
        let earlier_calls = std::mem::take(unsafe { &mut *counts }).map(u64::from);
        // What goes wrong with others is no matter of this one.
        let _ = catch_unwind(|| {
            Process::here().retired.visit();
            if world_ranks[rank.index()] == 0 {
                settings::warn_of_problems();
            }
        });
        let ranks = world_ranks.len() as u32;
        let chosen = Communicator::find_rules(&door, rank, world_ranks, earlier_calls);
        let (view, chooser, log, failure) = match chosen {
            Ok(found) => {
                let (view, chooser, log) = found?;
                (Some(view), chooser, log, None)
            }
            Err(failure) => {
                let (chooser, log) = without_rules(ranks);
                (None, chooser, log, Some(failure))
            }
        };
        let mut made = Communicator {
            passing: [Passing::NOTHING; Collective::ALL.len()],
            counted: None,
            is_in_arena: World::get().ok().flatten().is_some_and(|world| world.are_in_arena(world_ranks)),
            counts,
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
        if let Some(failure) = failure {
            made.fail(failure);
        }
        report::attached();
        Some(made)
    }

    fn find_rules(
        door: &Door,
        rank: Rank,
        world_ranks: &[u32],
        earlier_calls: [u64; Collective::ALL.len()],
    ) -> Result<Option<(Arc<View>, Chooser, Log)>, Failure> {
        let Some(world) = World::get()? else { return Ok(None) };
        let Some(view) = View::of(&world, door, rank.index(), world_ranks.len())? else { return Ok(None) };
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
        Ok(Some((view, chooser, log)))
    }

    pub fn rank(&self) -> Rank {
        self.rank
    }

    pub fn ranks(&self) -> u32 {
        self.ranks
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
                WhoServes::First(exchange) => self.learn(exchange, request, root)?,
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

    /// Tells the door which calls pass, when none are counted.
    fn tell_door(&mut self) {
        self.passing = self.chooser.passing().map(Passing::from);
    }

    /// Lets the door count the calls alike that it may leave.
    #[inline]
    fn give_to_door(&mut self) {
        if let Some((collective, bytes, calls)) = self.chooser.passing_and_counted() {
            self.passing[collective as usize].count(bytes, calls);
            self.counted = Some(collective);
        }
    }

    /// Takes the calls that the door has counted, which counts no more.
    #[inline]
    fn count_passed(&mut self) {
        if let Some(collective) = self.counted.take() {
            // SAFETY: the promise of `new`.
            let passed = std::mem::take(unsafe { &mut (*self.counts)[collective as usize] });
            self.chooser.passed(passed.into());
            self.passing[collective as usize].until = 0;
        }
    }

    fn passed_by_door(&self) -> u64 {
        // SAFETY: the promise of `new`.
        self.counted.map_or(0, |collective| unsafe { (*self.counts)[collective as usize] }.into())
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
                let (shape, policy) = (serving.layout.shape, self.chooser.policy().clone());
                let (trials, process) = (self.chooser.trials_mut(), serving.process.clone());
                serving.detach(is_over, || {
                    trials.into_iter().for_each(|trials| process.ledgers.learn(shape, &policy, trials));
                });
            }
            None => {
                report::released(None);
                self.door.close();
            }
        }
    }
}

/// What decides where this rank does not know the settings of the others.
fn without_rules(ranks: u32) -> (Chooser, Log) {
    let settings = Arc::new(Settings::default());
    let policy = Arc::new(Policy::new(settings.rules(None), CommunicatorShape::on_one_node(ranks)));
    let chooser = Chooser::new(policy, Learning::default(), None, Default::default(), false);
    (chooser, Log::new(&settings, None))
}

#[cfg(test)]
mod tests;
