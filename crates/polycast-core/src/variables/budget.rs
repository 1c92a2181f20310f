use super::{is_off, is_on};
use crate::units::Nanos;

/// Reads a time budget, in nanoseconds: `20s`, `1.5m`; 0 for `on` (no time may be spent), and
/// `Some(None)` for `off` (not wanted). `None` for any other text.
pub fn budget(value: &str) -> Option<Option<u64>> {
    // Neither is a number with a unit.
    if is_off(value.trim()) {
        return Some(None);
    }
    if is_on(value.trim()) {
        return Some(Some(0));
    }
    value.parse::<Nanos>().ok().map(|time| Some(time.0))
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
