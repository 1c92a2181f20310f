//! The first half of scatter + allgather: blocks, one per position, down a binomial tree.
//!
//! A position receives the blocks of its whole subtree, an interval that begins with its own block, and hands the
//! subtrees of its children on:
//!
//! ```text
//!     0        holds 0..8
//!     ├─ 4           4..8          ├─ 2   2..4        └─ 1   1..2
//!     │  ├─ 6        6..8          │  └─ 3   3..4
//!     │  │  └─ 7     7..8
//!     │  └─ 5        5..6
//! ```

use std::num::NonZeroU32;
use std::ops::Range;

use super::{Call, DOWN};
use crate::algorithm::plan::Plan;
use crate::tree::{Tree, k_nomial_subtree};
use crate::units::Rank;

const TWO: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// The blocks that `position` holds after the scatter over `positions` positions.
pub(super) fn held(position: u32, positions: u32) -> Range<u32> {
    k_nomial_subtree(TWO, position, positions)
}

/// Adds the receive of the scatter.
pub(super) fn receive(plan: &mut Plan, call: Call, position: u32, positions: u32) {
    let pieces = plan.pieces();
    let parent = Tree::KNomial(TWO).local(positions, Rank(0), Rank(position)).parent;
    if let Some(parent) = parent {
        let runs = [pieces.of_blocks(held(position, positions))];
        plan.receive(call.rank_at(parent.0), DOWN, pieces.per_message(), runs);
    }
}

/// Adds the sends of the scatter, largest subtree first.
pub(super) fn send(plan: &mut Plan, call: Call, position: u32, positions: u32) {
    let pieces = plan.pieces();
    for child in Tree::KNomial(TWO).local(positions, Rank(0), Rank(position)).children {
        let runs = [pieces.of_blocks(held(child.0, positions))];
        plan.send(call.rank_at(child.0), DOWN, pieces.per_message(), runs);
    }
}
