//! Puts a message together from whatever brings its fragments.
//!
//! Invariants
//! 1. A fragment is written into the program's buffer once, at its own place, when it is seen for the first time.
//! 2. `absent` is the number of fragments that have not been seen.
//! 3. All fragments below `prefix` have been seen, and `prefix` has not.
//! 4. Every fragment below `horizon()` that has not been seen is not on its way by multicast any more.

use fixedbitset::FixedBitSet;

use super::data::Data;
use super::fragmentation::Fragmentation;
use super::parity::{Class, Parities};

/// A datagram counts as lost when this many later ones have arrived before it.
const MAX_REORDERED: u32 = 3;

/// The result of taking a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A fragment seen for the first time; it has been written.
    New,
    /// A fragment seen before.
    Again,
    /// A fragment of another size, behind the end, or that there is no room for: its sender has another message in mind.
    Mismatch,
}

/// A message on its way in.
#[derive(Debug)]
pub struct Receiver {
    cut: Fragmentation,
    seen: FixedBitSet,
    absent: u32,
    prefix: u32,
    /// The end of what came by multicast: one more than the highest fragment, the message's last
    /// one left out.
    multicast_end: u32,
    /// True if nothing more comes by multicast.
    is_over: bool,
    parities: Parities,
}

impl Receiver {
    /// A receiver that has seen nothing; or, for the root, everything.
    pub fn new(cut: Fragmentation, has_all: bool) -> Receiver {
        let (seen, parities) = Default::default();
        Receiver { cut, seen, absent: 0, prefix: 0, multicast_end: 0, is_over: false, parities }
            .renewed(cut, has_all)
    }

    /// A receiver of another message, in the memory of this one.
    pub fn renewed(mut self, cut: Fragmentation, has_all: bool) -> Receiver {
        self.seen.clear();
        self.seen.grow(cut.fragments() as usize);
        if has_all {
            self.seen.insert_range(..);
        }
        self.parities.clear();
        let (absent, prefix) = if has_all { (0, cut.fragments()) } else { (cut.fragments(), 0) };
        Receiver { cut, absent, prefix, multicast_end: 0, is_over: has_all, ..self }
    }

    /// Goes on as a receiver of a message with another length, of which it has fragments that both have.
    pub fn recut(&mut self, cut: Fragmentation) {
        let seen = self.cut.fragments() - self.absent;
        self.seen.grow(cut.fragments() as usize);
        self.parities.clear();
        (self.cut, self.absent) = (cut, cut.fragments() - seen);
    }

    /// True if some fragment from `first` on is there.
    pub fn has_any_from(&self, first: u32) -> bool {
        let first = first as usize;
        first < self.seen.len() && self.seen.count_ones(first..) > 0
    }

    /// Takes one fragment.
    pub fn take(&mut self, fragment: u32, payload: &[u8], data: &mut Data<'_>) -> Seen {
        let Some(range) = self.cut.range(fragment).filter(|range| range.len() == payload.len()) else {
            return Seen::Mismatch;
        };
        if !data.has_room(range.end) {
            return Seen::Mismatch;
        }
        if self.seen.put(fragment as usize) {
            return Seen::Again;
        }
        self.absent -= 1;
        self.parities.saw(fragment);
        data.write(range, payload);
        while self.seen.contains(self.prefix as usize) {
            self.prefix += 1;
        }
        Seen::New
    }

    /// A fragment came by multicast, for the first time in this broadcast. The last one says nothing of the others: it may
    /// travel before them.
    pub fn saw_multicast(&mut self, fragment: u32) {
        if fragment < self.cut.fragments() - 1 {
            self.multicast_end = self.multicast_end.max(fragment + 1);
        }
    }

    /// Notes that the root has sent everything.
    pub fn saw_end(&mut self) {
        self.is_over = true;
    }

    /// Keeps a parity until it is of use.
    pub fn take_parity(&mut self, class: Class, parity: &[u8]) {
        let (seen, all) = (&self.seen, self.cut.fragments());
        self.parities.take(self.cut, class, parity, absent_of(seen, all));
    }

    /// Restores a fragment that alone is absent of those that a parity covers, and says which it was.
    pub fn restore(&mut self, data: &mut Data<'_>) -> Option<u32> {
        if !self.parities.may_restore() {
            return None;
        }
        let mut parities = std::mem::take(&mut self.parities);
        let restored = parities.restore(self.cut, &self.seen, data).map(|(fragment, payload)| {
            self.take(fragment, payload, data);
            fragment
        });
        restored.into_iter().for_each(|fragment| parities.saw(fragment));
        self.parities = parities;
        restored
    }

    /// True if no fragment is absent.
    pub fn is_complete(&self) -> bool {
        self.absent == 0
    }

    /// The number of bytes that are there from the beginning on.
    pub fn prefix_bytes(&self) -> u64 {
        (u64::from(self.prefix) * u64::from(self.cut.payload_bytes())).min(self.cut.message_bytes())
    }

    /// True if the fragment is there.
    pub fn has(&self, fragment: u32) -> bool {
        self.seen.contains(fragment as usize)
    }

    /// The fragment below which absent ones have been lost.
    pub fn horizon(&self) -> u32 {
        if self.is_over { self.cut.fragments() } else { self.multicast_end.saturating_sub(MAX_REORDERED) }
    }

    /// The end of what came by multicast: one more than the highest fragment, the message's last
    /// one left out.
    pub fn multicast_end(&self) -> u32 {
        self.multicast_end
    }

