//! Numbers at the ticks of an axis.

use polycast_core::units::Bytes;

use crate::picture::words;

/// Writes a number without digits that say nothing: `0.5`, `20`, `1000`, `20,000`.
pub(super) fn number(value: f64) -> String {
    // Twelve digits hide what binary fractions leave behind, such as 0.30000000000000004.
    let rounded = (value * 1e12).round() / 1e12;
    words::thousands(&format!("{rounded}"))
}

/// Writes bytes: `512 B`, `8 KiB`.
pub(super) fn bytes(value: f64) -> String {
    let text = Bytes(value.round() as u64).to_string();
    let unit = text.find(|c: char| c.is_alphabetic());
    unit.map_or_else(|| format!("{text} B"), |unit| format!("{} {}", &text[..unit], &text[unit..]))
}

/// Writes nanoseconds: `50 µs`, `1.5 s`.
pub(super) fn nanoseconds(value: f64) -> String {
    let units = [("s", 1e9), ("ms", 1e6), ("µs", 1e3)];
    let (unit, scale) = units.into_iter().find(|(_, scale)| value.abs() >= *scale).unwrap_or(("ns", 1.0));
    format!("{} {unit}", number(value / scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short() {
        assert_eq!([number(0.1 + 0.2), number(1e3), number(0.0)], ["0.3", "1000", "0"]);
        assert_eq!([bytes(512.0), bytes(1000.0), bytes(4194304.0)], ["512 B", "1000 B", "4 MiB"]);
        assert_eq!(
            [nanoseconds(20.0), nanoseconds(5e4), nanoseconds(1.5e9), nanoseconds(0.0)],
            ["20 ns", "50 µs", "1.5 s", "0 ns"]
        );
    }
}
