//! One communicator's [trials](polycast_core::policy::trials): which way serves the next call, and how long it took here.
//!
//! ```text
//!     ledgers    what this process has learned on communicators of each shape
//!         cache      and left to later jobs
//! ```

mod alike;
pub mod cache;
pub mod ledgers;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use polycast_core::policy::trials::{Arm, Finding, MAX_ARMS, Recalled, Sameness, Sample, TOLD, Trials, Turn};
use polycast_core::policy::{
    self, Call, Capabilities, Choice, Collective, CommunicatorShape, Decision, Epoch, Policy,
};
use polycast_core::units::Rank;

use crate::abi::MpiError;
use crate::call::{Failure, Why};
use crate::door::Door;
use crate::machine;
use crate::report::{self, Found, nanos};
use alike::Last;

/// Comparison of ways on one communicator. Where trials are switched off, the rules decide.
#[derive(Default)]
pub struct Comparison(Option<Box<Wanted>>);

struct Wanted {
    shape: CommunicatorShape,
    /// True if calls of the program are compared.
    tries: bool,
    /// Findings of measurements apart from the program's calls, if there are to be any.
    tuning: Option<Tuning>,
    /// Trials; `None` until rank 0 was asked what the job knows.
    trials: Option<Trials>,
    /// The call under way, if it counts, and its beginning.
    timed: Option<(Sample, Instant)>,
    /// The call that has just ended, if it counted, and its beginning.
    ended: Option<(Sample, Instant)>,
    last: Last,
}

/// Findings from measurements apart from the program's calls.
#[derive(Default)]
struct Tuning {
    found: Vec<Recalled>,
    /// Calls for which there was no time, or nothing to be found.
    left_alone: Vec<Sameness>,
}

impl Comparison {
    /// A comparison. `tries`: the program's calls are compared; `tunes`: ways are measured apart.
    pub fn new(tries: bool, tunes: bool, shape: CommunicatorShape) -> Comparison {
        let new = || {
            let tuning = tunes.then(Tuning::default);
            Box::new(Wanted {
                shape,
                tries,
                tuning,
                trials: None,
                timed: None,
                ended: None,
                last: Last::Open,
            })
        };
        Comparison((tries || tunes).then(new))
    }

    fn trials(&self) -> Option<&Trials> {
        self.0.as_deref()?.trials.as_ref()
    }

    /// True if ranks are to judge first: [`Comparison::judge`] is called, then this again.
    pub fn is_due(&self) -> bool {
        self.trials().is_some_and(|trials| trials.due().is_some())
    }

    /// Adds up what the ranks have measured. Collective.
    pub fn judge(&mut self, door: &Door, policy: &Arc<Policy>, rank: Rank) -> Result<(), MpiError> {
        let Some(Wanted { shape, tuning, trials: Some(trials), .. }) = self.0.as_deref_mut() else {
            return Ok(());
        };
        let Some((of, mut values)) = trials.due() else { return Ok(()) };
        door.sum(&mut values)?;
        if let Some(finding) = trials.judge(&values, timed_ranks(of, shape.ranks)) {
            let Finding { of, arm, nanos } = finding;
            ledgers::learn(*shape, policy, trials);
            let ways = match tuning.iter().flat_map(|tuning| &tuning.found).find(|known| known.of == of) {
                Some(known) => known.times.iter().map(|(way, _)| *way).collect(),
                // It was begun by a communicator that was tuned, and this one is not.
                None if of.is_tuned() => return Ok(()),
                None => {
                    policy.ways_of(of.collective, of.interval.into(), of.there, of.epoch).collect::<Vec<_>>()
                }
            };
            if rank == Rank(0) {
                ledgers::keep(*shape, policy, &ways, &finding);
            }
            let times: Vec<_> = ways.into_iter().zip(nanos).collect();
            tell(of, *shape, times, arm, By::Trial);
        }
        Ok(())
    }

