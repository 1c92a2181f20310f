//! What people read: times with three digits and the unit that fits (`12.3 µs`, `279 ms`), sizes likewise, and counted things.

use std::fmt::Display;

use crate::Bytes;

/// Units of a time, and their lengths in ns.
const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];

/// `450 ns`, `12.3 µs`, `279 ms`, `1.58 s`: three digits, in the unit that leaves fewest before the point.
pub fn nanoseconds(ns: f64) -> String {
    let (unit, scale) = unit_of(ns);
    format!("{:.*} {unit}", if scale == 1.0 { 0 } else { decimals(ns / scale) }, ns / scale)
}

/// `265–291`: an interval around a time, in that time's unit, which stands beside it.
pub fn interval(ns: f64, (low_ns, high_ns): (f64, f64)) -> String {
    let (_, scale) = unit_of(ns);
    range(low_ns / scale, high_ns / scale)
}

/// `3.07–3.57`
pub fn range(low: f64, high: f64) -> String {
    format!("{}–{}", digits(low), digits(high))
}

/// Three digits: `0.98`, `12.3`, `279`, `12500`.
pub fn digits(value: f64) -> String {
    format!("{value:.*}", decimals(value))
}

/// `12.3 ± 0.4 ms`: a time and how far its interval reaches, both in the unit and with the digits of the time.
pub fn margin(ns: f64, reach_ns: f64) -> String {
    let (unit, scale) = unit_of(ns);
    let decimals = decimals(ns / scale);
    format!("{:.decimals$} ± {:.decimals$} {unit}", ns / scale, reach_ns / scale)
}

/// `512 B`, `1.5 KiB`, `20 MiB`: one digit behind the point where it says something, and the largest unit that fits.
pub fn size(bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let Some((unit, power)) = units.into_iter().find(|(_, power)| bytes >> power > 0) else {
        return format!("{bytes} B");
    };
    let tenths = (u128::from(bytes) * 10 + (1 << (power - 1))) >> power;
    match tenths % 10 {
        0 => format!("{} {unit}", tenths / 10),
        tenth => format!("{}.{tenth} {unit}", tenths / 10),
    }
}

/// `10 Gb/s`, `2.5 Gb/s`, `941 Mb/s`, `64 kb/s`: one digit behind the point where it says something, and the largest unit that fits.
pub fn rate(bits_per_second: u64) -> String {
    let units = [("Gb/s", 1_000_000_000), ("Mb/s", 1_000_000), ("kb/s", 1_000)];
    let bits = u128::from(bits_per_second);
    let Some((unit, scale)) = units.into_iter().find(|(_, scale)| bits >= *scale) else {
        return format!("{bits_per_second} b/s");
    };
    let tenths = (bits * 10 + scale / 2) / scale;
    match tenths % 10 {
        tenth if tenth > 0 && tenths < 1000 => format!("{}.{tenth} {unit}", tenths / 10),
        _ => format!("{} {unit}", (tenths + 5) / 10),
    }
}

/// `64KiB`, `1000 bytes`: to the last byte, as it is written in tables, and with a unit in any case.
pub fn exact_size(bytes: u64) -> String {
    match bytes {
        0 => "0 bytes".to_owned(),
        _ if bytes.is_multiple_of(1 << 10) => Bytes(bytes).to_string(),
        _ => count(bytes, "byte", "bytes"),
    }
}

/// `1 host`, `2 hosts`.
pub fn count<N: Display + From<u8> + PartialEq>(number: N, one: &str, several: &str) -> String {
    let noun = if number == N::from(1) { one } else { several };
    format!("{number} {noun}")
}

/// The largest unit that does not bring the first digit behind the point, after rounding to three digits.
fn unit_of(ns: f64) -> (&'static str, f64) {
    let fits = |(_, scale): &&(&str, f64)| ns.abs() >= scale * 0.9995;
    *UNITS.iter().rev().find(fits).unwrap_or(&UNITS[0])
}

/// The number of digits behind the point, for three digits in all.
fn decimals(value: f64) -> usize {
    match value.abs() {
        99.95.. => 0,
        9.995.. => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_three_digits_and_a_unit_that_fits() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (450.4, "450 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 µs"),
            (12_345.0, "12.3 µs"),
            (278_953_800.0, "279 ms"),
            (9_996_000.0, "10.0 ms"),
            (99_960_000.0, "100 ms"),
            (999_600_000.0, "1.00 s"),
            (1_577e6, "1.58 s"),
            (3_600e9, "3600 s"),
            (-1_500.0, "-1.50 µs"),
        ] {
            assert_eq!(nanoseconds(ns), text);
        }
    }

    #[test]
    fn a_rate_has_a_unit_that_fits() {
        for (bits, text) in [
            (0, "0 b/s"),
            (999, "999 b/s"),
            (64_000, "64 kb/s"),
            (9_430_000, "9.4 Mb/s"),
            (10_000_000, "10 Mb/s"),
            (941_400_000, "941 Mb/s"),
            (999_960_000, "1000 Mb/s"),
            (2_500_000_000, "2.5 Gb/s"),
            (100_000_000_000, "100 Gb/s"),
            (u64::MAX, "18446744074 Gb/s"),
        ] {
            assert_eq!(rate(bits), text);
        }
    }

    #[test]
    fn an_exact_size_has_a_unit() {
        for (bytes, text) in [(0, "0 bytes"), (1, "1 byte"), (1000, "1000 bytes"), (65536, "64KiB")] {
            assert_eq!(exact_size(bytes), text);
        }
    }

    #[test]
    fn two_numbers_share_their_unit() {
        assert_eq!(interval(278_953_800.0, (265e6, 1_291e6)), "265–1291");
        assert_eq!(interval(1_100e3, (990e3, 1_210e3)), "0.99–1.21");
        assert_eq!(margin(12_340e3, 444e3), "12.3 ± 0.4 ms");
        assert_eq!(margin(9_138e3, 8_896e3), "9.14 ± 8.90 ms");
    }

    #[test]
    fn a_size_has_the_largest_unit_that_fits() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (20 << 20, "20 MiB"),
            ((20 << 20) + 1, "20 MiB"),
            (u64::MAX, "16777216 TiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn one_is_not_several() {
        assert_eq!([count(1, "rank", "ranks"), count(2usize, "rank", "ranks")], ["1 rank", "2 ranks"]);
    }
}
