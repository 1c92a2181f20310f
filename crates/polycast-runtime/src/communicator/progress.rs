//! The one loop that waits: operations go on until one has ended, and a rank rests when none can. And a shorter one, for a call through cells
//! that is the only one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use polycast_core::collective;

use polycast_core::algorithm::Algorithm;
use polycast_core::policy::chooser::{Chooser, Chosen};
use polycast_core::policy::{self, Capabilities, Choice};

use crate::call::{Activity, Buffers, Failure, OperationKey, Progress};
use crate::communicator::patience::Patience;
use crate::communicator::serving::Serving;
use crate::idle::{self, TESTS_UNTIL_NOTHING};
use crate::machine;
use crate::mismatch;
use crate::multicast::visit_groups;
use crate::operation::{Call, CellCall};
use crate::report::Log;

/// Longest time for which MPI is not asked while datagrams keep coming: its messages may be what
/// all wait for.
const MAX_DATAGRAMS_ALONE: Duration = Duration::from_micros(100);

/// Rests of a rank that waits for cells awake, between two turns of MPI: one turn may take as long
/// as all these rests.
const RESTS_UNTIL_MPI: u32 = 16;

/// Rests after which MPI gets several turns in each: messages of the program that come here wait
/// for that, and so do their senders.
const FEW_RESTS: u32 = 128;
const TURNS_PER_REST: u32 = 4;

/// Turns that MPI gets after a sleep: senders go on filling the room that it empties. Fewer where
/// ranks that have a processor sleep, too, so as to leave it to others.
const TURNS_AFTER_SLEEP: u32 = 64;
const TURNS_AFTER_SLEEP_FOR_MESSAGES: u32 = 8;

/// What is told of calls while they go on, and what decided about them.
pub(super) struct Listeners<'a> {
    pub log: &'a mut Log,
    pub chooser: &'a Chooser,
}

/// The end of a call.
pub(super) struct Over {
    pub outcome: Result<(), Failure>,
    /// True if the program does not wait for the call: its duration says nothing.
    pub is_ahead: bool,
}

impl Serving {
    /// Starts a call as it was chosen, and waits for its end.
    ///
    /// # Errors
    /// As for [`Serving::start`], and what goes wrong later.
    ///
    /// # Safety
    /// As for [`Operations::start`](crate::operation::Operations::start), until this returns.
    pub unsafe fn run(
        &mut self,
        chosen: Chosen,
        capabilities: Capabilities,
        of: collective::Call,
        buffers: Buffers,
        listeners: &mut Listeners<'_>,
    ) -> Over {
        let is_alone = self.broken.is_none() && !self.operations.are_running();
        match chosen.choice {
            Choice::Algorithm(algorithm) if is_alone && algorithm.is_through_cells() => {
                self.run_through_cells(algorithm, of, &buffers, listeners)
            }
            _ => {
                // SAFETY: handed on from the caller.
                match unsafe { self.start(chosen, capabilities, listeners.log.number(), of, buffers) } {
                    Ok(key) => self.wait(key, listeners),
                    Err(failure) => Over { outcome: Err(failure), is_ahead: true },
                }
            }
        }
    }

    /// Runs a call through cells. Of the other operations it takes only a tag and a number, to keep
    /// their order.
    fn run_through_cells(
        &mut self,
        algorithm: Algorithm,
        of: collective::Call,
        buffers: &Buffers,
        listeners: &mut Listeners<'_>,
    ) -> Over {
        let begun = listeners.log.is_wanted().then(machine::now);
        self.tags.next();
        let operation = self.shared.memory.as_mut().map_or(0, |memory| memory.next_operation());
        let run = AssertUnwindSafe(|| {
            let mut call = match self.cell_calls[of.collective as usize].take() {
                Some(mut kept) => kept.turn_to(&algorithm, &of, &mut self.shared).map(|()| kept),
                None => CellCall::new(&algorithm, &of, &mut self.shared).map(Box::new),
            }
            .ok_or(Failure::Internal)?;
            call.begin_operation(operation, &mut self.shared)?;
            let outcome = self.wait_for_cells(&mut call, buffers, listeners);
            self.cell_calls[of.collective as usize] = Some(call);
            outcome
        });
        let outcome = catch_unwind(run).unwrap_or(Err(Failure::Internal));
        let asked = policy::Call::from(&of);
        if outcome.is_err() {
            self.is_spoiled = true;
            self.say_sizes(&asked, outcome);
            if let Some(memory) = &mut self.shared.memory {
                memory.cells().end(operation as u32);
            }
        }
        if let Some(begun) = begun {
            let traced = listeners.log.number();
            listeners.log.served(&asked, traced, Choice::Algorithm(algorithm), begun, outcome.is_err());
        }
        Over { outcome, is_ahead: false }
    }

