mod stage_of_sums;
mod ways;

use std::ops::RangeInclusive;

use super::challengers::{self, ChallengedSizes};
use super::prediction::Best;
use super::sums::WaysOfSums;
use super::to_stock::ToStock;
use super::trials::Sameness;
use super::{Call, Capabilities, Choice, Collective, CommunicatorShape, Epoch, Prediction, Property, Range};
use super::{Rule, Rules, ServedSums, Table};
use crate::units::Bytes;

/// The choice for a call, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The way to serve the call.
    pub choice: Choice,
    /// The source of the decision.
    pub by: By,
}

/// The source of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// The user, for all calls.
    Forced,
    /// The rule at this place of the table, from 0.
    Rule(usize),
    /// The predicted times, in place of the rule that would have decided, if there is one.
    Prediction(Option<usize>),
    /// The user, who leaves all sums to the MPI.
    Sums,
    /// The rule at this place of the [table for sums](Rules::table_of_sums).
    RuleOfSums(usize),
    /// No source: no rule is for the call, so stock serves.
    Nobody,
}

impl By {
    /// True if the user has decided about all calls of this kind: nothing is compared.
    pub fn is_users(self) -> bool {
        matches!(self, By::Forced | By::Sums)
    }
}

/// The choices for all calls on one communicator, prepared so that each call is decided in
/// nanoseconds.
///
/// The communicator's shape is looked at once. What is left to look at are the number of the call,
/// its bytes, and what the communicator turns out to have:
///
/// ```text
///  earlier calls ─▶ epoch     bytes ─▶  0        8192            65536                 2^64
///                    0                  ├─ stock ─┼─ binomial ────┼─ multicast-pull … ───┤
///                                       │         │  else stock   │  else chain          │
///                                       │         │               │  else stock          │
/// ```
/// Before the network has been measured, intervals in which rules about it may decide are marked.
/// # Invariants
/// 1. Each collective has an epoch, and the first begins with call 0; they begin later and later, on any network at the same calls.
/// 2. `first_bytes[0]` is 0, `first_bytes` rises strictly, and `intervals` is as long.
/// 3. No option needs all that one before it needs: it would never be taken. The last one needs nothing.
/// 4. `to_stock` is what `stages` and `sums` come to.
/// 5. Sums have one stage: no call number changes who serves them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    to_stock: [ToStock; Collective::ALL.len()],
    stages: [Box<[Stage]>; Collective::ALL.len()],
    /// The stage of sums, for reductions to one rank and to all.
    sums: [Stage; 2],
    ways_of_sums: WaysOfSums,
}

/// The intervals of sizes in an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    first_call: u64,
    pub(super) first_bytes: Box<[u64]>,
    pub(super) intervals: Box<[Interval]>,
}

/// The decisions for a range of sizes, the best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    options: Box<[Decision]>,
    /// A choice that trials compare beside the options.
    runner_up: Option<Choice>,
    /// True if the network may change the choice, and has not been measured yet.
    asks: bool,
    /// True if what goes to the MPI has challengers.
    is_challenged: bool,
}

impl Interval {
    /// The decision for calls of these sizes on a communicator that has the capabilities `there`,
    /// or may have them.
    #[inline]
    pub fn choose(&self, there: Capabilities) -> &Decision {
        self.options.iter().find(|option| there.has(option.choice.needs())).unwrap_or(&Decision::STOCK)
    }

    /// True if the MPI serves calls of these sizes whatever the communicator has, and whatever the
    /// network is like.
    pub(super) fn is_to_stock(&self) -> bool {
        !self.asks && !self.is_challenged && self.options.iter().all(|option| option.choice == Choice::Stock)
    }

    /// True if the network may change who serves calls of these sizes, and has not been measured
    /// yet.
    #[inline]
    pub fn may_change(&self, there: Capabilities) -> bool {
        self.asks && there.has(Capabilities::PRIVATE) && self.choose(there).by != By::Forced
    }
}

impl Decision {
    pub(super) const STOCK: Decision = Decision { choice: Choice::Stock, by: By::Nobody };
}

