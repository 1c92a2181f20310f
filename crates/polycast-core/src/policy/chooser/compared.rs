//! The way to a choice among ways, the same for every call:
//!
//! ```text
//!  candidates    the ways that are open to such calls here: by the rules, with a close prediction's second, or as they were measured
//!  prior         which of them the rules and predictions put first
//!  trials        whose turn it is, or which one has won
//!  verdict       the way, why, and whether the call's time counts
//! ```

use std::ops::Deref;

use super::super::trials::{Arm, MAX_ARMS, Recalled, SUMS, Sameness, Sample, Sums, Trials, Turn};
use super::super::{Call, Capabilities, Choice, Collective, Decision, Epoch, Policy};
use super::words::{Request, TrialOutcome, Why};

/// Digits of the longest calls that MPIs send before anybody asks for them: up to 64 KiB over TCP.
const EAGER_DIGITS: u8 = 16;

/// Expected cost of setting multicast up where it works; and on networks faster than this, as clouds
/// have, which as often as not carry none: that takes a second to find out.
const GROUP_NANOS: u64 = 20_000_000;
const DOUBTFUL_GROUP_NANOS: u64 = 500_000_000;
const DOUBTFUL_BITS_PER_SECOND: u64 = 2_000_000_000;
/// Expected cost of setting up memory that the ranks of a node share.
const MEMORY_NANOS: u64 = 1_000_000;

/// What a communicator finds out about ways.
#[derive(Clone, Debug)]
pub(super) struct Compared {
    ranks: u32,
    /// True if calls of the program are compared.
    tries: bool,
    /// Findings of measurements apart from the program's calls, if there are to be any.
    measured: Option<MeasuredWays>,
    /// Trials; `None` until rank 0 was asked what the job knows.
    pub trials: Option<Trials>,
    /// Ways of calls that have challengers: to predict these takes longer than a short call.
    challenged: Vec<(Sameness, Ways)>,
}

/// Findings from measurements apart from the program's calls.
#[derive(Clone, Debug, Default)]
struct MeasuredWays {
    found: Vec<Recalled>,
    /// Calls for which there was no time, or nothing to be found.
    left_alone: Vec<Sameness>,
    /// Ways of sums, each for calls of a number of digits: what is measured later changes nothing.
    of_sums: Vec<(Collective, u8, Choice)>,
}

/// Who serves a call, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Judgement {
    pub choice: Choice,
    pub why: Why,
    pub sample: Option<Sample>,
    pub settled: Settled,
    /// True if the rules leave the call to the MPI, and other ways are compared with it.
    pub is_challenged: bool,
}

/// How settled a verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// The rules alone decided.
    ByRules,
    /// This trial is over.
    ByTrial(Sameness),
    /// Ways are compared, or trials have not begun yet.
    Open,
}

/// The ways that are open to a call.
struct Candidates {
    /// The calls for which the same ways are compared.
    of: Sameness,
    ways: Ways,
    /// The best of them, if they were measured apart from the program's calls.
    best: Option<Arm>,
}

impl Compared {
    /// `tries`: the program's calls are compared; `tunes`: ways are measured apart.
    pub fn new(ranks: u32, tries: bool, tunes: bool) -> Compared {
        let measured = tunes.then(MeasuredWays::default);
        Compared { ranks, tries, measured, trials: None, challenged: Vec::new() }
    }

    /// True if ranks are to judge first.
    pub fn is_due(&self) -> bool {
        self.trials.as_ref().is_some_and(|trials| trials.due().is_some())
    }

    /// This rank's times, to be added up over all ranks for the next judgement.
    pub fn times(&self) -> Sums {
        let due = self.trials.as_ref().and_then(Trials::due);
        due.map_or([0; SUMS], |(_, times)| times)
    }

    /// Draws the conclusion from the sums.
    pub fn judge(&mut self, policy: &Policy, sums: &Sums) -> Option<TrialOutcome> {
        let trials = self.trials.as_mut()?;
        let (of, _) = trials.due()?;
        let finding = trials.judge(sums, timed_ranks(of, self.ranks))?;
        let of = finding.of;
        let measured = self.measured.iter().flat_map(|measured| &measured.found);
        let ways = match measured.into_iter().find(|known| known.of == of) {
            Some(known) => known.times.iter().map(|(way, _)| *way).collect(),
            // It was begun by a communicator that measures, and this one does not.
            None if of.is_tuned() => Vec::new(),
            None => policy.ways_of(of).collect(),
        };
        Some(TrialOutcome { finding, ways })
    }

