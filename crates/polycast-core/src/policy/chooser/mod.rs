//! The one place where it is decided who serves a communicator's calls: a machine without a clock, without messages, without state outside
//! of it. There is one for each communicator, and one on each of its ranks.
//!
//! ```text
//!  request ──▶ next ──▶ Leave | Serve(way)                      the way is carried out; its time is told by `took`
//!                │
//!                └────▶ First(exchange) ──▶ all ranks carry it out together ──▶ heard(answer) ──▶ next, with the same request
//!
//!  passing       calls that the door leaves by itself: never counted, or counted by it (`passed`)
//! ```
//! A request goes the way of `go_on`: what is the MPI's by rules or limits; calls like the last one ([`alike`]); the number of the
//! communicator; then what the ranks have to learn first ([`served`]), candidates, prior, trials, verdict ([`compared`]).
//!
//! # Invariants
//! 1. Choosers of the same rules, shape, requests and answers give the same sequence of answers, whatever times they are told, and whether
//!    somebody reads of their calls or not.
//! 2. A call that the door leaves by itself changes a chooser as asking it would.
//! 3. A request of a call that is only started on this rank ([`Waiting::Ahead`]) never gets [`WhoServes::First`].
//! 4. After a failed exchange this rank does not choose: it gives [`WhoServes::Broken`], but for calls that no rank counts.
//! 5. `next` takes no memory and no lock for calls like the last one.
//! 6. Of sums, the MPI serves all of a size or none, from the first call of a communicator to its last, whatever was timed or has failed
//!    meanwhile: their bits are the same in all of them.

mod alike;
mod compared;
mod limits;
mod served;
mod tells;
mod tried;
mod words;

use std::sync::Arc;

use self::compared::is_timed_at;
pub use self::limits::LongestCalls;
use self::served::Served;
pub use self::words::{
    Again, Answer, Chosen, Numbered, Opened, Opening, RankExchange, Request, TrialOutcome, Waiting,
    WhoServes, Why,
};
use super::trials::{Sameness, Sample, Sums, Trials};
use super::{By, CallCounts, Capabilities, Choice, Collective, Epoch, Policy, ServedSums};

/// What a chooser does besides following rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Learning {
    /// True if calls of the program are compared.
    pub tries: bool,
    /// True if ways are measured apart from the program's calls.
    pub tunes: bool,
}

/// Decides who serves the calls of one communicator, on one of its ranks.
#[derive(Clone, Debug)]
pub struct Chooser {
    policy: Arc<Policy>,
    counts: CallCounts,
    longest: Option<LongestCalls>,
    learning: Learning,
    state: Standing,
    /// The request under way, once it was counted.
    under_way: Option<UnderWay>,
    /// True if a call that was only started lacked a number: the ranks agree on one in the next
    /// call that is waited for.
    is_number_wanted: bool,
    /// True if somebody reads what becomes of calls: the door then leaves none by itself.
    is_read: bool,
    /// True if calls that the rules never serve are left uncounted, which is so on all ranks or on
    /// none.
    passes: bool,
    /// True if this rank does not know what the others do.
    is_broken: bool,
}

#[derive(Clone, Debug)]
enum Standing {
    /// The MPI serves all calls so far.
    Unopened,
    /// The MPI serves all calls: some rank cannot serve, or there is no number left.
    Refused,
    Served(Box<Served>),
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    epoch: Epoch,
    /// True if the ranks have tried to open the communicator for the call.
    has_opened: bool,
}

impl Chooser {
    /// A chooser for a communicator that has had `earlier_calls` of each collective, all left to
    /// the MPI. `is_read`: somebody reads what becomes of calls on this rank.
    pub fn new(
        policy: Arc<Policy>,
        learning: Learning,
        longest: Option<LongestCalls>,
        earlier_calls: [u64; Collective::ALL.len()],
        is_read: bool,
    ) -> Chooser {
        Chooser {
            counts: CallCounts::after(&policy, earlier_calls),
            policy,
            longest,
            learning,
            state: Standing::Unopened,
            under_way: None,
            is_number_wanted: false,
            is_read,
            passes: !learning.tunes,
            is_broken: false,
        }
    }

    /// A chooser for a communicator that is served, has `capabilities`, and has had so many calls of
    /// each collective: what jobs of that shape do once all is tried, by the rules alone.
    pub fn supposing(policy: Arc<Policy>, capabilities: Capabilities, earlier_calls: u64) -> Chooser {
        let counts = [earlier_calls; Collective::ALL.len()];
        let mut chooser = Chooser::new(policy, Learning::default(), None, counts, false);
        chooser.state = match capabilities.has(Capabilities::PRIVATE) {
            true => Standing::Served(Box::new(Served::supposing(capabilities))),
            false => Standing::Refused,
        };
        chooser
    }

    /// The rules.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// True once the communicator has a number: what it needs to serve calls is there.
    pub fn is_served(&self) -> bool {
        matches!(self.state, Standing::Served(_))
    }

