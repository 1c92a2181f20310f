//! Calls that pass by: the door leaves them to the MPI without a word, for most calls of most programs go no further, and each page of memory
//! that is looked at for them makes a short message longer.

use polycast_core::collective::Collective;
use polycast_core::policy::{Left, Policy};

use super::Attached;

/// `polycast_sizes` of polycast.h, field by field.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub below: u32,
    pub above: u32,
}

/// `polycast_steady` of polycast.h, field by field.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteadyCalls {
    pub collective: u32,
    pub first: u32,
    pub last: u32,
    pub calls: u32,
}

impl SteadyCalls {
    pub const NONE: SteadyCalls = SteadyCalls { collective: 0, first: 0, last: 0, calls: 0 };
}

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

pub fn saturated(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Attached {
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
