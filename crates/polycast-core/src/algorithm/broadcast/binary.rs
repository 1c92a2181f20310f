//! Binary tree: `k_ary` with two children, the compromise between a chain's length and a flat
//! tree's width; every inner link pair carries the data twice.

use std::num::NonZeroU32;

use super::{Algorithm, Call, k_ary};
use crate::algorithm::plan::Plan;
use crate::units::Rank;

pub(super) fn plan(algorithm: &Algorithm, call: Call, rank: Rank) -> Plan {
    k_ary::plan(algorithm, call, rank, const { NonZeroU32::new(2).unwrap() })
}
