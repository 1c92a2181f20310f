//! Chain (pipeline): each rank forwards to the next one.
//!
//! Every link carries the data once, so with enough segments it comes closest to the wire: `(P-1 + X-1) * T`.

use super::{Algorithm, Call, tree_pipeline};
use crate::algorithm::plan::Plan;
use crate::tree::Tree;
use crate::units::Rank;

pub(super) fn plan(algorithm: &Algorithm, call: Call, rank: Rank) -> Plan {
    tree_pipeline::plan(algorithm, call, rank, Tree::Chain)
}
