//! Contention-free tree for links of different rates and latencies: ranks behind fast links have more children, what is behind
//! slow ones is visited last (beyond the papers; see [`PlannedShape::LinkAware`]).

use super::{Algorithm, Call};
use crate::tree::PlannedShape;

/// The same tree serves all messages whose number of segments has the same power of two above it.
pub(super) fn shape(algorithm: &Algorithm, call: Call) -> PlannedShape {
    let bytes = call.bytes.0.max(1);
    let segment_bytes =
        algorithm.segment.map_or(u64::MAX, |segment| segment.get()).min(bytes.next_power_of_two());
    PlannedShape::LinkAware { segment_bytes, segments: bytes.div_ceil(segment_bytes).next_power_of_two() }
}
