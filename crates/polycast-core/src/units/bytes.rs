use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A number of bytes. Written `512`, `8KiB`, `1.5MiB`, `2GiB`; the decimal `KB`, `MB`, `GB` are read too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A size that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a size such as 512, 8KiB, 1.5MiB or 2GiB, found {found:?}")]
pub struct ParseBytesError {
    found: String,
}

const UNITS: [(&str, u64); 11] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("b", 1),
    ("", 1),
];

impl FromStr for Bytes {
    type Err = ParseBytesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseBytesError { found: text.to_owned() };
        let lower = text.trim().to_ascii_lowercase();
        let digits_end = lower.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(lower.len());
        let (number, unit) = lower.split_at(digits_end);
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(error)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let mut bytes = whole.parse::<u64>().ok().and_then(|n| n.checked_mul(*scale)).ok_or_else(error)?;
        if number.contains('.') {
            // Decimal digits, one by one, so that 1.5MiB is exact.
            let denominator = 10u64.checked_pow(fraction.len() as u32).ok_or_else(error)?;
            let part = u128::from(fraction.parse::<u64>().map_err(|_| error())?) * u128::from(*scale);
            if !part.is_multiple_of(u128::from(denominator)) {
                return Err(error());
            }
            let part = u64::try_from(part / u128::from(denominator)).map_err(|_| error())?;
            bytes = bytes.checked_add(part).ok_or_else(error)?;
        }
        Ok(Bytes(bytes))
    }
}

impl fmt::Display for Bytes {
    /// The shortest exact form: `8KiB`, `1MiB`, `1000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, scale) in [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
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
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn refuses_the_rest_and_says_what_was_expected() {
        for text in ["", "KiB", "-1", "1.2.3KiB", "8KiBs", "0.3", "99999999999GiB", "1e3", ".", "1."] {
            let error = text.parse::<Bytes>().unwrap_err();
            assert!(error.to_string().contains("8KiB"), "{text}: {error}");
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
