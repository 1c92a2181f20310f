use std::ops::RangeInclusive;

use super::left::Left;
use super::prediction::Best;
use super::trials::{MAX_ARMS, Sameness};
use super::{Call, Capabilities, Choice, Collective, CommunicatorShape, Epoch, Prediction, Property, Range};
use super::{Rule, Table};
use crate::units::Bytes;

/// What decides about the calls on a communicator, from first to last.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Each serves every call of its collective, where the communicator has what it needs.
    forced: &'a [(Collective, Choice)],
    /// The user's, if there is one, and the one that polycast comes with.
    tables: (Option<&'a Table>, &'a Table),
    prediction: Option<&'a Prediction>,
}

impl<'a> Rules<'a> {
    /// What the user wants: what is `forced` for a collective asks no table of the `user`, and the shipped one where it cannot be
    /// had. Predictions do not overrule the user's table.
    pub fn new(
        forced: &'a [(Collective, Choice)],
        user: Option<&'a Table>,
        shipped: &'a Table,
        prediction: Option<&'a Prediction>,
    ) -> Rules<'a> {
        Rules { forced, tables: (user, shipped), prediction }
    }

    /// What the user wants for all calls of a collective.
    pub fn forced(&self, collective: Collective) -> Option<Choice> {
        self.forced.iter().find(|(of, _)| *of == collective).map(|(_, choice)| *choice)
    }

    fn user(&self, collective: Collective) -> Option<&'a Table> {
        self.tables.0.filter(|_| self.forced(collective).is_none())
    }

    /// The table that decides about the calls of a collective for which nothing is forced, or where that cannot be had.
    pub fn table(&self, collective: Collective) -> &'a Table {
        self.user(collective).unwrap_or(self.tables.1)
    }

    /// What chooses among trees in the table's place. The rules for stock and multicast stand: predictions know of neither, and of
    /// one collective only.
    pub fn prediction(&self, collective: Collective) -> Option<&'a Prediction> {
        self.prediction.filter(|_| collective == Prediction::COLLECTIVE && self.user(collective).is_none())
    }
}

/// What serves a call, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What serves it.
    pub choice: Choice,
    /// Who decided so.
    pub by: By,
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// The user, for all calls.
    Forced,
    /// The rule at this place of the table, from 0.
    Rule(usize),
    /// The predicted times, in place of the rule that would have decided, if there is one.
    Prediction(Option<usize>),
    /// Nobody: no rule is for it, so stock serves.
    Nobody,
}

/// What serves the calls on one communicator, prepared so that each is decided in nanoseconds.
///
/// What the communicator's shape decides is decided once. What is left are the number of the call, its bytes, and what the
/// communicator turns out to have:
///
/// ```text
///  earlier calls ─▶ epoch     bytes ─▶  0        8192            65536                 2^64
///                    0                  ├─ stock ─┼─ binomial ────┼─ multicast-pull … ───┤
///                                       │         │  else stock   │  else chain          │
///                                       │         │               │  else stock          │
/// ```
/// Before anybody has asked the network, intervals in which rules about it may decide are marked.
/// # Invariants
/// 1. Each collective has an epoch, and the first begins with call 0; they begin later and later, on any network at the same calls.
/// 2. `first_bytes[0]` is 0, `first_bytes` rises strictly, and `intervals` is as long.
/// 3. No option needs all that one before it needs: it would never be taken. The last one needs nothing.
/// 4. `left` is what `stages` come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    left: [Left; Collective::ALL.len()],
    stages: [Box<[Stage]>; Collective::ALL.len()],
}

/// What holds in an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    first_call: u64,
    pub(super) first_bytes: Box<[u64]>,
    pub(super) intervals: Box<[Interval]>,
}

/// What holds for a range of sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    options: Box<[Decision]>,
    /// What trials compare beside them.
    runner_up: Option<Choice>,
    /// What the network is like may change the choice, and nobody has asked yet.
    asks: bool,
}

impl Interval {
    /// What serves calls of these sizes on a communicator that has this, or may have it.
    #[inline]
    pub fn choose(&self, there: Capabilities) -> &Decision {
        self.options.iter().find(|option| there.has(option.choice.needs())).unwrap_or(&Decision::STOCK)
    }