    /// True if this call, for which the rules decided `rules`, is the first that trials decide:
    /// [`Comparison::begin`] is to be called.
    pub fn is_to_begin(&self, rules: Decision, may_be_compared: bool) -> bool {
        let is_new = |wanted: &Wanted| {
            let is_for_it = may_be_compared || wanted.tuning.is_some();
            wanted.trials.is_none() && is_for_it && wanted.concerns(rules)
        };
        self.0.as_deref().is_some_and(is_new)
    }

    /// Begins trials with what rank 0 has learned on other communicators of this shape. Collective.
    pub fn begin(&mut self, door: &Door, policy: &Arc<Policy>, rank: Rank) -> Result<(), MpiError> {
        let Some(wanted) = self.0.as_deref_mut() else { return Ok(()) };
        let told = if rank == Rank(0) { told(wanted.shape, policy) } else { [0; TOLD] };
        let mut bytes = told.map(u64::to_le_bytes);
        door.broadcast(bytes.as_flattened_mut(), 0)?;
        let mut trials = ledgers::resumed(wanted.shape, policy, &bytes.map(u64::from_le_bytes));
        if let Some(tuning) = &mut wanted.tuning {
            let mine = if rank == Rank(0) { ledgers::tuned(wanted.shape, policy) } else { String::new() };
            let lines = door.say_to_all(mine)?;
            let (known, is_new) = ledgers::tuned_elsewhere(wanted.shape, policy, &lines);
            for (recalled, is_new) in known.into_iter().zip(is_new) {
                if is_new && rank == Rank(0) {
                    tell(recalled.of, wanted.shape, recalled.times.clone(), recalled.arm, By::EarlierJob);
                }
                // Of several the first is the nearest; what is known of its ways says nothing of others'.
                if tuning.found.iter().all(|found| found.of != recalled.of) {
                    trials.remember(&recalled);
                    tuning.found.push(recalled);
                }
            }
        }
        wanted.trials = Some(trials);
        Ok(())
    }

    /// Begins trials with rank 0's [`told`], which has come with another exchange. Ways that are
    /// measured apart need more.
    pub fn begin_told(&mut self, policy: &Arc<Policy>, told: &[u64; TOLD]) {
        if let Some(wanted) = self.0.as_deref_mut().filter(|wanted| wanted.tuning.is_none()) {
            wanted.trials = Some(ledgers::resumed(wanted.shape, policy, told));
        }
    }

    /// True if ways to serve such a call are to be measured, if there is time:
    /// [`Comparison::tuned`] is to be called with the result.
    pub fn is_to_tune(&self, rules: Decision, call: &Call, there: Capabilities) -> bool {
        let Some(Wanted { tuning: Some(tuning), trials: Some(_), .. }) = self.0.as_deref() else {
            return false;
        };
        let of = Sameness::tuned(call.collective, call.bytes.0, there);
        rules.by != policy::By::Forced
            && tuning.way(call, there).is_none()
            && !tuning.left_alone.contains(&of)
    }

    /// Takes the result of measuring from rank 0: a line of the file for later jobs, or nothing.
    pub fn tuned(&mut self, policy: &Arc<Policy>, of: Sameness, line: &str) {
        let Some(Wanted { shape, tuning: Some(tuning), trials: Some(trials), .. }) = self.0.as_deref_mut()
        else {
            return;
        };
        let found = ledgers::tuned_elsewhere(*shape, policy, line).0.pop().filter(|found| found.of == of);
        match found {
            Some(found) => {
                tell(of, *shape, found.times.clone(), found.arm, By::Tuning);
                trials.remember(&found);
                tuning.found.push(found);
            }
            None => tuning.left_alone.push(of),
        }
    }

    /// The way for a call that is always served alike: as measuring found it, else by the rules.
    pub fn unchanging(&mut self, rules: Decision, call: &Call, there: Capabilities) -> Choice {
        if let Some(wanted) = self.0.as_deref_mut() {
            (wanted.timed, wanted.ended, wanted.last) = (None, None, Last::Ruled);
        }
        let tuning = self.0.as_deref().and_then(|wanted| wanted.tuning.as_ref());
        let found =
            tuning.filter(|_| rules.by != policy::By::Forced).and_then(|tuning| tuning.way(call, there));
        found.map_or(rules.choice, |found| found.times[usize::from(found.arm)].0)
    }

