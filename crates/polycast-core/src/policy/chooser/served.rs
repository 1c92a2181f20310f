//! The way of a call on a communicator that has a number:
//!
//! ```text
//!  waited      Judging ─▶ Trying ─▶ Retrying ─▶ Choosing ─▶ Providing ─▶ verdict
//!                 Sum     Multicast   Multicast    Hear        Multicast      ▲
//!                         Look, Memory             Measure     Look, Memory   │
//!  not waited                                   Choosing ─▶ Providing ────────┘      what is not there is not used, or tried at once
//! ```
//! Each step may want an exchange first, and is taken again when that is heard.

use super::super::{CallCounts, Capabilities, Choice, Epoch, Policy};
use super::Learning;
use super::alike::Alike;
use super::compared::{Compared, Settled, Verdict};
use super::tried::Tried;
use super::words::{Chosen, Exchange, Numbered, Request, When, Why};

/// What is known of a communicator that has a number.
#[derive(Clone, Debug)]
pub(super) struct Served {
    pub tried: Tried,
    pub compared: Compared,
    pub alike: Alike,
    /// Capabilities that calls which are only started would have used, had they been tried.
    wanted: Capabilities,
    step: Step,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Trials that are due are judged.
    Judging,
    /// What is wanted is tried; this one is being tried.
    Trying(Option<Capabilities>),
    /// Multicast is tried again, if it is time.
    Retrying,
    /// A way is chosen.
    Choosing,
    /// What the way needs is tried.
    Providing(Verdict),
}

impl Served {
    pub fn new(learning: Learning, numbered: Numbered) -> Served {
        let Numbered { ranks, shares_nodes, has_multicast, trials, .. } = numbered;
        let mut compared = Compared::new(ranks, learning.tries, learning.tunes);
        compared.begin(trials);
        let tried = Tried::new(has_multicast, shares_nodes);
        Served { tried, compared, alike: Alike::NONE, wanted: Capabilities::NONE, step: Step::Judging }
    }

    /// A communicator that has tried all, and has `capabilities`.
    pub fn supposing(capabilities: Capabilities) -> Served {
        let mut tried = Tried::new(capabilities.has(Capabilities::MULTICAST), false);
        tried.capabilities = capabilities;
        let compared = Compared::new(1, false, false);
        Served { tried, compared, alike: Alike::NONE, wanted: Capabilities::NONE, step: Step::Judging }
    }

    /// Who serves a call that was counted and lies in `epoch`.
    pub fn decide(&mut self, policy: &Policy, request: &Request, epoch: Epoch) -> Result<Verdict, Exchange> {
        if request.when != When::Waited {
            return self.decide_unwaited(policy, request, epoch);
        }
        loop {
            self.step = match self.step {
                Step::Judging if self.compared.is_due() => return Err(Exchange::Sum),
                Step::Judging => Step::Trying(None),
                Step::Trying(trying) => match trying.or_else(|| self.wanted_and_untried()) {
                    Some(one) => {
                        self.step = Step::Trying(Some(one));
                        self.tried.provides(one)?;
                        self.wanted = self.wanted.without(one);
                        Step::Trying(None)
                    }
                    None => {
                        self.wanted = Capabilities::NONE;
                        Step::Retrying
                    }
                },
                Step::Retrying => {
                    self.step = Step::Choosing;
                    let best = policy.choose(&request.call, Capabilities::ALL, epoch).choice;
                    if best.is_by_multicast() && self.tried.is_time_to_retry() {
                        return Err(Exchange::Multicast);
                    }
                    Step::Choosing
                }
                Step::Choosing => {
                    let (call, there) = (&request.call, self.tried.capabilities);
                    let prior = *policy.choose(call, there, epoch);
                    if self.compared.is_to_hear(prior, request.may_be_compared) {
                        return Err(Exchange::Hear);
                    }
                    if !request.is_ordered && self.compared.is_to_measure(prior, call, there) {
                        return Err(Exchange::Measure);
                    }
                    Step::Providing(self.compared.verdict(policy, request, prior, there, epoch))
                }
                Step::Providing(verdict) => match self.tried.provides(verdict.choice.needs())? {
                    true => {
                        self.step = Step::Judging;
                        return Ok(verdict);
                    }
                    false => Step::Choosing,
                },
            };
        }
    }

    /// Who serves a call that is not waited for. A rank may be in two such calls at a time, on two
    /// communicators, and the others in the reverse order: so a call that is only started uses
    /// nothing that all ranks would have to try together first, on all ranks alike: each knows what
    /// was tried. It is tried in the next call that is waited for.
    fn decide_unwaited(
        &mut self,
        policy: &Policy,
        request: &Request,
        epoch: Epoch,
    ) -> Result<Verdict, Exchange> {
        let call = &request.call;
        loop {
            let there = match request.when {
                When::Ahead => self.tried.capabilities.without(self.tried.untried()),
                _ => self.tried.capabilities,
            };
            let prior = *policy.choose(call, there, epoch);
            let choice = match request.may_be_compared {
                true => self.compared.expected(policy, call, prior, there, epoch).0,
                false => self.compared.unchanging(request, prior, there),
            };
            let choice = if request.is_ordered { choice.in_order() } else { choice };
            if request.when == When::Ahead {
                let best = policy.choose(call, self.tried.capabilities, epoch).choice;
                self.wanted = self.wanted | best.needs();
            } else if !self.tried.provides(choice.needs())? {
                continue;
            }
            let why = Why::Rules(prior.by);
            return Ok(Verdict { choice, why, sample: None, settled: Settled::Open });
        }
    }

    fn wanted_and_untried(&self) -> Option<Capabilities> {
        let untried = self.tried.untried();
        let mut each = [Capabilities::MULTICAST, Capabilities::SHARED].into_iter();
        each.find(|one| self.wanted.has(*one) && untried.has(*one))
    }

    /// Settles the calls to come that are like this one, which was decided so.
    pub fn look_ahead(
        &mut self,
        policy: &Policy,
        counts: &CallCounts,
        request: &Request,
        chosen: Chosen,
        settled: Settled,
    ) {
        let Request { call, may_be_compared, is_ordered, .. } = *request;
        // By multicast each call is looked at, whether it still works.
        let is_looked_at =
            self.tried.waits_for_multicast() || chosen.choice.needs().has(Capabilities::MULTICAST);
        if is_looked_at || policy.leaves(&call) {
            return;
        }
        let Some((of, alike)) = self.compared.alike(settled) else { return };
        self.alike = Alike {
            collective: call.collective,
            bytes: policy.sizes_alike(&call, chosen.epoch),
            may_be_compared,
            is_ordered,
            chosen: (chosen.choice != Choice::Stock).then_some(chosen),
            of,
            left: alike.min(counts.left_in_epoch(policy, call.collective)),
            made: 0,
        };
    }

    /// Ends the calls alike, and adds what was counted to all counts.
    pub fn add_up(&mut self, counts: &mut CallCounts) {
        let Alike { collective, of, made, .. } = std::mem::replace(&mut self.alike, Alike::NONE);
        counts.add(collective, made);
        self.compared.add(of, made);
    }
}
