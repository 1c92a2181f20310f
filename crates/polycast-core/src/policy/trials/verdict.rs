//! What the times of a trial come to: which ways go, which one stays, and when more can be afforded
//! where the cost is bounded.

use super::running::{COLUMNS, JUDGED_AFTER, Running};
use super::{Arm, Finding, MAX_ARMS, SUMS, State, Trial, second};
use crate::units::statistics;

/// Percent by which another way must be faster than the MPI, which stays otherwise: the MPI is what
/// the program knows.
const WORTH_PERCENT: u128 = 2;
/// Percent by which a way must be faster than one that the rules put before it, which stays
/// otherwise: ranks that have their data early make up for the last one in the mean, as in chains.
const ORDER_PERCENT: u128 = 5;
/// Percent of all calls' time that another trial may cost.
const AGAIN_PERCENT: u128 = 2;
/// The first call of a size at which a decision may be looked at again.
const AGAIN_AT_LEAST: u64 = 256;

impl Trial {
    /// Draws the conclusion from the sums of a trial that runs. Returns what was found, if it is
    /// over.
    pub(super) fn judge(&mut self, sums: &[u64; SUMS], timed_ranks: u32) -> Option<Finding> {
        let State::Running(running) = &mut self.state else { return None };
        running.is_due = false;
        let rounds = running.rounds();
        let of = |arm: Arm| Times::new(&sums[usize::from(arm) * COLUMNS + 1..][..rounds]);
        for arm in &running.arms {
            self.medians[usize::from(*arm)] = of(*arm).median;
        }
        self.account(sums);
        let State::Running(running) = &mut self.state else { return None };
        if running.is_alone() {
            let set_up_nanos = running.bound.map_or(0, |bound| bound.set_up_nanos);
            running.let_all_begin();
            self.budget.rounds = 0;
            self.wait_for(set_up_nanos.saturating_mul(timed_ranks.into()));
            return None;
        }
        let best = |arms: &[Arm]| arms.iter().copied().min_by_key(|arm| of(*arm).median).unwrap_or(0);
        let fastest = of(best(&running.arms));
        // Few times that lie apart may do so by chance.
        let margin_percent = match rounds {
            ..2 => 200,
            2..4 => 100,
            4..8 => 10,
            _ => 0,
        };
        running.arms.retain(|arm| {
            let least = if *arm == running.mpi { WORTH_PERCENT } else { ORDER_PERCENT };
            let margin = margin_percent.max(least);
            u128::from(of(*arm).low) * 100 <= u128::from(fastest.high) * (100 + margin)
        });
        if running.goes_on(fastest.median / u64::from(timed_ranks.max(1))) {
            if running.bound.is_some() {
                self.wait_for(0);
            }
            return None;
        }
        let fastest = u128::from(of(best(&running.arms)).median);
        let is_near = |arm: &&Arm| u128::from(of(**arm).median) * 100 <= fastest * (100 + ORDER_PERCENT);
        let mut arm = running
            .arms
            .iter()
            .filter(|arm| **arm != running.mpi)
            .find(is_near)
            .copied()
            .unwrap_or(running.mpi);
        let of_mpi = u128::from(of(running.mpi).median) * 100;
        if running.arms.contains(&running.mpi) && of_mpi <= u128::from(of(arm).median) * (100 + WORTH_PERCENT)
        {
            arm = running.mpi;
        }
        self.watch = self.watch.again(arm);
        self.state = State::Settled(arm, again(self.calls, arm, &self.medians));
        self.second = second::second(arm, &self.medians);
        self.verdicts = self.verdicts.saturating_add(1);
        let nanos = self.medians.map(|sum| sum / u64::from(timed_ranks.max(1)));
        Some(Finding { of: self.of, arm, nanos })
    }

    /// Accounts for the calls until now, where the cost is bounded.
    fn account(&mut self, sums: &[u64; SUMS]) {
        let State::Running(running) = &self.state else { return };
        let Some(bound) = running.bound else { return };
        let others = running.arms.iter().filter(|arm| **arm != bound.incumbent);
        let columns = self.budget.rounds..=running.rounds();
        let times = others.flat_map(|arm| {
            let times = &sums[usize::from(*arm) * COLUMNS..][..COLUMNS];
            columns
                .clone()
                .flat_map(|column| std::iter::repeat_n(times[column], running.calls_told_by(column)))
        });
        self.budget.add(self.calls, self.medians[usize::from(bound.incumbent)], times, sums[SUMS - 1]);
        self.budget.rounds = running.rounds() + 1;
    }

    /// Lets a trial whose cost is bounded wait until the rounds up to its next judgement can be
    /// afforded, beside what is set up for them.
    fn wait_for(&mut self, set_up: u64) {
        let State::Running(running) = &self.state else { return };
        let Some(bound) = running.bound else { return };
        // The round for warming up, too.
        let rounds = running.judged_next() - running.rounds() + usize::from(running.round == 0);
        let others = running.arms.iter().filter(|arm| **arm != bound.incumbent);
        let each = others.map(|arm| self.budget.expected(rounds, self.medians[usize::from(*arm)]));
        let until = self.budget.affords(each.fold(set_up, u64::saturating_add));
        if until > self.calls + 1 {
            self.state = State::Waiting(running.clone(), until);
        }
    }
}

impl Running {
    /// The number of calls for which a way's time of a round stands: of two in a row one is timed.
    fn calls_told_by(&self, round: usize) -> usize {
        if self.is_paired && round > JUDGED_AFTER[0] { 2 } else { 1 }
    }
}

impl Finding {
    /// The call of its size at which a decision is looked at again for the first time, for ways
    /// that were measured apart from the program's calls.
    pub fn first_look(&self) -> u64 {
        again(0, self.arm, &self.nanos)
    }
}

/// The call of its size at which a decision is looked at again: a power of two, at which what the
/// slower ways cost is little of what the calls took until then.
pub(super) fn again(calls: u64, arm: Arm, medians: &[u64; MAX_ARMS]) -> u64 {
    let mine = u128::from(medians[usize::from(arm)].max(1));
    let others = medians.iter().filter(|median| **median > 0);
    let beyond: u128 = others.map(|median| u128::from(*median).saturating_sub(mine)).sum();
    let in_calls = beyond * (1 + JUDGED_AFTER[0] as u128) / mine;
    let affordable = u64::try_from(in_calls * 100 / AGAIN_PERCENT).unwrap_or(u64::MAX);
    let at_least = AGAIN_AT_LEAST.max(calls.saturating_mul(2)).max(affordable);
    at_least.checked_next_power_of_two().unwrap_or(u64::MAX)
}

/// Times of one way.
struct Times {
    low: u64,
    median: u64,
    high: u64,
}

impl Times {
    /// The median and an interval around it that holds the true one with 90 %; of few times all.
    fn new(times: &[u64]) -> Times {
        let mut times = times.to_vec();
        times.sort_unstable();
        let median = statistics::sample_at(&times, 0.5).unwrap_or(0);
        let (first, last) = statistics::interval_positions(times.len(), 0.9).unwrap_or((1, times.len()));
        Times { low: times[first - 1], median, high: times[last - 1] }
    }
}
