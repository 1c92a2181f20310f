//! Trials: over the first calls of a size, what the rules choose is compared with the MPI below, and the faster one stays.
//!
//! ```text
//!  calls of a size   1 2   3 4 5 6   7 8 9 10 …             2^k
//!                    warm  2 rounds  2 more rounds           again
//!                          ▲ judged  ▲ judged       …        as from the beginning
//! ```
//! In a [round](running) each way to serve the call has its turn, in an order that changes from round to round. Who has which call follows from
//! counting, so all ranks serve each call alike and say nothing of it. Each but the root keeps its own times; when a judgement is due, these are
//! added up over all ranks, once, and every rank draws the same conclusion from the sums.
//!
//! What has been settled is [watched](watch): where calls take clearly longer or shorter than they did, it is compared anew.
//! What one communicator finds, the next of its kind goes on with ([`Ledger`]): programs make many, and few calls on each. Where the way that stays
//! cannot be had any more, the [second](second) serves.
//!
//! # Invariant
//! Nothing here depends on a rank's own times but the values that it has to add; the state follows from what rank 0 told, the calls and
//! the sums.

mod budget;
mod ledger;
mod memory;
mod running;
mod second;
mod told;
mod verdict;
mod watch;

pub use ledger::Ledger;
pub use memory::{CACHE_FILE, MAX_AGE_DAYS, Memory, Recalled, Setting};
pub use told::TOLD;

use std::ops::RangeInclusive;

use self::budget::TrialBudget;
use self::running::{COLUMNS, MAX_ROUNDS, Running};
use self::verdict::again;
use self::watch::Watch;
use super::{Capabilities, Collective, Epoch};

/// Ways to serve a call that are compared: the rules' choice, what they say without multicast, what is predicted to be as fast, and the MPI.
pub const MAX_ARMS: usize = 4;
/// Numbers that the ranks add up for a judgement, however many count: times of calls, and behind
/// them that of what was set up.
pub const SUMS: usize = MAX_ARMS * COLUMNS + 1;
/// These numbers: times of one rank, or their sums over all ranks, in nanoseconds.
pub type Sums = [u64; SUMS];
/// Bytes below which all messages are compared as one size: less than a cache line takes as long as
/// any other part of one. Ranks that call with different sizes of so few bytes, which MPIs carry, make
/// the same choices by that.
pub const ALIKE_BELOW_BYTES: u64 = 64;

/// The key of calls that are compared with each other: those for which the same ways are open, and
/// whose bytes have the same power of two, or are fewer than [`ALIKE_BELOW_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sameness {
    /// The operation.
    pub collective: Collective,
    /// The stretch of calls for which the same rules hold.
    pub epoch: Epoch,
    /// The rules' interval of sizes, counted from 0.
    pub interval: u16,
    /// Binary digits of the bytes, as [`Sameness::digits_of`] counts them.
    pub digits: u8,
    /// The capabilities of the communicator.
    pub there: Capabilities,
}

/// The `interval` of calls whose ways were found by tuning, in place of one of the rules.
const TUNED: u16 = u16::MAX;

impl Sameness {
    /// Calls whose ways were found by [tuning](super::tune::Session) on a communicator that has the
    /// capabilities `there`.
    pub fn tuned(collective: Collective, bytes: u64, there: Capabilities) -> Sameness {
        let (epoch, digits) = (Epoch::FIRST, Sameness::digits_of(bytes));
        Sameness { collective, epoch, interval: TUNED, digits, there }
    }

    /// Whether the calls' ways were found by tuning.
    pub fn is_tuned(self) -> bool {
        self.interval == TUNED
    }

    /// How many binary digits calls of this many bytes have; those below [`ALIKE_BELOW_BYTES`] have all as many.
    pub fn digits_of(bytes: u64) -> u8 {
        let alike = if bytes == 0 { 0 } else { bytes.max(ALIKE_BELOW_BYTES - 1) };
        (u64::BITS - alike.leading_zeros()) as u8
    }

