//! A rank that waits long in a served call, for ranks that never come.
//!
//! Ranks that give different sizes to a call, which MPI forbids, are served alike while one answer holds for both sizes. When the answers part, some wait here and
//! the others in the MPI, or in another way, and nobody is told. A valid program waits long, too, for a rank that computes: so this rank speaks only if the
//! answer has changed a few calls ago.

use std::time::Instant;

use polycast_core::policy::{self, Choice};

use crate::communicator::Communicator;
use crate::machine;
use crate::mismatch;

/// Rests between two looks at the clock.
const RESTS_UNTIL_LOOK: u32 = 256;

/// Calls of a collective after a change of its answers in which a rank that waits long speaks.
const CALLS_AFTER_CHANGE: u64 = 16;

/// Rests of one wait, and the time since when they are looked at.
#[derive(Default)]
pub(super) struct Patience {
    rests: u32,
    since: Option<Instant>,
}

impl Patience {
    /// Notes a rest; `has_slept`: it took longer than a look at the clock. True when the patience is over, once.
    pub fn is_over(&mut self, has_slept: bool) -> bool {
        self.rests = self.rests.wrapping_add(1);
        if !has_slept && !self.rests.is_multiple_of(RESTS_UNTIL_LOOK) {
            return false;
        }
        let now = machine::now();
        let is_over = now - *self.since.get_or_insert(now) >= machine::patience();
        if is_over {
            self.since = Some(now);
        }
        is_over
    }
}

impl Communicator {
    /// Speaks of a call that this rank waits in, if others may be served in another way.
    #[cold]
    pub(super) fn waits_long(&self, of: &policy::Call, way: Choice) {
        if self.has_changed(of, way) {
            mismatch::say_waiting(of, self.shared.rank, Some(way), machine::patience().as_secs());
        }
    }

    /// True if calls like this one were served in another way a few calls ago.
    fn has_changed(&self, of: &policy::Call, way: Choice) -> bool {
        let counts = self.counts_with_settled();
        let is_few = |calls: u64| calls <= CALLS_AFTER_CHANGE;
        let is_other = |before| self.shared.policy.choose(of, self.capabilities, before).choice != way;
        let judged = self.judged[of.collective as usize];
        let change = counts.last_change(&self.shared.policy, of.collective);
        judged.is_some_and(|at| is_few(counts.earlier_calls(of.collective).saturating_sub(at)))
            || change.is_some_and(|(before, calls)| is_few(calls) && is_other(before))
    }
}