    /// Ends the communicator's trials: the next one of its shape goes on with what they have begun.
    pub fn end(&mut self, policy: &Arc<Policy>) {
        if let Some(Wanted { shape, trials: Some(trials), .. }) = self.0.as_deref_mut() {
            ledgers::learn(*shape, policy, trials);
        }
    }

    /// The way for such calls, as far as trials have found it; true if ways are still compared.
    pub fn found(
        &self,
        rules: Decision,
        policy: &Policy,
        call: &Call,
        there: Capabilities,
        epoch: Epoch,
    ) -> (Choice, bool) {
        let Some(wanted) = self.0.as_deref().filter(|wanted| wanted.concerns(rules)) else {
            return (rules.choice, false);
        };
        let (of, ways, tuned) = wanted.open(policy, call, there, epoch);
        let settled = self.trials().and_then(|trials| trials.settled(of));
        let arm = if wanted.tries { settled } else { tuned };
        if let Some(arm) = arm {
            return (ways[usize::from(arm)], false);
        }
        let is_open =
            wanted.tuning.is_some() && (wanted.trials.is_none() || self.is_to_tune(rules, call, there));
        (rules.choice, is_open || (wanted.tries && is_comparable(rules)))
    }

    /// The way for a call for which the rules decided `rules`. If it cannot be had, so that they
    /// decide again, the turn is lost.
    pub fn next(
        &mut self,
        rules: Decision,
        policy: &Policy,
        call: &Call,
        there: Capabilities,
        epoch: Epoch,
    ) -> (Choice, Why) {
        let as_ruled = (rules.choice, Why::Rules(rules.by));
        let Some(wanted) = self.0.as_deref_mut() else { return as_ruled };
        (wanted.timed, wanted.ended, wanted.last) = (None, None, Last::Ruled);
        if !wanted.concerns(rules) {
            return as_ruled;
        }
        wanted.last = Last::Open;
        let (of, ways, tuned) = wanted.open(policy, call, there, epoch);
        if tuned.is_none() && !(wanted.tries && is_comparable(rules)) {
            return as_ruled;
        }
        if let Some(arm) = tuned.filter(|_| !wanted.tries) {
            return (ways[usize::from(arm)], Why::Faster);
        }
        let Some(trials) = wanted.trials.as_mut() else { return as_ruled };
        trials.take_over(policy, of);
        match trials.next(of, ways.len()) {
            Turn::Settled(arm, sample) => {
                wanted.last = Last::Settled(of);
                wanted.timed = sample.map(|sample| (sample, machine::now()));
                (ways[usize::from(arm)], Why::Faster)
            }
            Turn::Tried(arm, sample) => {
                wanted.timed = sample.map(|sample| (sample, machine::now()));
                (ways[usize::from(arm)], Why::Compared)
            }
        }
    }

    /// Notes the beginning of a call. Its time counts if it says something on this rank.
    pub fn starts(&mut self, call: &Call, is_root: bool) {
        let Some(Wanted { timed: Some((_, begun)), .. }) = self.0.as_deref_mut() else { return };
        match is_timed_at(call.collective, Sameness::digits_of(call.bytes.0), is_root) {
            true => *begun = machine::now(),
            false => self.leave_out(),
        }
    }

    /// Leaves out the time of the call that is decided next, which says nothing.
    pub fn leave_out(&mut self) {
        if let Some(wanted) = self.0.as_deref_mut() {
            wanted.timed = None;
        }
    }

    /// True if the call that was decided last counts: at its end call [`Comparison::ended`].
    pub fn is_timed(&self) -> bool {
        self.0.as_deref().is_some_and(|wanted| wanted.timed.is_some())
    }

    /// Takes the time of a call that has ended.
    pub fn ended(&mut self, outcome: Result<(), Failure>) {
        let Some(Wanted { trials: Some(trials), timed, ended, .. }) = self.0.as_deref_mut() else { return };
        *ended = timed.take();
        if let Some((sample, begun)) = *ended {
            trials.took(sample, nanos(machine::now() - begun));
        }
        if outcome == Err(Failure::Size) {
            trials.stop();
        }
    }