    /// The sizes with as many binary digits as `bytes`.
    pub fn sizes_alike(bytes: u64) -> RangeInclusive<u64> {
        match bytes {
            0 => 0..=0,
            1..ALIKE_BELOW_BYTES => 1..=ALIKE_BELOW_BYTES - 1,
            _ => 1 << bytes.ilog2()..=u64::MAX >> bytes.leading_zeros(),
        }
    }

    /// The fewest bytes of a call with `digits` binary digits.
    pub fn first_bytes(self) -> u64 {
        let first = self.digits.checked_sub(1).map_or(0, |zeros| 1 << zeros);
        *Sameness::sizes_alike(first).start()
    }
}

/// The place of a way to serve a call among those that [`super::Policy::ways_of`] gives.
pub type Arm = u8;

/// The way that serves a call in trials, and the sample that its time is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The call is compared. If it counts, its time is to be told to [`Trials::took`] with the
    /// sample.
    Tried(Arm, Option<Sample>),
    /// The way has been decided. Now and then there is a sample: the call's time is to be told,
    /// too.
    Settled(Arm, Option<Sample>),
    /// The way serves until it is known what a comparison costs, and that can be afforded.
    Waiting(Arm),
}

impl Turn {
    /// The way, and the sample that the call's time is for.
    pub fn way(self) -> (Arm, Option<Sample>) {
        match self {
            Turn::Tried(arm, sample) | Turn::Settled(arm, sample) => (arm, sample),
            Turn::Waiting(arm) => (arm, None),
        }
    }
}

/// The place of a call's time: trial, way and round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    trial: u16,
    arm: Arm,
    round: u8,
}

/// The outcome of a trial, once it was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The calls that were compared.
    pub of: Sameness,
    /// The way that stays.
    pub arm: Arm,
    /// Nanoseconds of the median call of each way: the mean of the ranks that timed it, at the last
    /// judgement in which the way took part; 0 beyond the ways that there are.
    pub nanos: [u64; MAX_ARMS],
}

/// The trials of a communicator.
#[derive(Clone, Debug, Default)]
pub struct Trials {
    trials: Vec<Trial>,
    due: Option<u16>,
    is_over: bool,
    /// Nanoseconds that this rank has spent on challengers beside their calls since it told them
    /// last.
    set_up_nanos: u64,
    /// True if the trial that was judged last has a bounded cost.
    is_bounded: bool,
}

#[derive(Clone, Debug)]
struct Trial {
    of: Sameness,
    /// Calls until now; a trial that has been settled goes on counting.
    calls: u64,
    /// Calls among these that were made elsewhere, or that the [`Ledger`] has added up already.
    calls_elsewhere: u64,
    /// The number of times that the trial was settled; it stops at the largest number.
    verdicts: u8,
    state: State,
    watch: Watch,
    /// Medians of the ways at the last judgement, in nanoseconds added up over the ranks.
    medians: [u64; MAX_ARMS],
    /// The fastest of the ways that do not stay, and until which call it would.
    second: Option<(Arm, u64)>,
    /// The cost so far, where it is bounded.
    budget: TrialBudget,
}

#[derive(Clone, Debug)]
enum State {
    Running(Box<Running>),
    /// The way that stays, and the call of this size until which it does.
    Settled(Arm, u64),
    /// A trial whose cost is bounded, and the call of this size before which it goes on.
    Waiting(Box<Running>, u64),
}

impl Trial {
    fn new(of: Sameness, state: State) -> Trial {
        let (watch, medians, budget) = Default::default();
        Trial { of, calls: 0, calls_elsewhere: 0, verdicts: 0, state, watch, medians, second: None, budget }
    }

    /// Whether the trial can be about `ways` ways.
    fn is_among(&self, ways: usize) -> bool {
        match &self.state {
            State::Settled(arm, _) => usize::from(*arm) < ways,
            State::Running(running) | State::Waiting(running, _) => usize::from(running.mpi) + 1 == ways,
        }
    }

