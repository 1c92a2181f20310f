//! The ways that trials compare for a call.

use super::super::challengers::{Challenger, challengers};
use super::super::trials::{MAX_ARMS, Sameness};
use super::super::{Call, Capabilities, Choice, Epoch};
use super::{Interval, Policy};

impl Interval {
    /// True if the MPI serves calls of these sizes, and other ways are compared with it.
    #[inline]
    pub fn is_challenged(&self, there: Capabilities) -> bool {
        self.is_challenged && there.has(Capabilities::PRIVATE) && self.choose(there).choice == Choice::Stock
    }

    /// True if the same ways are compared in both.
    fn is_like(&self, other: &Interval, there: Capabilities) -> bool {
        self.options == other.options
            && self.runner_up == other.runner_up
            && self.is_challenged(there) == other.is_challenged(there)
    }
}

impl Policy {
    /// The key of the calls that are compared with one: the first epoch in which the same ways are
    /// compared, with its interval.
    pub fn sameness(&self, call: &Call, there: Capabilities, epoch: Epoch) -> Sameness {
        let mine = self.for_sizes_of(call, epoch);
        let is_like = |before: &usize| self.for_sizes_of(call, Epoch(*before)).is_like(mine, there);
        let first = Epoch((0..epoch.0).rev().take_while(is_like).last().unwrap_or(epoch.0));
        Sameness {
            collective: call.collective,
            epoch: first,
            interval: self.interval(call, first) as u16,
            digits: Sameness::digits_of(call.bytes.0),
            there,
        }
    }

    /// True if the MPI serves such calls, and other ways are compared with it.
    pub fn is_challenged(&self, of: Sameness) -> bool {
        let stage = self.stage_of(of.collective, of.epoch);
        stage.intervals.get(usize::from(of.interval)).is_some_and(|interval| interval.is_challenged(of.there))
    }

    /// The challengers of such calls, the one that is predicted to be fastest first. Takes some tens
    /// of microseconds where there are some.
    pub fn challengers(&self, of: Sameness) -> Vec<Challenger> {
        match self.is_challenged(of) {
            true => challengers(of.collective, self.shape(), of.first_bytes().max(1), of.there),
            false => Vec::new(),
        }
    }

    /// The choices that trials compare for such calls: the best first, stock last, and before it
    /// the rule's next best, the runner-up of a close prediction, or challengers. Stock alone, if
    /// the rules know no such calls.
    pub fn ways_of(&self, of: Sameness) -> impl Iterator<Item = Choice> {
        let stage = self.stage_of(of.collective, of.epoch);
        let interval = stage.intervals.get(usize::from(of.interval));
        let there = move |choice: &Choice| of.there.has(choice.needs());
        let served = interval.into_iter().flat_map(|interval| {
            interval.options.iter().map(|option| option.choice).chain(interval.runner_up)
        });
        let served = served.filter(move |choice| *choice != Choice::Stock && there(choice));
        let challengers = self.challengers(of).into_iter().map(|one| one.choice);
        served.chain(challengers).take(MAX_ARMS - 1).chain([Choice::Stock])
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{CommunicatorShape, Rules};
    use super::super::tests::{BROADCAST, call, shape, table};
    use super::*;

    /// What the rules leave to the MPI has challengers after some calls, but not what the user
    /// says.
    #[test]
    fn what_is_left_to_the_mpi_has_challengers() {
        let table = table(&[("bytes = \"1MiB..\"", "chain")]);
        let challenged = |rules: Rules<'_>, shape: CommunicatorShape, bytes, earlier_calls| {
            let policy = Policy::new(rules.with_challengers(true), shape);
            let of = policy.sameness(&call(bytes), Capabilities::ALL, policy.epoch(BROADCAST, earlier_calls));
            let is_left = policy.choose(&call(bytes), Capabilities::ALL, of.epoch).choice == Choice::Stock;
            assert_eq!(policy.is_challenged(of), policy.ways_of(of).count() > 1 && is_left);
            assert_eq!(policy.ways_of(of).last(), Some(Choice::Stock));
            policy.is_challenged(of)
        };
        let shipped = Rules::new(&[], None, &table, None);
        assert!(challenged(shipped, shape(4), 64, 256) && !challenged(shipped, shape(4), 64, 255));
        assert!(challenged(shipped, shape(4), 8 << 10, 32) && !challenged(shipped, shape(4), 8 << 10, 31));
        assert!(!challenged(shipped, shape(4), 1 << 20, 1000), "a rule serves it");
        assert!(!challenged(shipped, shape(2), 64, 1000), "two ranks send a message");
        assert!(challenged(shipped, CommunicatorShape::new(2, 1, None).unwrap(), 64, 1000));
        assert!(
            !challenged(Rules::new(&[], Some(&table), &table, None), shape(4), 64, 1000),
            "the user's table"
        );
        let forced = [(BROADCAST, Choice::Stock)];
        assert!(!challenged(Rules::new(&forced, None, &table, None), shape(4), 64, 1000));
        let policy = Policy::new(shipped.with_challengers(true), shape(4));
        assert!(policy.asks() && !policy.leaves(&call(64)), "rate and latency tell which they are");
    }

    /// Calls that are compared alike are not compared again because there is a rule or a challenger
    /// for others from then on.
    #[test]
    fn a_new_epoch_is_none_for_calls_that_it_does_not_change() {
        let table = table(&[
            ("bytes = \"..64\"\nearlier_calls = \"100..\"", "flat"),
            ("bytes = \"1KiB..\"\nearlier_calls = \"10..\"", "chain"),
        ]);
        let policy = Policy::new(Rules::new(&[], None, &table, None).with_challengers(true), shape(4));
        let epoch = |bytes, earlier_calls| {
            let of = policy.sameness(&call(bytes), Capabilities::ALL, policy.epoch(BROADCAST, earlier_calls));
            of.epoch
        };
        let first = |earlier_calls| policy.epoch(BROADCAST, earlier_calls);
        assert_eq!(
            [9, 10, 32, 100, 256, 999].map(|calls| epoch(2048, calls)),
            [first(0), first(10), first(10), first(10), first(10), first(10)]
        );
        assert_eq!(
            [0, 99, 100, 256].map(|calls| epoch(8, calls)),
            [first(0), first(0), first(100), first(100)]
        );
        assert_eq!(
            [0, 100, 256, 999].map(|calls| epoch(256, calls)),
            [first(0), first(0), first(256), first(256)]
        );
    }
}
