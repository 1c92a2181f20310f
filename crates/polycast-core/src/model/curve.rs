use serde::{Deserialize, Serialize};

/// Points that a curve may have.
pub const MAX_POINTS: usize = 1024;

/// The largest message size that a curve may have a point for.
pub const MAX_BYTES: u64 = 1 << 48;

/// The longest time that a point may have, about 11 days.
pub const MAX_NS: f64 = 1e15;

/// A time that was measured for one message size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// The message's size.
    pub bytes: u64,
    /// The mean or median, in nanoseconds.
    pub ns: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end of its 95 % interval.
    pub high: f64,
    /// Samples behind the mean or median.
    pub samples: u64,
}

impl Point {
    /// A time that is known exactly: from a formula or a published table.
    pub fn exact(bytes: u64, ns: f64) -> Point {
        Point { bytes, ns, low: ns, high: ns, samples: 1 }
    }
}

/// A time as a function of the message size: linear between its points.
///
/// ```text
///  ns │               ╱  beyond: as between the last two
///     │        ●────●
///     │    ●╱
///     │ ╱●                a step of the MPI library between two points stays a step
///     └──────────────── bytes
/// ```
///
/// # Invariants
/// 1. It has 1 to [`MAX_POINTS`] points, and their bytes rise strictly, up to [`MAX_BYTES`].
/// 2. `low <= ns <= high`, none beyond ±[`MAX_NS`], and `samples` is at least 1.
///
/// A time may be negative: a latency `L(m) = RTT(m)/2 - g(m)` is one on links that let the first packet pass at once
/// and pace those that follow, and the sum `L(m) + g(m)` is right all the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    points: Box<[Point]>,
}

/// Points that do not make a curve.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("point {point}: {problem}")]
pub struct CurveError {
    /// The place of the point that is wrong, from 0.
    pub point: usize,
    /// The problem: what was expected and what was found.
    pub problem: String,
}

impl Curve {
    /// Joins points, which must satisfy the invariants.
    pub fn new(points: Vec<Point>) -> Result<Curve, CurveError> {
        if points.is_empty() || points.len() > MAX_POINTS {
            let problem = format!("expected 1 to {MAX_POINTS} points, found {}", points.len());
            return Err(CurveError { point: points.len().min(MAX_POINTS), problem });
        }
        let mut before = None;
        for (index, point) in points.iter().enumerate() {
            check(point, before).map_err(|problem| CurveError { point: index, problem })?;
            before = Some(point.bytes);
        }
        Ok(Curve { points: points.into() })
    }

    /// The points, by rising bytes.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The time for a message of `bytes`, in nanoseconds. Beyond the points it goes on as between the last (or first) two,
    /// but a time that falls with the bytes there stays as it is, and none becomes negative that was not measured so.
    pub fn at(&self, bytes: u64) -> f64 {
        let after = self.points.partition_point(|point| point.bytes <= bytes);
        let last = self.points.len() - 1;
        let (from, slope) = match after {
            0 => (0, self.slope(0).max(0.0)),
            after if after > last => (last, self.slope(last.saturating_sub(1)).max(0.0)),
            after => (after - 1, self.slope(after - 1)),
        };
        let from = &self.points[from];
        let ns = from.ns + slope * (bytes as f64 - from.bytes as f64);
        if after == 0 { ns.max(from.ns.min(0.0)) } else { ns }
    }

    /// Nanoseconds per byte between point `index` and the next one; 0 if there is none.
    fn slope(&self, index: usize) -> f64 {
        let (Some(a), Some(b)) = (self.points.get(index), self.points.get(index + 1)) else { return 0.0 };
        (b.ns - a.ns) / (b.bytes - a.bytes) as f64
    }
}