    /// The progress of the trial: of two states of the same trial the later one has more.
    fn progress(&self) -> (u8, usize, usize) {
        match &self.state {
            State::Settled(..) => (self.verdicts, 0, 0),
            State::Running(running) | State::Waiting(running, _) if running.is_alone() => {
                (self.verdicts, 0, running.round)
            }
            State::Running(running) | State::Waiting(running, _) => {
                (self.verdicts, running.round + 1, running.made)
            }
        }
    }
}

impl Trials {
    /// Counts a call and returns the way that serves it. `arms`: the number of ways to serve it, at
    /// least two; the last one is the MPI. `bound`: what it is taken to cost a rank in nanoseconds
    /// until all ways can be had, where the cost of trials is bounded.
    pub fn next(&mut self, of: Sameness, arms: usize, bound: Option<u64>) -> Turn {
        debug_assert!((2..=MAX_ARMS).contains(&arms));
        if self.is_over {
            return Turn::Settled(if bound.is_some() { arms as Arm - 1 } else { 0 }, None);
        }
        let begun = |incumbent| match bound {
            Some(set_up_nanos) => State::Running(Running::bounded(arms, incumbent, set_up_nanos)),
            None => State::Running(Running::new(arms)),
        };
        let index = self.trials.iter().position(|trial| trial.of == of).unwrap_or_else(|| {
            self.trials.push(Trial::new(of, begun(arms as Arm - 1)));
            self.trials.len() - 1
        });
        let trial = &mut self.trials[index];
        trial.calls += 1;
        match &mut trial.state {
            State::Settled(arm, until) if trial.calls < *until => {
                let place = trial.watch.next();
                if trial.watch.due().is_some() {
                    self.due = Some(index as u16);
                }
                let sample = place.map(|round| Sample { trial: index as u16, arm: *arm, round });
                return Turn::Settled(*arm, sample);
            }
            State::Waiting(running, until) if trial.calls < *until => {
                return Turn::Waiting(running.bound.map_or(running.mpi, |bound| bound.incumbent));
            }
            State::Settled(arm, _) => trial.state = begun(*arm),
            State::Waiting(running, _) => trial.state = State::Running(running.clone()),
            State::Running(_) => {}
        }
        let State::Running(running) = &mut trial.state else { unreachable!("it was just made") };
        let (arm, counted) = running.next();
        if running.is_due {
            self.due = Some(index as u16);
        }
        let sample = counted.map(|round| Sample { trial: index as u16, arm, round: round as u8 });
        Turn::Tried(arm, sample)
    }

    /// The number of further calls that are settled as the last one was, and not timed.
    pub fn steady(&self, of: Sameness) -> u64 {
        let trial = self.trials.iter().find(|trial| trial.of == of);
        match trial {
            _ if self.is_over => u64::MAX,
            Some(Trial { state: State::Settled(_, until), calls, watch, .. }) => {
                until.saturating_sub(calls + 1).min(watch.wait())
            }
            Some(Trial { state: State::Waiting(_, until), calls, .. }) => until.saturating_sub(calls + 1),
            _ => 0,
        }
    }

    /// Counts `calls` calls, no more than [`Trials::steady`] says.
    pub fn add(&mut self, of: Sameness, calls: u64) {
        if let Some(trial) = self.trials.iter_mut().find(|trial| trial.of == of).filter(|_| !self.is_over) {
            trial.calls += calls;
            if let State::Settled(..) = trial.state {
                trial.watch.pass(calls);
            }
        }
    }

    /// Takes over a finding from elsewhere, unless something is known here of as many ways.
    pub fn remember(&mut self, Recalled { of, arm, until_calls, times }: &Recalled) {
        let mut nanos = [0; MAX_ARMS];
        nanos.iter_mut().zip(times).for_each(|(nanos, (_, known))| *nanos = *known);
        let state = State::Settled(*arm, *until_calls);
        let found = Trial { verdicts: 1, second: second::second(*arm, &nanos), ..Trial::new(*of, state) };
        match self.trials.iter_mut().find(|known| known.of == *of) {
            Some(known) if known.is_among(times.len()) => {}
            Some(known) => *known = found,
            None => self.trials.push(found),
        }
    }

