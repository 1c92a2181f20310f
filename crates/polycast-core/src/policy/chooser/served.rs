//! The way of a call on a communicator that has a number:
//!
//! ```text
//!  waited      Judging ─▶ Trying ─▶ Retrying ─▶ Choosing ─▶ Providing ─▶ verdict
//!                 Sum     Multicast   Multicast    Hear        Multicast      ▲
//!                         Look, Memory             Measure     Look, Memory   │
//!  not waited                                   Choosing ─▶ Providing ────────┘      what is not there is not used, or tried at once
//! ```
//! Each step may want an exchange first, and is taken again when that is heard.

use super::super::{CallCounts, Capabilities, Choice, Collective, Epoch, Policy};
use super::Learning;
use super::alike::CallsAlike;
use super::compared::{Compared, Judgement, Prior, Settled};
use super::tried::Tried;
use super::words::{Chosen, Numbered, RankExchange, Request, Waiting, Why};

/// What is known of a communicator that has a number.
#[derive(Clone, Debug)]
pub(super) struct Served {
    pub tried: Tried,
    pub compared: Compared,
    pub alike: CallsAlike,
    /// Capabilities that calls which are only started would have used, had they been tried.
    wanted: Capabilities,
    step: DecisionStep,
    /// The calls of each collective that came before ways were judged last.
    pub judged: [Option<u64>; Collective::ALL.len()],
}

#[derive(Clone, Copy, Debug)]
enum DecisionStep {
    /// Trials that are due are judged.
    Judging,
    /// What is wanted is tried; this one is being tried.
    Trying(Option<Capabilities>),
    /// Multicast is tried again, if it is time.
    Retrying,
    /// A way is chosen.
    Choosing,
    /// What the way needs is tried.
    Providing(Judgement),
}

impl Served {
    pub fn new(learning: Learning, numbered: Numbered) -> Served {
        let Numbered { ranks, shares_nodes, has_multicast, trials, .. } = numbered;
        let mut compared = Compared::new(ranks, learning.tries, learning.tunes);
        compared.begin(trials);
        Served::with(Tried::new(has_multicast, shares_nodes), compared)
    }

    /// A communicator that has tried all, and has `capabilities`.
    pub fn supposing(capabilities: Capabilities) -> Served {
        let mut tried = Tried::new(capabilities.has(Capabilities::MULTICAST), false);
        tried.capabilities = capabilities;
        Served::with(tried, Compared::new(1, false, false))
    }

    fn with(tried: Tried, compared: Compared) -> Served {
        Served {
            tried,
            compared,
            alike: CallsAlike::NONE,
            wanted: Capabilities::NONE,
            step: DecisionStep::Judging,
            judged: Default::default(),
        }
    }

    /// Who serves a call that was counted and lies in `epoch`.
    pub fn decide(
        &mut self,
        policy: &Policy,
        request: &Request,
        epoch: Epoch,
    ) -> Result<Judgement, RankExchange> {
        if request.when != Waiting::Waited {
            return self.decide_unwaited(policy, request, epoch);
        }
        loop {
            self.step = match self.step {
                DecisionStep::Judging if self.compared.is_due() => return Err(RankExchange::Sum),
                DecisionStep::Judging => DecisionStep::Trying(None),
                DecisionStep::Trying(trying) => match trying.or_else(|| self.wanted_and_untried()) {
                    Some(one) => {
                        self.step = DecisionStep::Trying(Some(one));
                        self.tried.provides(one)?;
                        self.wanted = self.wanted.without(one);
                        DecisionStep::Trying(None)
                    }
                    None => {
                        self.wanted = Capabilities::NONE;
                        DecisionStep::Retrying
                    }
                },
                DecisionStep::Retrying => {
                    self.step = DecisionStep::Choosing;
                    let best = policy.choose(&request.call, Capabilities::ALL, epoch).choice;
                    if best.is_by_multicast() && self.tried.is_time_to_retry() {
                        return Err(RankExchange::Multicast);
                    }
                    DecisionStep::Choosing
                }
                DecisionStep::Choosing => {
                    let (call, there) = (&request.call, self.tried.capabilities);
                    let prior = Prior::of(policy, call, there, epoch);
                    if self.compared.is_to_hear(prior, request.may_be_compared) {
                        return Err(RankExchange::Hear);
                    }
                    if !request.is_ordered && self.compared.is_to_measure(prior, call, there) {
                        return Err(RankExchange::Measure);
                    }
                    let known = (there, self.tried.untried());
                    DecisionStep::Providing(self.compared.verdict(policy, request, prior, known, epoch))
                }
                DecisionStep::Providing(verdict) => match self.tried.provides(verdict.choice.needs())? {
                    true => {
                        self.step = DecisionStep::Judging;
                        return Ok(verdict);
                    }
                    false => DecisionStep::Choosing,
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
    ) -> Result<Judgement, RankExchange> {
        let call = &request.call;
        loop {
            let there = match request.when {
                Waiting::Ahead => self.tried.capabilities.without(self.tried.untried()),
                _ => self.tried.capabilities,
            };
            let prior = Prior::of(policy, call, there, epoch);
            let choice = match request.may_be_compared {
                true => self.compared.expected(policy, call, prior, there, epoch).0,
                false => self.compared.unchanging(policy, request, prior, there),
            };
            let choice = if request.is_ordered { policy.in_order(choice) } else { choice };
            if request.when == Waiting::Ahead {
                let best = policy.choose(call, self.tried.capabilities, epoch).choice;
                self.wanted = self.wanted | best.needs();
            } else if !self.tried.provides(choice.needs())? {
                continue;
            }
            let why = Why::Rules(prior.by);
            let (settled, is_challenged) = (Settled::Open, prior.is_challenged);
            return Ok(Judgement { choice, why, sample: None, settled, is_challenged });
        }
    }

    /// True if what is set up now is for a challenger.
    pub fn is_setting_challenger_up(&self) -> bool {
        matches!(self.step, DecisionStep::Providing(Judgement { is_challenged: true, .. }))
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
        self.alike = CallsAlike {
            collective: call.collective,
            bytes: policy.sizes_alike(&call, chosen.epoch),
            may_be_compared,
            is_ordered,
            is_sum: call.is_sum,
            chosen: (chosen.choice != Choice::Stock).then_some(chosen),
            of,
            left: alike.min(counts.left_in_epoch(policy, call.collective)),
            made: 0,
        };
    }

    /// Ends the calls alike, and adds what was counted to all counts.
    pub fn add_up(&mut self, counts: &mut CallCounts) {
        let CallsAlike { collective, of, made, .. } = std::mem::replace(&mut self.alike, CallsAlike::NONE);
        counts.add(collective, made);
        self.compared.add(of, made);
    }
}
