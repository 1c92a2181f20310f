use super::LinkIndex;
use crate::units::Rank;

/// The rank or link that sets the interval at which segments follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bottleneck {
    /// A rank that sends each segment to all of its children, or takes each segment in.
    Rank(Rank),
    /// A directed link that several messages of the tree use; see `CostedNetwork::link_name`.
    Link(LinkIndex),
}

/// A segment's way to one rank: the first is there after `fill`, and further ones come an `interval` apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SegmentWay {
    pub fill_ns: f64,
    pub interval_ns: f64,
    pub bottleneck: Bottleneck,
}

impl SegmentWay {
    /// The way to a rank that has the data.
    pub const NOWHERE: SegmentWay =
        SegmentWay { fill_ns: 0.0, interval_ns: 0.0, bottleneck: Bottleneck::Rank(Rank(0)) };

    /// The time in nanoseconds until `segments` have come; they may be a fraction more than a whole
    /// number.
    fn after(&self, segments: f64) -> f64 {
        self.fill_ns + (segments - 1.0).max(0.0) * self.interval_ns
    }

    fn is_never_later_than(&self, other: &SegmentWay) -> bool {
        self.fill_ns <= other.fill_ns && self.interval_ns <= other.interval_ns
    }
}

/// Segments of one size down a tree: for any number of them, when the last has reached the last rank.
///
/// Which rank is last depends on the number of segments: the farthest one if they are few, one behind the bottleneck if
/// they are many. Kept are the ways to ranks that are the last for some number:
///
/// ```text
///  time │        ╱ ╱       a way is a line over the number of segments;
///       │      ╱╱──────    the highest at each place decides
///       │─────╱───
///       └────────────── segments
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    /// The ways to ranks that are the last for some number of segments: no way is never later than
    /// another. Empty if there is nobody to send to.
    ways: Vec<SegmentWay>,
}

impl Pipeline {
    pub(super) fn add(&mut self, way: SegmentWay) {
        if self.ways.iter().any(|kept| way.is_never_later_than(kept)) {
            return;
        }
        self.ways.retain(|kept| !kept.is_never_later_than(&way));
        self.ways.push(way);
    }

    /// The time in nanoseconds until `segments` (1 or more) have reached all ranks, and the way to
    /// the rank that is last.
    pub(super) fn after(&self, segments: f64) -> (f64, SegmentWay) {
        let times = self.ways.iter().map(|way| (way.after(segments), *way));
        times.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, SegmentWay::NOWHERE))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nothing_that_decides_is_left_out(
            ways in prop::collection::vec((0u32..20, 0u32..20), 1..40),
            segments in 1.0..50f64,
        ) {
            let mut pipeline = Pipeline::default();
            let ways: Vec<SegmentWay> = ways.into_iter().map(|(fill, interval)| SegmentWay {
                fill_ns: fill.into(),
                interval_ns: interval.into(),
                bottleneck: Bottleneck::Link(0),
            }).collect();
            ways.iter().for_each(|way| pipeline.add(*way));
            let latest = ways.iter().map(|way| way.after(segments)).fold(0.0, f64::max);
            prop_assert_eq!(pipeline.after(segments).0, latest);
        }
    }
}
