use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::written::{problem, split};

/// A number of bytes. Written `512`, `8KiB`, `1.5MiB`, `2GiB`; the decimal `KB`, `MB`, `GB` are read too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// The geometric mean of two sizes: the size that is as many times the smaller one as the
    /// larger one is times it.
    pub fn geometric_mean(self, other: Bytes) -> f64 {
        (self.0 as f64 * other.0 as f64).sqrt()
    }

    /// The first size that is nearer to the larger one than to this one, as a ratio. No other size
    /// is near to 0.
    pub fn border(self, larger: Bytes) -> Bytes {
        let mean = self.geometric_mean(larger).ceil() as u64;
        Bytes(mean.max(self.0.saturating_add(1)))
    }
}

/// A size that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a size such as 512, 8KiB, 1.5MiB or 2GiB, found {found:?}: {problem}")]
pub struct ParseBytesError {
    found: String,
    problem: String,
}

/// The names of units, as error messages list them.
const UNIT_NAMES: &str = "B, KiB, MiB, GiB, TiB, or decimal KB, MB, GB, TB";

const UNITS: [(&str, u64); 14] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("b", 1),
    ("", 1),
];

impl FromStr for Bytes {
    type Err = ParseBytesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |problem: String| ParseBytesError { found: text.to_owned(), problem };
        let (number, unit) = split(text);
        let scale = UNITS.iter().find(|(name, _)| *name == unit).filter(|_| !number.is_empty());
        let (_, scale) = scale.ok_or_else(|| error(problem(text, UNIT_NAMES)))?;
        exactly(number, *scale).map(Bytes).map_err(|problem| error(problem.to_owned()))
    }
}

/// A decimal number times `scale`, where that is a whole number.
fn exactly(number: &str, scale: u64) -> Result<u64, &'static str> {
    let too_large = "more than can be counted (16384 PiB)";
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !(is_digits(whole) && is_digits(fraction)) {
        return Err("its number is none");
    }
    let bytes = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(scale)).ok_or(too_large)?;
    // Decimal digits, so that 1.5MiB is exact. More of them than u64 has are not of a whole number of bytes.
    let uneven = "it is no whole number of bytes";
    let denominator = 10u64.checked_pow(fraction.len() as u32).ok_or(uneven)?;
    let part = u128::from(fraction.parse::<u64>().map_err(|_| uneven)?) * u128::from(scale);
    if !part.is_multiple_of(denominator.into()) {
        return Err(uneven);
    }
    // A fraction is less than one unit.
    bytes.checked_add((part / u128::from(denominator)) as u64).ok_or(too_large)
}

impl fmt::Display for Bytes {
    /// The shortest exact form: `8KiB`, `1MiB`, `1000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, scale) in [("TiB", 1u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
            if self.0 != 0 && self.0.is_multiple_of(scale) {
                return f.pad(&format!("{}{name}", self.0 / scale));
            }
        }
        f.pad(&self.0.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("512B", 512),
            ("8KiB", 8192),
            ("8 kib", 8192),
            ("64k", 65536),
            ("1.5MiB", 3 << 19),
            ("2GiB", 2 << 30),
            ("10MB", 10_000_000),
            ("1TiB", 1 << 40),
            ("2tb", 2_000_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn a_border_lies_behind_the_smaller_size() {
        for (one, other, border) in
            [(1024, 16384, 4096), (1, 2, 2), (1000, 1001, 1001), (0, 1024, 1), (0, 1, 1)]
        {
            assert_eq!(Bytes(one).border(Bytes(other)), Bytes(border), "{one} to {other}");
        }
    }

    #[test]
    fn refuses_the_rest_and_says_what_was_expected() {
        for text in ["", "KiB", "-1", "1.2.3KiB", "8KiBs", "0.3", "99999999999GiB", "1e3", ".", "1."] {
            let error = text.parse::<Bytes>().unwrap_err();
            assert!(error.to_string().contains("8KiB"), "{text}: {error}");
        }
        for (text, problem) in [
            ("1e9", "\"e9\" is no unit (B, KiB, MiB"),
            ("1PiB", "\"pib\" is no unit"),
            ("KiB", "it begins with no number"),
            ("99999999999GiB", "more than can be counted"),
            ("0.3", "it is no whole number of bytes"),
            ("1.2.3KiB", "its number is none"),
        ] {
            let error = text.parse::<Bytes>().unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_printed_is_read_back() {
        for bytes in [0, 1, 1000, 1023, 1024, 8192, 1 << 20, (1 << 20) + 1, 3 << 30, u64::MAX] {
            assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        }
        assert_eq!(Bytes(8192).to_string(), "8KiB");
    }
}
