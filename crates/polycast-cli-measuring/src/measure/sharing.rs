//! What ranks of one node take to share, and how much that delays messages, from times of two-level broadcasts (Wu 2005, §4.5.1).

use std::num::NonZeroU64;

use polycast_core::algorithm::Algorithm;
use polycast_core::algorithm::broadcast::{CHAIN, ON_NODE};
use polycast_core::model::{Curve, CurveError, Point};
use polycast_core::units::Bytes;

use super::doubt::{WIDEST, reach_ns};
use super::estimate::Estimate;
use crate::bench::point::Point as Figures;
use crate::terminal::margin;

/// The choice that shares a node: the broadcast through the node's memory, which two-level
/// broadcasts have on each node.
pub const ALONE: Algorithm = ON_NODE;

/// Segments of the message between two nodes that shows the penalty.
pub const SEGMENTS: u64 = 4;

/// Returns the sizes for which `smcc(m)` is measured if the user names none; whole messages are
/// among them.
pub fn sizes() -> Vec<u64> {
    (5..13).map(|power| 1 << (2 * power)).collect()
}

/// Segments whose penalty is measured: those of pipelines, as far as four of them pass between two nodes within `limit_ns`.
pub fn penalty_segments(gap_ns: impl Fn(u64) -> f64, limit_ns: f64) -> Vec<u64> {
    let segments = (7..11).map(|power| 1u64 << (2 * power));
    segments.take_while(|segment| gap_ns(segment * SEGMENTS) <= limit_ns).collect()
}

/// The ways from one node to another that tell it: a segment shared while the next one comes, and all shared at the end.
pub fn ways(segment: u64) -> [String; 2] {
    let down = ON_NODE.with_between(CHAIN.entry.name).expect("a chain of nodes");
    let down = Algorithm { segment: NonZeroU64::new(segment), ..down };
    [down, down.without_overlap().expect("an overlap")].map(|way| way.to_string())
}

/// The time of a way that was measured.
pub fn estimate(point: &Figures) -> Option<Estimate> {
    let ns = point.median_us? * 1e3;
    let (low, high) = (point.ci_low_us.or(point.min_us), point.ci_high_us.or(point.max_us));
    let [low, high] = [low, high].map(|us| us.map_or(ns, |us| us * 1e3));
    Some(Estimate { ns, low, high, samples: point.samples })
}

/// `ovp(m)` of a segment of m bytes, from a message of k segments between two nodes, shared as they come or at the end, and what a node takes
/// to share one and all of them alone:
///
/// ```text
///   together = 𝓛 + ovp (2k - 1) + smcc(m)        (4.5), p = 2 and m_r = 0
///   apart    = 𝓛 + smcc(km)                      §4.3.3
/// ```
/// Sharing that does not fit between two segments counts as a penalty, too. Neither negative nor more than `smcc(m)`, as in the model.
pub fn penalty(together: Estimate, apart: Estimate, one: Estimate, all: Estimate) -> Estimate {
    let hidden = all.minus(one).minus(apart.minus(together));
    hidden.scaled(1.0 / (2 * SEGMENTS - 1) as f64).clamped(0.0, one.ns)
}

/// True if a penalty is known, by its interval beside `smcc(m)`, of which it is a part: the penalty
/// itself may well be 0.
pub fn is_known(penalty: Estimate, one: Estimate) -> bool {
    penalty.high - penalty.low <= WIDEST * one.ns
}

/// True if the estimate says more than its order of magnitude.
pub fn is_narrow(estimate: &Estimate) -> bool {
    (estimate.high - estimate.ns).max(estimate.ns - estimate.low) <= WIDEST * estimate.ns
}

/// Returns `smcc(m)` as a curve, and words on the points that were left out because their intervals
/// reach too far; no curve where nothing is left.
pub fn cost(
    measured: &[(u64, Estimate)],
    keeps_all: bool,
) -> Result<(Option<Curve>, Vec<String>), CurveError> {
    let is_wide = |point: &Point| !keeps_all && reach_ns(point) > WIDEST * point.ns.abs();
    let (wide, known): (Vec<Point>, Vec<Point>) =
        measured.iter().map(|(bytes, estimate)| estimate.at(*bytes)).partition(is_wide);
    let doubts =
        wide.iter().map(|point| format!("{} ({})", Bytes(point.bytes), margin(point.ns, reach_ns(point))));
    let curve = if known.is_empty() { None } else { Some(Curve::new(known)?) };
    Ok((curve, doubts.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(ns: f64, reach: f64) -> Estimate {
        Estimate { ns, low: ns - reach, high: ns + reach, samples: 12 }
    }

    #[test]
    fn a_penalty_is_what_the_equations_leave() {
        // 𝓛 = 1000, k = 4: smcc 50 of one and 200 of all, ovp 20.
        let exact = |ns| about(ns, 0.0);
        let of = |together| penalty(exact(together), exact(1000.0 + 200.0), exact(50.0), exact(200.0)).ns;
        assert_eq!(of(1000.0 + 20.0 * 7.0 + 50.0), 20.0);
        assert_eq!(of(1000.0 + 50.0), 0.0, "all is hidden");
        assert_eq!(of(990.0), 0.0, "no penalty is negative");
        assert_eq!(of(5000.0), 50.0, "nor more than smcc");
    }

    #[test]
    fn what_is_uncertain_about_a_penalty_is_held_against_what_is_shared() {
        let one = about(100.0, 1.0);
        let of = |reach| penalty(about(1100.0, reach), about(1400.0, 1.0), one, about(400.0, 1.0));
        assert!(is_known(of(50.0), one) && !is_known(of(400.0), one), "{:?} {:?}", of(50.0), of(400.0));
        assert_eq!(of(50.0).ns, 0.0);
    }

    #[test]
    fn doubtful_costs_are_left_out_and_named() {
        let measured = [(1024, about(1000.0, 100.0)), (4096, about(3000.0, 2000.0))];
        let (curve, doubts) = cost(&measured, false).unwrap();
        assert_eq!(curve.unwrap().points().len(), 1);
        assert!(doubts.len() == 1 && doubts[0].starts_with("4KiB ("), "{doubts:?}");
        let (curve, doubts) = cost(&measured, true).unwrap();
        assert_eq!((curve.unwrap().points().len(), doubts.len()), (2, 0));
        assert_eq!(cost(&measured[1..], false).unwrap().0, None);
    }

    #[test]
    fn segments_are_as_long_as_there_is_time_for() {
        assert_eq!(sizes().first().zip(sizes().last().copied()), Some((&1024, 16 << 20)));
        let gap_ns = |bytes: u64| bytes as f64 * 80.0;
        assert_eq!(penalty_segments(gap_ns, 25e6), [16 << 10, 64 << 10]);
        assert_eq!(penalty_segments(gap_ns, 1e12).len(), 4);
        assert!(penalty_segments(gap_ns, 1.0).is_empty());
    }

    #[test]
    fn the_ways_are_broadcasts_and_written_as_they_are_named() {
        for way in ways(64 << 10).into_iter().chain([ALONE.to_string()]) {
            let read: polycast_core::algorithm::Algorithm = way.parse().unwrap();
            assert_eq!(read.to_string(), way);
        }
    }
}
