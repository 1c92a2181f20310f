//! Numbers of the command line.

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;

/// Reads a number in `range`; the error says the range in words. clap finds out at run time only whether the number
/// has the type of its field: write `whole(1u32..)`.
pub fn whole<T, R>(range: R) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync
where
    T: FromStr + PartialOrd + Display + Copy,
    R: RangeBounds<T> + Clone + Send + Sync,
{
    move |text| {
        let number = text.trim().parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("expected {}", words(&range)))
    }
}

/// Returns `from`, then each time `factor` times as much, and `to` last. `None` unless 1 <= `from`
/// <= `to` and `factor` >= 2.
pub fn steps(from: u64, to: u64, factor: u64) -> Option<Vec<u64>> {
    if from < 1 || from > to || factor < 2 {
        return None;
    }
    let steps = std::iter::successors(Some(from), |number| number.checked_mul(factor));
    let mut steps: Vec<u64> = steps.take_while(|number| *number < to).collect();
    steps.push(to);
    Some(steps)
}

/// Reads the part of a range behind its dots, `TO` or `TO:FACTOR`; the factor is 2 if none is
/// given.
pub fn end_and_factor(rest: &str) -> Option<(&str, u64)> {
    match rest.split_once(':') {
        Some((to, factor)) => Some((to, factor.parse().ok()?)),
        None => Some((rest, 2)),
    }
}

/// Reads `0.1%` or `5` as 0.001 and 0.05.
pub fn percentage(text: &str) -> Result<f64, String> {
    let percent = text.trim().trim_end_matches('%').parse::<f64>().ok();
    let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
    percent.map(|percent| percent / 100.0).ok_or_else(|| "expected a percentage such as 0.1% or 5".to_owned())
}

/// Describes a range: `a whole number of at least 1`, `a whole number from 2 to 64`.
fn words<T: Display>(range: &impl RangeBounds<T>) -> String {
    match (range.start_bound(), range.end_bound()) {
        (Bound::Included(least), Bound::Included(most)) => format!("a whole number from {least} to {most}"),
        (Bound::Included(least), _) => format!("a whole number of at least {least}"),
        _ => "a whole number".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_between_0_and_100() {
        assert_eq!(percentage("0.1%"), Ok(0.001));
        assert_eq!(percentage("100"), Ok(1.0));
        assert!(percentage("101%").is_err() && percentage("-1").is_err() && percentage("NaN").is_err());
    }

    #[test]
    fn the_range_is_said_in_words() {
        assert_eq!(whole(1u32..)("7"), Ok(7));
        assert_eq!(whole(2u32..=64)("64"), Ok(64));
        for (text, said) in [
            (whole(1u32..)("0"), "a whole number of at least 1"),
            (whole(1u32..)("-1"), "a whole number of at least 1"),
            (whole(2u32..=64)("65"), "a whole number from 2 to 64"),
            (whole(2u32..=64)("two"), "a whole number from 2 to 64"),
        ] {
            assert_eq!(text, Err(format!("expected {said}")));
        }
    }
}