impl Policy {
    /// Builds the policy that `rules` come to on a communicator of this shape.
    pub fn new(rules: Rules<'_>, shape: CommunicatorShape) -> Policy {
        let stages = Collective::ALL.map(|collective| {
            let (forced, table) = (rules.forced(collective), rules.table(collective));
            let forced = forced.filter(|choice| choice.suits(shape));
            let predicted = rules.prediction(collective).map(Prediction::best).unwrap_or_default();
            let relevant: Vec<Relevant> = relevant(table, collective, shape).collect();
            let challenged =
                rules.challenges(collective) && challengers::are_challenged(shape.ranks, shape.nodes);
            let challenged: &[ChallengedSizes] = if challenged { &challengers::CHALLENGED } else { &[] };
            let of_challengers = challenged.iter().map(|sizes| Range::from_to(sizes.first_call, u64::MAX));
            let first_calls = borders(relevant.iter().map(|rule| rule.calls).chain(of_challengers));
            let stage = |first| Stage::new(forced, &predicted, &relevant, challenged, first);
            first_calls.into_iter().map(stage).collect()
        });
        let ways = WaysOfSums::new(rules.sums(), shape);
        let sums = SUMMED.map(|collective| Stage::of_sums(rules, collective, shape, ways));
        Policy::of_stages(stages, sums, ways)
    }

    pub(super) fn of_stages(
        stages: [Box<[Stage]>; Collective::ALL.len()],
        sums: [Stage; 2],
        ways_of_sums: WaysOfSums,
    ) -> Policy {
        let to_stock = std::array::from_fn(|of| {
            let of_sums = SUMMED.iter().zip(&sums).filter(|(summed, _)| **summed as usize == of);
            ToStock::of(stages[of].iter().chain(of_sums.map(|(_, stage)| stage)))
        });
        Policy { to_stock, stages, sums, ways_of_sums }
    }

    /// The shape of the communicator.
    pub fn shape(&self) -> CommunicatorShape {
        self.ways_of_sums.shape
    }

    /// The sums that are served.
    pub fn served_sums(&self) -> ServedSums {
        self.ways_of_sums.served
    }

    /// True if a call may go this way where nobody forces one: not all ways are for sums.
    pub(super) fn may_go(&self, call: &Call, choice: Choice) -> bool {
        !call.is_sum || self.ways_of_sums.has(choice)
    }

    /// The choice for a call whose contributions have to be combined in the order of ranks.
    pub(super) fn in_order(&self, choice: Choice) -> Choice {
        self.ways_of_sums.in_order(choice)
    }

    /// The sizes of calls that the MPI serves whatever the communicator has, however many calls
    /// there were before, and whatever the network is like. Sizes between them may be left, too.
    pub fn to_stock(&self, collective: Collective) -> ToStock {
        self.to_stock[collective as usize]
    }

    /// Whether a call is one of [`Policy::to_stock`].
    #[inline]
    pub fn leaves(&self, call: &Call) -> bool {
        self.to_stock(call.collective).has(call.bytes.0)
    }

    /// The decision for a call on a communicator that has the capabilities `there`, or may have
    /// them. Does not allocate. An epoch that the collective does not have is taken for its last.
    #[inline]
    pub fn choose(&self, call: &Call, there: Capabilities, epoch: Epoch) -> &Decision {
        self.for_sizes_of(call, epoch).choose(there)
    }

    /// The interval of sizes that a call lies in, with its decisions.
    #[inline]
    pub fn for_sizes_of(&self, call: &Call, epoch: Epoch) -> &Interval {
        &self.stage(call, epoch).intervals[self.interval(call, epoch)]
    }

    /// The number of the interval of sizes that a call lies in, from 0.
    #[inline]
    pub fn interval(&self, call: &Call, epoch: Epoch) -> usize {
        let stage = self.stage(call, epoch);
        stage.first_bytes.partition_point(|first| *first <= call.bytes.0) - 1
    }

    /// Sizes that are in the same interval as a call's, and in the same trials.
    pub fn sizes_alike(&self, call: &Call, epoch: Epoch) -> RangeInclusive<u64> {
        let first_bytes = &self.stage(call, epoch).first_bytes;
        let interval = self.interval(call, epoch);
        let last = first_bytes.get(interval + 1).map_or(u64::MAX, |next| next - 1);
        let (first, digits) = (first_bytes[interval], Sameness::sizes_alike(call.bytes.0));
        first.max(*digits.start())..=last.min(*digits.end())
    }

    /// The number of intervals of sizes.
    pub(super) fn intervals(&self, collective: Collective, epoch: Epoch) -> usize {
        self.stage_of(collective, epoch).intervals.len()
    }

    #[inline]
    fn stage(&self, call: &Call, epoch: Epoch) -> &Stage {
        match call.is_sum {
            true => &self.sums[usize::from(call.collective == Collective::Allreduce)],
            false => self.stage_of(call.collective, epoch),
        }
    }

