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

use super::super::Collective;
use super::super::trials::Sameness;
use super::words::{Chosen, Request};

/// The calls to come that are like the last one.
#[derive(Clone, Debug)]
pub(super) struct CallsAlike {
    pub collective: Collective,
    pub bytes: RangeInclusive<u64>,
    pub may_be_compared: bool,
    pub is_ordered: bool,
    pub is_sum: bool,
    /// The way that serves them; `None`: the MPI.
    pub chosen: Option<Chosen>,
    /// The trial of such calls, if it has settled what serves them.
    pub of: Option<Sameness>,
    /// Calls that may still be served so.
    pub left: u64,
    /// Calls that were served so, and are counted nowhere else yet.
    pub made: u64,
}

impl CallsAlike {
    pub const NONE: CallsAlike = CallsAlike {
        collective: Collective::Broadcast,
        bytes: 0..=0,
        may_be_compared: false,
        is_ordered: false,
        is_sum: false,
        chosen: None,
        of: None,
        left: 0,
        made: 0,
    };

    /// The way for a call, if the call is like the last one.
    #[inline]
    pub fn next(&mut self, request: &Request) -> Option<Option<Chosen>> {
        let is_one = self.left > 0
            && self.bytes.contains(&request.call.bytes.0)
            && (self.collective, self.may_be_compared, self.is_ordered, self.is_sum)
                == (
                    request.call.collective,
                    request.may_be_compared,
                    request.is_ordered,
                    request.call.is_sum,
                );
        if !is_one {
            return None;
        }
        self.pass(1);
        Some(self.chosen)
    }

    /// Counts `calls` calls, no more than are left.
    #[inline]
    pub fn pass(&mut self, calls: u64) {
        (self.left, self.made) = (self.left - calls, self.made + calls);
    }
}
