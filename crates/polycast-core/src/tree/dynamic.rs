//! DYN-tree (Nupairoj 1998, §6.3): OPT-tree with the times of a network that is in use.
//!
//! A send returns when the message stands in the send buffer, so `t_hold` does not show how full the network is. The time until
//! the message has left its sender, `t_as`, does:
//!
//! ```text
//!   t_as = t_hold + t_hol          t_hol = waiting for earlier messages + t_out + delay by others in the network
//! ```
//!
//! What it exceeds an idle network's by is expected of the next message, too, whatever its size. So a sender that is
//! delayed gives larger parts away to fewer receivers. Each divides [its own part](super::Part) by its own delay: the message
//! tells the receiver its part.

use super::{Part, SendTimes};
use crate::units::{Nanos, Rank};

/// The times that messages of one size take on an idle network. Any unit of time will do, if all
/// three have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IdleTimes {
    /// `t_hold`: from the call until the next send can be called.
    pub hold: Nanos,
    /// `t_out`: how long the message occupies its sender's way into the network.
    pub out: Nanos,
    /// `t_end`: from the call until the receiver can send the message on.
    pub end: Nanos,
}

/// A sender's estimate of how busy the network is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DynamicTimes {
    /// `t_sq + t_cont` of the message that left last: waiting in the send buffer and in the network.
    delay: Option<Nanos>,
}

impl DynamicTimes {
    /// A message left its sender `time_at_sender` (`t_as`) after the call; `idle` is for its size.
    pub fn left(&mut self, time_at_sender: Nanos, idle: IdleTimes) {
        self.delay = Some(Nanos(time_at_sender.0.saturating_sub(idle.hold.0.saturating_add(idle.out.0))));
    }

    /// The times to plan a multicast with whose messages would take `idle` on an idle network; see
    /// [`super::Splits::optimal`].
    ///
    /// Until the first message has left, these are the times of an idle network.
    pub fn expected(&self, idle: IdleTimes) -> SendTimes {
        let Some(delay) = self.delay else { return SendTimes { hold: idle.hold, end: idle.end } };
        SendTimes { hold: idle.hold.max(idle.out + delay), end: idle.end + delay }
    }
}

/// The part of a multicast that a sender hands to a receiver, told ahead of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The number of the multicast, counted by its ranks: a receiver does not know from whom to
    /// expect data, and one sender may be ahead of another.
    pub operation: u64,
    /// Bytes of the data, as the root has them.
    pub total: u64,
    /// The rank that sends the data.
    pub sender: Rank,
    /// The part of the order that the receiver, as the part's source, is answerable for.
    pub part: Part,
}

impl Assignment {
    /// Bytes of an encoded assignment: `operation` and `total` in 8 bytes each, then sender, begin,
    /// end and source in 4 each, little-endian.
    pub const BYTES: usize = 32;

