//! Block-binomial (seed 4 §3.4.1): a binomial tree over the first ranks of blocks, each of which sends to the others in its
//! block. Without `block=`, blocks are as large as the fullest host, so with ranks spread evenly each host is a block.

use std::num::NonZeroU32;

use crate::tree::PlannedShape;

pub(super) fn shape(block: Option<NonZeroU32>) -> PlannedShape {
    PlannedShape::BlockBinomial { block }
}