    /// True if rank 0 is to be heard before a call for which `prior` was decided.
    pub fn is_to_hear(&self, prior: Prior, may_be_compared: bool) -> bool {
        self.trials.is_none() && (may_be_compared || self.measured.is_some()) && self.concerns(prior)
    }

    /// Takes what rank 0 knows.
    pub fn heard(&mut self, mut trials: Trials, found: Vec<Recalled>) {
        if let Some(measured) = &mut self.measured {
            for recalled in found {
                // Of several the first is the nearest; what is known of its ways says nothing of others'.
                if measured.found.iter().all(|known| known.of != recalled.of) {
                    trials.remember(&recalled);
                    measured.found.push(recalled);
                }
            }
        }
        self.trials = Some(trials);
    }

    /// Takes rank 0's words that have come with the number. Where ways are measured apart, more is
    /// to be heard.
    pub fn begin(&mut self, trials: Option<Trials>) {
        if self.measured.is_none() && self.tries {
            self.trials = trials;
        }
    }

    /// True if ways to serve such a call are to be measured, if there is time.
    pub fn is_to_measure(&self, prior: Prior, call: &Call, there: Capabilities) -> bool {
        let (Some(measured), Some(_)) = (&self.measured, &self.trials) else { return false };
        let of = Sameness::tuned(call.collective, call.bytes.0, there);
        let is_open = measured.way(call, there).is_none() && !measured.left_alone.contains(&of);
        !prior.by.is_users() && is_open && measured.of_sum(call, there).is_none()
    }

    /// Takes what was found about such calls by measuring.
    pub fn measured(&mut self, of: Sameness, found: Option<Recalled>) {
        let (Some(measured), Some(trials)) = (&mut self.measured, &mut self.trials) else { return };
        match found.filter(|found| found.of == of) {
            Some(found) => {
                trials.remember(&found);
                measured.found.push(found);
            }
            None => measured.left_alone.push(of),
        }
    }

    /// True if each call is looked at, whatever trials have found.
    pub fn looks_at_each(&self) -> bool {
        self.measured.is_some() || self.is_due()
    }

    /// True if trials or measurements have a say in calls for which the rules decided `prior`.
    fn concerns(&self, prior: Prior) -> bool {
        match self.measured {
            Some(_) => !prior.by.is_users(),
            None => self.tries && prior.is_comparable(),
        }
    }

    fn candidates(&self, policy: &Policy, call: &Call, there: Capabilities, epoch: Epoch) -> Candidates {
        if let Some(found) = self.measured.as_ref().and_then(|measured| measured.way(call, there)) {
            let ways = Ways::new(found.times.iter().map(|(way, _)| *way));
            return Candidates { of: found.of, ways, best: Some(found.arm) };
        }
        let of = policy.sameness(call, there, epoch);
        let known = self.challenged.iter().find(|(known, _)| *known == of).map(|(_, ways)| ways.clone());
        Candidates { of, ways: known.unwrap_or_else(|| Ways::new(policy.ways_of(of))), best: None }
    }

