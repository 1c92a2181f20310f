use super::{is_off, is_on};

/// The longest that is read.
const MAX_SECONDS: f64 = 24.0 * 3600.0;
const UNITS: [(&str, f64); 5] = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// How long something may take, in nanoseconds: `20s`, `1.5m`; `on`: no time, `off`: it is not wanted. `None` for anything else.
pub fn budget(value: &str) -> Option<Option<u64>> {
    let value = value.trim();
    // Neither is a number with a unit.
    if is_off(value) {
        return Some(None);
    }
    if is_on(value) {
        return Some(Some(0));
    }
    let unit = value.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = value.split_at(unit);
    let (_, seconds) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    let number: f64 = number.trim_end().parse().ok()?;
    let all = number * seconds;
    (0.0..=MAX_SECONDS).contains(&all).then_some(Some((all * 1e9) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_switches_are_told_apart() {
        let some = |seconds: f64| Some(Some((seconds * 1e9) as u64));
        for (text, expected) in [
            ("20s", some(20.0)),
            ("1.5 m", some(90.0)),
            ("0s", some(0.0)),
            ("250ms", some(0.25)),
            ("on", some(0.0)),
            ("Off", Some(None)),
            ("0", Some(None)),
        ] {
            assert_eq!(budget(text), expected, "{text}");
        }
        for text in ["20", "s", "-1s", "25h", "nans", "infs", "20 bananas", ""] {
            assert_eq!(budget(text), None, "{text}");
        }
    }
}
