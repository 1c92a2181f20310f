//! Contention-free binary tree (seed 1 §4.1.2, Algorithm 2): the lowest that can be had on the site with no two messages of
//! different senders on one edge. Fewer hops than the chain, but every inner rank sends the data twice: `2 * (X-1) * T` and
//! little before.

use std::num::NonZeroU32;

use crate::tree::PlannedShape;

pub(super) fn shape() -> PlannedShape {
    PlannedShape::ContentionFreeKAry(const { NonZeroU32::new(2).unwrap() })
}
