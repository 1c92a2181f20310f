use std::fmt;

use zeroize::Zeroize;

/// Bytes of a [`Key`].
pub const KEY_BYTES: usize = 32;
/// Bytes of a [`Tag`].
pub const TAG_BYTES: usize = 32;

/// The key of one copy. Only the processes of the copy have it, from the one that started them.
#[derive(Clone)]
pub struct Key([u8; KEY_BYTES]);

/// Keyed BLAKE3 of a block: only a holder of the key can make it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Tag(blake3::Hash);

impl Key {
    /// Makes a key of these bytes, which should be random.
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Key {
        Key(bytes)
    }

    /// Reads a key that [`Key::to_text`] wrote; `None` if the text is none.
    pub fn from_text(text: &str) -> Option<Key> {
        let digits: &[u8; 2 * KEY_BYTES] = text.as_bytes().try_into().ok()?;
        let mut bytes = [0; KEY_BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |c: u8| char::from(c).to_digit(16);
            *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
        }
        Some(Key(bytes))
    }

    /// Writes the key in hexadecimal digits.
    pub fn to_text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The tag of a block: of its place in the stream and its bytes.
    pub fn tag(&self, block: u64, bytes: &[u8]) -> Tag {
        Tag(blake3::Hasher::new_keyed(&self.0).update(&block.to_le_bytes()).update(bytes).finalize())
    }

    /// The key for the datagrams of this copy's multicast, and a number other than 0 that tells
    /// them from other datagrams.
    pub fn for_multicast(&self) -> ([u8; KEY_BYTES], u32) {
        let derived = |role: &[u8; 8]| *self.proof(role, &[]).as_bytes();
        let [a, b, c, d, ..] = derived(b"a job   ");
        (derived(b"datagram"), u32::from_le_bytes([a, b, c, d]).max(1))
    }

    /// Part of the name of a file by which nodes of this copy know that they have a folder in common.
    pub fn for_folder(&self) -> String {
        self.proof(b"a folder", &[]).to_hex()[..32].to_owned()
    }

    /// Proves knowledge of the key. `role` keeps proofs of one meaning from being taken for
    /// another's.
    pub(crate) fn proof(&self, role: &[u8; 8], words: &[&[u8]]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        // No block has a number that begins so, and only the last word may have any length: no proof is a tag, and none is another's.
        hasher.update(b"polycast cp proof ").update(role);
        words.iter().for_each(|word| {
            hasher.update(word);
        });
        hasher.finalize()
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Tag {
    /// Reads a tag from its bytes on the wire.
    pub fn from_bytes(bytes: [u8; TAG_BYTES]) -> Tag {
        Tag(blake3::Hash::from_bytes(bytes))
    }

    /// The bytes of the tag on the wire.
    pub fn as_bytes(&self) -> &[u8; TAG_BYTES] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tag({})", self.0.to_hex())
    }
}

/// BLAKE3 of all blocks' tags, one after the other: equal on nodes that hold the same stream.
#[derive(Clone, Default)]
pub struct Digest(blake3::Hasher);

impl Digest {
    /// Adds the tag of the next block.
    pub fn add(&mut self, tag: &Tag) {
        self.0.update(tag.as_bytes());
    }

    /// The digest in hexadecimal digits.
    pub fn text(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_of_key_place_and_bytes() {
        let (key, other) = (Key::from_bytes([1; 32]), Key::from_bytes([2; 32]));
        let tag = key.tag(3, b"bytes");
        assert_eq!(tag, key.tag(3, b"bytes"));
        for different in [other.tag(3, b"bytes"), key.tag(4, b"bytes"), key.tag(3, b"byteS"), key.tag(3, b"")]
        {
            assert_ne!(tag, different);
        }
        // The published function: keyed BLAKE3 of the number and the bytes.
        assert_eq!(tag.as_bytes(), blake3::keyed_hash(&[1; 32], b"\x03\0\0\0\0\0\0\0bytes").as_bytes());
    }

    #[test]
    fn a_multicast_has_a_key_of_its_own() {
        let [one, other] = [1, 2].map(|byte| Key::from_bytes([byte; KEY_BYTES]));
        assert_eq!(one.for_multicast(), one.for_multicast());
        assert_ne!(one.for_multicast().0, other.for_multicast().0);
        assert_ne!(one.for_multicast().0, [1; KEY_BYTES]);
    }

    #[test]
    fn keys_are_written_in_digits_and_never_shown() {
        let key = Key::from_bytes(std::array::from_fn(|index| index as u8 * 7));
        assert_eq!(Key::from_text(&key.to_text()).unwrap().0, key.0);
        assert_eq!(format!("{key:?}"), "Key");
        for bad in ["", "00", &"g".repeat(64), &"0".repeat(63), &"é".repeat(32)] {
            assert!(Key::from_text(bad).is_none());
        }
    }
}
