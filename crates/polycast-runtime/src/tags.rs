//! The tags of the private communicator, which all communicators share.
//!
//! ```text
//!     bit 30 … 23                                      3 2   0
//!         ├── number of the communicator ──┼─ operation ─┼─ channel ─┤
//! ```
//! Number and operation have as many bits as the MPI's largest tag leaves them. Operation 0 is left to [`crate::multicast`].

use std::ffi::c_int;

use polycast_core::schedule::CHANNELS;

/// Most bits of a communicator's number, if the MPI has tags enough: ten thousand communicators of a
/// node at a time, and others.
const MAX_NUMBER_BITS: u32 = 14;
/// Most numbers that ranks agree on, which takes half a KiB; the others go with a node's memory.
const MOST_AGREED: usize = 4096;
/// Fewest of them: a word of bits.
const LEAST_AGREED: usize = 64;
/// Fewest bits of an operation: those in flight can be told apart, and those that an erroneous
/// program left over are a while behind.
const OPERATION_BITS_LEAST: u32 = 6;
const CHANNEL_BITS: u32 = CHANNELS.ilog2();

/// Division of the tags, the same on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagSpace {
    number_bits: u32,
    operation_bits: u32,
}

impl TagSpace {
    /// Tags of 0 up to 2^`bits`, which MPI guarantees for 15; `None` for less.
    pub fn new(bits: u32) -> Option<TagSpace> {
        let both = bits.min(c_int::BITS - 1).checked_sub(CHANNEL_BITS)?;
        let number_bits = both.checked_sub(OPERATION_BITS_LEAST)?.min(MAX_NUMBER_BITS);
        (bits >= 15).then_some(TagSpace { number_bits, operation_bits: both - number_bits })
    }

    /// The bits for which all tags are at most `most`.
    pub fn bits(most: c_int) -> u32 {
        (i64::from(most.max(0)) + 1).ilog2()
    }

    /// Number of communicators that can be told apart.
    pub fn numbers(self) -> usize {
        1 << self.number_bits
    }

    /// Numbers that ranks agree on: those below this one. The others are those of slots in the memory
    /// of a node, for communicators whose ranks are all there.
    pub fn agreed_numbers(self) -> usize {
        let half = self.numbers() / 2;
        MOST_AGREED.min(half.max(LEAST_AGREED))
    }

    /// Numbers of slots.
    pub fn slot_numbers(self) -> usize {
        self.numbers() - self.agreed_numbers()
    }

    /// First tag of the communicator with this number.
    pub fn first_tag(self, number: u32) -> c_int {
        (number << (self.operation_bits + CHANNEL_BITS)) as c_int
    }

    /// Tags for the operations of a communicator.
    pub fn operations(self) -> Tags {
        Tags { operations: 0, told_apart: (1 << self.operation_bits) - 1 }
    }
}

/// The tags of successive operations of a communicator, from its own first: messages of operations in flight are told apart, and
/// those which an erroneous program left over.
pub struct Tags {
    /// Number of operations so far.
    operations: u64,
    told_apart: u32,
}

impl Tags {
    /// The tag of channel 0 of the next operation, and the operation's number among all; tags come
    /// round.
    pub fn next(&mut self) -> (c_int, u64) {
        let place = (self.operations % u64::from(self.told_apart)) as c_int + 1;
        self.operations += 1;
        (place * c_int::from(CHANNELS), self.operations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_stay_within_what_the_mpi_has_and_no_two_communicators_share_one() {
        for most in [32_767, 32_768, (1 << 23) - 1, (1 << 28) - 1, c_int::MAX] {
            let space = TagSpace::new(TagSpace::bits(most)).expect("enough");
            let last = space.first_tag(space.numbers() as u32 - 1);
            let span = space.first_tag(1);
            assert!(last > 0 && i64::from(last) + i64::from(span) - 1 <= i64::from(most), "{most}");
            let mut tags = space.operations();
            let all: Vec<c_int> = (0..=tags.told_apart).map(|_| tags.next().0).collect();
            let within = c_int::from(CHANNELS)..=span - c_int::from(CHANNELS);
            assert!(all.iter().all(|tag| within.contains(tag)), "the first are not theirs: {most}");
            assert_ne!(all[0], all[1]);
            assert_eq!(all[0], all[tags.told_apart as usize], "they come round");
            assert!(tags.told_apart >= 63 && space.numbers() >= 64, "{most}");
        }
        assert_eq!(TagSpace::new(TagSpace::bits(c_int::MAX)).map(TagSpace::numbers), Some(16384));
        assert_eq!(TagSpace::new(TagSpace::bits(c_int::MAX)).map(TagSpace::agreed_numbers), Some(4096));
        assert_eq!(TagSpace::new(15).map(|space| (space.numbers(), space.agreed_numbers())), Some((64, 64)));
        assert_eq!(TagSpace::new(14), None);
        assert_eq!([-1, 0, 1, 32_766].map(TagSpace::bits), [0, 0, 1, 14]);
    }
}
