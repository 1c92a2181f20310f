//! Calls to come that are served as the last one was.

use polycast_core::policy::trials::Sameness;

use super::Comparison;

/// The kind of the last call's decision.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// The rules alone decided.
    Ruled,
    Settled(Sameness),
    /// Ways are compared, or trials have not begun yet.
    Open,
}

impl Comparison {
    /// Number of calls to come, like the last one, that are served as it is and not timed; and the
    /// trial that settled it, if one did. `None`: each call is to be looked at.
    pub fn calls_alike(&self) -> Option<(Option<Sameness>, u64)> {
        let Some(wanted) = self.0.as_deref() else { return Some((None, u64::MAX)) };
        if wanted.tuning.is_some() || self.is_due() {
            return None;
        }
        match wanted.last {
            Last::Ruled => Some((None, u64::MAX)),
            Last::Settled(of) => Some((Some(of), wanted.trials.as_ref()?.steady(of))),
            Last::Open => None,
        }
    }

    /// Counts `calls` such calls that were made.
    pub fn add(&mut self, of: Option<Sameness>, calls: u64) {
        let trials = self.0.as_deref_mut().and_then(|wanted| wanted.trials.as_mut());
        if let (Some(of), Some(trials)) = (of, trials) {
            trials.add(of, calls);
        }
    }
}