fn check(point: &Point, before: Option<u64>) -> Result<(), String> {
    let Point { bytes, ns, low, high, samples } = *point;
    if bytes > MAX_BYTES {
        return Err(format!("expected at most {MAX_BYTES} bytes, found {bytes}"));
    }
    if before.is_some_and(|before| before >= bytes) {
        return Err(format!(
            "expected more bytes than at the point before, {}, found {bytes}",
            before.unwrap_or(0)
        ));
    }
    // A number that is none fails this too.
    if !(low <= ns && ns <= high && -MAX_NS <= low && high <= MAX_NS) {
        return Err(format!(
            "expected low <= ns <= high, none beyond ±{MAX_NS:e} ns, found {low}, {ns}, {high}"
        ));
    }
    if samples == 0 {
        return Err("expected at least 1 sample, found 0".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn curve(points: &[(u64, f64)]) -> Curve {
        Curve::new(points.iter().map(|(bytes, ns)| Point::exact(*bytes, *ns)).collect()).unwrap()
    }

    #[test]
    fn linear_between_the_points_and_beyond() {
        let curve = curve(&[(100, 10.0), (200, 30.0), (400, 40.0)]);
        for (bytes, ns) in
            [(100, 10.0), (150, 20.0), (200, 30.0), (300, 35.0), (400, 40.0), (600, 50.0), (60, 2.0)]
        {
            assert_eq!(curve.at(bytes), ns, "{bytes}");
        }
        assert_eq!(curve.at(0), 0.0, "no time is negative that was not measured so");
    }

    #[test]
    fn a_single_point_is_a_constant() {
        let curve = curve(&[(100, 10.0)]);
        assert_eq!([0, 100, u64::MAX].map(|bytes| curve.at(bytes)), [10.0; 3]);
    }

    #[test]
    fn a_falling_end_is_not_carried_on() {
        // L(m) at 1000 Mb/s, Patarasuk et al. 2008, Table 2: 78, 62, 30 µs; a straight line would be at -960 µs for 1 MiB.
        let curve = curve(&[(8192, 78e3), (16384, 62e3), (32768, 30e3)]);
        assert_eq!((curve.at(1 << 20), curve.at(0)), (30e3, 78e3));
        assert_eq!(curve.at(24576), 46e3);
    }

    #[test]
    fn points_that_make_no_curve_are_refused() {
        let point = Point { bytes: 5, ns: 2.0, low: 1.0, high: 3.0, samples: 36 };
        for (points, expected) in [
            (vec![], "1 to 1024 points, found 0"),
            ((0..=1024).map(|bytes| Point { bytes, ..point }).collect(), "found 1025"),
            (vec![point, point], "more bytes than at the point before, 5"),
            (vec![Point { low: 2.5, ..point }], "low <= ns"),
            (vec![Point { high: 1.5, ..point }], "ns <= high"),
            (vec![Point { ns: f64::NAN, ..point }], "found 1, NaN, 3"),
            (vec![Point { high: f64::INFINITY, ..point }], "inf"),
            (vec![Point { low: -2e15, ..point }], "1e15"),
            (vec![Point { samples: 0, ..point }], "at least 1 sample"),
            (vec![Point { bytes: MAX_BYTES + 1, ..point }], "bytes, found"),
        ] {
            let error = Curve::new(points).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(Curve::new((0..1024).map(|bytes| Point { bytes, ..point }).collect()).is_ok());
        assert!(Curve::new(vec![Point { bytes: MAX_BYTES, ..point }]).is_ok());
    }

    proptest! {
        #[test]
        fn lies_between_its_neighbours(
            points in prop::collection::btree_map(0u64..10_000, -1e6f64..1e6, 1..20),
            bytes in 0u64..20_000,
        ) {
            let points: Vec<_> = points.into_iter().collect();
            let value = curve(&points).at(bytes);
            let below = points.iter().rev().find(|(b, _)| *b <= bytes);
            let above = points.iter().find(|(b, _)| *b >= bytes);
            if let (Some((_, a)), Some((_, b))) = (below, above) {
                prop_assert!(a.min(*b) - 1e-3 <= value && value <= a.max(*b) + 1e-3);
            }
            prop_assert!(value.is_finite() && curve(&points).at(u64::MAX).is_finite());
        }
    }
}
