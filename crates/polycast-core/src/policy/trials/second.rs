//! A communicator that loses what the way that stays needs goes on with the fastest of the others, as it was measured then.
//!
//! ```text
//!  with multicast      multicast stays, the chain was second           multicast stays
//!  without             ·········· multicast dies ──▶ the chain stays, until call 2^k ────▶ compared
//! ```
//! Otherwise the ways that are left would be compared as if nothing were known of them, just when calls take longest.

use super::memory::ways;
use super::{Arm, MAX_ARMS, Sameness, State, Trial, Trials, again};
use crate::policy::Policy;

/// The fastest way but for the one that stays, and until which call it would stay; the medians are 0 where nothing is known.
pub(super) fn second(stays: Arm, medians: &[u64; MAX_ARMS]) -> Option<(Arm, u64)> {
    let others = (0..MAX_ARMS as Arm).filter(|arm| *arm != stays && medians[usize::from(*arm)] > 0);
    let second = others.min_by_key(|arm| medians[usize::from(*arm)])?;
    Some((second, again(0, second, medians)))
}

impl Trials {
    /// Takes over what is known of such calls with more capabilities, if nothing is known of them
    /// with these: the way that stays, or the second, whichever is among the ways that are left. To
    /// be called before [`Trials::next`].
    pub fn take_over(&mut self, policy: &Policy, of: Sameness) {
        if self.is_over || of.is_tuned() || self.trials.iter().any(|known| known.of == of) {
            return;
        }
        let mine = ways(policy, of);
        let settled = |known: &Trial| {
            let State::Settled(arm, until) = known.state else { return None };
            if (Sameness { there: of.there, ..known.of }) != of || !known.of.there.has(of.there) {
                return None;
            }
            let theirs = ways(policy, known.of);
            let place = |arm: Arm| mine.iter().position(|way| theirs.get(usize::from(arm)) == Some(way));
            let (arm, until, calls) = match (place(arm), known.second) {
                (Some(arm), _) => (arm, until, known.calls),
                (None, Some((second, until))) => (place(second)?, until, 0),
                (None, None) => return None,
            };
            let state = State::Settled(arm as Arm, until);
            Some(Trial { calls, calls_elsewhere: calls, verdicts: 1, ..Trial::new(of, state) })
        };
        let taken_over = self.trials.iter().find_map(settled);
        self.trials.extend(taken_over);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ledger, Recalled, Turn};
    use super::*;
    use crate::policy::{Call, Capabilities, Choice, Collective, CommunicatorShape, Epoch, Rules, Table};
    use crate::units::Bytes;

    /// Multicast, a chain and the MPI, by which it is served where multicast is lost.
    fn policy() -> Policy {
        let rules = ["multicast-pull", "chain"]
            .map(|way| format!("[[rule]]\ncollective = \"bcast\"\nbytes = \"1KiB..\"\nuse = \"{way}\"\n"));
        let table = Table::parse(&format!("version = 1\n{}", rules.concat()), "a table").unwrap();
        let shape = CommunicatorShape::new(4, 4, None).unwrap();
        Policy::new(Rules::new(&[], Some(&table), &Table::shipped(), None), shape)
    }

    fn of(policy: &Policy, there: Capabilities) -> Sameness {
        let call = Call::new(Collective::Broadcast, Bytes(9000));
        let interval = policy.interval(&call, Epoch::FIRST) as u16;
        Sameness { interval, ..Sameness { there, ..Sameness::tuned(call.collective, 9000, there) } }
    }

    /// A trial of these times: how many calls each way has without multicast, among so many.
    fn without_multicast(trials: &mut Trials, policy: &Policy, calls: usize) -> Vec<usize> {
        let of = of(policy, Capabilities::ALL.without(Capabilities::MULTICAST));
        let ways = ways(policy, of);
        assert_eq!(ways.len(), 2, "{ways:?}");
        let mut counts = vec![0; ways.len()];
        for _ in 0..calls {
            trials.take_over(policy, of);
            let (arm, _) = trials.next(of, ways.len(), None).way();
            counts[usize::from(arm)] += 1;
        }
        counts
    }

    fn compared(policy: &Policy, times: [u64; 3]) -> Trials {
        let of = of(policy, Capabilities::ALL);
        let mut trials = Trials::default();
        for _ in 0..100 {
            if let Some((_, sums)) = trials.due() {
                trials.judge(&sums, 1);
            }
            if let Turn::Tried(arm, Some(sample)) = trials.next(of, times.len(), None) {
                trials.took(sample, times[usize::from(arm)]);
            }
        }
        trials
    }

    #[test]
    fn the_second_serves_at_once_where_the_first_is_lost() {
        let policy = policy();
        let known = |times| compared(&policy, times);
        assert_eq!(without_multicast(&mut known([10, 50, 90]), &policy, 200), [200, 0]);
        assert_eq!(without_multicast(&mut known([10, 90, 50]), &policy, 200), [0, 200]);
        // What has stayed still does, and is looked at again when it would have been.
        assert_eq!(without_multicast(&mut known([90, 10, 50]), &policy, 150), [150, 0]);
        // It is compared in its turn.
        let counts = without_multicast(&mut known([10, 50, 90]), &policy, 600);
        assert!(counts[1] > 0, "{counts:?}");
        let new = without_multicast(&mut Trials::default(), &policy, 20);
        assert!(new[1] > 1, "nothing is known: {new:?}");
    }

    /// On another communicator, and of an earlier job.
    #[test]
    fn the_second_is_told() {
        let policy = policy();
        let mut ledger = Ledger::default();
        ledger.learn(&mut compared(&policy, [10, 90, 50]));
        let mut told = Ledger::default().resumed(&ledger.words_for_others());
        assert_eq!(without_multicast(&mut told, &policy, 100), [0, 100]);
        let of = of(&policy, Capabilities::ALL);
        let ways: Vec<Choice> = ways(&policy, of);
        let times = ways.into_iter().zip([10, 50, 90]).collect();
        let mut earlier = Ledger::default();
        earlier.remember(&Recalled { of, times, arm: 0, until_calls: 512 });
        let mut told = Ledger::default().resumed(&earlier.words_for_others());
        assert_eq!(without_multicast(&mut told, &policy, 100), [100, 0]);
    }
}