    /// The MPI serves them whatever the communicator has, and whatever the network is like.
    pub(super) fn is_left(&self) -> bool {
        !self.asks && self.options.iter().all(|option| option.choice == Choice::Stock)
    }

    /// Whether what the network is like may change who serves them, and nobody has asked.
    #[inline]
    pub fn may_change(&self, there: Capabilities) -> bool {
        self.asks && there.has(Capabilities::PRIVATE) && self.choose(there).by != By::Forced
    }
}

impl Decision {
    pub(super) const STOCK: Decision = Decision { choice: Choice::Stock, by: By::Nobody };
}

impl Policy {
    /// What `rules` come to on a communicator of this shape.
    pub fn new(rules: Rules<'_>, shape: CommunicatorShape) -> Policy {
        Policy::of_stages(Collective::ALL.map(|collective| {
            let (forced, table) = (rules.forced(collective), rules.table(collective));
            let forced = forced.filter(|choice| choice.suits(shape));
            let predicted = rules.prediction(collective).map(Prediction::best).unwrap_or_default();
            let relevant: Vec<Relevant> = relevant(table, collective, shape).collect();
            let first_calls = borders(relevant.iter().map(|rule| rule.calls)).into_iter();
            first_calls.map(|first| Stage::new(forced, &predicted, &relevant, first)).collect()
        }))
    }

    pub(super) fn of_stages(stages: [Box<[Stage]>; Collective::ALL.len()]) -> Policy {
        Policy { left: std::array::from_fn(|of| Left::of(&stages[of])), stages }
    }

    /// Which calls the MPI serves whatever the communicator has, however many there were before, and whatever the network is like. Sizes
    /// between may be left, too.
    pub fn left(&self, collective: Collective) -> Left {
        self.left[collective as usize]
    }

    /// Whether a call is one of [`Policy::left`].
    #[inline]
    pub fn leaves(&self, call: &Call) -> bool {
        self.left(call.collective).has(call.bytes.0)
    }

    /// What serves a call on a communicator that has this, or may have it. Does not allocate. An epoch that the collective does not
    /// have is taken for its last.
    #[inline]
    pub fn choose(&self, call: &Call, there: Capabilities, epoch: Epoch) -> &Decision {
        self.for_sizes_of(call, epoch).choose(there)
    }

    /// What holds for calls of such a size.
    #[inline]
    pub fn for_sizes_of(&self, call: &Call, epoch: Epoch) -> &Interval {
        &self.stage(call.collective, epoch).intervals[self.interval(call, epoch)]
    }

    /// In which interval of sizes a call lies, from 0.
    #[inline]
    pub fn interval(&self, call: &Call, epoch: Epoch) -> usize {
        let stage = self.stage(call.collective, epoch);
        stage.first_bytes.partition_point(|first| *first <= call.bytes.0) - 1
    }

    /// Sizes that are in the same interval as a call's, and in the same trials.
    pub fn sizes_alike(&self, call: &Call, epoch: Epoch) -> RangeInclusive<u64> {
        let first_bytes = &self.stage(call.collective, epoch).first_bytes;
        let interval = self.interval(call, epoch);
        let last = first_bytes.get(interval + 1).map_or(u64::MAX, |next| next - 1);
        let (first, digits) = (first_bytes[interval], Sameness::sizes_alike(call.bytes.0));
        first.max(*digits.start())..=last.min(*digits.end())
    }

    /// What trials compare of these: the best first, stock last, and before it the rule's next best or the runner-up of a close prediction.
    pub fn ways_of(
        &self,
        collective: Collective,
        interval: usize,
        there: Capabilities,
        epoch: Epoch,
    ) -> impl Iterator<Item = Choice> {
        let Interval { options, runner_up, .. } = &self.stage(collective, epoch).intervals[interval];
        let served = options.iter().map(|option| option.choice).filter(|choice| *choice != Choice::Stock);
        let there = served.chain(*runner_up).filter(move |choice| there.has(choice.needs()));
        there.take(MAX_ARMS - 1).chain([Choice::Stock])
    }

