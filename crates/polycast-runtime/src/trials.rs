//! One communicator's [trials](polycast_core::policy::trials): which way serves the next call, and how long it took here.
//!
//! ```text
//!     ledgers    what this process has learned on communicators of each shape
//!         cache      and left to later jobs
//! ```

mod cache;
mod ledgers;

use std::sync::Arc;
use std::time::Instant;

use polycast_core::policy::trials::{Arm, Finding, MAX_ARMS, Recalled, Sameness, Sample, TOLD, Trials, Turn};
use polycast_core::policy::{
    By, Call, Capabilities, Choice, Collective, CommunicatorShape, Decision, Epoch, Policy,
};
use polycast_core::units::Rank;

use crate::door::{Door, MpiError};
use crate::machine;
use crate::operation::Failure;
use crate::report::{self, Found, nanos};

/// Where trials are switched off, it lets everything be as the rules have it.
#[derive(Default)]
pub struct Comparison(Option<Box<Wanted>>);

struct Wanted {
    shape: CommunicatorShape,
    /// `None`: rank 0 has not been asked what the job knows.
    trials: Option<Trials>,
    /// The call that is under way counts, and began then.
    timed: Option<(Sample, Instant)>,
}

/// What serves a call, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The rules alone.
    Rules(By),
    /// It is the turn of this way.
    Compared,
    /// It was faster when they were compared.
    Faster,
}

impl Comparison {
    pub fn new(is_wanted: bool, shape: CommunicatorShape) -> Comparison {
        Comparison(is_wanted.then(|| Box::new(Wanted { shape, trials: None, timed: None })))
    }

    fn trials(&self) -> Option<&Trials> {
        self.0.as_deref()?.trials.as_ref()
    }

    /// Before the next call is decided, [`Comparison::judge`] is to be called, as on all ranks, and this is to be asked again.
    pub fn is_due(&self) -> bool {
        self.trials().is_some_and(|trials| trials.due().is_some())
    }

    /// Adds up what the ranks have measured. Collective.
    pub fn judge(&mut self, door: &Door, policy: &Arc<Policy>, rank: Rank) -> Result<(), MpiError> {
        let Some(Wanted { shape, trials: Some(trials), .. }) = self.0.as_deref_mut() else {
            return Ok(());
        };
        let Some((collective, mut values)) = trials.due() else { return Ok(()) };
        door.sum(&mut values)?;
        if let Some(finding) = trials.judge(&values, timed_ranks(collective, shape.ranks)) {
            let Finding { of, arm, nanos } = finding;
            ledgers::learn(*shape, policy, trials);
            if rank == Rank(0) {
                ledgers::keep(*shape, policy, &finding);
            }
            let ways = policy.ways_of(of.collective, of.interval.into(), of.there, of.epoch);
            let times = ways.zip(nanos).collect();
            tell(of, *shape, times, arm, false);
        }
        Ok(())
    }

    /// A call for which the rules have decided so is the first that trials decide: [`Comparison::begin`] is to be called.
    pub fn is_to_begin(&self, rules: Decision) -> bool {
        is_comparable(rules) && self.0.as_deref().is_some_and(|wanted| wanted.trials.is_none())
    }

    /// Goes on with what rank 0 has learned on other communicators of this shape. Collective.
    pub fn begin(&mut self, door: &Door, policy: &Arc<Policy>, rank: Rank) -> Result<(), MpiError> {
        let Some(wanted) = self.0.as_deref_mut() else { return Ok(()) };
        let mut told = [0; TOLD];
        if rank == Rank(0) {
            let recalled;
            (told, recalled) = ledgers::told(wanted.shape, policy);
            for Recalled { of, times, arm, .. } in recalled {
                tell(of, wanted.shape, times, arm, true);
            }
        }
        let mut bytes = told.map(u64::to_le_bytes);
        door.broadcast(bytes.as_flattened_mut(), 0)?;
        wanted.trials = Some(ledgers::resumed(wanted.shape, policy, &bytes.map(u64::from_le_bytes)));
        Ok(())
    }

    /// The communicator goes: the next one of its shape goes on with what it has begun.
    pub fn end(&mut self, policy: &Arc<Policy>) {
        if let Some(Wanted { shape, trials: Some(trials), .. }) = self.0.as_deref_mut() {
            ledgers::learn(*shape, policy, trials);
        }
    }

    /// What serves such calls, as far as trials have found it out; and whether they still compare.
    pub fn found(
        &self,
        rules: Decision,
        policy: &Policy,
        call: &Call,
        there: Capabilities,
        epoch: Epoch,
    ) -> (Choice, bool) {
        if self.0.is_none() || !is_comparable(rules) {
            return (rules.choice, false);
        }
        let (of, mut ways) = open(policy, call, there, epoch);
        let way = self.trials().and_then(|trials| trials.settled(of)).and_then(|arm| ways.nth(arm.into()));
        way.map_or((rules.choice, true), |way| (way, false))
    }

