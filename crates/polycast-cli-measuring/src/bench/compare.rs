//! Two measurements beside each other: the JSON lines of two runs of `polycast bench`.

use serde_json::Value;

use super::point::{Point, are_of_several_mpis, is_sweep};

/// A measurement that was kept.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The first line.
    pub environment: Value,
    /// The others.
    pub points: Vec<Point>,
}

/// An error of a file that holds no lines of `polycast bench --json`.
#[derive(Debug, thiserror::Error)]
#[error("{file}: expected the JSON lines of `polycast bench --json FILE`: {problem}")]
pub struct KeptError {
    file: String,
    problem: String,
}

impl Kept {
    /// Reads the lines of one run; `file` is for messages.
    pub fn parse(text: &str, file: &str) -> Result<Kept, KeptError> {
        let error = |problem: String| KeptError { file: file.to_owned(), problem };
        let mut lines = text.lines();
        let first = lines.next().and_then(|line| serde_json::from_str::<Value>(line).ok());
        let environment = first
            .and_then(|mut first| first.get_mut("environment").map(Value::take))
            .ok_or_else(|| error("the first line has no environment".to_owned()))?;
        let point = |(number, line)| {
            let parsed = serde_json::from_str::<Point>(line);
            parsed.map_err(|problem| error(format!("line {}: {problem}", number + 2)))
        };
        let points = lines.enumerate().map(point).collect::<Result<Vec<_>, _>>()?;
        if points.is_empty() {
            return Err(error("it has no points: nothing was measured".to_owned()));
        }
        Ok(Kept { environment, points })
    }
}

/// The values that must agree so that a difference in times is one of what is compared, by their
/// place in the environment.
const MUST_AGREE: [&str; 15] = [
    "/mpi",
    "/mpi_version",
    "/ranks",
    "/nodes",
    "/oversubscribed",
    "/time_from",
    "/cold",
    "/rate_bits_per_second",
    "/machine/cpu",
    "/machine/cores",
    "/lab/hosts",
    "/lab/switches",
    "/lab/burst_bytes",
    "/lab/loss_per_million",
    "/lab/block_multicast",
];

/// The part by which delays that follow stock's time may differ from one run to the next.
const DELAYS_DIFFER: f64 = 0.25;

/// Lists the differences between the two environments, a line each.
pub fn differences(before: &Kept, after: &Kept) -> Vec<String> {
    let of = |kept: &Kept, place: &str| kept.environment.pointer(place).cloned().unwrap_or(Value::Null);
    let different = MUST_AGREE.into_iter().filter_map(|place| {
        let (a, b) = (of(before, place), of(after, place));
        (a != b).then(|| format!("{}: {a} and {b}", place.trim_start_matches('/').replace('/', " ")))
    });
    // Times run from the first call, so they have the delay in them.
    let delays = |pair: &Pair| (pair.before.delay_us, pair.after.delay_us);
    let is_unlike = |&(a, b): &(f64, f64)| (a - b).abs() > DELAYS_DIFFER * a.max(b);
    let unlike = pairs(before, after).0.iter().map(delays).find(is_unlike);
    different.chain(unlike.map(|(a, b)| format!("delay of arrivals: {a} us and {b} us"))).collect()
}

/// A size and variant of both.
#[derive(Clone, Debug)]
pub struct Pair<'a> {
    /// The point of the first file.
    pub before: &'a Point,
    /// The point of the second file.
    pub after: &'a Point,
    /// The second median over the first.
    pub ratio: Option<f64>,
    /// The interval of the ratio, from the 95 % intervals of both medians, of which each may lie
    /// anywhere: both hold together with a probability of 90 % at least.
    pub interval: Option<(f64, f64)>,
}

/// Returns the sizes and variants that both files have, in the order of the first, and how many
/// only one file has.
pub fn pairs<'a>(before: &'a Kept, after: &'a Kept) -> (Vec<Pair<'a>>, usize) {
    let is_sweep = is_sweep(&before.points) || is_sweep(&after.points);
    let are_several = are_of_several_mpis(&before.points) || are_of_several_mpis(&after.points);
    // A size may stand twice in a file.
    let mut left: Vec<&Point> = after.points.iter().collect();
    let pair = |a: &'a Point| {
        let is_same = |b: &&Point| {
            b.bytes == a.bytes
                && (b.ranks == a.ranks || !is_sweep)
                && (b.mpi == a.mpi || !are_several)
                && [&b.collective, &b.variant, &b.root, &b.arrival]
                    == [&a.collective, &a.variant, &a.root, &a.arrival]
        };
        let found = left.iter().position(is_same)?;
        Some(compare(a, left.remove(found)))
    };
    let pairs: Vec<Pair> = before.points.iter().filter_map(pair).collect();
    let single = before.points.len() + after.points.len() - 2 * pairs.len();
    (pairs, single)
}

