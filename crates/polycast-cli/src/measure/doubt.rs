//! What was not measured well enough to be written into a file that predictions rely on.

use polycast_core::model::{Curve, LinkClass, Parameters, Point};
use polycast_core::units::Bytes;

use crate::terminal::margin;

/// A value whose 95 % interval reaches further to a side than this part of it says little more than its order.
pub const WIDEST: f64 = 0.5;

/// A line for each link class and curve that has such values, with their sizes: of the streams and the round trips, which
/// all else follows from.
pub fn doubts(parameters: &Parameters) -> Vec<String> {
    let curves = parameters.classes().flat_map(|(class, curves)| {
        let named = [("g(m)", Some(&curves.gap)), ("t_end(m)", curves.end.as_ref())];
        named.into_iter().filter_map(move |(name, curve)| line(class, name, curve?))
    });
    curves.collect()
}

/// How far the interval reaches to either side.
pub fn reach_ns(point: &Point) -> f64 {
    (point.high - point.ns).max(point.ns - point.low)
}

fn line(class: LinkClass, name: &str, curve: &Curve) -> Option<String> {
    let is_wide = |point: &&Point| reach_ns(point) > WIDEST * point.ns.abs();
    let show = |point: &Point| format!("{} ({})", Bytes(point.bytes), margin(point.ns, reach_ns(point)));
    let wide: Vec<String> = curve.points().iter().filter(is_wide).map(show).collect();
    (!wide.is_empty()).then(|| format!("{class}, {name} of {}", wide.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use polycast_core::model::{ClassParameters, Measured};

    use super::*;

    fn point(bytes: u64, ns: f64, reach: f64) -> Point {
        Point { bytes, ns, low: ns - reach, high: ns + reach, samples: 9 }
    }

    /// `t_end = 9138 ± 8896` once stood in a file without a word.
    #[test]
    fn wide_intervals_are_named_with_their_class_and_size() {
        let gap = Curve::new(vec![point(1024, 4e5, 1.9e5), point(65_536, 3e7, 1e5)]).unwrap();
        let end = Curve::new(vec![point(1024, 9_138e3, 8_896e3), point(65_536, 3e7, 1.6e7)]).unwrap();
        // A difference may be nothing with any interval.
        let latency = Curve::new(vec![point(1024, 1.0, 1e6), point(65_536, -1.0, 1e6)]).unwrap();
        let class = ClassParameters { end: Some(end), ..ClassParameters::new(latency, gap) };
        let measured = Measured { when: "now".into(), place: "here".into(), how: "so".into() };
        let classes = BTreeMap::from([(LinkClass::SameSwitch, class)]);
        let lines = doubts(&Parameters::new(measured, classes).unwrap());
        assert_eq!(lines, ["same-switch, t_end(m) of 1KiB (9.14 ± 8.90 ms), 64KiB (30.0 ± 16.0 ms)"]);
    }
}
