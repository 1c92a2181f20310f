//! Calls that are started and not waited for. A rank may be in two of them at a time, on two communicators, and the others in the reverse
//! order: so nothing may be exchanged before such a call returns.
//!
//! What is not there yet, because all ranks would have to try it together, is not used, on all ranks alike: each knows what was tried, for they
//! call in the same order. It is tried in the next call that is waited for.

use std::panic::{AssertUnwindSafe, catch_unwind};

use polycast_core::policy::{Capabilities, Choice};

use crate::abi::MpiError;
use crate::call::{Ahead, Chosen, Decision, Failure, Wanted, Why};
use crate::communicator::Communicator;
use crate::fault::{self, Point};

impl Communicator {
    /// Decides who serves a call that is not waited for; in the same way on all ranks, as
    /// [`Communicator::plan`] does.
    pub fn plan_ahead(&mut self, call: Wanted, ahead: Ahead) -> Decision {
        self.add_up();
        if self.broken.is_none() {
            match catch_unwind(AssertUnwindSafe(|| self.decide_ahead(call, ahead))) {
                Ok(Ok(decision)) => return decision,
                Ok(Err(error)) => self.broken = Some(Failure::Mpi(error)),
                Err(_) => self.broken = Some(Failure::Internal),
            }
        }
        Decision::UNKNOWN
    }

    fn decide_ahead(&mut self, wanted: Wanted, ahead: Ahead) -> Result<Decision, MpiError> {
        fault::point(Point::Choose);
        let Wanted { of: call, root, may_be_compared, is_ordered, .. } = wanted;
        let epoch = self.counts.next(&self.shared.policy, &call);
        loop {
            let there = match ahead {
                Ahead::Local => self.capabilities.without(self.untried()),
                Ahead::MayWait => self.capabilities,
            };
            let Communicator { comparison, shared, .. } = self;
            let rules = *shared.policy.choose(&call, there, epoch);
            let choice = match may_be_compared {
                true => comparison.found(rules, &shared.policy, &call, there, epoch).0,
                false => comparison.unchanging(rules, &call, there),
            };
            let choice = if is_ordered { choice.in_order() } else { choice };
            match ahead {
                Ahead::Local => {
                    let best = shared.policy.choose(&call, self.capabilities, epoch).choice;
                    self.wanted = self.wanted | best.needs();
                }
                Ahead::MayWait if !self.provides(choice)? => continue,
                Ahead::MayWait => {}
            }
            if choice == Choice::Stock {
                return Ok(Decision::Left);
            }
            self.log.begin(&call, root);
            self.log.chosen(&call, choice, Why::Rules(rules.by));
            return Ok(Decision::Served(Chosen { choice, epoch, is_ahead: true }));
        }
    }

    /// Tries the capabilities that unwaited calls wanted, in a call that is waited for. Collective
    /// if there is something to try.
    pub(crate) fn try_what_is_wanted(&mut self) -> Result<(), MpiError> {
        let wanted = std::mem::replace(&mut self.wanted, Capabilities::NONE);
        for one in [Capabilities::MULTICAST, Capabilities::SHARED] {
            if wanted.has(one) && self.untried().has(one) {
                self.has(one)?;
            }
        }
        Ok(())
    }
}