    /// What serves a call for which the rules have decided so. If it is not there, so that they decide again, the turn is lost.
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
        wanted.timed = None;
        let Some(trials) = wanted.trials.as_mut().filter(|_| is_comparable(rules)) else { return as_ruled };
        let (of, ways) = open(policy, call, there, epoch);
        let mut choices = [Choice::Stock; MAX_ARMS];
        let mut count = 0;
        for (place, way) in choices.iter_mut().zip(ways) {
            (*place, count) = (way, count + 1);
        }
        match trials.next(of, count) {
            Turn::Settled(arm) => (choices[usize::from(arm)], Why::Faster),
            Turn::Tried(arm, sample) => {
                wanted.timed = sample.map(|sample| (sample, machine::now()));
                (choices[usize::from(arm)], Why::Compared)
            }
        }
    }

    /// What the call needs is there: if it counts, and how long it takes here says something, it begins now.
    pub fn starts(&mut self, collective: Collective, is_root: bool) {
        let Some(Wanted { timed: Some((_, begun)), .. }) = self.0.as_deref_mut() else { return };
        match is_timed_at(collective, is_root) {
            true => *begun = machine::now(),
            false => self.leave_out(),
        }
    }

    /// The call that is decided next is none to be compared, or how long it takes on this rank says nothing.
    pub fn leave_out(&mut self) {
        if let Some(wanted) = self.0.as_deref_mut() {
            wanted.timed = None;
        }
    }

    /// The call that was decided last counts, and [`Comparison::ended`] is to be called when it has ended.
    pub fn is_timed(&self) -> bool {
        self.0.as_deref().is_some_and(|wanted| wanted.timed.is_some())
    }

    /// The call has ended.
    pub fn ended(&mut self, outcome: Result<(), Failure>) {
        let Some(Wanted { trials: Some(trials), timed, .. }) = self.0.as_deref_mut() else { return };
        if let Some((sample, begun)) = timed.take() {
            trials.took(sample, nanos(machine::now() - begun));
        }
        if outcome == Err(Failure::Size) {
            trials.stop();
        }
    }
}

/// For the report.
fn tell(of: Sameness, shape: CommunicatorShape, times: Vec<(Choice, u64)>, stays: Arm, is_remembered: bool) {
    let (first_bytes, stays) = (of.first_bytes(), times[usize::from(stays)].0);
    let collective = of.collective;
    report::found(Found { collective, first_bytes, ranks: shape.ranks, times, stays, is_remembered });
}

/// Who sends to all has sent before they have it all, and who sends to one before that one has it all.
fn is_timed_at(collective: Collective, is_root: bool) -> bool {
    match collective {
        Collective::Broadcast | Collective::Scatter => !is_root,
        Collective::Gather | Collective::Reduce => is_root,
        _ => true,
    }
}

fn timed_ranks(collective: Collective, ranks: u32) -> u32 {
    match [true, false].map(|is_root| is_timed_at(collective, is_root)) {
        [false, _] => ranks.saturating_sub(1),
        [true, false] => 1,
        [true, true] => ranks,
    }
}

/// What is forced, and what the rules leave to the MPI, is as the user or the table has it.
pub fn is_comparable(rules: Decision) -> bool {
    rules.choice != Choice::Stock && rules.by != By::Forced
}

/// The ways to serve a call, and which other calls they are open to.
fn open<'a>(
    policy: &'a Policy,
    call: &Call,
    there: Capabilities,
    epoch: Epoch,
) -> (Sameness, impl Iterator<Item = Choice> + 'a) {
    let interval = policy.interval(call, epoch);
    let ways = policy.ways_of(call.collective, interval, there, epoch);
    let digits = Sameness::digits_of(call.bytes.0);
    let of = Sameness { collective: call.collective, epoch, interval: interval as u16, digits, there };
    (of, ways)
}

#[cfg(test)]
mod tests {
    use polycast_core::policy::{Rules, Table};
    use polycast_core::units::Bytes;

    use super::*;

    const TABLE: &str = "version = 1\n[[rule]]\ncollective = \"bcast\"\nuse = \"chain\"\n";

    /// A root that hands a message to a chain is through long before the others have it.
    #[test]
    fn the_root_times_nothing() {
        let shape = CommunicatorShape::new(4, 4, None).unwrap();
        let table = Table::parse(TABLE, "a table").unwrap();
        let policy = Policy::new(Rules::new(&[], Some(&table), &Table::shipped(), None), shape);
        let call = Call { collective: Collective::Broadcast, bytes: Bytes(9000) };
        let (there, epoch) = (Capabilities::PRIVATE, Epoch::default());
        let rules = *policy.choose(&call, there, epoch);
        let mut comparison = Comparison::new(true, shape);
        let wanted = comparison.0.as_deref_mut().unwrap();
        wanted.trials = Some(Trials::default());
        let mut counts = |is_root: bool| {
            let (_, why) = comparison.next(rules, &policy, &call, there, epoch);
            assert_eq!(why, Why::Compared);
            comparison.starts(Collective::Broadcast, is_root);
            comparison.is_timed()
        };
        assert_eq!([false; 2].map(&mut counts), [false; 2], "a round to warm up");
        assert_eq!([false, true, true, false].map(&mut counts), [true, false, false, true]);
    }
}
