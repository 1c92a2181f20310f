//! The bytes on a connection between two nodes.
//!
//! ```text
//!   who listens    greeting: magic, nonce  ─────────────▶   who connects
//!                ◀─────────────  request: purpose, node, first block, nonce, proof
//!                  proof ───────────────────────────▶
//!                ◀─────────────  confirmation: two bytes, each in a packet of its own
//!                  blocks: number, length, tag, bytes ─▶ … until the last one, or either end closes
//! ```
//!
//! Who connects tries again, beside the first try, when an answer takes long, and confirms the try that came first: the others are nothing. So a packet
//! that gets lost costs a few milliseconds, not the second after which TCP sends a first one again.
//!
//! Both ends prove that they have the key, over both nonces, before a byte of a file travels. Blocks are tagged by the
//! source and handed on as they are. A length that is less than the block's says that it travels compressed ([`crate::pack`]). Version 2 of this
//! has such blocks.

use crate::key::{Key, TAG_BYTES, Tag};

/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 32;
/// Bytes of a proof.
pub const PROOF_BYTES: usize = 32;
/// Bytes of a [`Greeting`].
pub const GREETING_BYTES: usize = 8 + NONCE_BYTES;
/// Bytes of a [`Request`].
pub const REQUEST_BYTES: usize = 1 + 4 + 8 + NONCE_BYTES + PROOF_BYTES;
/// Bytes of a [`BlockHeader`].
pub const BLOCK_HEADER_BYTES: usize = 8 + 4 + TAG_BYTES;
/// The bytes by which the node that connects confirms this connection, behind the proof. The second
/// byte tells TCP at once that the first got lost, and says nothing else.
pub const CONFIRMATION: [u8; 2] = [0xc0, 0x0f];
/// The shortest blocks that a stream is cut into.
pub const MIN_BLOCK_BYTES: u32 = 4 << 10;
/// The longest blocks that a stream is cut into.
pub const MAX_BLOCK_BYTES: u32 = 16 << 20;

const MAGIC: &[u8; 8] = b"polycp 2";
const BY_CLIENT: &[u8; 8] = b"request ";
const BY_SERVER: &[u8; 8] = b"accepted";

/// The first words of the node that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Random, new for every connection.
    pub nonce: [u8; NONCE_BYTES],
}

impl Greeting {
    /// The bytes of the greeting on the wire.
    pub fn encode(&self) -> [u8; GREETING_BYTES] {
        let mut bytes = [0; GREETING_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..].copy_from_slice(&self.nonce);
        bytes
    }

    /// Reads a greeting; `None` if something else than `polycast cp` listens.
    pub fn decode(bytes: &[u8; GREETING_BYTES]) -> Option<Greeting> {
        let (magic, nonce) = bytes.split_first_chunk::<8>()?;
        (magic == MAGIC).then_some(Greeting { nonce: *nonce.first_chunk()? })
    }
}

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Blocks, from a given one on.
    Blocks,
    /// Messages to and from the next node in a ring.
    Ring,
    /// Reports from a node below in the tree of a ring: how many segments are over there.
    Below,
}

/// The first words of the node that connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The purpose of the connection.
    pub purpose: Purpose,
    /// The number of the node that connects.
    pub node: u32,
    /// For blocks, the first one that the node wants; for a ring, the number of the ring; for
    /// reports from below, the node's [place in the ring](place_in_ring).
    pub block: u64,
    /// Random, new for every connection.
    pub nonce: [u8; NONCE_BYTES],
}

/// Packs a place and the number of the ring into one number, as a request from below has them.
pub fn place_in_ring(place: u32, ring: u32) -> u64 {
    u64::from(place) << 32 | u64::from(ring)
}

/// The place and the number of the ring that [`place_in_ring`] packed.
pub fn of_place_in_ring(block: u64) -> (u32, u32) {
    ((block >> 32) as u32, block as u32)
}

impl Request {
    fn words(&self) -> [u8; REQUEST_BYTES - PROOF_BYTES] {
        let mut bytes = [0; REQUEST_BYTES - PROOF_BYTES];
        bytes[0] = match self.purpose {
            Purpose::Blocks => 1,
            Purpose::Ring => 2,
            Purpose::Below => 3,
        };
        bytes[1..5].copy_from_slice(&self.node.to_le_bytes());
        bytes[5..13].copy_from_slice(&self.block.to_le_bytes());
        bytes[13..].copy_from_slice(&self.nonce);
        bytes
    }