    /// Who serves a call for which the rules decided `prior`. Trials count the call: if its way
    /// cannot be had, so that this is asked again, the turn is lost. `untried`: capabilities of
    /// which nobody knows whether they are there.
    pub fn verdict(
        &mut self,
        policy: &Policy,
        request: &Request,
        prior: Prior,
        (there, untried): (Capabilities, Capabilities),
        epoch: Epoch,
    ) -> Judgement {
        let call = &request.call;
        let by_rules = |settled| Judgement {
            choice: prior.choice,
            why: Why::Rules(prior.by),
            sample: None,
            settled,
            is_challenged: prior.is_challenged,
        };
        if !request.may_be_compared {
            let choice = self.unchanging(policy, request, prior, there);
            return Judgement { choice, ..by_rules(Settled::ByRules) };
        }
        if !self.concerns(prior) {
            return by_rules(Settled::ByRules);
        }
        let Candidates { of, ways, best } = self.candidates(policy, call, there, epoch);
        if prior.is_challenged && self.challenged.iter().all(|(known, _)| *known != of) {
            self.challenged.push((of, ways.clone()));
        }
        let faster = |arm: Arm| Judgement {
            choice: ways[usize::from(arm)],
            why: Why::Faster,
            ..by_rules(Settled::Open)
        };
        match (best, &mut self.trials) {
            (Some(best), _) if !self.tries => faster(best),
            (None, _) if !(self.tries && prior.is_comparable()) => by_rules(Settled::Open),
            (_, None) => by_rules(Settled::Open),
            // Nothing else can be had.
            _ if ways.len() < 2 => by_rules(Settled::ByRules),
            (_, Some(trials)) => {
                trials.take_over(policy, of);
                let bound = prior.is_challenged.then(|| set_up_nanos(policy, &ways, untried));
                match trials.next(of, ways.len(), bound) {
                    Turn::Settled(arm, sample) => {
                        Judgement { sample, settled: Settled::ByTrial(of), ..faster(arm) }
                    }
                    Turn::Waiting(arm) if ways[usize::from(arm)] == prior.choice => {
                        by_rules(Settled::ByTrial(of))
                    }
                    Turn::Waiting(arm) => Judgement { settled: Settled::ByTrial(of), ..faster(arm) },
                    Turn::Tried(arm, sample) => Judgement { sample, why: Why::Compared, ..faster(arm) },
                }
            }
        }
    }

    /// The way for a call that is not counted, as far as trials have found it; true if ways are
    /// still compared.
    pub fn expected(
        &self,
        policy: &Policy,
        call: &Call,
        prior: Prior,
        there: Capabilities,
        epoch: Epoch,
    ) -> (Choice, bool) {
        if !self.concerns(prior) {
            return (prior.choice, false);
        }
        let Candidates { of, ways, best } = self.candidates(policy, call, there, epoch);
        let settled = self.trials.as_ref().and_then(|trials| trials.settled(of));
        if let Some(arm) = if self.tries { settled } else { best } {
            return (ways[usize::from(arm)], false);
        }
        let is_to_be_measured =
            self.measured.is_some() && (self.trials.is_none() || self.is_to_measure(prior, call, there));
        (prior.choice, is_to_be_measured || (self.tries && prior.is_comparable() && ways.len() > 1))
    }

    /// The way for a call that is always served alike: as measuring found it before the first such
    /// call, else by the rules.
    pub fn unchanging(
        &mut self,
        policy: &Policy,
        request: &Request,
        prior: Prior,
        there: Capabilities,
    ) -> Choice {
        let call = &request.call;
        let choice = match self.measured.as_mut().filter(|_| !prior.by.is_users()) {
            Some(measured) if call.is_sum => measured.decide_sum(policy, call, *prior, there),
            Some(measured) => measured.way(call, there).map_or(prior.choice, best_of),
            None => prior.choice,
        };
        if request.is_ordered { policy.in_order(choice) } else { choice }
    }

    /// Calls to come that are served as the last one of such was, and not timed.
    pub fn alike(&self, settled: Settled) -> Option<(Option<Sameness>, u64)> {
        match settled {
            _ if self.looks_at_each() => None,
            Settled::ByRules => Some((None, u64::MAX)),
            Settled::ByTrial(of) => Some((Some(of), self.trials.as_ref()?.steady(of))),
            Settled::Open => None,
        }
    }

    /// Counts `calls` such calls that were made.
    pub fn add(&mut self, of: Option<Sameness>, calls: u64) {
        if let (Some(of), Some(trials)) = (of, &mut self.trials) {
            trials.add(of, calls);
        }
    }
}

impl MeasuredWays {
    /// The finding for such calls, if all of its ways can be had.
    fn way(&self, call: &Call, there: Capabilities) -> Option<&Recalled> {
        let digits = Sameness::digits_of(call.bytes.0);
        let is_it = |found: &&Recalled| {
            let ways = &mut found.times.iter();
            found.of.collective == call.collective
                && found.of.digits == digits
                && ways.all(|(way, _)| there.has(way.needs()))
        };
        self.found.iter().find(is_it)
    }

    /// The way that was decided for such sums, if it can still be had.
    fn of_sum(&self, call: &Call, there: Capabilities) -> Option<Choice> {
        let digits = Sameness::digits_of(call.bytes.0);
        let mut known = self.of_sums.iter();
        let known = known.find(|(of, number, _)| call.is_sum && (*of, *number) == (call.collective, digits));
        known.map(|(.., choice)| *choice).filter(|choice| there.has(choice.needs()))
    }