fn compare<'a>(before: &'a Point, after: &'a Point) -> Pair<'a> {
    let interval = |point: &Point| point.ci_low_us.zip(point.ci_high_us);
    let over = |a: f64, b: f64| (b > 0.0).then(|| a / b);
    let of_both = interval(before).zip(interval(after));
    Pair {
        before,
        after,
        ratio: before.median_us.zip(after.median_us).and_then(|(a, b)| over(b, a)),
        interval: of_both.and_then(|((a_low, a_high), (b_low, b_high))| {
            Some((over(b_low, a_high)?, over(b_high, a_low)?))
        }),
    }
}

impl Pair<'_> {
    /// Returns the verdict of the interval in words.
    pub fn verdict(&self) -> &'static str {
        match self.interval {
            None => "",
            Some((_, high)) if high < 1.0 => "faster",
            Some((low, _)) if low > 1.0 => "slower",
            Some(_) => "no difference seen",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(ranks: u32, medians: &[(&str, u64, f64)]) -> Kept {
        let environment = format!("{{\"environment\": {{\"mpi\": \"openmpi\", \"ranks\": {ranks}}}}}");
        let point = |&(variant, bytes, us): &(&str, u64, f64)| {
            let point = Point {
                variant: variant.into(),
                bytes,
                median_us: Some(us),
                ci_low_us: Some(us * 0.9),
                ci_high_us: Some(us * 1.1),
                ..Point::default()
            };
            serde_json::to_string(&point).unwrap()
        };
        let lines: Vec<String> = std::iter::once(environment).chain(medians.iter().map(point)).collect();
        Kept::parse(&lines.join("\n"), "a.json").unwrap()
    }

    #[test]
    fn medians_are_compared_with_the_intervals_of_both() {
        let before = kept(4, &[("stock", 8, 100.0), ("stock", 16, 100.0), ("polycast", 8, 100.0)]);
        let after =
            kept(4, &[("polycast", 8, 150.0), ("stock", 8, 50.0), ("stock", 32, 1.0), ("stock", 16, 110.0)]);
        let (pairs, single) = pairs(&before, &after);
        let verdicts: Vec<_> = pairs.iter().map(|pair| (pair.ratio.unwrap(), pair.verdict())).collect();
        assert_eq!(verdicts, [(0.5, "faster"), (1.1, "no difference seen"), (1.5, "slower")]);
        let (low, high) = pairs[0].interval.unwrap();
        assert!((low - 45.0 / 110.0).abs() < 1e-9 && (high - 55.0 / 90.0).abs() < 1e-9);
        assert_eq!(single, 1);
    }

    #[test]
    fn a_size_that_stands_twice_is_paired_twice_if_both_have_it_twice() {
        let once = kept(4, &[("stock", 8, 100.0)]);
        let twice = kept(4, &[("stock", 8, 100.0), ("stock", 8, 50.0)]);
        let found = |(pairs, single): (Vec<Pair>, usize)| {
            (pairs.iter().map(|pair| pair.ratio.unwrap()).collect::<Vec<_>>(), single)
        };
        assert_eq!(found(pairs(&twice, &once)), (vec![1.0], 1));
        assert_eq!(found(pairs(&once, &twice)), (vec![1.0], 1));
        assert_eq!(found(pairs(&twice, &twice)), (vec![1.0, 1.0], 0));
    }

    #[test]
    fn unlike_surroundings_are_named() {
        let (before, after) = (kept(4, &[("stock", 8, 1.0)]), kept(5, &[("stock", 8, 1.0)]));
        assert!(differences(&before, &before).is_empty());
        assert_eq!(differences(&before, &after), ["ranks: 4 and 5"]);
    }

    #[test]
    fn times_that_hold_other_delays_are_not_alike() {
        let delayed = |delay_us: f64| {
            let mut kept = kept(4, &[("stock", 8, 1.0), ("stock", 16, 1.0)]);
            kept.points[1].delay_us = delay_us;
            kept
        };
        assert!(differences(&delayed(1000.0), &delayed(1100.0)).is_empty(), "both follow stock");
        let found = differences(&delayed(1000.0), &delayed(50_000.0));
        assert_eq!(found, ["delay of arrivals: 1000 us and 50000 us"]);
    }

    #[test]
    fn points_without_a_time_have_no_ratio() {
        let empty = Kept { points: vec![Point::default()], environment: Value::Null };
        let (pairs, _) = pairs(&empty, &empty);
        assert_eq!((pairs[0].ratio, pairs[0].interval, pairs[0].verdict()), (None, None, ""));
    }

    #[test]
    fn what_is_no_measurement_is_refused() {
        for (text, expected) in [
            ("", "no environment"),
            ("{}", "no environment"),
            ("{\"environment\": {}}", "nothing was measured"),
            ("{\"environment\": {}}\n{", "line 2"),
        ] {
            let error = Kept::parse(text, "x.json").unwrap_err().to_string();
            assert!(
                error.contains(expected) && error.starts_with("x.json: expected the JSON lines"),
                "{error}"
            );
        }
    }
}
