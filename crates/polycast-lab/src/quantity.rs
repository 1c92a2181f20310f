use polycast_core::units::Bytes;

use crate::LabError;

/// Reads a bucket size: `1600`, `64KiB`, `1MiB` (or `64k`, `1m` as `tc` has it).
pub fn parse_bucket_bytes(text: &str) -> Result<u32, LabError> {
    let error = || LabError::Value {
        key: "burst",
        expected: format!("bytes from {MIN_BUCKET_BYTES} to {MAX_BUCKET_BYTES} such as 1600, 64KiB or 1MiB"),
        found: text.into(),
    };
    let bytes = text.trim().parse::<Bytes>().ok().and_then(|bytes| u32::try_from(bytes.0).ok());
    bytes.filter(|bytes| (MIN_BUCKET_BYTES..=MAX_BUCKET_BYTES).contains(bytes)).ok_or_else(error)
}

/// The smallest bucket, in bytes: one full Ethernet frame (1514 bytes). A frame that is longer than
/// the bucket is never sent.
pub const MIN_BUCKET_BYTES: u32 = 1_514;

/// The largest bucket, in bytes: more than any switch buffer; a larger one only hides the rate.
pub const MAX_BUCKET_BYTES: u32 = 64 << 20;

/// The usual bucket, in bytes: one frame and a little. An idle link then gives away the time of no
/// more than one packet.
pub const DEFAULT_BUCKET_BYTES: u32 = 1_600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_at_least_one_frame() {
        assert_eq!(parse_bucket_bytes("1514").unwrap(), 1514);
        assert_eq!(parse_bucket_bytes("64KiB").unwrap(), 65_536);
        assert_eq!(parse_bucket_bytes("1m").unwrap(), 1 << 20);
        for text in ["1513", "65MiB", "", "1.3k", "99999999999"] {
            assert!(parse_bucket_bytes(text).is_err(), "{text}");
        }
    }
}
