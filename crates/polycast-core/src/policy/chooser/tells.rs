//! What a chooser tells without deciding: which calls the door may leave by itself, and what serves a call as far as that is known.

use super::super::{Call, CallCounts, Capabilities, Choice, Collective, Decision, Epoch, Passing, ToStock};
use super::alike::CallsAlike;
use super::compared::Prior;
use super::{Chooser, Learning, Standing};
use crate::units::Bytes;

/// Calls of a collective after a change of its answers in which another rank may still go by the old
/// one.
const CALLS_AFTER_CHANGE: u64 = 16;

impl Chooser {
    /// The calls, by collective, that the door leaves to the MPI by itself until this chooser is
    /// asked again.
    pub fn passing(&self) -> [Passing; Collective::ALL.len()] {
        let leaves = self.passes && !self.is_read;
        let mut all = Collective::ALL.map(|collective| {
            let uncounted = if leaves { self.policy.to_stock(collective) } else { ToStock::NOTHING };
            Passing { uncounted, ..Passing::NOTHING }
        });
        if let Some((collective, bytes, calls)) = self.passing_and_counted() {
            let of = &mut all[collective as usize];
            (of.counted, of.until) = (bytes, calls);
        }
        all
    }

    /// The part of [`Chooser::passing`] that may change at every call: the collective whose calls
    /// the door counts for [`Chooser::passed`], their first and last size in bytes, and how many
    /// may pass.
    #[inline]
    pub fn passing_and_counted(&self) -> Option<(Collective, (u64, u64), u64)> {
        let Standing::Served(served) = &self.state else { return None };
        let CallsAlike { collective, ref bytes, chosen, left, .. } = served.alike;
        // Only the door knows whether it can describe what is combined, so it always asks.
        if left == 0 || chosen.is_some() || collective.combines() {
            return None;
        }
        let longest = self.longest.as_ref().map_or(u64::MAX, |longest| longest.of(collective));
        // What is longer nobody counts.
        Some((collective, (*bytes.start(), *bytes.end().min(&longest)), left))
    }

    /// Counts calls that have passed, of those that [`Chooser::passing_and_counted`] has named.
    #[inline]
    pub fn passed(&mut self, calls: u64) {
        if let Standing::Served(served) = &mut self.state {
            served.alike.pass(calls);
        }
    }

    /// The way that would serve the next call of a collective with so many bytes, as known without
    /// trying, and true if ways are being compared for such calls. `passed`: calls that the door has
    /// left by itself since it was asked last.
    pub fn expected(&self, collective: Collective, bytes: Bytes, passed: u64) -> (Choice, bool) {
        let call = Call::new(collective, bytes);
        let (prior, epoch) = self.prior(&call, passed);
        match &self.state {
            Standing::Served(served) => {
                let capabilities = served.tried.capabilities;
                served.compared.expected(&self.policy, &call, prior, capabilities, epoch)
            }
            _ => {
                let Learning { tries, tunes } = self.learning;
                let are_tuned =
                    tunes && !prior.by.is_users() && self.capabilities().has(Capabilities::PRIVATE);
                (prior.choice, are_tuned || (tries && prior.is_comparable()))
            }
        }
    }

    /// The rules' decision about the next call of a collective with so many bytes.
    pub fn by_rules(&self, call: &Call) -> Decision {
        *self.prior(call, 0).0
    }

    fn counts_now(&self, passed: u64) -> CallCounts {
        let mut counts = self.counts.clone();
        if let Standing::Served(served) = &self.state {
            counts.add(served.alike.collective, served.alike.made + passed);
        }
        counts
    }

    fn prior(&self, call: &Call, passed: u64) -> (Prior, Epoch) {
        let counts = self.counts_now(passed);
        let epoch = counts.peek(&self.policy, call.collective);
        (Prior::of(&self.policy, call, self.capabilities(), epoch), epoch)
    }

    /// True if calls like this one, which goes this way, were served in another one a few calls ago:
    /// ranks that give another size may still be.
    pub fn has_changed(&self, call: &Call, way: Choice) -> bool {
        let counts = self.counts_now(0);
        let is_few = |calls: u64| calls <= CALLS_AFTER_CHANGE;
        let choice = |before| self.policy.choose(call, self.capabilities(), before).choice;
        let change = counts.last_change(&self.policy, call.collective);
        let judged = match &self.state {
            Standing::Served(served) => served.judged[call.collective as usize],
            _ => None,
        };
        judged.is_some_and(|at| is_few(counts.earlier_calls(call.collective).saturating_sub(at)))
            || change.is_some_and(|(before, calls)| is_few(calls) && choice(before) != way)
    }

    /// True if a call that is left would be served if the ranks had a number.
    pub fn is_refused(&self, call: &Call) -> bool {
        let (Standing::Refused, epoch) = (&self.state, self.counts.peek(&self.policy, call.collective))
        else {
            return false;
        };
        self.policy.choose(call, Capabilities::ALL, epoch).choice != Choice::Stock
    }
}
