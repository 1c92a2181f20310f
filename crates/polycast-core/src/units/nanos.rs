use std::fmt;
use std::ops::{Add, Sub};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_twelve_microseconds_at_a_gigabit() {
        assert_eq!(Nanos::on_link(1500, 1_000_000_000), Nanos::from_micros(12));
        assert_eq!(Nanos::on_link(usize::MAX, 0), Nanos(u64::MAX));
        assert_eq!((Nanos(5) - Nanos(7)).0, 0, "time does not run backwards");
    }
}
