//! What was not measured well enough to be written into a file that predictions rely on.

use polycast_core::model::{LinkClass, Point};
use polycast_core::units::Bytes;

use super::size::Figures;
use crate::terminal::margin;

/// The widest reach of a 95 % interval to a side, as a part of its value. A value with a wider
/// interval says little more than its order of magnitude.
pub const WIDEST: f64 = 0.5;

/// Returns how far the interval reaches from the value, on its longer side, in ns.
pub fn reach_ns(point: &Point) -> f64 {
    (point.high - point.ns).max(point.ns - point.low)
}

/// The streams and the round trips, which all else follows from.
fn sources(figures: &Figures) -> [(&'static str, Point); 2] {
    let Figures { bytes, gap, round_trip, .. } = figures;
    [("g(m)", gap.at(*bytes)), ("t_end(m)", round_trip.scaled(0.5).at(*bytes))]
}

/// The widest reach of an interval, as a part of its value.
pub fn widest(figures: &Figures) -> f64 {
    let parts = sources(figures).map(|(_, point)| reach_ns(&point) / point.ns.abs());
    parts.into_iter().fold(0.0, f64::max)
}

/// True if all figures of a size are known well enough to rely on.
pub fn is_known(figures: &Figures) -> bool {
    widest(figures) <= WIDEST
}

/// The sizes of a class that are known; `None` if these are too few to stand for the others: less than half of them, or one of
/// several.
pub fn known(figures: &[Figures]) -> Option<Vec<Figures>> {
    let known: Vec<Figures> = figures.iter().copied().filter(is_known).collect();
    (known.len() * 2 >= figures.len() && known.len() >= figures.len().min(2)).then_some(known)
}

/// A line for each curve that has doubtful values, with their sizes.
pub fn doubts(class: LinkClass, figures: &[Figures]) -> Vec<String> {
    let mut lines = Vec::new();
    for index in 0..2 {
        let points: Vec<(&str, Point)> = figures.iter().map(|figures| sources(figures)[index]).collect();
        let is_wide = |(_, point): &&(&str, Point)| reach_ns(point) > WIDEST * point.ns.abs();
        let show = |(_, point): &(&str, Point)| {
            format!("{} ({})", Bytes(point.bytes), margin(point.ns, reach_ns(point)))
        };
        let wide: Vec<String> = points.iter().filter(is_wide).map(show).collect();
        if let (Some((name, _)), false) = (points.first(), wide.is_empty()) {
            lines.push(format!("{class}, {name} of {}", wide.join(", ")));
        }
    }
    lines
}

/// The points of a curve that predictions may take, with remarks on the others.
pub struct Credit {
    pub points: Vec<Point>,
    pub clauses: Vec<String>,
}

/// Judges points that are each a part of a message's time, given with the whole of it. A point is
/// left out if its interval reaches further than half of its value, and of the whole; a point below
/// 0 becomes 0 if its interval says that it may be.
pub fn credible(name: &str, points: impl Iterator<Item = (Point, f64)>) -> Credit {
    let mut credit = Credit { points: Vec::new(), clauses: Vec::new() };
    let (mut left_out, mut clipped, mut negative) = (Vec::new(), Vec::new(), Vec::new());
    for (point, whole_ns) in points {
        let (bytes, shown) = (Bytes(point.bytes), margin(point.ns, reach_ns(&point)));
        if reach_ns(&point) > WIDEST * point.ns.abs().max(whole_ns.abs()) {
            left_out.push(format!("{bytes} ({shown})"));
            continue;
        }
        if point.ns >= 0.0 {
            credit.points.push(point);
        } else if point.high >= 0.0 {
            clipped.push(format!("{name} of {bytes} is 0, for it was measured as {shown}"));
            credit.points.push(Point { ns: 0.0, low: 0.0, ..point });
        } else {
            negative.push(bytes.to_string());
            credit.points.push(point);
        }
    }
    if !left_out.is_empty() {
        let verb = if left_out.len() == 1 { "is" } else { "are" };
        credit.clauses.push(format!("{name} of {} {verb} left out", left_out.join(", ")));
    }
    credit.clauses.extend(clipped);
    if !negative.is_empty() {
        let verb = if negative.len() == 1 { "is" } else { "are" };
        credit.clauses.push(format!(
            "{name} of {} {verb} below 0: a message alone was faster than one of a stream, as where a link lets the first packets pass at once, or \
             a machine was busy; L(m) + g(m) is what was measured",
            negative.join(", ")
        ));
    }
    credit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::estimate::Estimate;

    fn figures(bytes: u64, gap: (f64, f64), end: (f64, f64)) -> Figures {
        let estimate = |(ns, reach)| Estimate { ns, low: ns - reach, high: ns + reach, samples: 9 };
        // What a call takes may have any interval.
        let (gap, end, call) = (estimate(gap), estimate(end), estimate((1.0, 1e6)));
        let round_trip = end.scaled(2.0);
        Figures { bytes, gap, round_trip, send_call: call, receive_call: call, busy: call }
    }

    /// `t_end = 9138 ± 8896` once stood in a file without a word.
    #[test]
    fn wide_intervals_are_named_with_their_class_and_size() {
        let measured =
            [figures(1024, (4e5, 1.9e5), (9_138e3, 8_896e3)), figures(65_536, (3e7, 1e5), (3e7, 1.6e7))];
        let lines = doubts(LinkClass::SameSwitch, &measured);
        assert_eq!(lines, ["same-switch, t_end(m) of 1KiB (9.14 ± 8.90 ms), 64KiB (30.0 ± 16.0 ms)"]);
        assert!(!is_known(&measured[0]) && !is_known(&measured[1]));
    }

    #[test]
    fn few_doubtful_sizes_are_left_out_and_many_leave_too_little() {
        let sizes = |pattern: &str| -> Vec<Figures> {
            let of = |(bytes, c)| figures(bytes, (1e6, if c == '?' { 6e5 } else { 1e4 }), (1e6, 1e4));
            (1..).zip(pattern.chars()).map(of).collect()
        };
        for (pattern, left) in [
            ("..?.", Some("1 2 4")),
            ("?..", Some("2 3")),
            ("..??", Some("1 2")),
            (".", Some("1")),
            (".?", None),
            (".???.", None),
            ("?", None),
        ] {
            let known = known(&sizes(pattern)).map(|known| {
                known.iter().map(|figures| figures.bytes.to_string()).collect::<Vec<_>>().join(" ")
            });
            assert_eq!(known.as_deref(), left, "{pattern}");
        }
    }
}