    /// How many intervals of sizes there are.
    pub(super) fn intervals(&self, collective: Collective, epoch: Epoch) -> usize {
        self.stage(collective, epoch).intervals.len()
    }

    #[inline]
    fn stage(&self, collective: Collective, epoch: Epoch) -> &Stage {
        let stages = &self.stages[collective as usize];
        &stages[epoch.0.min(stages.len() - 1)]
    }

    /// Whether the network has to be asked for some call.
    pub fn asks(&self) -> bool {
        self.stages.iter().flatten().any(|stage| stage.intervals.iter().any(|interval| interval.asks))
    }

    /// Whether it has to be asked before this call, because what it is like may change who serves it; or now at the latest, because
    /// something else than the MPI serves it.
    pub fn asks_before(&self, call: &Call, there: Capabilities, epoch: Epoch) -> bool {
        let interval = self.for_sizes_of(call, epoch);
        interval.may_change(there) || (interval.choose(there).choice != Choice::Stock && self.asks())
    }

    /// What serves which sizes: the first size of each interval, rising from 0, and its choice.
    pub fn sizes(&self, collective: Collective, there: Capabilities, epoch: Epoch) -> Vec<(Bytes, Choice)> {
        let stage = self.stage(collective, epoch);
        let choice = |first: &u64| {
            let call = Call { collective, bytes: Bytes(*first) };
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

    /// The epoch of a call that so many calls of its collective come before.
    pub fn epoch(&self, collective: Collective, earlier_calls: u64) -> Epoch {
        let stages = &self.stages[collective as usize];
        Epoch(stages.partition_point(|stage| stage.first_call <= earlier_calls) - 1)
    }

    /// How many calls come before an epoch, if there is such a one.
    pub(super) fn first_call(&self, collective: Collective, epoch: Epoch) -> Option<u64> {
        self.stages[collective as usize].get(epoch.0).map(|stage| stage.first_call)
    }
}

/// A rule that may decide about calls on communicators of a shape: for these sizes, after so many earlier calls.
struct Relevant {
    index: usize,
    choice: Choice,
    next: Option<Choice>,
    bytes: Range,
    calls: Range,
    /// On the network, as far as that is known.
    holds: bool,
    /// It is about the network, and nobody has asked.
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
        let mut relevant = Relevant { index, choice, next, bytes, calls, holds: true, is_open: false };
        let any_call = Call { collective, bytes: Bytes(0) };
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

/// Where ranges begin and end: between two of these values none does, so the lower one stands for all up to the next.
pub(super) fn borders(ranges: impl Iterator<Item = Range>) -> Vec<u64> {
    let ends = ranges.flat_map(|range| [Some(range.first()), range.last().checked_add(1)]);
    let mut borders: Vec<u64> = ends.flatten().chain([0]).collect();
    borders.sort_unstable();
    borders.dedup();
    borders
}

impl Stage {
    /// `predicted` are the best trees.
    fn new(forced: Option<Choice>, predicted: &[Best], relevant: &[Relevant], first_call: u64) -> Stage {
        let relevant: Vec<&Relevant> =
            relevant.iter().filter(|rule| rule.calls.contains(first_call)).collect();
        let mut starts = borders(relevant.iter().map(|rule| rule.bytes));
        starts.extend(predicted.iter().map(|best| best.first.0));
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
            (first, Interval { options, runner_up, asks: asks(by_rule()) })
        };
        let mut intervals: Vec<(u64, Interval)> = starts.into_iter().map(of).collect();
        intervals.dedup_by(|later, earlier| later.1 == earlier.1);
        let (first_bytes, intervals): (Vec<u64>, Vec<_>) = intervals.into_iter().unzip();
        Stage { first_call, first_bytes: first_bytes.into(), intervals: intervals.into() }
    }
}

/// Whether the network may change what the rules for a size come to. One that may hold decides nothing behind one that does, and what
/// only the MPI can serve needs no asking.
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

/// What may serve a size, the best first: forced, by the rules for this size in their order, predicted in place of trees, stock.
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
        (choice, _) => Decision { choice, by: By::Rule(rule.index) },
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