    /// The way that stays, if that is decided.
    pub fn settled(&self, of: Sameness) -> Option<Arm> {
        let trial = self.trials.iter().find(|trial| trial.of == of)?;
        match trial.state {
            State::Settled(arm, _) => Some(arm),
            State::Running(_) | State::Waiting(..) => None,
        }
    }

    /// Notes what this rank has spent on setting challengers up, in nanoseconds.
    pub fn spent(&mut self, nanos: u64) {
        self.set_up_nanos = self.set_up_nanos.saturating_add(nanos);
    }

    /// Notes what it took to add up the times of the trial that was judged last, in nanoseconds.
    pub fn added_up(&mut self, nanos: u64) {
        if self.is_bounded {
            self.spent(nanos);
        }
    }

    /// Notes the time of a call on this rank, in nanoseconds.
    pub fn took(&mut self, sample: Sample, nanos: u64) {
        let Some(trial) = self.trials.get_mut(usize::from(sample.trial)) else { return };
        match &mut trial.state {
            State::Running(running) => {
                running.nanos[usize::from(sample.arm)][usize::from(sample.round)] = nanos;
            }
            State::Settled(..) => trial.watch.took(sample.round, nanos),
            State::Waiting(..) => {}
        }
    }

    /// The calls whose trial is due to be judged, with their times: before the next call, whatever
    /// it is, these are to be added up over all ranks and given to [`Trials::judge`].
    #[inline]
    pub fn due(&self) -> Option<(Sameness, [u64; SUMS])> {
        let trial = &self.trials[usize::from(self.due?)];
        let mut values = [0; SUMS];
        match &trial.state {
            State::Running(running) => {
                values[..SUMS - 1].copy_from_slice(running.nanos.as_flattened());
                values[SUMS - 1] = if running.bound.is_some() { self.set_up_nanos } else { 0 };
            }
            State::Waiting(..) => {}
            State::Settled(..) => values[..watch::CALLS].copy_from_slice(trial.watch.due()?),
        }
        Some((trial.of, values))
    }

    /// Draws the conclusion from the sums, to each of which `timed_ranks` ranks have added a time.
    /// Returns what was found, if the trial is over. Another trial may be due then.
    pub fn judge(&mut self, sums: &[u64; SUMS], timed_ranks: u32) -> Option<Finding> {
        let finding = self.conclude(sums, timed_ranks);
        self.due = self.first_due();
        finding
    }

    fn first_due(&self) -> Option<u16> {
        let is_due = |trial: &Trial| match &trial.state {
            State::Running(running) => running.is_due,
            State::Settled(..) => trial.watch.due().is_some(),
            State::Waiting(..) => false,
        };
        self.trials.iter().position(is_due).map(|index| index as u16)
    }

    fn conclude(&mut self, sums: &[u64; SUMS], timed_ranks: u32) -> Option<Finding> {
        let trial = &mut self.trials[usize::from(self.due.take()?)];
        self.is_bounded = matches!(&trial.state, State::Running(running) if running.bound.is_some());
        if self.is_bounded {
            self.set_up_nanos = 0;
        }
        match &mut trial.state {
            State::Running(_) => trial.judge(sums, timed_ranks),
            State::Settled(_, until) => {
                if trial.watch.judge(sums, timed_ranks) {
                    *until = trial.calls.max(1);
                }
                None
            }
            State::Waiting(..) => None,
        }
    }

    /// Ends all trials: the ranks may have made different calls.
    pub fn stop(&mut self) {
        (self.is_over, self.due) = (true, None);
    }
}

#[cfg(test)]
mod tests;
