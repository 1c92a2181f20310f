//! What trials of challengers have cost, and when more of them can be afforded.
//!
//! ```text
//!  calls   ──── alone ──┬── wait ──┬─ a round ─┬───────── wait ─────────┬─ rounds ─ …
//!  time so far          t          │           │                        │
//!  cost so far                     0           c > 2 % of t             c ≤ 2 % of t again, and of what the next rounds will cost
//! ```
//! # Invariant
//! When a round begins in which other ways than the incumbent have calls, what such calls took
//! longer than the incumbent's in all rounds before, with what was set up for them, is no more than
//! [`COST_PERCENT`] of the time of all calls until then, as far as the incumbent's calls that
//! nobody timed took as long as those that were timed.

/// Percent of the time of all such calls until then that trials may have cost.
pub(super) const COST_PERCENT: u64 = 2;
/// Percent of the incumbent's time by which a call of a way of which nothing is known is taken to
/// be longer. Ways that are predicted to be the fastest are faster as often as not.
const ASSUMED_PERCENT: u64 = 25;

/// Times in nanoseconds, added up over the ranks that time calls.
#[derive(Clone, Debug, Default)]
pub(super) struct TrialBudget {
    /// The time by which calls of other ways took longer than the incumbent's; negative if they took
    /// less.
    cost: i128,
    /// The time of all calls that are accounted for, as the incumbent would have taken it.
    time: u128,
    /// The number of these calls.
    calls: u64,
    /// The incumbent's median, when it was known last.
    usual: u64,
    /// Rounds whose calls are in `cost`, with the one for warming up.
    pub rounds: usize,
}

impl TrialBudget {
    /// Accounts for all calls until call `calls`, among them those of other ways that have not been
    /// accounted for, and for what was set up.
    pub fn add(&mut self, calls: u64, usual: u64, others: impl Iterator<Item = u64>, set_up: u64) {
        let least = if self.usual == 0 { usual } else { usual.min(self.usual) };
        self.time += u128::from(calls.saturating_sub(self.calls)) * u128::from(least);
        (self.calls, self.usual) = (calls, usual);
        self.cost += others.map(|nanos| i128::from(nanos) - i128::from(usual)).sum::<i128>();
        self.cost += i128::from(set_up);
    }

    /// The cost of `calls` calls of a way that takes `nanos`, 0 where that is not known.
    pub fn expected(&self, calls: usize, nanos: u64) -> u64 {
        let more = match nanos {
            0 => self.usual / 100 * ASSUMED_PERCENT,
            known => known.saturating_sub(self.usual),
        };
        more.saturating_mul(calls as u64)
    }

    /// The call before which more that costs so much can be afforded.
    pub fn affords(&self, expected: u64) -> u64 {
        let needed = (self.cost + i128::from(expected)).max(0) * 100 / i128::from(COST_PERCENT);
        let missing = u128::try_from(needed).unwrap_or(0).saturating_sub(self.time);
        let calls = missing.div_ceil(u128::from(self.usual.max(1)));
        self.calls.saturating_add(u64::try_from(calls).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_slow_is_waited_for() {
        let mut budget = TrialBudget { calls: 100, ..TrialBudget::default() };
        budget.add(105, 1000, std::iter::empty(), 0);
        assert_eq!(budget.affords(0), 105);
        // Two calls of a way of which nothing is known.
        assert_eq!(budget.affords(budget.expected(2, 0)), 105 + 20);
        budget.add(130, 1000, [3000, 2000].into_iter(), 0);
        assert_eq!(budget.affords(0), 130 + 120, "3 calls more in 150, of which 30 are over");
        budget.add(130, 1000, [100].into_iter(), 0);
        assert_eq!(budget.affords(0), 130 + 75, "what was faster is gained");
        budget.add(130, 1000, std::iter::empty(), 1000);
        assert_eq!(budget.affords(budget.expected(1, 1500)), 130 + 150);
    }

    #[test]
    fn calls_that_became_slower_meanwhile_count_as_they_were() {
        let mut budget = TrialBudget::default();
        budget.add(10, 1000, std::iter::empty(), 0);
        budget.add(20, 9000, std::iter::empty(), 0);
        assert_eq!(budget.affords(400), 20, "20 calls of 1 µs");
        assert_eq!(budget.affords(400 + 180), 21);
    }
}
