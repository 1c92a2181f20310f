//! The ways that trials compare for a call.

use std::sync::Arc;

use super::super::challengers::Challenger;
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
    /// The key of the calls that are compared with one: the first epoch in which the same ways are compared, with its interval.
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
        let stage = self.stage(of.collective, of.epoch);
        stage.intervals.get(usize::from(of.interval)).is_some_and(|interval| interval.is_challenged(of.there))
    }

    /// The challengers of such calls, the one that is predicted to be fastest first.
    pub fn challengers(&self, of: Sameness) -> Arc<[Challenger]> {
        match self.is_challenged(of) {
            true => self.predicted.get(self.shape, of),
            false => Arc::default(),
        }
    }

    /// The choices that trials compare for such calls: the best first, stock last, and before it the rule's next best, the runner-up
    /// of a close prediction, or challengers. Stock alone, if the rules know no such calls.
    pub fn ways_of(&self, of: Sameness) -> impl Iterator<Item = Choice> {
        let stage = self.stage(of.collective, of.epoch);
        let interval = stage.intervals.get(usize::from(of.interval));
        let there = move |choice: &Choice| of.there.has(choice.needs());
        let served = interval.into_iter().flat_map(|interval| {
            interval.options.iter().map(|option| option.choice).chain(interval.runner_up)
        });
        let served = served.filter(move |choice| *choice != Choice::Stock && there(choice));
        let challengers = self.challengers(of);
        let challengers = (0..challengers.len()).map(move |place| challengers[place].choice);
        served.chain(challengers).take(MAX_ARMS - 1).chain([Choice::Stock])
    }
}
