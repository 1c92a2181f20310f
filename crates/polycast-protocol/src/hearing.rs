//! Does multicast still reach this node? Ports are forgotten by switches, filters change, links go.
//!
//! ```text
//!     broadcast   heard   nothing   nothing   nothing ──▶ deaf: says so to its predecessor, which hands it on around the ring
//!                                                          next root that knows: tells all, with whatever it sends
//! ```
//! A broadcast is *bad* for a node if not one datagram of it has come. Single losses make none bad but the shortest; so a node calls itself
//! deaf when several in a row were bad that had, in all, so many datagrams that chance cannot lose them all.

/// Bad broadcasts in a row.
const BAD_BROADCASTS: u32 = 3;
/// Datagrams that they had at least: half of them get lost on a very bad network, all of them once in 256 times there, and on one that
/// loses 5 % never.
const BAD_DATAGRAMS: u64 = 8;
/// Datagrams of broadcasts that are over by not more than this show that the network still brings some. Older ones may be somebody's
/// recording.
const LATE_BROADCASTS: i64 = 8;

/// What one node hears.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    bad_broadcasts: u32,
    bad_datagrams: u64,
    heard: bool,
}

impl Hearing {
    /// A broadcast begins in which this node receives.
    pub fn begin(&mut self) {
        self.heard = false;
    }

    /// A datagram of the broadcast in progress has come.
    pub fn heard(&mut self) {
        *self = Hearing { heard: true, ..Hearing::default() };
    }

    /// One of another broadcast: it is that much later than the one in progress, or earlier if `ahead` is negative.
    pub fn heard_of(&mut self, ahead: i64) {
        if ahead >= -LATE_BROADCASTS {
            (self.bad_broadcasts, self.bad_datagrams) = (0, 0);
        }
    }

    /// The message is here, in which the root sent so many datagrams. True if this node calls itself deaf.
    pub fn is_deaf(&self, datagrams: u64) -> bool {
        !self.heard
            && self.bad_broadcasts + 1 >= BAD_BROADCASTS
            && self.bad_datagrams.saturating_add(datagrams) >= BAD_DATAGRAMS
    }

    /// That broadcast is over.
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
        late.heard_of(-1);
        assert!(!late.is_deaf(100));
        let mut recorded = after(10, 100);
        recorded.heard_of(-LATE_BROADCASTS - 1);
        assert!(recorded.is_deaf(100));
    }
}
