//! Complete k-ary tree: `log_k P` hops, each rank sends `k` times.

use std::num::NonZeroU32;

use super::{Algorithm, Call, tree_pipeline};
use crate::algorithm::plan::Plan;
use crate::tree::Tree;
use crate::units::Rank;

pub(super) fn plan(algorithm: &Algorithm, call: Call, rank: Rank, k: NonZeroU32) -> Plan {
    tree_pipeline::plan(algorithm, call, rank, Tree::KAry(k))
}
