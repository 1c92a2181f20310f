use std::sync::Arc;
use std::time::Instant;

use polycast_core::policy::{Call, Choice};

use super::reasons::Reasons;
use super::record::ReasonId;
use super::with_record;
use crate::machine;
use crate::settings::{self, Settings};
use crate::trials::Why;

/// One communicator's calls. Where no report is wanted, it does nothing.
#[derive(Default)]
pub struct Log(Option<Box<Wanted>>);

struct Wanted {
    reasons: Reasons,
    /// When the call began that is under way.
    begun: Instant,
    /// Why, if it is left to the MPI.
    left: Option<(Call, ReasonId)>,
}

impl Log {
    /// Of a communicator whose choices were made by these settings.
    pub fn new(settings: &Arc<Settings>) -> Log {
        Log(settings::is_report_wanted()
            .then(|| Box::new(Wanted { reasons: Reasons::new(settings), begun: machine::now(), left: None })))
    }

    /// Somebody reads it.
    pub fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// A call begins.
    pub fn begin(&mut self) {
        if let Some(wanted) = &mut self.0 {
            (wanted.begun, wanted.left) = (machine::now(), None);
        }
    }

    /// A call was served that began then.
    pub fn served(&self, call: &Call, choice: Choice, begun: Instant) {
        if self.0.is_some() {
            let took = machine::now() - begun;
            with_record(|record| record.served(call, choice, took));
        }
    }

    /// The call is left to the MPI: by a rule, or because a private communicator was refused. Whether [`Log::end_of_left`]
    /// is to be called.
    pub fn leave(&mut self, call: &Call, why: Why, is_refused: impl FnOnce() -> bool) -> bool {
        let Some(wanted) = &mut self.0 else { return false };
        let reason = match is_refused() {
            true => with_record(|record| record.reason(call.collective, REFUSED)),
            false => wanted.reasons.of(call.collective, why),
        };
        wanted.left = Some((*call, reason));
        true
    }

    /// The MPI has done it.
    pub fn end_of_left(&mut self) {
        let Some(wanted) = &mut self.0 else { return };
        if let Some((call, reason)) = wanted.left.take() {
            let took = machine::now() - wanted.begun;
            with_record(|record| record.left(&call, reason, took));
        }
    }
}

const REFUSED: &str = "no number left for its messages: too many communicators are served already";
