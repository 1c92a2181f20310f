//! Exclusive ors of parts of a message, from which a receiver restores what it misses without asking.
//!
//! A message of `n` fragments has up to [`MAX_CLASSES`] *classes*; class `c` of `k` has the fragments `c`, `c + k`, `c + 2k`, …, so that losses in a row are
//! in different ones, and its *parity* is the exclusive or of these, each filled up with zeroes:
//!
//! ```text
//!     fragment   0 1 2 3 4 5 6 7 8 9        k = 3, fragments 4 and 5 are lost
//!     class      0 1 2 0 1 2 0 1 2 0
//!     parity 1 = 1 ^ 4 ^ 7   ▶  4 = parity 1 ^ 1 ^ 7
//!     parity 2 = 2 ^ 5 ^ 8   ▶  5 = parity 2 ^ 2 ^ 8
//! ```
//!
//! Invariants, from the first parity on
//! 1. `absent[c]` is the number of fragments of class `c` that have not been seen.
//! 2. A class is in `ready` when its parity is there and one of its fragments is absent; it may stay there when that has come.

use fixedbitset::FixedBitSet;

use super::data::Data;
use super::fragmentation::Fragmentation;
use super::wire::FLAG_CLASS;

/// The most parities of a message: 2 % of one of 4 MiB.
pub const MAX_CLASSES: u32 = 64;
/// A message has a parity for this many fragments where losses are seen.
const FRAGMENTS_PER_CLASS: u32 = 16;

/// The place of a class's index in the flags of a datagram.
const INDEX_SHIFT: u32 = 8;
const INDEX_MASK: u16 = 0x3f;

/// A class of a message's fragments, see the module: its index and the number of classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// The index of the class, from 0.
    pub index: u32,
    /// The number of classes.
    pub classes: u32,
}

impl Class {
    /// The class in the flags of a datagram. The number of classes is not in them, since it follows
    /// from the message.
    pub fn flags(self) -> u16 {
        if self.classes == 1 { 0 } else { FLAG_CLASS | (self.index as u16 & INDEX_MASK) << INDEX_SHIFT }
    }

    /// The class of a datagram with a parity of this message.
    pub fn from_flags(flags: u16, cut: Fragmentation) -> Class {
        if flags & FLAG_CLASS == 0 {
            return Class { index: 0, classes: 1 };
        }
        Class { index: u32::from(flags >> INDEX_SHIFT & INDEX_MASK), classes: classes_for(cut) }
    }

    /// True if nothing but the end is sent behind the parity of the class.
    pub fn is_last(self) -> bool {
        self.index + 1 == self.classes
    }

    fn fragments(self, cut: Fragmentation) -> impl Iterator<Item = u32> {
        (self.index..cut.fragments()).step_by(self.classes.max(1) as usize)
    }
}

/// The `fragment` field of a datagram with a parity: the message's length, of which no other one
/// makes the same parity, in 32 bits.
pub fn length(cut: Fragmentation) -> u32 {
    cut.message_bytes() as u32
}

/// The number of parities that a message is worth where losses are seen.
pub fn classes_for(cut: Fragmentation) -> u32 {
    (cut.fragments() / FRAGMENTS_PER_CLASS).min(MAX_CLASSES)
}

/// Replaces `parity` by the parity of a class of a message.
pub fn parity(cut: Fragmentation, message: &[u8], class: Class, parity: &mut Vec<u8>) {
    parity.clear();
    parity.resize(parity_bytes(cut), 0);
    class
        .fragments(cut)
        .filter_map(|fragment| cut.range(fragment))
        .for_each(|range| xor_into(parity, &message[range]));
}

fn parity_bytes(cut: Fragmentation) -> usize {
    cut.range(0).map_or(0, |first| first.len())
}

fn xor_into(sum: &mut [u8], bytes: &[u8]) {
    sum.iter_mut().zip(bytes).for_each(|(sum, byte)| *sum ^= byte);
}

/// The parities of one message that a receiver has.
#[derive(Debug, Default)]
pub struct Parities {
    /// The number of classes; 0 if no parity has come.
    classes: u32,
    /// The parities, one behind the other, by class.
    bytes: Vec<u8>,
    has: FixedBitSet,
    absent: Vec<u32>,
    ready: Vec<u32>,
}

