//! The keyed tag of a datagram: only those who hold the key of the group can write one that is accepted.
//!
//! It is the first half of the tag of AES-128-GCM-SIV (RFC 8452, section 4) under the nonce zero, with the two parts in
//! the places of additional data and plaintext; nothing is encrypted:
//!
//! ```text
//!   part 0 ┃ 0…   part 1 ┃ 0…   bits of part 0 ┃ bits of part 1        blocks of 16 bytes
//!      └───────────────┴─────────────────┴──── POLYVAL under H ────▶ AES-128 under E ────▶ first 8 bytes
//! ```
//!
//! 1. The lengths stand in the last block, so no two pairs of parts make the same blocks.
//! 2. The tag is a function of the parts alone. There is no nonce that must not be used twice: a fragment that is sent
//!    again has the same tag, and roots share a key without counting together.
//! 3. After q datagrams of n blocks a forger is ahead of guessing by no more than q² n / 2¹²⁶: 2⁻³⁹ after 2⁴⁰ datagrams.
//!
//! `docs/decisions/0006-keyed-tag.md` compares it with others.

use std::fmt;
use std::sync::Arc;

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use polyval::Polyval;
use polyval::universal_hash::UniversalHash;
use zeroize::Zeroizing;

/// The length of a key in bytes: H, then E, each of 16 random bytes.
pub const KEY_BYTES: usize = 32;

/// The secret of a group: whoever holds it can write datagrams that the group accepts. All clones
/// share one copy, which is wiped from memory when the last clone is dropped.
#[derive(Clone)]
pub struct Key(Arc<Apart>);

/// A page of memory, as far as its owner can say something about it to the kernel.
const PAGE_BYTES: usize = 4096;

/// Places for a secret in more than two pages, of which one is taken:
///
/// ```text
///  places  ├──┬──┬──┬──┬──┬──┬──┬──┬──┬──┬──┬──┤
///  pages       ┊ first that is whole ┊
///                 ^^ the secret
/// ```
///
/// So a page has nothing else, and can be kept out of core dumps. A type that fills one itself would go over the stack, and threads may have little.
struct Apart {
    places: Vec<Option<Secret>>,
    taken: usize,
}

impl Apart {
    fn new(secret: Secret) -> Apart {
        let place_bytes = size_of::<Option<Secret>>();
        const { assert!(2 * size_of::<Option<Secret>>() <= PAGE_BYTES) };
        let mut places = Vec::new();
        places.resize_with((2 * PAGE_BYTES).div_ceil(place_bytes) + 1, || None);
        let address = places.as_ptr().addr();
        let taken = (address.next_multiple_of(PAGE_BYTES) - address).div_ceil(place_bytes);
        places[taken] = Some(secret);
        Apart { places, taken }
    }

    fn secret(&self) -> &Secret {
        let Some(secret) = &self.places[self.taken] else { unreachable!("it is there until it is dropped") };
        secret
    }
}

struct Secret {
    bytes: Zeroizing<[u8; KEY_BYTES]>,
    /// Hash and cipher, both expanded once: the powers of H, the round keys of E.
    hash: Polyval,
    cipher: Aes128Enc,
}

impl Key {
    /// The key of these bytes, which come from the system's entropy or from the one who drew them.
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Key {
        let bytes = Zeroizing::new(bytes);
        let [h, e] = [0, 16].map(|at| Zeroizing::new(std::array::from_fn::<u8, 16, _>(|i| bytes[at + i])));
        Key(Arc::new(Apart::new(Secret {
            hash: Polyval::new((&*h).into()),
            cipher: Aes128Enc::new((&*e).into()),
            bytes,
        })))
    }

    /// The bytes to hand to another member of the group. They wipe themselves.
    pub fn to_bytes(&self) -> Zeroizing<[u8; KEY_BYTES]> {
        self.0.secret().bytes.clone()
    }

    /// The memory of the secret: the address of a page of 4 KiB, and its length in bytes.
    pub fn memory(&self) -> (*const u8, usize) {
        let secret = (&raw const *self.0.secret()).cast::<u8>();
        (secret.wrapping_byte_sub(secret.addr() % PAGE_BYTES), PAGE_BYTES)
    }

    /// The tag of a datagram: `parts` are the header before the tag and everything behind it.
    ///
    /// Compare tags with `==`: they are integers, compared by one instruction, so its time tells a forger nothing.
    pub fn tag(&self, parts: [&[u8]; 2]) -> u64 {
        let block = self.whole_tag(&[0; 12], parts);
        u64::from_le_bytes(std::array::from_fn(|index| block[index]))
    }

    /// The tag as RFC 8452 has it, with its nonce, so that its test vectors can be asked.
    fn whole_tag(&self, nonce: &[u8; 12], parts: [&[u8]; 2]) -> Block {
        let mut lengths = Block::default();
        for (at, part) in parts.iter().enumerate() {
            lengths[8 * at..8 * (at + 1)].copy_from_slice(&(8 * part.len() as u64).to_le_bytes());
        }
        let mut hash = self.0.secret().hash.clone();
        hash.update_padded(parts[0]);
        hash.update_padded(parts[1]);
        hash.update(&[lengths]);
        let mut block = hash.finalize();
        for (byte, nonce) in block.iter_mut().zip(nonce) {
            *byte ^= nonce;
        }
        block[15] &= 0x7f;
        self.0.secret().cipher.encrypt_block(&mut block);
        block
    }
}

