use crate::LabError;

/// Reads a bucket size: `1600`, `64KiB`, `1MiB` (or `64k`, `1m` as `tc` has it).
pub fn parse_bucket_bytes(text: &str) -> Result<u32, LabError> {
    let error = || LabError::Value {
        key: "burst",
        expected: format!(
            "bytes from {} to {} such as 1600, 64KiB or 1MiB",
            MIN_BUCKET_BYTES, MAX_BUCKET_BYTES
        ),
        found: text.into(),
    };
    let lower = text.trim().to_ascii_lowercase();
    let end = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let (number, unit) = lower.split_at(end);
    let scale: u32 = match unit.trim() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        _ => return Err(error()),
    };
    let bytes = number.parse::<u32>().ok().and_then(|n| n.checked_mul(scale)).ok_or_else(error)?;
    (MIN_BUCKET_BYTES..=MAX_BUCKET_BYTES).contains(&bytes).then_some(bytes).ok_or_else(error)
}

/// A bucket must hold one full Ethernet frame (1514 bytes), or the frame is never sent.
pub const MIN_BUCKET_BYTES: u32 = 1_514;

/// More than any switch buffer; a larger bucket only hides the rate.
pub const MAX_BUCKET_BYTES: u32 = 64 << 20;

/// One frame and a little: an idle link then gives away the time of no more than one packet.
pub const DEFAULT_BUCKET_BYTES: u32 = 1_600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_at_least_one_frame() {
        assert_eq!(parse_bucket_bytes("1514").unwrap(), 1514);
        assert_eq!(parse_bucket_bytes("64KiB").unwrap(), 65_536);
        assert_eq!(parse_bucket_bytes("1m").unwrap(), 1 << 20);
        for text in ["1513", "65MiB", "64KB", "", "1.5k", "99999999999"] {
            assert!(parse_bucket_bytes(text).is_err(), "{text}");
        }
    }
}
