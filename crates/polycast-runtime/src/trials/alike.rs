//! Calls to come that are served as the last one was.

use polycast_core::policy::trials::Sameness;

use super::Comparison;

/// What the last call was.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// As the rules alone have it.
    Ruled,
    Settled(Sameness),
    /// Compared, or what compares it is not there yet.
    Open,
}

impl Comparison {
    /// How many calls to come, like the last one, are served as it is, and not timed; and the trial that has settled that, if it was one. `None`: each is to
    /// be looked at.
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

    /// So many of them were made.
    pub fn add(&mut self, of: Option<Sameness>, calls: u64) {
        let trials = self.0.as_deref_mut().and_then(|wanted| wanted.trials.as_mut());
        if let (Some(of), Some(trials)) = (of, trials) {
            trials.add(of, calls);
        }
    }
}