    /// The capabilities, as far as they were tried; the rest is assumed to be there.
    pub fn capabilities(&self) -> Capabilities {
        match &self.state {
            Standing::Unopened => Capabilities::ALL,
            Standing::Refused => Capabilities::NONE,
            Standing::Served(served) => served.tried.capabilities,
        }
    }

    /// Who serves a call, or what the ranks must learn before that is known.
    #[inline]
    pub fn next(&mut self, request: &Request) -> WhoServes {
        if self.under_way.is_none()
            && let Some(next) = self.at_once(request)
        {
            return next;
        }
        self.go_on(request)
    }

    /// The answer for calls about which nothing is to be decided.
    #[inline]
    pub fn at_once(&mut self, request: &Request) -> Option<WhoServes> {
        let is_waited = request.when == Waiting::Waited;
        if is_waited && self.passes && self.policy.leaves(&request.call) {
            let why = if self.is_read { Some(self.reason_to_pass(request)) } else { None };
            return Some(WhoServes::Leave { why, sample: None });
        }
        if request.when == Waiting::Ahead && request.call.is_sum {
            return Some(WhoServes::Leave { why: Some(Why::SumAhead), sample: None });
        }
        if let Some(why) = self.limited(request) {
            return Some(WhoServes::Leave { why: Some(why), sample: None });
        }
        if self.is_broken {
            return Some(WhoServes::Broken);
        }
        let Standing::Served(served) = &mut self.state else { return None };
        if !is_waited {
            return None;
        }
        Some(match served.alike.next(request)? {
            None => WhoServes::Leave { why: None, sample: None },
            Some(chosen) => WhoServes::Serve { chosen, why: None, sample: None },
        })
    }

    #[inline]
    fn limited(&self, request: &Request) -> Option<Why> {
        let why = limits::reason(self.longest.as_ref(), request)?;
        let by = self.policy.choose(&request.call, Capabilities::ALL, Epoch::FIRST).by;
        let is_promised = request.call.is_sum && self.policy.served_sums() == ServedSums::Canonical;
        (by != By::Forced && !is_promised).then_some(why)
    }

    #[cold]
    fn reason_to_pass(&self, request: &Request) -> Why {
        let epoch = self.counts.peek(&self.policy, request.call.collective);
        Why::Rules(self.policy.choose(&request.call, Capabilities::ALL, epoch).by)
    }

    fn go_on(&mut self, request: &Request) -> WhoServes {
        let mut under_way = match self.under_way.take() {
            Some(under_way) => under_way,
            None => self.begin(request),
        };
        let decided = self.decide(request, &mut under_way);
        match decided {
            Err(exchange) => {
                self.under_way = Some(under_way);
                WhoServes::First(exchange)
            }
            Ok(next) => next,
        }
    }

    /// Counts a call about which something is to be decided.
    fn begin(&mut self, request: &Request) -> UnderWay {
        self.add_up();
        // What is not there yet is tried in the next call that is waited for, whatever that one is for.
        self.passes = request.when == Waiting::Waited && !self.learning.tunes;
        let epoch = self.counts.next(&self.policy, &request.call);
        UnderWay { epoch, has_opened: false }
    }

    fn decide(&mut self, request: &Request, under_way: &mut UnderWay) -> Result<WhoServes, RankExchange> {
        let UnderWay { epoch, has_opened } = *under_way;
        if !has_opened
            && let Standing::Unopened = self.state
            && let Some(opening) = self.opening(request, epoch)
        {
            under_way.has_opened = true;
            return Err(RankExchange::Open(opening));
        }
        let by = self.policy.choose(&request.call, self.capabilities(), epoch).by;
        let Chooser { policy, state: Standing::Served(served), counts, is_read, .. } = self else {
            return Ok(WhoServes::Leave { why: Some(Why::Rules(by)), sample: None });
        };
        let verdict = served.decide(policy, request, epoch)?;
        let (digits, is_root) = (Sameness::digits_of(request.call.bytes.0), request.is_root);
        let sample = verdict.sample.filter(|_| is_timed_at(request.call.collective, digits, is_root));
        let why = Some(verdict.why);
        let is_ahead = request.when != Waiting::Waited;
        let chosen = Chosen { choice: verdict.choice, epoch, is_ahead };
        let is_left = verdict.choice == Choice::Stock;
        let is_told = is_left && sample.is_some();
        if !is_ahead && !*is_read && !is_told {
            served.look_ahead(policy, counts, request, chosen, verdict.settled);
        }
        Ok(match is_left {
            true => WhoServes::Leave { why, sample },
            false => WhoServes::Serve { chosen, why, sample },
        })
    }

