//! The hash by which ranks compare what they have. Another process, built by another compiler, must get the same number, so
//! nothing of it is left to a library's choice: SipHash-2-4 (Aumasson and Bernstein 2012) with a key of zeroes over
//!
//! ```text
//! text      its bytes in UTF-8, preceded by how many they are, as a number
//! number    8 bytes, the lowest first
//! ```
//! It begins with a text that says what is hashed. It tells mistakes apart, not attackers: ranks of a job trust each other.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

/// A hash that is being made.
pub struct Digest(SipHasher24);

impl Digest {
    /// A hash of things of this kind.
    pub fn of(kind: &str) -> Digest {
        Digest(SipHasher24::new()).bytes(kind.as_bytes())
    }

    /// Adds bytes, after their number.
    pub fn bytes(self, bytes: &[u8]) -> Digest {
        let mut longer = self.number(bytes.len() as u64);
        longer.0.write(bytes);
        longer
    }

    /// Adds a number.
    pub fn number(mut self, number: u64) -> Digest {
        self.0.write(&number.to_le_bytes());
        self
    }

    /// The hash of all that came.
    pub fn finish(self) -> u64 {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `openssl mac -macopt size:8 -macopt hexkey:00… SIPHASH` from the bytes that the module describes.
    #[test]
    fn other_implementations_give_the_same() {
        assert_eq!(Digest(SipHasher24::new()).finish(), 0x1e92_4b9d_7377_00d7);
        let digest = Digest::of("polycast settings").bytes(b"a\n").number(258);
        assert_eq!(digest.finish(), 0x719e_7f9d_5f4c_81fa);
    }

    #[test]
    fn what_is_cut_elsewhere_differs() {
        let cut = |a: &str, b: &str| Digest::of("x").bytes(a.as_bytes()).bytes(b.as_bytes()).finish();
        assert_ne!(cut("ab", "c"), cut("a", "bc"));
    }
}
