//! Does multicast still reach this node? Ports are forgotten by switches, filters change, links go.
//!
//! ```text
//!     broadcast   heard   nothing   nothing   nothing ──▶ deaf: says so to its predecessor, which hands it on around the ring
//!                                                          next root that knows: tells all, with whatever it sends
//! ```
//! A broadcast is *bad* for a node if not one datagram of it has come. Single losses make none bad but the shortest; so a node calls itself
//! deaf when several in a row were bad that had, in all, so many datagrams that chance cannot lose them all.

/// The bad broadcasts in a row after which a node calls itself deaf.
const BAD_BROADCASTS: u32 = 3;
/// The datagrams that these broadcasts had at least: half of them get lost on a very bad network,
/// all of them once in 256 times there, and on a network that loses 5 % never.
const BAD_DATAGRAMS: u64 = 8;
/// A datagram of a broadcast that is over by at most this many shows that the network still brings
/// some. Older ones may be somebody's recording.
const LATE_BROADCASTS: u64 = 8;

/// A node's record of whether multicast reaches it.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    bad_broadcasts: u32,
    bad_datagrams: u64,
    heard: bool,
    /// The number of broadcasts yet to begin, up to the latest one that a datagram has come of;
    /// there may have been no room for that datagram.
    heard_ahead: u64,
}

impl Hearing {
    /// A broadcast begins.
    pub fn begin(&mut self) {
        self.heard = self.heard_ahead > 0;
        self.heard_ahead = self.heard_ahead.saturating_sub(1);
    }

    /// A datagram of the broadcast in progress has come.
    pub fn heard(&mut self) {
        *self = Hearing { heard: true, heard_ahead: self.heard_ahead, ..Hearing::default() };
    }

    /// A datagram has come of a broadcast that is over by `by`: 1 for the one before the broadcast
    /// in progress, or before the one to come.
    pub fn heard_late(&mut self, by: u64) {
        if by <= LATE_BROADCASTS {
            (self.bad_broadcasts, self.bad_datagrams) = (0, 0);
        }
    }

    /// A datagram has come of a broadcast that has not begun, with `before` before it that have not
    /// begun either.
    pub fn heard_early(&mut self, before: u64) {
        (self.bad_broadcasts, self.bad_datagrams) = (0, 0);
        self.heard_ahead = self.heard_ahead.max(before.saturating_add(1));
    }

    /// True if the node calls itself deaf now that it has the message, in which the root sent so
    /// many datagrams.
    pub fn is_deaf(&self, datagrams: u64) -> bool {
        !self.heard
            && self.bad_broadcasts + 1 >= BAD_BROADCASTS
            && self.bad_datagrams.saturating_add(datagrams) >= BAD_DATAGRAMS
    }

    /// The broadcast in progress, of so many datagrams, is over.
    pub fn end(&mut self, datagrams: u64) {
        if !self.heard {
            self.bad_broadcasts = self.bad_broadcasts.saturating_add(1);
            self.bad_datagrams = self.bad_datagrams.saturating_add(datagrams);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(bad: u32, datagrams: u64) -> Hearing {
        let mut hearing = Hearing::default();
        for _ in 0..bad {
            hearing.begin();
            hearing.end(datagrams);
        }
        hearing.begin();
        hearing
    }

    #[test]
    fn three_bad_broadcasts_of_eight_datagrams_make_a_node_deaf() {
        assert!(!after(1, 100).is_deaf(100), "two");
        assert!(after(2, 100).is_deaf(100), "three");
        assert!(!after(6, 1).is_deaf(1), "seven datagrams");
        assert!(after(7, 1).is_deaf(1), "eight datagrams");
    }

    #[test]
    fn whoever_hears_anything_is_not_deaf() {
        let mut hearing = after(10, 100);
        hearing.heard();
        assert!(!hearing.is_deaf(100));
        hearing.end(100);
        hearing.begin();
        assert!(!hearing.is_deaf(100), "it begins from 0");

        let mut late = after(10, 100);
        late.heard_late(1);
        assert!(!late.is_deaf(100));
        let mut recorded = after(10, 100);
        recorded.heard_late(LATE_BROADCASTS + 1);
        assert!(recorded.is_deaf(100));
    }

    #[test]
    fn what_came_too_early_to_be_kept_was_heard() {
        let mut hearing = Hearing::default();
        hearing.heard_early(4);
        for broadcast in 0..8 {
            hearing.begin();
            assert_eq!(
                hearing.is_deaf(100),
                broadcast == 7,
                "{broadcast}: five were heard of, three were not"
            );
            hearing.end(100);
        }
    }
}