    /// True if the multicast is over, as far as this node knows.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// All absent fragments, lost or not; quick, however long the message is.
    pub fn all_absent(&self) -> impl Iterator<Item = u32> {
        absent_of(&self.seen, self.cut.fragments())
    }

    /// The absent fragments from `from` up to the horizon.
    pub fn lost(&self, from: u32) -> impl Iterator<Item = u32> {
        (from..self.horizon()).filter(|fragment| !self.has(*fragment))
    }
}

fn absent_of(seen: &FixedBitSet, all: u32) -> impl Iterator<Item = u32> {
    seen.zeroes().map(|fragment| fragment as u32).take_while(move |fragment| *fragment < all)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::parity::{MAX_CLASSES, parity};
    use super::*;

    proptest! {
        #[test]
        fn any_order_with_repetitions_gives_the_message(
            message in prop::collection::vec(any::<u8>(), 1..500),
            payload in 1u32..40,
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
        ) {
            let cut = Fragmentation::new(message.len() as u64, payload).unwrap();
            let mut buffer = vec![0; message.len()];
            let mut receiver = Receiver::new(cut, false);
            let mut expected = vec![false; cut.fragments() as usize];
            let count = cut.fragments();
            for fragment in order.iter().map(|i| i.index(count as usize) as u32).chain(0..count) {
                let seen = receiver.take(fragment, &message[cut.range(fragment).unwrap()], &mut Data::Sink(&mut buffer));
                let was = std::mem::replace(&mut expected[fragment as usize], true);
                prop_assert_eq!(seen, if was { Seen::Again } else { Seen::New });
                let prefix = expected.iter().take_while(|is_there| **is_there).count() as u64;
                prop_assert_eq!(receiver.prefix_bytes(), (prefix * u64::from(payload)).min(message.len() as u64));
            }
            prop_assert!(receiver.is_complete());
            prop_assert_eq!(buffer, message);
        }

        #[test]
        fn parities_restore_what_alone_is_absent_of_their_fragments(
            message in prop::collection::vec(any::<u8>(), 1..500),
            payload in 1u32..40,
            classes in any::<prop::sample::Index>(),
            lost in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
            parities_first in any::<bool>(),
            lost_parity in any::<prop::sample::Index>(),
        ) {
            let cut = Fragmentation::new(message.len() as u64, payload).unwrap();
            let count = cut.fragments();
            let classes = classes.index(count.min(MAX_CLASSES) as usize) as u32 + 1;
            let lost: BTreeSet<u32> = lost.iter().map(|lost| lost.index(count as usize) as u32).collect();
            // All parities but one, if there are several.
            let lost_parity = lost_parity.index(classes as usize + 1) as u32;
            let mut buffer = vec![0; message.len()];
            let mut data = Data::Sink(&mut buffer);
            let mut receiver = Receiver::new(cut, false);
            let take_parities = |receiver: &mut Receiver, data: &mut Data<'_>, restored: &mut BTreeSet<u32>| {
                for index in (0..classes).filter(|index| *index != lost_parity) {
                    let (class, mut bytes) = (Class { index, classes }, Vec::new());
                    parity(cut, &message, class, &mut bytes);
                    receiver.take_parity(class, &bytes);
                    restored.extend(std::iter::from_fn(|| receiver.restore(data)));
                }
            };
            let mut restored = BTreeSet::new();
            if parities_first {
                take_parities(&mut receiver, &mut data, &mut restored);
            }
            for fragment in (0..count).filter(|fragment| !lost.contains(fragment)) {
                receiver.take(fragment, &message[cut.range(fragment).unwrap()], &mut data);
                restored.extend(std::iter::from_fn(|| receiver.restore(&mut data)));
            }
            if !parities_first {
                take_parities(&mut receiver, &mut data, &mut restored);
            }
            let of_class = |lost: &&u32| lost_parity != **lost % classes;
            let is_alone = |one: &&u32| lost.iter().filter(|other| **other % classes == **one % classes).count() == 1;
            for fragment in lost.iter().filter(of_class).filter(is_alone) {
                prop_assert!(restored.contains(fragment) && receiver.has(*fragment));
            }
            for fragment in (0..count).filter(|fragment| receiver.has(*fragment)) {
                let range = cut.range(fragment).unwrap();
                prop_assert_eq!(&data.bytes()[range.clone()], &message[range]);
            }
            prop_assert_eq!(receiver.restore(&mut data), None);
        }
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        let cut = Fragmentation::new(10, 4).unwrap();
        let mut buffer = [0; 10];
        let mut receiver = Receiver::new(cut, false);
        for (fragment, bytes) in [(0, 3), (0, 5), (2, 4), (3, 4), (u32::MAX, 4)] {
            let seen = receiver.take(fragment, &[1; 8][..bytes], &mut Data::Sink(&mut buffer));
            assert_eq!(seen, Seen::Mismatch, "{fragment}: {bytes} bytes");
        }
        assert_eq!(buffer, [0; 10]);
    }

    #[test]
    fn a_gap_counts_as_lost_only_after_some_reordering() {
        let mut receiver = Receiver::new(Fragmentation::new(100, 10).unwrap(), false);
        receiver.saw_multicast(3);
        assert_eq!(receiver.lost(0).collect::<Vec<_>>(), [0]);
        receiver.saw_end();
        assert_eq!(receiver.lost(4).collect::<Vec<_>>(), [4, 5, 6, 7, 8, 9]);
        assert_eq!(receiver.all_absent().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    }
}