    /// The bytes of the request on the wire, and the proof that the answer must begin with.
    pub fn encode(&self, greeting: &Greeting, key: &Key) -> ([u8; REQUEST_BYTES], [u8; PROOF_BYTES]) {
        let words = self.words();
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..words.len()].copy_from_slice(&words);
        bytes[words.len()..].copy_from_slice(key.proof(BY_CLIENT, &[&greeting.nonce, &words]).as_bytes());
        (bytes, *key.proof(BY_SERVER, &[&greeting.nonce, &words]).as_bytes())
    }

    /// Reads a request, and returns it with the proof to answer with. `None` if the node that
    /// connects does not have the key, or did not see this greeting.
    pub fn decode(
        bytes: &[u8; REQUEST_BYTES],
        greeting: &Greeting,
        key: &Key,
    ) -> Option<(Request, [u8; PROOF_BYTES])> {
        let (words, proof) = bytes.split_first_chunk::<{ REQUEST_BYTES - PROOF_BYTES }>()?;
        let expected = key.proof(BY_CLIENT, &[&greeting.nonce, words]);
        // Compared in a time that does not depend on where they differ.
        if expected != *proof.first_chunk::<PROOF_BYTES>()? {
            return None;
        }
        let purpose = match words[0] {
            1 => Purpose::Blocks,
            2 => Purpose::Ring,
            3 => Purpose::Below,
            _ => return None,
        };
        let request = Request {
            purpose,
            node: u32::from_le_bytes(*words[1..].first_chunk()?),
            block: u64::from_le_bytes(*words[5..].first_chunk()?),
            nonce: *words[13..].first_chunk()?,
        };
        Some((request, *key.proof(BY_SERVER, &[&greeting.nonce, words]).as_bytes()))
    }
}

/// The header in front of a block's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// The block's number, from 0.
    pub block: u64,
    /// The number of bytes that follow.
    pub bytes: u32,
    /// The tag of the unpacked block, made by the source.
    pub tag: Tag,
}

impl BlockHeader {
    /// The bytes of the header on the wire.
    pub fn encode(&self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.block.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[12..].copy_from_slice(self.tag.as_bytes());
        bytes
    }

    /// Reads a header; `None` for a length that no block has.
    pub fn decode(bytes: &[u8; BLOCK_HEADER_BYTES]) -> Option<BlockHeader> {
        let length = u32::from_le_bytes(*bytes[8..].first_chunk()?);
        (1..=MAX_BLOCK_BYTES).contains(&length).then_some(BlockHeader {
            block: u64::from_le_bytes(*bytes.first_chunk()?),
            bytes: length,
            tag: Tag::from_bytes(*bytes[12..].first_chunk()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KEY_BYTES;

    #[test]
    fn only_who_has_the_key_and_saw_the_greeting_is_served() {
        let key = Key::from_bytes([3; KEY_BYTES]);
        let greeting = Greeting { nonce: [4; NONCE_BYTES] };
        assert_eq!(Greeting::decode(&greeting.encode()), Some(greeting));
        let request = Request { purpose: Purpose::Blocks, node: 7, block: 1 << 40, nonce: [5; NONCE_BYTES] };
        let (bytes, expected) = request.encode(&greeting, &key);
        let (read, answer) = Request::decode(&bytes, &greeting, &key).unwrap();
        assert_eq!((read, answer), (request, expected));
        // Neither end can send the other's words back to it.
        assert_ne!(answer, bytes[REQUEST_BYTES - PROOF_BYTES..]);
        let other = Greeting { nonce: [6; NONCE_BYTES] };
        assert_eq!(Request::decode(&bytes, &other, &key), None);
        assert_eq!(Request::decode(&bytes, &greeting, &Key::from_bytes([9; KEY_BYTES])), None);
        for at in 0..REQUEST_BYTES {
            let mut changed = bytes;
            changed[at] ^= 1;
            assert_eq!(Request::decode(&changed, &greeting, &key), None, "byte {at}");
        }
        assert_eq!(Greeting::decode(&[0; GREETING_BYTES]), None);
    }

    #[test]
    fn lengths_have_limits() {
        let tag = Tag::from_bytes([1; TAG_BYTES]);
        for (bytes, is_good) in [(0, false), (1, true), (MAX_BLOCK_BYTES, true), (MAX_BLOCK_BYTES + 1, false)]
        {
            let header = BlockHeader { block: 9, bytes, tag };
            assert_eq!(BlockHeader::decode(&header.encode()), is_good.then_some(header));
        }
    }
}
