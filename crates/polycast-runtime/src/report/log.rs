use std::sync::Arc;
use std::time::Instant;

use polycast_core::policy::{Call, Choice};
use polycast_core::units::Rank;

use super::reasons::{Reasons, told};
use super::record::ReasonId;
use super::with_record;
use crate::call::{Heard, Why};
use crate::machine;
use crate::settings::{self, Settings};
use crate::trace::CallTrace;

/// Log of one communicator's calls. Where neither a report nor a trace is wanted, it does nothing.
#[derive(Default)]
pub struct Log(Option<Box<WantedLog>>);

struct WantedLog {
    reasons: Reasons,
    /// Beginning of the call under way.
    begun: Instant,
    /// The call under way and the reason, if it is left to the MPI.
    left: Option<(Call, ReasonId)>,
    trace: Option<CallTrace>,
}

/// Parts of logging that are not inlined: a call that nobody logs costs one test.
impl WantedLog {
    #[cold]
    fn begin(&mut self, call: &Call, root: Rank) {
        (self.begun, self.left) = (machine::now(), None);
        if let Some(trace) = &mut self.trace {
            trace.called(call, root, self.begun);
        }
    }

    #[cold]
    fn leave(&mut self, call: &Call, why: Why, is_refused: bool) {
        self.chosen(call, Choice::Stock, why);
        let reason = match is_refused {
            true => with_record(|record| record.reason(call.collective, REFUSED)),
            false => self.reasons.of(call.collective, why),
        };
        self.left = Some((*call, reason));
    }

    #[cold]
    fn chosen(&mut self, call: &Call, choice: Choice, why: Why) {
        if let Some(trace) = &mut self.trace {
            let text = || told(self.reasons.settings(), call.collective, choice, why);
            trace.chosen(call.collective, choice, why, text);
        }
    }
}

impl Log {
    /// A log for a communicator whose choices are made by `settings`.
    pub fn new(settings: &Arc<Settings>, trace: Option<CallTrace>) -> Log {
        let wanted =
            || WantedLog { reasons: Reasons::new(settings), begun: machine::now(), left: None, trace };
        Log(settings::is_report_wanted().then(|| Box::new(wanted())))
    }

    /// True if somebody reads the log.
    pub fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    fn trace(&mut self) -> Option<&mut CallTrace> {
        self.0.as_mut()?.trace.as_mut()
    }

    /// Notes the beginning of a call.
    #[inline]
    pub fn begin(&mut self, call: &Call, root: Rank) {
        if let Some(wanted) = &mut self.0 {
            wanted.begin(call, root);
        }
    }

    /// Notes the beginning of the call anew: the time before was not spent for the program.
    pub fn begin_again(&mut self) {
        if let Some(wanted) = &mut self.0 {
            wanted.begun = machine::now();
        }
    }

    /// Number of the call that began last.
    pub fn number(&self) -> u32 {
        self.0.as_ref().and_then(|wanted| wanted.trace.as_ref()).map_or(0, CallTrace::number)
    }

    /// Notes the way of the call, and why.
    #[inline]
    pub fn chosen(&mut self, call: &Call, choice: Choice, why: Why) {
        if let Some(wanted) = &mut self.0 {
            wanted.chosen(call, choice, why);
        }
    }

    /// Notes that nothing of the call can go on before something comes.
    #[inline]
    pub fn rests(&mut self) {
        if let Some(trace) = self.trace() {
            trace.rests();
        }
    }

    /// Notes that something has come.
    #[inline]
    pub fn goes_on(&mut self) {
        if let Some(trace) = self.trace() {
            trace.goes_on();
        }
    }

    /// Notes the datagrams that were seen of a call.
    pub fn heard(&mut self, number: u32, heard: Option<Heard>) {
        if let (Some(trace), Some(heard)) = (self.trace(), heard) {
            trace.heard(number, &heard);
        }
    }

    /// Counts a served call, which began at `begun`.
    pub fn served(&mut self, call: &Call, number: u32, choice: Choice, begun: Instant, has_failed: bool) {
        if let Some(wanted) = &mut self.0 {
            let now = machine::now();
            with_record(|record| {
                record.served(call, choice, now - begun);
                record.renew_witness(now);
            });
            if let Some(trace) = &mut wanted.trace {
                trace.returned(number, has_failed, now);
            }
        }
    }

    /// Notes that the call is left to the MPI: by a rule, or because a private communicator was
    /// refused. True if [`Log::end_of_left`] is to be called.
    #[inline]
    pub fn leave(&mut self, call: &Call, why: Why, is_refused: impl FnOnce() -> bool) -> bool {
        let Some(wanted) = &mut self.0 else { return false };
        wanted.leave(call, why, is_refused());
        true
    }

    /// Counts a call that the MPI has done.
    pub fn end_of_left(&mut self) {
        let Some(wanted) = &mut self.0 else { return };
        if let Some((call, reason)) = wanted.left.take() {
            let now = machine::now();
            with_record(|record| {
                record.left(&call, reason, now - wanted.begun);
                record.renew_witness(now);
            });
            if let Some(trace) = &mut wanted.trace {
                trace.returned(trace.number(), false, now);
            }
        }
    }
}

const REFUSED: &str = "no number left for its messages: too many communicators are served already";
