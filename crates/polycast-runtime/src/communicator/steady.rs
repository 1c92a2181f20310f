//! Calls like the last one, about which nothing is left to be decided for a while: they are served as it was, without another look at rules
//! and trials, which cost more than a short message on a node.
//!
//! ```text
//!  calls      8 KiB   8 KiB  8 KiB …  8 KiB    1 MiB
//!             decided, and so are the next 64
//!                     ╰─── only counted ───╯   what was counted is added up; decided
//! ```
//! # Invariant
//!
//! These calls change only how soon a rank has decided: before anything else is decided, all counts
//! are what they would be otherwise. So ranks need not agree on them.

use std::ops::RangeInclusive;

use polycast_core::policy::trials::Sameness;
use polycast_core::policy::{CallCounts, Capabilities, Choice, Collective, Epoch};

use crate::abi::{SteadyCalls, saturated};
use crate::call::{Decision, Wanted};
use crate::communicator::{Communicator, MulticastState};

/// The calls to come that are like the last one.
pub struct Steady {
    collective: Collective,
    bytes: RangeInclusive<u64>,
    may_be_compared: bool,
    is_ordered: bool,
    decision: Decision,
    /// The trial of such calls, if it has settled what serves them.
    of: Option<Sameness>,
    left: u64,
    made: u64,
    /// Number of calls, of those that are left, that the door counts itself.
    given: u32,
}

impl Steady {
    pub const NONE: Steady = Steady {
        collective: Collective::Broadcast,
        bytes: 0..=0,
        may_be_compared: false,
        is_ordered: false,
        decision: Decision::Left,
        of: None,
        left: 0,
        made: 0,
        given: 0,
    };

    /// Hands the door the calls that it can leave by itself.
    pub fn give(&mut self) -> SteadyCalls {
        let Ok(first) = u32::try_from(*self.bytes.start()) else { return SteadyCalls::NONE };
        if self.decision != Decision::Left || self.collective.combines() {
            return SteadyCalls::NONE;
        }
        self.given = saturated(self.left);
        let (collective, last) = (self.collective as u32, saturated(*self.bytes.end()));
        SteadyCalls { collective, first, last, calls: self.given }
    }

    /// Number of the `given` calls that the door has left to the MPI.
    fn left_by_door(&self, given: &SteadyCalls) -> u64 {
        u64::from(self.given - given.calls)
    }

    /// Takes back the calls that were given to the door, and counts those that it has left.
    pub fn take_back(&mut self, given: &mut SteadyCalls) {
        let made = self.left_by_door(given);
        self.given = 0;
        (self.left, self.made) = (self.left - made, self.made + made);
        *given = SteadyCalls::NONE;
    }

    /// The decision for a call, if the call is like the last one.
    #[inline]
    pub fn next(&mut self, call: &Wanted) -> Option<Decision> {
        let is_one = self.left > 0
            && self.bytes.contains(&call.of.bytes.0)
            && (self.collective, self.may_be_compared, self.is_ordered)
                == (call.of.collective, call.may_be_compared, call.is_ordered);
        if !is_one {
            return None;
        }
        (self.left, self.made) = (self.left - 1, self.made + 1);
        Some(self.decision)
    }
}

impl Communicator {
    /// Settles the calls to come that are like this one, which was decided so.
    pub(crate) fn look_ahead(&mut self, call: &Wanted, epoch: Epoch, decision: Decision) {
        let choice = match decision {
            Decision::Left => Choice::Stock,
            Decision::Served(chosen) => chosen.choice,
            Decision::LeftAndTimed => return,
        };
        let policy = &self.shared.policy;
        // By multicast each call is looked at, whether it still works.
        let is_looked_at = matches!(self.multicast, MulticastState::Unavailable { .. })
            || choice.needs().has(Capabilities::MULTICAST);
        if is_looked_at || self.log.is_wanted() || policy.leaves(&call.of) {
            return;
        }
        let Some((of, settled)) = self.comparison.calls_alike() else { return };
        self.steady = Steady {
            collective: call.of.collective,
            bytes: policy.sizes_alike(&call.of, epoch),
            may_be_compared: call.may_be_compared,
            is_ordered: call.is_ordered,
            decision,
            of,
            left: settled.min(self.counts.left_in_epoch(policy, call.of.collective)),
            made: 0,
            given: 0,
        };
    }

    /// Counts of calls, with those that are only counted so far, here and by the door.
    pub(crate) fn counts_now(&self, given: &SteadyCalls) -> CallCounts {
        let mut counts = self.counts.clone();
        counts.add(self.steady.collective, self.steady.made + self.steady.left_by_door(given));
        counts
    }

    /// The counts with the settled calls among them, none of which the door has counted.
    pub(crate) fn counts_with_settled(&self) -> CallCounts {
        let mut counts = self.counts.clone();
        counts.add(self.steady.collective, self.steady.made);
        counts
    }

    /// Ends the settled calls, since another kind of call comes, and adds what was counted to all
    /// counts.
    pub(crate) fn add_up(&mut self) {
        let Steady { collective, of, made, .. } = std::mem::replace(&mut self.steady, Steady::NONE);
        self.counts.add(collective, made);
        self.comparison.add(of, made);
    }
}
