//! Speed-ups that say nothing: those that contradict the medians beside them, and those that could be anything.

use super::point::Point;
use crate::terminal::{digits, range};

/// The factor between the ends of an interval beyond which it tells no more than that something was
/// measured. For an interval with 1 in it the next, smaller factor holds.
const WIDEST: f64 = 100.0;
const WIDEST_UNDECIDED: f64 = 10.0;
/// Medians this close may lie on either side of each other; neither is a contradiction.
const ALIKE: f64 = 1.05;

/// Removes the speedup of a point where it means nothing, and says so in the point. `reference_us`
/// is the median of the variant that it compares with.
///
/// A speed-up is the median over pairs of neighbouring repetitions, which is right on a quiet machine, and on one that is busy now and then. Where most
/// of the time is lost to others both kinds of median may follow the accidents, each its own.
pub fn look_at(point: &mut Point, reference_us: Option<f64>) {
    let Some(times) = point.speedup else { return };
    let interval = point.speedup_ci_low.zip(point.speedup_ci_high);
    let by_medians = point.median_us.zip(reference_us).filter(|(us, _)| *us > 0.0);
    let by_medians = by_medians.map(|(us, reference_us)| reference_us / us);
    let pairs = match interval {
        Some((low, high)) => format!("{} ({})", digits(times), range(low, high)),
        None => digits(times),
    };
    let why = match (interval, by_medians) {
        (Some((low, high)), _) if is_absurd(low, high) => {
            Some(format!("pairs of repetitions say {pairs}, which may be anything"))
        }
        (_, Some(by_medians)) if contradict(times, by_medians) => {
            Some(format!("pairs of repetitions say {pairs}, the medians {}", digits(by_medians)))
        }
        _ => None,
    };
    if why.is_some() {
        [point.speedup, point.speedup_ci_low, point.speedup_ci_high, point.speedup_vs_stock] = [None; 4];
    }
    point.speedup_withheld = why;
}

fn is_absurd(low: f64, high: f64) -> bool {
    let is_undecided = low <= 1.0 && high >= 1.0;
    high > low * if is_undecided { WIDEST_UNDECIDED } else { WIDEST }
}

/// True if one factor says faster and the other slower, and neither by a hair.
fn contradict(one: f64, other: f64) -> bool {
    let side = |times: f64| match times {
        faster if faster > ALIKE => 1,
        slower if slower * ALIKE < 1.0 => -1,
        _ => 0,
    };
    side(one) * side(other) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(median_us: f64, speedup: (f64, f64, f64)) -> Point {
        let (times, low, high) = speedup;
        let mut point = Point {
            median_us: Some(median_us),
            speedup: Some(times),
            speedup_ci_low: Some(low),
            speedup_ci_high: Some(high),
            speedup_vs_stock: Some(times),
            ..Point::default()
        };
        look_at(&mut point, Some(20.8));
        point
    }

    /// Rows that a busy machine once printed: 20.8 µs beside 303 µs, called 1.28 times as fast; and 83.9 (0.57–4105).
    #[test]
    fn what_contradicts_the_medians_or_may_be_anything_is_withheld() {
        let point = after(303.0, (1.28, 1.01, 1.61));
        assert_eq!((point.speedup, point.speedup_ci_low, point.speedup_vs_stock), (None, None, None));
        let why = point.speedup_withheld.unwrap();
        assert_eq!(why, "pairs of repetitions say 1.28 (1.01–1.61), the medians 0.07");
        let wide = after(20.0, (83.9, 0.57, 4105.0));
        assert!(wide.speedup_withheld.is_some_and(|why| why.ends_with("which may be anything")));
        assert_eq!((wide.speedup, wide.speedup_ci_high), (None, None));
    }

    #[test]
    fn what_agrees_or_hardly_differs_stands() {
        for (median_us, speedup) in [
            (10.4, (2.0, 1.9, 2.1)),
            (41.6, (0.5, 0.4, 0.6)),
            (20.5, (0.97, 0.9, 1.02)),
            (21.5, (1.02, 0.99, 1.04)),
            (10.4, (1.8, 1.0, 9.9)),
            (2.0, (9.8, 2.0, 40.0)),
        ] {
            let point = after(median_us, speedup);
            assert_eq!((point.speedup, point.speedup_withheld), (Some(speedup.0), None), "{speedup:?}");
        }
    }
}