    /// Takes the time anew when the door has unpacked the data: the MPI's time has that, too.
    pub fn unpacked(&mut self) {
        let Some(Wanted { trials: Some(trials), ended, .. }) = self.0.as_deref_mut() else { return };
        if let Some((sample, begun)) = ended.take() {
            trials.took(sample, nanos(machine::now() - begun));
        }
    }

    /// Notes the end of a call for which ways are not compared.
    pub fn noted(&mut self, outcome: Result<(), Failure>) {
        if outcome == Err(Failure::Size)
            && let Some(trials) = self.0.as_deref_mut().and_then(|wanted| wanted.trials.as_mut())
        {
            trials.stop();
        }
    }
}

/// Words of rank 0 to the others before ways are compared on a communicator.
pub fn told(shape: CommunicatorShape, policy: &Arc<Policy>) -> [u64; TOLD] {
    let (told, recalled) = ledgers::told(shape, policy);
    for Recalled { of, times, arm, .. } in recalled {
        tell(of, shape, times, arm, By::EarlierJob);
    }
    told
}

/// Adds a finding to the report.
fn tell(of: Sameness, shape: CommunicatorShape, times: Vec<(Choice, u64)>, stays: Arm, by: By) {
    let (collective, first_bytes, stays) = (of.collective, of.first_bytes(), times[usize::from(stays)].0);
    let (is_tuned, is_remembered) = (of.is_tuned() && by != By::Trial, by == By::EarlierJob);
    report::found(Found {
        collective,
        first_bytes,
        ranks: shape.ranks,
        times,
        stays,
        is_tuned,
        is_remembered,
    });
}

/// Origin of a finding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Trial,
    Tuning,
    EarlierJob,
}

impl Tuning {
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
}

impl Wanted {
    /// True if trials have a say in calls for which the rules decided `rules`.
    fn concerns(&self, rules: Decision) -> bool {
        match self.tuning {
            Some(_) => rules.by != policy::By::Forced,
            None => is_comparable(rules),
        }
    }

    /// The ways to serve a call; the other calls for which they are compared, too; and the best
    /// way, if ways were measured apart from the program's calls.
    fn open(
        &self,
        policy: &Policy,
        call: &Call,
        there: Capabilities,
        epoch: Epoch,
    ) -> (Sameness, Ways, Option<Arm>) {
        if let Some(found) = self.tuning.as_ref().and_then(|tuning| tuning.way(call, there)) {
            return (found.of, Ways::new(found.times.iter().map(|(way, _)| *way)), Some(found.arm));
        }
        let interval = policy.interval(call, epoch);
        let ways = policy.ways_of(call.collective, interval, there, epoch);
        let digits = Sameness::digits_of(call.bytes.0);
        let of = Sameness { collective: call.collective, epoch, interval: interval as u16, digits, there };
        (of, Ways::new(ways), None)
    }
}

/// Ways to serve a call.
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

/// Digits of the longest calls that MPIs send before anybody asks for them: up to 64 KiB over TCP.
const EAGER_DIGITS: u8 = 16;

/// True if the time of a call says something on this rank. A rank that sends to one has sent before
/// that one has all, and so has a rank that sends much to all. With little to send, the root of the
/// MPI's own call waits for nobody, which a program loses by another way: so its time counts.
fn is_timed_at(collective: Collective, digits: u8, is_root: bool) -> bool {
    match collective {
        Collective::Broadcast | Collective::Scatter => !is_root || digits <= EAGER_DIGITS,
        Collective::Gather | Collective::Reduce => is_root,
        _ => true,
    }
}

fn timed_ranks(of: Sameness, ranks: u32) -> u32 {
    match [true, false].map(|is_root| is_timed_at(of.collective, of.digits, is_root)) {
        [false, _] => ranks.saturating_sub(1),
        [true, false] => 1,
        [true, true] => ranks,
    }
}

/// True if trials may replace the way: what is forced, and what the rules leave to the MPI, stays
/// as the user or the table has it.
pub fn is_comparable(rules: Decision) -> bool {
    rules.choice != Choice::Stock && rules.by != policy::By::Forced
}

#[cfg(test)]
mod tests;