    /// The opening that the call needs, if it needs one.
    fn opening(&mut self, request: &Request, epoch: Epoch) -> Option<Opening> {
        let (policy, call) = (&*self.policy, &request.call);
        let decision = *policy.choose(call, Capabilities::ALL, epoch);
        let may_serve =
            decision.choice != Choice::Stock || policy.asks_before(call, Capabilities::ALL, epoch);
        match request.when {
            // What the network is like may decide, and nobody knows it yet: who opens finds out.
            Waiting::Ahead => {
                self.is_number_wanted |= may_serve;
                None
            }
            Waiting::Prepared => {
                may_serve.then(|| Opening::of_any(policy, decision.choice.is_by_multicast()))
            }
            Waiting::Waited if std::mem::take(&mut self.is_number_wanted) => {
                Some(Opening::of_any(policy, false))
            }
            Waiting::Waited => {
                let Learning { tries, tunes } = self.learning;
                let tunes = tunes && !decision.by.is_users();
                let is_comparable = request.may_be_compared && !decision.by.is_users();
                let hears = is_comparable && tries && !self.learning.tunes;
                let is_challenged = || policy.for_sizes_of(call, epoch).is_challenged(Capabilities::ALL);
                let opening = || Opening {
                    call: Some((*call, epoch)),
                    tunes,
                    is_by_multicast: false,
                    late: (self.counts.earlier_calls(call.collective) > 1).then_some(*call),
                    asks: policy.asks(),
                    hears,
                };
                (may_serve || tunes || hears && is_challenged()).then(opening)
            }
        }
    }

    /// Takes what the ranks have learned. Returns what a trial has found, if one is over.
    pub fn heard(&mut self, answer: Answer) -> Option<TrialOutcome> {
        if let Answer::Opened(opened) = answer {
            self.opened(opened);
            return None;
        }
        let Standing::Served(served) = &mut self.state else { return None };
        match answer {
            Answer::Opened(_) => {}
            Answer::Multicast(outcome) => served.tried.tried_multicast(outcome),
            Answer::Look { has_died } => served.tried.looked(has_died),
            Answer::Memory(has_memory) => served.tried.tried_memory(has_memory),
            Answer::Sums(sums) => {
                served.judged = Collective::ALL.map(|of| Some(self.counts.earlier_calls(of)));
                return served.compared.judge(&self.policy, &sums);
            }
            Answer::Heard { trials, measured } => served.compared.heard(trials, measured),
            Answer::Measured { of, found } => served.compared.measured(of, found),
        }
        None
    }

    fn opened(&mut self, opened: Opened) {
        match opened {
            Opened::Refused => self.state = Standing::Refused,
            Opened::NotWanted { policy } => self.policy = policy,
            Opened::Number(numbered) => {
                self.policy = numbered.policy.clone();
                self.state = Standing::Served(Box::new(Served::new(self.learning, numbered)));
            }
        }
    }

    /// Notes that something failed on this rank while the ranks agreed, so that it does not know
    /// what the others do.
    pub fn fail(&mut self) {
        self.add_up();
        (self.is_broken, self.under_way) = (true, None);
        // The others may know another network.
        self.passes &= self.is_served();
    }

    /// Notes that ranks have called with different sizes: they may have made different calls, so
    /// nothing is compared any more.
    pub fn sizes_differ(&mut self) {
        if let Some(trials) = self.trials_mut() {
            trials.stop();
        }
    }

    /// Takes the time of a call on this rank, in nanoseconds.
    pub fn took(&mut self, sample: Sample, nanos: u64) {
        if let Some(trials) = self.trials_mut() {
            trials.took(sample, nanos);
        }
    }

    /// Notes what an exchange took on this rank, in nanoseconds: what is set up for challengers,
    /// and what it takes to add their times up, is part of their cost.
    pub fn spent(&mut self, exchange: RankExchange, nanos: u64) {
        let Standing::Served(served) = &mut self.state else { return };
        let is_for_challenger = served.is_setting_challenger_up();
        match (exchange, &mut served.compared.trials) {
            (RankExchange::Sum, Some(trials)) => trials.added_up(nanos),
            (RankExchange::Multicast | RankExchange::Memory, Some(trials)) if is_for_challenger => {
                trials.spent(nanos);
            }
            _ => {}
        }
    }

    /// This rank's times, to be added up over all ranks.
    pub fn times(&self) -> Sums {
        match &self.state {
            Standing::Served(served) => served.compared.times(),
            _ => [0; super::trials::SUMS],
        }
    }

    /// The trials, if rank 0 was heard: what the process learns from them.
    pub fn trials_mut(&mut self) -> Option<&mut Trials> {
        match &mut self.state {
            Standing::Served(served) => served.compared.trials.as_mut(),
            _ => None,
        }
    }

    /// Whether the communicator has what `needs` names; if that is not known, the ranks learn it
    /// first.
    pub fn provides(&mut self, needs: Capabilities) -> Result<bool, RankExchange> {
        match &mut self.state {
            Standing::Served(served) => served.tried.provides(needs),
            Standing::Unopened if needs != Capabilities::NONE => {
                Err(RankExchange::Open(Opening::of_any(&self.policy, false)))
            }
            _ => Ok(needs == Capabilities::NONE),
        }
    }

    /// Ends the calls alike, since another kind of call comes, one has failed or there are no more,
    /// and adds what was counted to all counts.
    pub fn add_up(&mut self) {
        if let Standing::Served(served) = &mut self.state {
            served.add_up(&mut self.counts);
        }
    }
}

#[cfg(test)]
mod tests;
