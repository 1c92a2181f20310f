//! Contention-free chain (seed 1 §4.1.1, Algorithm 1): each rank forwards to the next one around the network.
//!
//! ```text
//!   │ switch s0  │ switch s1  │ switch s2 │
//!   │ 0 ─▶ 3 ─▶ 4 ─▶ 1 ─▶ 5 ─▶ 2 ─▶ 6     │      whatever ranks are where
//! ```
//!
//! All messages can be under way at once without disturbing each other, so with enough segments a broadcast takes as long as
//! the slowest link needs for the data: `(P-1 + X-1) * T`. From any root it is the same ring, so every rank always receives
//! from the same one; nothing needs to be planned.

use super::{Algorithm, Call, Planner, tree_pipeline};
use crate::algorithm::plan::Plan;
use crate::tree::LocalTree;
use crate::units::Rank;

pub(super) fn plan(algorithm: &Algorithm, call: Call, rank: Rank, planner: &Planner) -> Plan {
    let (ring, at) = (planner.site().ring(), planner.site().ring_position(rank) as usize);
    let before = ring[(at + ring.len() - 1) % ring.len()];
    let after = ring[(at + 1) % ring.len()];
    let local = LocalTree {
        parent: (rank != call.root).then_some(before),
        children: if after == call.root { Vec::new() } else { vec![after] },
    };
    tree_pipeline::plan_local(algorithm, call, local)
}
