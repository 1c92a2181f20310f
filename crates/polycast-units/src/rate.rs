use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Nanos;
use super::written::{problem, split};

/// Bits per second on a link. Written `20mbit`, `1gbit`, `100kbit` as for `tc`; `100Mb/s` is read too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(u64);

/// A rate that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a rate such as 20mbit, 1gbit or 2.5gbit, found {found:?}: {problem}")]
pub struct ParseRateError {
    found: String,
    problem: String,
}

/// The names of units, as error messages list them.
const UNIT_NAMES: &str = "bit, kbit, mbit, gbit, or kb/s, mb/s, gb/s, in bits per second";

/// Units of a rate, the largest first because that is the order in which they are tried when printing.
const RATE_UNITS: [(&str, &str, u64); 4] = [
    ("gbit", "gb/s", 1_000_000_000),
    ("mbit", "mb/s", 1_000_000),
    ("kbit", "kb/s", 1_000),
    ("bit", "b/s", 1),
];

impl Rate {
    /// The slowest rate that is accepted: a packet takes 1.5 s on it.
    pub const MIN: Rate = Rate(8_000);
    /// The fastest rate that is accepted.
    pub const MAX: Rate = Rate(1_000_000_000_000);

    /// A rate in bits per second, if it is within [`Rate::MIN`] and [`Rate::MAX`].
    pub fn from_bits_per_second(bits: u64) -> Option<Rate> {
        (Self::MIN.0..=Self::MAX.0).contains(&bits).then_some(Rate(bits))
    }

    /// The rate in bits per second.
    pub fn bits_per_second(self) -> u64 {
        self.0
    }

    /// The time that a byte takes at this rate, in nanoseconds.
    pub fn ns_per_byte(self) -> f64 {
        8e9 / self.0 as f64
    }

    /// The number of bytes that this rate carries in `time`.
    pub fn bytes_in(self, time: Nanos) -> u64 {
        (u128::from(self.0) * u128::from(time.0) / 8_000_000_000) as u64
    }
}

impl FromStr for Rate {
    type Err = ParseRateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |problem: String| ParseRateError { found: text.to_owned(), problem };
        let (number, unit) = split(text);
        let scale = RATE_UNITS.iter().find(|(a, b, _)| [*a, *b].contains(&unit.as_str()));
        let (.., scale) =
            scale.filter(|_| !number.is_empty()).ok_or_else(|| error(problem(text, UNIT_NAMES)))?;
        let bits = number.parse::<f64>().map_err(|_| error("its number is none".to_owned()))? * *scale as f64;
        let rate = Rate::from_bits_per_second(bits.round() as u64);
        rate.ok_or_else(|| error(format!("it is not between {} and {}", Rate::MIN, Rate::MAX)))
    }
}

impl fmt::Display for Rate {
    /// The largest unit in which the rate is a whole number: `20mbit`, `2500mbit`, `1gbit`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, _, scale) =
            RATE_UNITS.iter().find(|unit| self.0.is_multiple_of(unit.2)).unwrap_or(&RATE_UNITS[3]);
        f.pad(&format!("{}{unit}", self.0 / scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_printed_back() {
        for (text, bits, printed) in [
            ("20mbit", 20_000_000, "20mbit"),
            ("1gbit", 1_000_000_000, "1gbit"),
            ("2.5 Gb/s", 2_500_000_000, "2500mbit"),
            ("100Mb/s", 100_000_000, "100mbit"),
            ("8000bit", 8_000, "8kbit"),
            ("8001bit", 8_001, "8001bit"),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(rate.bits_per_second(), bits);
            assert_eq!(rate.to_string(), printed);
            assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate);
        }
    }

    #[test]
    fn rates_without_unit_or_outside_the_limits_are_refused() {
        for text in ["", "20", "mbit", "0mbit", "7999bit", "1001gbit", "-1mbit", "1.2.3mbit", "20mbits"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
        let error = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
        assert!(error("20").contains("its unit is missing (bit, kbit, mbit, gbit"), "{}", error("20"));
        assert!(error("1001gbit").ends_with("it is not between 8kbit and 1000gbit"), "{}", error("1001gbit"));
        assert!("1000gbit".parse::<Rate>().is_ok());
    }

    #[test]
    fn rate_times_time() {
        assert_eq!("20mbit".parse::<Rate>().unwrap().bytes_in(Nanos(200_000_000)), 500_000);
    }
}
