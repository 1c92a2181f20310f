use std::num::NonZeroU32;

use super::{PlannedTree, Site, contention_free};
use crate::units::{Nanos, Rank};

/// What a [`PlannedTree`] is to be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlannedShape {
    /// Each rank forwards to the next around the network (seed 1 §4.1.1, Algorithm 1).
    ContentionFreeChain,
    /// At most `k` children, no two messages over one edge, of little height (seed 1 §4.1.2: Algorithm 2 for `k` = 2, and its
    /// extension).
    ContentionFreeKAry(NonZeroU32),
}

/// How long messages keep their sender, and how long they take (seed 4 ch. 2), for messages of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SendTimes {
    /// `t_hold`: from the beginning of a send until the sender can begin the next.
    pub hold: Nanos,
    /// `t_end`: from the beginning of a send until the receiver has the message and can send.
    pub end: Nanos,
}

impl PlannedShape {
    /// The tree of this shape for the ranks of a site, from `root`. For 10,000 ranks a matter of milliseconds.
    pub fn plan(self, site: &Site, root: Rank) -> PlannedTree {
        match self {
            PlannedShape::ContentionFreeChain => contention_free::chain(site, root),
            PlannedShape::ContentionFreeKAry(k) => contention_free::k_ary(site, root, k),
        }
    }
}