    /// Writes the assignment as it is sent; [`Assignment::BYTES`] has the layout.
    pub fn encode(&self) -> [u8; Assignment::BYTES] {
        let Part { begin, end, source } = self.part;
        let mut bytes = [0; Assignment::BYTES];
        bytes[..8].copy_from_slice(&self.operation.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.total.to_le_bytes());
        for (place, word) in bytes[16..].chunks_exact_mut(4).zip([self.sender.0, begin, end, source]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reads an assignment among `ranks` ranks; `None` if the length is wrong, or the part or the
    /// sender lies outside of the ranks.
    pub fn decode(bytes: &[u8], ranks: u32) -> Option<Assignment> {
        let (operation, rest) = bytes.split_first_chunk::<8>()?;
        let (total, words) = rest.split_first_chunk::<8>()?;
        let (operation, total) = (u64::from_le_bytes(*operation), u64::from_le_bytes(*total));
        let word = |at: usize| Some(u32::from_le_bytes(words.get(4 * at..4 * at + 4)?.try_into().ok()?));
        let part = Part { begin: word(1)?, end: word(2)?, source: word(3)? };
        let assignment = Assignment { operation, total, sender: Rank(word(0)?), part };
        let is_part = part.begin <= part.source && part.source < part.end && part.end <= ranks;
        let is_whole = bytes.len() == Assignment::BYTES;
        (is_whole && is_part && assignment.sender.0 < ranks).then_some(assignment)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tree::Splits;

    /// Nupairoj 1998, §6.4: the baseline's start-up and delay per byte, in units of 10 ns.
    fn idle(bytes: u64) -> IdleTimes {
        IdleTimes {
            hold: Nanos(1915 + 2 * bytes),
            out: Nanos(1390 + 2 * bytes),
            end: Nanos(5330 + 7 * bytes),
        }
    }

    /// The formulas as they stand in §6.3, from a message of `n` bytes that left to one of `m`.
    fn by_the_formulas(t_as: u64, n: u64, m: u64) -> SendTimes {
        let t_hol = t_as - (1915 + 2 * n) - 2 * n;
        let t_end = t_as - 2 * n - 2 * n + 2025;
        SendTimes { hold: Nanos((1915 + 2 * m).max(t_hol + 2 * m)), end: Nanos(t_end + m * (2 + 2 + 3)) }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_times_are_those_of_the_formulas(n in 1u64..100_000, m in 1u64..100_000, delay in 0u64..1_000_000) {
            let t_as = idle(n).hold.0 + idle(n).out.0 + delay;
            let mut times = DynamicTimes::default();
            times.left(Nanos(t_as), idle(n));
            prop_assert_eq!(times.expected(idle(m)), by_the_formulas(t_as, n, m));
        }

        #[test]
        fn a_slower_network_has_fewer_receivers_of_the_root(delay in 0u64..1_000_000, ranks in 2u32..256) {
            let first_receivers = |delay: u64| {
                let mut times = DynamicTimes::default();
                times.left(idle(1024).hold + idle(1024).out + Nanos(delay), idle(1024));
                let splits = Splits::optimal(times.expected(idle(1024)), ranks);
                let mut rest = ranks;
                let mut receivers = 0;
                while rest > 1 {
                    rest -= splits.led(rest).sum::<u32>();
                    receivers += 1;
                }
                receivers
            };
            let halvings = (ranks - 1).ilog2() + 1;
            prop_assert!(first_receivers(delay) <= first_receivers(0));
            prop_assert!(first_receivers(10_000_000) <= halvings + 1);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn assignments_are_read_as_they_were_written(operation: u64, total: u64, begin in 0u32..9, before in 0u32..9, after in 1u32..9, sender in 0u32..3) {
            let part = Part { begin, end: begin + before + after, source: begin + before };
            let assignment = Assignment { operation, total, sender: Rank(sender), part };
            let bytes = assignment.encode();
            prop_assert_eq!(Assignment::decode(&bytes, part.end.max(3)), Some(assignment));
            prop_assert_eq!(Assignment::decode(&bytes, part.end - 1), None);
            prop_assert_eq!(Assignment::decode(&bytes[..31], 99), None);
            prop_assert_eq!(Assignment::decode(&[&bytes[..], &[0]].concat(), 99), None);
        }

        #[test]
        fn whatever_comes_is_no_part_that_cannot_be(bytes in prop::collection::vec(any::<u8>(), 0..40), ranks in 0u32..) {
            if let Some(Assignment { part, sender, .. }) = Assignment::decode(&bytes, ranks) {
                prop_assert!(part.begin <= part.source && part.source < part.end && part.end <= ranks);
                prop_assert!(sender.0 < ranks);
            }
        }
    }

    #[test]
    fn before_the_first_message_has_left_and_after_one_that_was_quicker_than_can_be() {
        let mut times = DynamicTimes::default();
        let new = times.expected(idle(1024));
        assert_eq!((new.hold, new.end), (Nanos(3963), Nanos(12_498)));
        times.left(Nanos(1), idle(1024));
        assert_eq!(times.expected(idle(1024)), new);
    }
}