impl fmt::Debug for Key {
    /// Writes no part of the key, which must not get into a log.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The two keys that RFC 8452, section 4, derives for one nonce.
    fn derived(key: [u8; 16], nonce: [u8; 12]) -> Key {
        let cipher = Aes128Enc::new(&key.into());
        let mut bytes = [0; KEY_BYTES];
        for (counter, half) in bytes.chunks_exact_mut(8).enumerate() {
            let mut block = Block::default();
            block[0] = u8::try_from(counter).unwrap();
            block[4..].copy_from_slice(&nonce);
            cipher.encrypt_block(&mut block);
            half.copy_from_slice(&block[..8]);
        }
        Key::from_bytes(bytes)
    }

    fn starting_with(byte: u8, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        bytes.iter_mut().take(1).for_each(|first| *first = byte);
        bytes
    }

    /// RFC 8452, appendix C.1: additional data, plaintext, tag, all under one key and nonce.
    #[test]
    fn the_tags_are_those_of_rfc_8452() {
        let mut key = [0; 16];
        key[0] = 1;
        let mut nonce = [0; 12];
        nonce[0] = 3;
        for (additional, plain, expected) in [
            (vec![], vec![], 0xdc20_e2d8_3f25_705b_b49e_439e_ca56_de25_u128),
            (vec![], starting_with(1, 8), 0x5787_82ff_f601_3b81_5b28_7c22_493a_364c),
            (vec![], starting_with(1, 16), 0x303a_af90_f6fe_2119_9c60_6857_7437_a0c4),
            (starting_with(1, 1), starting_with(2, 8), 0x3b0a_1a25_6096_9cdf_790d_9975_9abd_1508),
        ] {
            let tag = derived(key, nonce).whole_tag(&nonce, [&additional, &plain]);
            assert_eq!(u128::from_be_bytes(tag.into()), expected, "{additional:?} {plain:?}");
        }
    }

    #[test]
    fn a_key_has_a_page_for_itself() {
        for _ in 0..20 {
            let key = Key::from_bytes([1; KEY_BYTES]);
            let (page, bytes) = key.memory();
            let page = page.addr()..page.addr() + bytes;
            let secret: &Secret = key.0.secret();
            let secret = (&raw const *secret).addr()..(&raw const *secret).addr() + size_of::<Secret>();
            let places = key.0.places.as_ptr_range();
            assert!(page.start % PAGE_BYTES == 0 && bytes == PAGE_BYTES);
            assert!(page.start <= secret.start && secret.end <= page.end, "{secret:x?} in {page:x?}");
            assert!(places.start.addr() <= page.start && page.end <= places.end.addr(), "nothing else in it");
        }
    }

    #[test]
    fn a_key_survives_the_way_to_another_member() {
        let key = Key::from_bytes(std::array::from_fn(|index| index as u8));
        let copy = Key::from_bytes(*key.to_bytes());
        assert_eq!(copy.tag([b"header", b"payload"]), key.tag([b"header", b"payload"]));
    }

    #[test]
    fn debug_output_hides_the_key() {
        assert_eq!(format!("{:?}", Key::from_bytes([0xab; KEY_BYTES])), "Key(…)");
    }

    proptest! {
        #[test]
        fn every_flipped_bit_changes_the_tag(
            key: [u8; KEY_BYTES],
            header in prop::collection::vec(any::<u8>(), 24),
            payload in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let key = Key::from_bytes(key);
            let tag = key.tag([&header, &payload]);
            for bit in 0..8 * (header.len() + payload.len()) {
                let mut parts = [header.clone(), payload.clone()];
                let (part, at) = if bit / 8 < header.len() { (0, bit / 8) } else { (1, bit / 8 - header.len()) };
                parts[part][at] ^= 1 << (bit % 8);
                prop_assert_ne!(key.tag([&parts[0], &parts[1]]), tag, "bit {}", bit);
            }
        }

        #[test]
        fn every_flipped_bit_of_the_key_changes_the_tag(
            key: [u8; KEY_BYTES],
            payload in prop::collection::vec(any::<u8>(), 1..100),
        ) {
            let tag = Key::from_bytes(key).tag([&[1; 24], &payload]);
            for bit in 0..8 * KEY_BYTES {
                let mut other = key;
                other[bit / 8] ^= 1 << (bit % 8);
                prop_assert_ne!(Key::from_bytes(other).tag([&[1; 24], &payload]), tag, "bit {}", bit);
            }
        }

        #[test]
        fn zeros_at_the_end_and_the_border_between_parts_count(
            bytes in prop::collection::vec(any::<u8>(), 1..100),
            at in 0..100_usize,
        ) {
            let key = Key::from_bytes([7; KEY_BYTES]);
            let at = at % bytes.len();
            let tag = key.tag([&bytes[..at], &bytes[at..]]);
            prop_assert_ne!(key.tag([&bytes[..at + 1], &bytes[at + 1..]]), tag);
            let longer = [&bytes[..], &[0]].concat();
            prop_assert_ne!(key.tag([&bytes[..at], &longer[at..]]), tag);
        }
    }
}
