//! A rank that waits long in a served call, for ranks that never come.
//!
//! Ranks that give different sizes to a call, which MPI forbids, are served alike while one answer holds for both sizes. When the answers part, some wait here and
//! the others in the MPI, or in another way, and nobody is told. A valid program waits long, too, for a rank that computes: so this rank speaks only if the
//! answer has changed a few calls ago.

use std::time::Instant;

use polycast_core::policy::chooser::Chooser;
use polycast_core::policy::{self, Choice};

use crate::communicator::serving::Serving;
use crate::machine;
use crate::mismatch;

/// Rests between two looks at the clock.
const RESTS_UNTIL_LOOK: u32 = 256;

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

impl Serving {
    /// Speaks of a call that this rank waits in, if others may be served in another way.
    #[cold]
    pub(super) fn waits_long(&self, chooser: &Chooser, of: &policy::Call, way: Choice) {
        if chooser.has_changed(of, way) {
            mismatch::say_waiting(of, self.shared.rank, Some(way), machine::patience().as_secs());
        }
    }
}
