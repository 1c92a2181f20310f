use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

/// A time in nanoseconds: since a moment that its maker chose, or a length of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Whole microseconds.
    pub const fn from_micros(micros: u64) -> Nanos {
        Nanos(micros * 1000)
    }

    /// How long `bytes` take on a link of this rate.
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
    /// In microseconds, the field's unit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 1000, self.0 % 1000);
        if part == 0 { write!(f, "{whole}us") } else { write!(f, "{whole}.{part:03}us") }
    }
}

/// A time that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a time such as 20us, 1.5ms or 500ns, found {found:?}")]
pub struct ParseNanosError {
    found: String,
}

/// Units of a time. Those that end others stand behind them.
const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// The longest time that is read: a day.
const READ_MOST_NS: f64 = 86_400e9;

impl FromStr for Nanos {
    type Err = ParseNanosError;

    /// A number with its unit.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseNanosError { found: text.to_owned() };
        let with_unit = |(unit, scale): (&str, f64)| Some((text.trim().strip_suffix(unit)?, scale));
        let (number, scale) = UNITS.into_iter().find_map(with_unit).ok_or_else(error)?;
        let is_plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
        let nanos = number.parse::<f64>().ok().filter(|_| is_plain).ok_or_else(error)? * scale;
        if nanos <= READ_MOST_NS { Ok(Nanos(nanos.round() as u64)) } else { Err(error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_printed_back() {
        for (text, nanos, printed) in
            [("20us", 20_000, "20us"), ("1.5ms", 1_500_000, "1500us"), ("1s", 1_000_000_000, "1000000us")]
        {
            let time: Nanos = text.parse().unwrap();
            assert_eq!((time.0, time.to_string().as_str()), (nanos, printed));
        }
        assert_eq!("55.500us".parse(), Ok(Nanos(55_500)));
        for text in ["", "us", "20", "-1us", "1e3us", "infs", "86401s", "1.2.3us", "20 us"] {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
        assert!("86400s".parse::<Nanos>().is_ok());
    }

    #[test]
    fn a_packet_takes_twelve_microseconds_at_a_gigabit() {
        assert_eq!(Nanos::on_link(1500, 1_000_000_000), Nanos::from_micros(12));
        assert_eq!(Nanos::on_link(usize::MAX, 0), Nanos(u64::MAX));
        assert_eq!((Nanos(5) - Nanos(7)).0, 0, "time does not run backwards");
    }
}
