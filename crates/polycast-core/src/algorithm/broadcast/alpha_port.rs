//! OPT-tree for senders with several ports (seed 4 §4.5): each sends over all of them before the first is free again.

use std::num::NonZeroU32;

use crate::tree::{PlannedShape, SendTimes};

pub(super) fn shape(ports: NonZeroU32, times: Option<SendTimes>) -> PlannedShape {
    PlannedShape::OptimalWithPorts { times: times.unwrap_or_default(), ports }
}
