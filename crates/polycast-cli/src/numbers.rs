//! Whole numbers of the command line.

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

/// `a whole number of at least 1`, `a whole number from 2 to 64`.
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
