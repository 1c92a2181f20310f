//! Contention-free tree with up to `k` children (seed 1 §4.1.2, the extension of Algorithm 2): still fewer hops, for messages
//! of few segments.

use std::num::NonZeroU32;

use crate::tree::PlannedShape;

pub(super) fn shape(k: NonZeroU32) -> PlannedShape {
    PlannedShape::ContentionFreeKAry(k)
}