    fn say_sizes(&mut self, of: &policy::Call, outcome: Result<(), Failure>) {
        if outcome == Err(Failure::Size) {
            mismatch::say_sizes(of, self.shared.rank, self.shared.told.take());
        }
    }

    fn wait_for_cells(
        &mut self,
        call: &mut CellCall,
        buffers: &Buffers,
        listeners: &mut Listeners<'_>,
    ) -> Result<(), Failure> {
        let (mut rests, mut turns_due, mut has_waited) = (0u32, 0u32, false);
        let mut patience = Patience::default();
        loop {
            self.shared.activity = Activity::Nothing;
            match call.go_on(buffers, &mut self.shared)? {
                Progress::Pending => {}
                ended => {
                    if has_waited {
                        self.idle.progress_elsewhere();
                    }
                    return if let Progress::Failed(failure) = ended { Err(failure) } else { Ok(()) };
                }
            }
            if self.shared.activity != Activity::Nothing {
                listeners.log.goes_on();
                if has_waited {
                    self.idle.progress_elsewhere();
                }
            } else if turns_due > 0 {
                turns_due -= 1;
                machine::give_way();
                self.let_mpi_work()?;
            } else {
                rests += 1;
                listeners.log.rests();
                match &mut self.shared.memory {
                    Some(memory) => {
                        let cells = memory.cells();
                        self.idle.wait_to_be_woken(|longest| cells.sleep(longest));
                    }
                    None => return Err(Failure::Internal),
                }
                has_waited = true;
                let has_slept = self.idle.has_slept();
                if patience.is_over(has_slept) {
                    let (of, algorithm) = call.call();
                    self.waits_long(listeners.chooser, &of, Choice::Algorithm(algorithm));
                }
                turns_due = if has_slept { TURNS_AFTER_SLEEP } else { 0 };
                // Others may need what MPI does for them here.
                let is_turn = has_slept || rests.is_multiple_of(RESTS_UNTIL_MPI) || idle::is_one_sided();
                let turns = if rests > FEW_RESTS { TURNS_PER_REST } else { is_turn.into() };
                for _ in 0..turns {
                    self.let_mpi_work()?;
                }
            }
        }
    }

    fn let_mpi_work(&mut self) -> Result<(), Failure> {
        self.shared.messages.is_to_work();
        self.turn(true);
        self.broken.map_or(Ok(()), Err)
    }

    /// Starts a call as it was chosen. All ranks start their calls in the same order.
    ///
    /// # Errors
    /// Nothing was started, and none will be: an earlier failure was not an operation's own.
    ///
    /// # Safety
    /// As for [`Operations::start`](crate::operation::Operations::start), until [`Serving::test`] or [`Serving::wait`] says that
    /// the operation has ended.
    pub unsafe fn start(
        &mut self,
        chosen: Chosen,
        capabilities: Capabilities,
        traced: u32,
        of: collective::Call,
        buffers: Buffers,
    ) -> Result<OperationKey, Failure> {
        if let Some(failure) = self.broken {
            return Err(failure);
        }
        visit_groups();
        let (tag, number) = self.tags.next();
        let operation = self.shared.memory.as_mut().map_or(0, |memory| memory.next_operation());
        let call = Call { chosen, capabilities, of, buffers, tag, number, operation, traced };
        // SAFETY: handed on from the caller.
        unsafe { self.operations.start(call, &mut self.shared) }
    }

    /// Lets all operations go on, without waiting; `Some` if `key`'s operation has ended. Whatever
    /// has gone wrong, MPI then touches the buffer no more, and the key names nothing any more.
    pub fn test(&mut self, key: OperationKey, listeners: &mut Listeners<'_>) -> Option<Over> {
        self.turn(true);
        self.ended(key, listeners)
    }

    /// Lets operations go on until `key`'s operation has ended, and waits meanwhile.
    pub fn wait(&mut self, key: OperationKey, listeners: &mut Listeners<'_>) -> Over {
        self.wait_for(listeners, |serving, listeners| serving.ended(key, listeners))
    }

    /// Waits for all operations, before ranks agree on something by the program's communicator: a
    /// rank in such a call lets no operation go on.
    pub fn finish_all(&mut self, listeners: &mut Listeners<'_>) {
        if self.operations.are_running() {
            self.wait_for(listeners, |serving, _| (!serving.operations.are_running()).then_some(()));
        }
    }

