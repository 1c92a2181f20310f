//! OPT-tree (seed 4 ch. 4): the fastest tree for a message that is not cut, from how long a message holds its sender and how
//! long it takes. Ranks stand in depth-first order, so that messages in flight together do not meet (ch. 5, for trees of
//! switches).

use crate::tree::{PlannedShape, SendTimes};

pub(super) fn shape(times: Option<SendTimes>) -> PlannedShape {
    PlannedShape::Optimal(times.unwrap_or_default())
}
