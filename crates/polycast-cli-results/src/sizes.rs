//! Which message sizes are measured: `1KiB,64KiB,1000003` or `1KiB..4MiB` or `1KiB..4MiB:4`.

use polycast_core::units::{Bytes, ParseBytesError};

use crate::numbers;

/// The largest size: MPI counts with a C `int`.
pub const MAX_BYTES: u64 = i32::MAX as u64;

/// The most sizes of one job.
pub const MAX_SIZES: usize = 256;

/// An error in a list of sizes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizesError {
    /// An entry of the list is no size.
    #[error("{0}; at most 2147483647 bytes (2GiB - 1), which is what MPI can count")]
    Size(#[from] ParseBytesError),
    /// A size is too large for one call.
    #[error("size {0}: expected at most 2147483647 bytes, which is what MPI can count")]
    TooLarge(Bytes),
    /// A range that has no steps.
    #[error(
        "{0:?}: expected a range FROM..TO or FROM..TO:FACTOR with 1 <= FROM <= TO and FACTOR >= 2, such as 1KiB..4MiB:4"
    )]
    Range(String),
    /// Too many sizes.
    #[error("{0} sizes: expected at most {MAX_SIZES}")]
    TooMany(usize),
}

/// Reads a list of sizes and ranges. A range multiplies by 2, or by the factor after `:`, and ends with its end.
pub fn parse(text: &str) -> Result<Vec<Bytes>, SizesError> {
    let mut sizes = Vec::new();
    for item in text.split(',') {
        match item.split_once("..") {
            Some((from, rest)) => append_range(&mut sizes, item, from, rest)?,
            None => sizes.push(item.parse()?),
        }
    }
    match sizes.iter().find(|size| size.0 > MAX_BYTES) {
        Some(size) => Err(SizesError::TooLarge(*size)),
        None if sizes.len() > MAX_SIZES => Err(SizesError::TooMany(sizes.len())),
        None => Ok(sizes),
    }
}

fn append_range(sizes: &mut Vec<Bytes>, item: &str, from: &str, rest: &str) -> Result<(), SizesError> {
    let error = || SizesError::Range(item.to_owned());
    let (to, factor) = numbers::end_and_factor(rest).ok_or_else(error)?;
    let (from, to): (Bytes, Bytes) = (from.parse()?, to.parse()?);
    let steps = numbers::steps(from.0, to.0, factor).ok_or_else(error)?;
    sizes.extend(steps.into_iter().map(Bytes));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u64> {
        parse(text).unwrap().into_iter().map(|size| size.0).collect()
    }

    #[test]
    fn lists_and_ranges() {
        assert_eq!(bytes("0,1KiB,1000003"), [0, 1024, 1_000_003]);
        assert_eq!(bytes("1KiB..8KiB"), [1024, 2048, 4096, 8192]);
        assert_eq!(bytes("1KiB..16KiB:4,3"), [1024, 4096, 16384, 3]);
        assert_eq!(bytes("1..5"), [1, 2, 4, 5]);
        assert_eq!(bytes("2147483647"), [2_147_483_647]);
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        for (text, expected) in [
            ("", "expected a size"),
            ("1KiB,", "expected a size"),
            ("2GiB", "at most 2147483647"),
            ("1TiB", "at most 2147483647"),
            ("1e9", "expected a size such as 512, 8KiB"),
            ("1e9", "at most 2147483647"),
            ("4KiB..1KiB", "FROM <= TO"),
            ("0..8", "FROM..TO"),
            ("1..8:1", "FACTOR >= 2"),
            (&["1"; 257].join(","), "257 sizes"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert_eq!(parse(&["1"; 256].join(",")).unwrap().len(), 256);
    }
}