    fn wait_for<R>(
        &mut self,
        listeners: &mut Listeners<'_>,
        over: impl Fn(&mut Serving, &mut Listeners<'_>) -> Option<R>,
    ) -> R {
        let (mut polls_due, mut turns_due) = (0u32, 0u32);
        // Since when datagrams have come without a rest, in which it is seen whether MPI has something.
        let mut datagrams_since = None;
        let mut patience = Patience::default();
        loop {
            let asks_always = !self.operations.are_between_nodes(&self.shared);
            let asks_mpi = asks_always || polls_due > 0;
            let activity = self.turn(asks_mpi);
            polls_due = polls_due.saturating_sub(1);
            match activity {
                Activity::Datagrams if !asks_mpi => {
                    let now = machine::now();
                    if now - *datagrams_since.get_or_insert(now) >= MAX_DATAGRAMS_ALONE {
                        polls_due = 1;
                    }
                }
                _ => datagrams_since = None,
            }
            if activity != Activity::Nothing {
                listeners.log.goes_on();
            }
            match activity {
                Activity::Messages => {
                    polls_due = TESTS_UNTIL_NOTHING;
                    self.idle.progress();
                }
                Activity::Datagrams => self.idle.progress_elsewhere(),
                Activity::Nothing => {}
            }
            if let Some(outcome) = over(self, listeners) {
                return outcome;
            }
            if activity == Activity::Nothing && (asks_always || polls_due == 0) {
                if turns_due > 0 {
                    turns_due -= 1;
                    self.shared.messages.is_to_work();
                    machine::give_way();
                    continue;
                }
                listeners.log.rests();
                let asks_mpi = self.rest(asks_always);
                polls_due = if asks_mpi { TESTS_UNTIL_NOTHING } else { 0 };
                let has_slept = self.idle.has_slept();
                if patience.is_over(has_slept)
                    && let Some((of, way)) = self.operations.first_running()
                {
                    self.waits_long(listeners.chooser, &of, way);
                }
                turns_due = if asks_always && has_slept { TURNS_AFTER_SLEEP_FOR_MESSAGES } else { 0 };
            }
        }
    }

    /// Rests, since nothing can go on before something comes. True if there is reason to ask MPI
    /// afterwards.
    fn rest(&mut self, asks_always: bool) -> bool {
        let Serving { operations, shared, idle, .. } = self;
        let is_sending = shared.messages.is_sending();
        if !asks_always
            && let Some(driver) =
                shared.driver.as_mut().filter(|_| idle.is_crowded() && !idle::is_one_sided())
            && let Some(interval) = driver.poll_interval()
        {
            machine::sleep(interval);
            return true;
        }
        if asks_always && shared.memory.is_some() && operations.wait_for_memory() {
            idle.wait_for_memory();
            return true;
        }
        let watch = shared.driver.as_ref().and_then(|driver| driver.watch());
        match asks_always {
            true => {
                idle.wait(watch, is_sending, operations.have_memory());
                true
            }
            false => idle.rest(watch, is_sending),
        }
    }

    /// Asks all operations for progress, and returns the activity that they found.
    fn turn(&mut self, asks_mpi: bool) -> Activity {
        let Serving { operations, shared, .. } = self;
        let turn = AssertUnwindSafe(|| {
            if let Some(memory) = &mut shared.memory {
                memory.streams().tell_of_abandoned();
            }
            operations.progress(shared, asks_mpi)
        });
        let failure = match catch_unwind(turn) {
            Ok(Ok(())) => return self.shared.activity,
            Ok(Err(error)) => Failure::Mpi(error),
            Err(_) => Failure::Internal,
        };
        self.broken = Some(failure);
        self.end_all(failure);
        Activity::Messages
    }

    /// Ends all operations with `failure`, and what they have under way.
    pub(super) fn end_all(&mut self, failure: Failure) {
        let Serving { operations, shared, .. } = self;
        operations.end_all(failure, shared);
        if let Some(driver) = &mut shared.driver {
            driver.forget(&mut shared.messages);
        }
    }

    fn ended(&mut self, key: OperationKey, listeners: &mut Listeners<'_>) -> Option<Over> {
        let ended = self.operations.take(key)?;
        self.is_spoiled |= ended.outcome.is_err();
        self.say_sizes(&ended.of, ended.outcome);
        let heard = self.shared.driver.as_mut().filter(|_| ended.choice.is_by_multicast());
        listeners.log.heard(ended.traced, heard.and_then(|driver| driver.take_heard()));
        listeners.log.served(&ended.of, ended.traced, ended.choice, ended.begun, ended.outcome.is_err());
        Some(Over { outcome: ended.outcome, is_ahead: ended.is_ahead })
    }
}
