//! Flat (sequential, linear): the root sends to everybody itself, segment by segment in turn.
//!
//! `(P-2) * t_hold + t_end`: right for few ranks, and where the root's sends are cheap compared with a hop.

use super::{Algorithm, Call, tree_pipeline};
use crate::algorithm::plan::Plan;
use crate::tree::Tree;
use crate::units::Rank;

pub(super) fn plan(algorithm: &Algorithm, call: Call, rank: Rank) -> Plan {
    tree_pipeline::plan(algorithm, call, rank, Tree::Flat)
}
