//! Calls that pass by: the door leaves them to the MPI without a word, for most calls of most programs go no further, and each page of memory
//! that is looked at for them makes a short message longer.

use polycast_core::collective::Collective;
use polycast_core::policy::{Capabilities, Left, Policy};

use super::{Attached, State};
use crate::abi::{Sizes, saturated};
use crate::call::{Decision, Wanted, Why};

/// By collective.
pub type Passing = [Sizes; Collective::ALL.len()];

/// None.
pub(super) const NOTHING: Passing = [Sizes { below: 0, above: u32::MAX }; Collective::ALL.len()];

/// What a policy leaves.
fn left_by(policy: &Policy) -> Passing {
    Collective::ALL.map(|collective| {
        let Left { below, above } = policy.left(collective);
        Sizes { below: saturated(below), above: saturated(above) }
    })
}

impl Attached {
    /// A call that the rules leave, for who reads what becomes of calls.
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

    /// The same of one that is left for this.
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

    /// What the policy leaves, unless ways to serve it are to be measured.
    pub(super) fn let_pass(&mut self) {
        self.passes = self.view.is_some() && !self.tunes();
        let is_seen = self.is_logged || !self.passes;
        self.passing = if is_seen { NOTHING } else { left_by(&self.policy) };
    }

    pub(super) fn let_nothing_pass(&mut self) {
        (self.passes, self.passing) = (false, NOTHING);
    }
}
