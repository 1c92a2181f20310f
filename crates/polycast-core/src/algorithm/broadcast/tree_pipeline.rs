//! Segments down a tree: a rank forwards a segment to its children, in their order, as soon as it has come.
//!
//! With X segments (1 if nothing is cut) over a tree of height H and degree D, and T the time of one segment, this
//! takes about `(X + H - 1) * D * T`.

use super::{Algorithm, Call, DOWN};
use crate::algorithm::pieces::Pieces;
use crate::algorithm::plan::Plan;
use crate::tree::LocalTree;

pub(in crate::algorithm) fn plan(algorithm: &Algorithm, call: Call, local: LocalTree) -> Plan {
    let pieces = Pieces::new(call.bytes.0, 1, algorithm.segment);
    let mut plan = Plan::new(pieces, algorithm.ready);
    if let Some(parent) = local.parent {
        plan.receive(parent, DOWN, 1, [pieces.all()]);
    }
    for child in local.children {
        plan.send(child, DOWN, 1, [pieces.all()]);
    }
    plan
}