    /// The stage of calls that may be combined in any order.
    #[inline]
    fn stage_of(&self, collective: Collective, epoch: Epoch) -> &Stage {
        let stages = &self.stages[collective as usize];
        &stages[epoch.0.min(stages.len() - 1)]
    }

    /// Whether the network has to be measured for some call.
    pub fn asks(&self) -> bool {
        let is_unknown = self.shape().nodes > 1 && self.shape().network.is_none();
        let asks = |interval: &Interval| interval.asks || is_unknown && interval.is_challenged;
        self.stages.iter().flatten().chain(&self.sums).any(|stage| stage.intervals.iter().any(asks))
    }

    /// True if the network must be measured before this call: its measurement may change who serves
    /// the call, or something else than the MPI serves the call, which is the latest time to
    /// measure it for others.
    pub fn asks_before(&self, call: &Call, there: Capabilities, epoch: Epoch) -> bool {
        let interval = self.for_sizes_of(call, epoch);
        interval.may_change(there) || (interval.choose(there).choice != Choice::Stock && self.asks())
    }

    /// The choices by size for calls of this kind, whatever its size: the first size of each
    /// interval, rising from 0, and its choice.
    pub fn sizes(&self, kind: &Call, there: Capabilities, epoch: Epoch) -> Vec<(Bytes, Choice)> {
        let stage = self.stage(kind, epoch);
        let choice = |first: &u64| {
            let call = Call { bytes: Bytes(*first), ..*kind };
            (call.bytes, self.choose(&call, there, epoch).choice)
        };
        let mut sizes: Vec<(Bytes, Choice)> = stage.first_bytes.iter().map(choice).collect();
        sizes.dedup_by_key(|(_, choice)| *choice);
        sizes
    }

    /// The epochs of a collective, and how many calls come before each.
    pub fn epochs(&self, collective: Collective) -> impl Iterator<Item = (u64, Epoch)> {
        let stages = self.stages[collective as usize].iter().enumerate();
        stages.map(|(index, stage)| (stage.first_call, Epoch(index)))
    }

    /// The epoch of a call that `earlier_calls` calls of its collective come before.
    pub fn epoch(&self, collective: Collective, earlier_calls: u64) -> Epoch {
        let stages = &self.stages[collective as usize];
        Epoch(stages.partition_point(|stage| stage.first_call <= earlier_calls) - 1)
    }

    /// The number of calls that come before an epoch, if there is such a one.
    pub(super) fn first_call(&self, collective: Collective, epoch: Epoch) -> Option<u64> {
        self.stages[collective as usize].get(epoch.0).map(|stage| stage.first_call)
    }
}

/// The collectives that combine, in the order of [`Policy`]'s stages of sums.
const SUMMED: [Collective; 2] = [Collective::Reduce, Collective::Allreduce];

/// A rule that may decide about calls on communicators of a shape: for sizes in `bytes`, after a
/// number of earlier calls in `calls`.
struct Relevant {
    by: fn(usize) -> By,
    index: usize,
    choice: Choice,
    next: Option<Choice>,
    bytes: Range,
    calls: Range,
    /// True if the conditions about the network hold, as far as that is known.
    holds: bool,
    /// True if the rule is about the network, which has not been measured.
    is_open: bool,
}

fn relevant(
    table: &Table,
    collective: Collective,
    shape: CommunicatorShape,
) -> impl Iterator<Item = Relevant> {
    let of = move |(index, rule): (usize, &Rule)| {
        let (bytes, calls) = (Range::all(), Range::all());
        let (choice, next) = (rule.choice, rule.next.filter(|next| next.suits(shape)));
        let by = By::Rule;
        let mut relevant = Relevant { by, index, choice, next, bytes, calls, holds: true, is_open: false };
        let any_call = Call::new(collective, Bytes(0));
        for condition in &rule.conditions {
            let value = || condition.property.of(shape, &any_call, 0);
            let holds = || value().is_some_and(|value| condition.range.contains(value));
            match condition.property {
                Property::Bytes => relevant.bytes = condition.range,
                Property::EarlierCalls => relevant.calls = condition.range,
                property if property.is_of_network() => {
                    relevant.holds &= holds();
                    relevant.is_open |= shape.network.is_none();
                }
                _ if !holds() => return None,
                _ => {}
            }
        }
        Some(relevant)
    };
    let is_for = move |rule: &Rule| rule.collective == collective && rule.choice.suits(shape);
    table.rules().iter().enumerate().filter(move |(_, rule)| is_for(rule)).filter_map(of)
}

