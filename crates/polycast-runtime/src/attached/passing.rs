//! Calls that pass by: the door leaves them to the MPI without a word, for most calls of most programs go no further, and each page of memory
//! that is looked at for them makes a short message longer.

use polycast_core::collective::Collective;
use polycast_core::policy::{Capabilities, Policy, ToStock};

use super::{Attached, State};
use crate::abi::{Sizes, saturated};
use crate::call::{Decision, Wanted, Why};

/// Sizes of the calls that pass by, by collective.
pub type Passing = [Sizes; Collective::ALL.len()];

/// No call passes by.
pub(super) const NOTHING: Passing = [Sizes { below: 0, above: u32::MAX }; Collective::ALL.len()];

/// Sizes of the calls that a policy leaves to the MPI.
fn left_by(policy: &Policy) -> Passing {
    Collective::ALL.map(|collective| {
        let ToStock { below, above } = policy.to_stock(collective);
        Sizes { below: saturated(below), above: saturated(above) }
    })
}

impl Attached {
    /// Leaves a call because the rules do, and logs it for whoever reads what becomes of calls.
    #[cold]
    pub(super) fn pass_by_rules(&mut self, call: &Wanted) -> Decision {
        let counts = match &self.state {
            State::Served(communicator) => &communicator.counts,
            _ => &self.counts,
        };
        let epoch = counts.peek(&self.policy, call.of.collective);
        let by = self.policy.choose(&call.of, Capabilities::ALL, epoch).by;
        self.pass(call, Why::Rules(by))
    }

    /// Leaves a call for the reason `why`, and logs it.
    #[cold]
    pub(super) fn pass(&mut self, call: &Wanted, why: Why) -> Decision {
        let log = match &mut self.state {
            State::Served(communicator) => &mut communicator.log,
            _ => &mut self.log,
        };
        log.begin(&call.of, call.root);
        match log.leave(&call.of, why, || false) {
            true => Decision::LeftAndTimed,
            false => Decision::Left,
        }
    }

    /// Lets the calls that the policy leaves pass by, unless ways to serve calls are to be
    /// measured.
    pub(super) fn let_pass(&mut self) {
        self.passes = self.view.is_some() && !self.tunes();
        let is_seen = self.is_logged || !self.passes;
        self.passing = if is_seen { NOTHING } else { left_by(&self.policy) };
    }

    pub(super) fn let_nothing_pass(&mut self) {
        (self.passes, self.passing) = (false, NOTHING);
    }
}
