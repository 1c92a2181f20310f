//! Blocks that travel compressed, each by itself, in LZ4's block format; and only those that become shorter by it.
//!
//! ```text
//!   byte 0       32
//!     ├── tag ───┼── LZ4 ──▶          in all shorter than the block, whose length all know: so a length tells what it is
//! ```
//!
//! The tag is of the packed bytes and is looked at first: who does not have the key gets nothing unpacked. The block itself has its own
//! tag, made by the source, whatever it travelled as.

use crate::key::{Key, TAG_BYTES};

const PACKED: &[u8; 8] = b"packed  ";

/// The error for bytes that no holder of the key has packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a compressed block is not what was sent")]
pub struct BadPack;

fn tag(key: &Key, block: u64, packed: &[u8]) -> blake3::Hash {
    key.proof(PACKED, &[&block.to_le_bytes(), packed])
}

/// Compresses a block and puts the tag of the packed bytes in front; `None` if it does not become
/// shorter.
pub fn pack(key: &Key, block: u64, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut packed = vec![0; TAG_BYTES + lz4_flex::block::get_maximum_output_size(bytes.len())];
    let length = lz4_flex::block::compress_into(bytes, &mut packed[TAG_BYTES..]).ok()?;
    packed.truncate(TAG_BYTES + length);
    if packed.len() >= bytes.len() {
        return None;
    }
    let made = tag(key, block, &packed[TAG_BYTES..]);
    packed[..TAG_BYTES].copy_from_slice(made.as_bytes());
    packed.shrink_to_fit();
    Some(packed)
}

/// Unpacks a block of `bytes` bytes. No more memory than that is ever asked of the system, whatever
/// came.
///
/// # Errors
/// The tag is wrong, or it is no block of this length.
pub fn unpack(key: &Key, block: u64, packed: &[u8], bytes: usize) -> Result<Vec<u8>, BadPack> {
    let (sent, packed) = packed.split_first_chunk::<TAG_BYTES>().ok_or(BadPack)?;
    // Compared in a time that does not depend on where they differ.
    if tag(key, block, packed) != *sent {
        return Err(BadPack);
    }
    let mut unpacked = vec![0; bytes];
    match lz4_flex::block::decompress_into(packed, &mut unpacked) {
        Ok(length) if length == bytes => Ok(unpacked),
        _ => Err(BadPack),
    }
}

/// For fuzzers: any bytes as what came packed, and with the right tag in front, for a fuzzer does not find that; and as a block.
pub(crate) fn check_any_bytes(bytes: &[u8]) {
    let key = Key::from_bytes([7; crate::key::KEY_BYTES]);
    // A fuzzer has whole blocks with their tag from its corpus.
    let is_tagged =
        bytes.split_first_chunk::<TAG_BYTES>().is_some_and(|(sent, packed)| tag(&key, 3, packed) == *sent);
    let lengths = [0, 1, bytes.len(), 4 * bytes.len(), crate::wire::MIN_BLOCK_BYTES as usize];
    for length in lengths {
        assert!(is_tagged || unpack(&key, 3, bytes, length) == Err(BadPack), "nobody has made its tag");
        let tagged = [tag(&key, 3, bytes).as_bytes(), bytes].concat();
        if let Ok(unpacked) = unpack(&key, 3, &tagged, length) {
            assert_eq!(unpacked.len(), length);
        }
        assert_eq!(unpack(&key, 4, &tagged, length), Err(BadPack), "of another block");
    }
    // Repeated it becomes shorter.
    for block in [bytes, &bytes.repeat(9)] {
        if let Some(packed) = pack(&key, 3, block) {
            assert!(packed.len() < block.len());
            assert_eq!(unpack(&key, 3, &packed, block.len()).as_deref(), Ok(block));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::KEY_BYTES;

    fn key() -> Key {
        Key::from_bytes([1; KEY_BYTES])
    }

    proptest! {
        #[test]
        fn what_is_packed_is_shorter_and_unpacked_again(part: Vec<u8>, times in 1usize..200, block: u64) {
            let bytes = part.repeat(times);
            if let Some(packed) = pack(&key(), block, &bytes) {
                prop_assert!(packed.len() < bytes.len());
                prop_assert_eq!(unpack(&key(), block, &packed, bytes.len()), Ok(bytes));
            }
        }

        /// Whoever has the key packs what he likes: it is a block of the length that is asked for, or it is refused.
        #[test]
        fn any_bytes_are_unpacked_to_the_length_that_is_known_or_refused(packed: Vec<u8>, bytes in 0usize..5_000) {
            let tagged = [tag(&key(), 5, &packed).as_bytes(), &packed[..]].concat();
            if let Ok(unpacked) = unpack(&key(), 5, &tagged, bytes) {
                prop_assert_eq!(unpacked.len(), bytes);
            }
        }
    }

    #[test]
    fn what_repeats_becomes_shorter_and_what_is_random_stays() {
        let text = b"what repeats ".repeat(1_000);
        assert!(pack(&key(), 0, &text).unwrap().len() < text.len() / 50);
        let mut state = 1u64;
        let random: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 56) as u8
        })
        .take(16_384)
        .collect();
        assert_eq!(pack(&key(), 0, &random), None);
        assert_eq!(pack(&key(), 0, &[]), None);
        // Its tag alone would be longer.
        assert_eq!(pack(&key(), 0, &[0; TAG_BYTES + 1]), None);
    }

    #[test]
    fn every_changed_bit_is_seen_before_it_is_unpacked() {
        let bytes = b"some bytes, some bytes, some bytes, some bytes, some bytes, some bytes".repeat(3);
        let packed = pack(&key(), 9, &bytes).unwrap();
        for bit in 0..packed.len() * 8 {
            let mut changed = packed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(unpack(&key(), 9, &changed, bytes.len()), Err(BadPack), "bit {bit}");
        }
        for length in 0..packed.len() {
            assert_eq!(unpack(&key(), 9, &packed[..length], bytes.len()), Err(BadPack), "{length} bytes");
        }
        assert_eq!(unpack(&key(), 8, &packed, bytes.len()), Err(BadPack));
        assert_eq!(unpack(&Key::from_bytes([2; KEY_BYTES]), 9, &packed, bytes.len()), Err(BadPack));
        for other in [bytes.len() - 1, bytes.len() + 1, 0, 1 << 20] {
            assert_eq!(unpack(&key(), 9, &packed, other), Err(BadPack), "{other} bytes");
        }
    }

    /// A few bytes that say that gigabytes follow: no more is written than the block has room for.
    #[test]
    fn a_length_that_is_told_is_not_believed() {
        // A literal, then a match as long as 4,000 bytes of 255 can say.
        let bomb = [&[0x1f, b'x', 1, 0][..], &[255; 4_000], &[0]].concat();
        let tagged = [tag(&key(), 0, &bomb).as_bytes(), &bomb[..]].concat();
        assert_eq!(unpack(&key(), 0, &tagged, 4_096), Err(BadPack));
    }
}