/// The values at which ranges begin, or at which they have ended, rising from 0: between two of
/// these values none does, so the lower one stands for all up to the next.
pub(super) fn borders(ranges: impl Iterator<Item = Range>) -> Vec<u64> {
    let ends = ranges.flat_map(|range| [Some(range.first()), range.last().checked_add(1)]);
    let mut borders: Vec<u64> = ends.flatten().chain([0]).collect();
    borders.sort_unstable();
    borders.dedup();
    borders
}

impl Stage {
    /// Builds the stage that begins with call `first_call`. `predicted` are the best trees,
    /// `challenged` the sizes that have challengers.
    fn new(
        forced: Option<Choice>,
        predicted: &[Best],
        relevant: &[Relevant],
        challenged: &[ChallengedSizes],
        first_call: u64,
    ) -> Stage {
        let challenged: Vec<&ChallengedSizes> =
            challenged.iter().filter(|sizes| sizes.first_call <= first_call).collect();
        let relevant: Vec<&Relevant> =
            relevant.iter().filter(|rule| rule.calls.contains(first_call)).collect();
        let mut starts = borders(relevant.iter().map(|rule| rule.bytes));
        starts.extend(predicted.iter().map(|best| best.first.0));
        starts.extend(challenged.iter().map(|sizes| sizes.first_bytes));
        starts.sort_unstable();
        starts.dedup();
        let of = |first: u64| -> (u64, Interval) {
            let after = predicted.partition_point(|best| best.first.0 <= first);
            let predicted = predicted[..after].last();
            let by_rule = || relevant.iter().copied().filter(|rule| rule.bytes.contains(first));
            let holding = by_rule().filter(|rule| rule.holds);
            let options = options(forced, holding, predicted.map(|best| best.choice));
            let is_predicted = options.iter().any(|option| matches!(option.by, By::Prediction(_)));
            let runner_up = match is_predicted {
                true => predicted.and_then(|best| best.runner_up),
                false => by_rule().find(|rule| rule.holds).and_then(|rule| rule.next),
            };
            let is_new = |choice: &Choice| options.iter().all(|option| option.choice != *choice);
            let runner_up = runner_up.filter(is_new);
            let is_challenged = challenged.iter().any(|sizes| sizes.first_bytes <= first);
            (first, Interval { options, runner_up, asks: asks(by_rule()), is_challenged })
        };
        let mut intervals: Vec<(u64, Interval)> = starts.into_iter().map(of).collect();
        intervals.dedup_by(|later, earlier| later.1 == earlier.1);
        let (first_bytes, intervals): (Vec<u64>, Vec<_>) = intervals.into_iter().unzip();
        Stage { first_call, first_bytes: first_bytes.into(), intervals: intervals.into() }
    }
}

/// Whether the network may change what the rules for a size come to. A rule that may hold decides
/// nothing behind one that does, and a size that only the MPI can serve needs no measurement.
fn asks<'a>(by_rule: impl Iterator<Item = &'a Relevant>) -> bool {
    let (mut is_open, mut may_serve) = (false, false);
    for rule in by_rule {
        is_open |= rule.is_open;
        may_serve |= (rule.holds || rule.is_open) && rule.choice != Choice::Stock;
        let may_be_lost = !Capabilities::PRIVATE.has(rule.choice.needs());
        if rule.holds && !rule.is_open && !may_be_lost {
            break;
        }
    }
    is_open && may_serve
}

/// The decisions for a size, the best first: forced, by the rules for this size in their order,
/// predicted in place of trees, stock.
fn options<'a>(
    forced: Option<Choice>,
    by_rule: impl Iterator<Item = &'a Relevant>,
    predicted: Option<Choice>,
) -> Box<[Decision]> {
    let forced = forced.map(|choice| Decision { choice, by: By::Forced });
    let by_rule = by_rule.map(|rule| match (rule.choice, predicted) {
        (Choice::Algorithm(table), Some(choice)) if table.entry.is_of_messages() => {
            Decision { choice, by: By::Prediction(Some(rule.index)) }
        }
        (choice, _) => Decision { choice, by: (rule.by)(rule.index) },
    });
    let predicted = predicted.map(|choice| Decision { choice, by: By::Prediction(None) });
    let all = forced.into_iter().chain(by_rule).chain(predicted).chain([Decision::STOCK]);
    let mut options: Vec<Decision> = Vec::new();
    for decision in all {
        let needs = decision.choice.needs();
        if !options.iter().any(|better| needs.has(better.choice.needs())) {
            options.push(decision);
        }
    }
    options.into()
}

#[cfg(test)]
mod tests;