impl Parities {
    /// Empties the collection for another message.
    pub fn clear(&mut self) {
        self.classes = 0;
    }

    /// Keeps a parity until it is of use. `absent` are the fragments that have not been seen.
    pub fn take(
        &mut self,
        cut: Fragmentation,
        class: Class,
        parity: &[u8],
        absent: impl Iterator<Item = u32>,
    ) {
        let Class { index, classes } = class;
        if parity.len() != parity_bytes(cut) || classes > cut.fragments() || index >= classes {
            return;
        }
        if self.classes == 0 {
            self.begin(classes, parity.len());
            absent.for_each(|fragment| self.absent[(fragment % classes) as usize] += 1);
        }
        if self.classes != classes || self.has.put(index as usize) {
            return;
        }
        self.bytes[index as usize * parity.len()..][..parity.len()].copy_from_slice(parity);
        if self.absent[index as usize] == 1 {
            self.ready.push(index);
        }
    }

    fn begin(&mut self, classes: u32, parity_bytes: usize) {
        self.classes = classes;
        self.bytes.resize(classes as usize * parity_bytes, 0);
        self.has.clear();
        self.has.grow(classes as usize);
        self.absent.clear();
        self.absent.resize(classes as usize, 0);
        self.ready.clear();
    }

    /// A fragment has been seen for the first time.
    pub fn saw(&mut self, fragment: u32) {
        if self.classes == 0 {
            return;
        }
        let index = fragment % self.classes;
        let absent = &mut self.absent[index as usize];
        *absent -= 1;
        if *absent == 1 && self.has.contains(index as usize) {
            self.ready.push(index);
        }
    }

    /// True if [`Parities::restore`] is worth a call.
    pub fn may_restore(&self) -> bool {
        self.classes > 0 && !self.ready.is_empty()
    }

    /// Makes an absent fragment from the others of its class; returns its index and bytes. `has`
    /// says which fragments are there.
    pub fn restore(
        &mut self,
        cut: Fragmentation,
        has: &FixedBitSet,
        data: &Data<'_>,
    ) -> Option<(u32, &[u8])> {
        let index =
            std::iter::from_fn(|| self.ready.pop()).find(|index| self.absent[*index as usize] == 1)?;
        let class = Class { index, classes: self.classes };
        let absent = class.fragments(cut).find(|fragment| !has.contains(*fragment as usize))?;
        let parity_bytes = parity_bytes(cut);
        let sum = &mut self.bytes[index as usize * parity_bytes..][..parity_bytes];
        let present = class.fragments(cut).filter(|fragment| *fragment != absent);
        present
            .filter_map(|fragment| cut.range(fragment))
            .for_each(|range| xor_into(sum, &data.bytes()[range]));
        Some((absent, &sum[..cut.range(absent)?.len()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_say_the_class_and_the_message_how_many_there_are() {
        let cut = Fragmentation::new(1 << 20, 1440).unwrap();
        for class in [(0, 1), (0, 45), (44, 45)].map(|(index, classes)| Class { index, classes }) {
            assert_eq!(Class::from_flags(class.flags() | 0xb, cut), class);
        }
        let last = Class { index: MAX_CLASSES - 1, classes: MAX_CLASSES };
        assert_eq!(Class::from_flags(last.flags(), Fragmentation::new(16 << 20, 1440).unwrap()), last);
    }

    #[test]
    fn parities_are_a_few_percent_of_a_message() {
        let classes = |bytes| classes_for(Fragmentation::new(bytes, 1440).unwrap());
        assert_eq!([8 << 10, 64 << 10, 1 << 20, 16 << 20].map(classes), [0, 2, 45, 64]);
    }

    #[test]
    fn what_is_no_parity_of_the_message_is_ignored() {
        let cut = Fragmentation::new(10, 4).unwrap();
        let mut parities = Parities::default();
        let class = |index, classes| Class { index, classes };
        parities.take(cut, class(0, 4), &[0; 4], 0..3);
        parities.take(cut, class(0, 1), &[0; 3], 0..3);
        assert_eq!(parities.classes, 0);
        parities.take(cut, class(0, 2), &[0; 4], 0..3);
        parities.take(cut, class(0, 1), &[0; 4], 0..3);
        parities.take(cut, class(2, 2), &[0; 4], 0..3);
        assert_eq!((parities.classes, parities.has.count_ones(..)), (2, 1));
    }
}
