use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

use super::written::{problem, split};

/// A time in nanoseconds: since a moment that its maker chose, or a length of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The time of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Nanos {
        Nanos(micros * 1000)
    }

    /// The time that `bytes` take on a link of this rate.
    pub fn on_link(bytes: usize, bits_per_second: u64) -> Nanos {
        let nanos = bytes as u128 * 8 * 1_000_000_000 / u128::from(bits_per_second.max(1));
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Add for Nanos {
    type Output = Nanos;

    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Nanos;

    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Nanos {
    /// Writes the time in microseconds, the field's unit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 1000, self.0 % 1000);
        if part == 0 { write!(f, "{whole}us") } else { write!(f, "{whole}.{part:03}us") }
    }
}

/// A time that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a time such as 20us, 1.5ms or 3s, found {found:?}: {problem}")]
pub struct ParseNanosError {
    found: String,
    problem: String,
}

/// The names of units, as error messages list them.
const UNIT_NAMES: &str = "ns, us, ms, s, min, h";

const UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("min", 60e9),
    ("h", 3_600e9),
];

/// The longest time that is read: a day.
const MAX_READ_NS: f64 = 86_400e9;

impl FromStr for Nanos {
    type Err = ParseNanosError;

    /// Reads a number with its unit.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |problem: String| ParseNanosError { found: text.to_owned(), problem };
        let (number, unit) = split(text);
        let scale = UNITS.iter().find(|(name, _)| *name == unit).filter(|_| !number.is_empty());
        let (_, scale) = scale.ok_or_else(|| error(problem(text, UNIT_NAMES)))?;
        let nanos = number.parse::<f64>().map_err(|_| error("its number is none".to_owned()))? * scale;
        match nanos <= MAX_READ_NS {
            true => Ok(Nanos(nanos.round() as u64)),
            false => Err(error("more than a day (24h)".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_printed_back() {
        for (text, nanos, printed) in
            [("20us", 20_000, "20us"), ("1.5 ms", 1_500_000, "1500us"), ("1s", 1_000_000_000, "1000000us")]
        {
            let time: Nanos = text.parse().unwrap();
            assert_eq!((time.0, time.to_string().as_str()), (nanos, printed));
        }
        assert_eq!("55.500us".parse(), Ok(Nanos(55_500)));
        for text in ["", "us", "20", "-1us", "1e3us", "infs", "86401s", "1.2.3us", "20uss"] {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
        assert_eq!("24h".parse::<Nanos>(), "86400s".parse());
        assert_eq!("2min".parse::<Nanos>(), "120s".parse());
        for (text, problem) in [
            ("5", "its unit is missing (ns, us, ms, s, min, h)"),
            ("5d", "\"d\" is no unit (ns"),
            ("25h", "more than a day"),
            ("ms", "it begins with no number"),
        ] {
            let error = text.parse::<Nanos>().unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn a_packet_takes_twelve_microseconds_at_a_gigabit() {
        assert_eq!(Nanos::on_link(1500, 1_000_000_000), Nanos::from_micros(12));
        assert_eq!(Nanos::on_link(usize::MAX, 0), Nanos(u64::MAX));
        assert_eq!((Nanos(5) - Nanos(7)).0, 0, "time does not run backwards");
    }
}