    /// The way of a sum, the same for all of its size: of those that were measured and may serve
    /// sums the fastest, else the rules'.
    fn decide_sum(&mut self, policy: &Policy, call: &Call, prior: Decision, there: Capabilities) -> Choice {
        if let Some(choice) = self.of_sum(call, there) {
            return choice;
        }
        let found = self.way(call, there).and_then(|found| {
            let best = Some(best_of(found)).filter(|best| policy.may_go(call, *best));
            let may_go = found.times.iter().filter(|(way, _)| policy.may_go(call, *way));
            best.or_else(|| may_go.min_by_key(|(_, nanos)| *nanos).map(|(way, _)| *way))
        });
        let choice = found.unwrap_or(prior.choice);
        self.of_sums.push((call.collective, Sameness::digits_of(call.bytes.0), choice));
        choice
    }
}

/// The way that was found to be the best.
fn best_of(found: &Recalled) -> Choice {
    found.times[usize::from(found.arm)].0
}

/// Ways to serve a call.
#[derive(Clone, Debug)]
struct Ways {
    choices: [Choice; MAX_ARMS],
    count: usize,
}

impl Ways {
    fn new(ways: impl Iterator<Item = Choice>) -> Ways {
        let mut found = Ways { choices: [Choice::Stock; MAX_ARMS], count: 0 };
        for (place, way) in found.choices.iter_mut().zip(ways) {
            (*place, found.count) = (way, found.count + 1);
        }
        found
    }
}

impl Deref for Ways {
    type Target = [Choice];

    fn deref(&self) -> &[Choice] {
        &self.choices[..self.count]
    }
}

/// The rules' decision about a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prior {
    decision: Decision,
    /// True if other ways are compared with the MPI, to which the rules leave the call.
    pub is_challenged: bool,
}

impl Prior {
    pub fn of(policy: &Policy, call: &Call, there: Capabilities, epoch: Epoch) -> Prior {
        let interval = policy.for_sizes_of(call, epoch);
        Prior { decision: *interval.choose(there), is_challenged: interval.is_challenged(there) }
    }

    /// True if trials may replace the way: what is forced, and what the rules leave to the MPI
    /// without challengers, stays as the user or the table has it.
    pub fn is_comparable(&self) -> bool {
        (self.choice != Choice::Stock || self.is_challenged) && !self.by.is_users()
    }
}

impl Deref for Prior {
    type Target = Decision;

    fn deref(&self) -> &Decision {
        &self.decision
    }
}

/// The expected cost, to a rank, of setting up what these ways need and nobody has tried.
fn set_up_nanos(policy: &Policy, ways: &[Choice], untried: Capabilities) -> u64 {
    let rate = policy.shape().network.and_then(|network| network.rate);
    let is_doubtful = rate.is_some_and(|rate| rate.bits_per_second() > DOUBTFUL_BITS_PER_SECOND);
    let group = if is_doubtful { DOUBTFUL_GROUP_NANOS } else { GROUP_NANOS };
    let needed = ways.iter().fold(Capabilities::NONE, |all, way| all | way.needs());
    let costs = [(Capabilities::MULTICAST, group), (Capabilities::SHARED, MEMORY_NANOS)];
    let wanted = costs.iter().filter(|(one, _)| needed.has(*one) && untried.has(*one));
    wanted.map(|(_, nanos)| nanos).sum()
}

/// True if the time of a call says something on this rank. A rank that sends to one has sent before
/// that one has all, and so has a rank that sends much to all. With little to send, the root of the
/// MPI's own call waits for nobody, which a program loses by another way: so its time counts.
pub(super) fn is_timed_at(collective: Collective, digits: u8, is_root: bool) -> bool {
    match collective {
        Collective::Broadcast | Collective::Scatter => !is_root || digits <= EAGER_DIGITS,
        Collective::Gather | Collective::Reduce => is_root,
        _ => true,
    }
}

/// The ranks that time such calls.
pub(super) fn timed_ranks(of: Sameness, ranks: u32) -> u32 {
    match [true, false].map(|is_root| is_timed_at(of.collective, of.digits, is_root)) {
        [false, _] => ranks.saturating_sub(1),
        [true, false] => 1,
        [true, true] => ranks,
    }
}
