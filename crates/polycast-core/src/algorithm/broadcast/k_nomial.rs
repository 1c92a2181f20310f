//! K-nomial tree; k = 2 is the binomial tree, in which everybody who has the data passes it on in every round:
//! `ceil(log2 P)` rounds, the fewest for messages that are not cut.

use std::num::NonZeroU32;

use super::{Algorithm, Call, tree_pipeline};
use crate::algorithm::plan::Plan;
use crate::tree::Tree;
use crate::units::Rank;

pub(super) fn plan(algorithm: &Algorithm, call: Call, rank: Rank, k: NonZeroU32) -> Plan {
    tree_pipeline::plan(algorithm, call, rank, Tree::KNomial(k))
}
