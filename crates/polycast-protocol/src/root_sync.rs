//! When the root begins: "against root arrives first" of Siebert 2006 and Hoefler et al. 2007.
//!
//! A receiver that has not called yet has only the kernel's buffer to receive into. What does not fit there is lost and has
//! to come around the ring. So it may pay to let the root wait a little, and it may not: where every receiver is early
//! enough, each wait is a loss.
//!
//! | method | the root begins |
//! |---|---|
//! | none | at once |
//! | delay | after a fixed time |
//! | random | when one receiver, drawn anew for each broadcast by a number that all know, says that it has called |
//! | adaptive | as with *none* or as with *random*, whichever has lost less here lately |
//!
//! With *random* and *adaptive* the drawn receiver's message also says how much it has missed, so that the root learns.

use std::fmt;
use std::str::FromStr;

use polycast_units::Nanos;

/// The methods by which the root waits for receivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RootSync {
    /// The root begins at once.
    None,
    /// The root waits for a fixed time.
    Delay(Nanos),
    /// The root waits for one receiver.
    Random,
    /// The root waits for one receiver where that has helped.
    #[default]
    Adaptive,
}

impl RootSync {
    /// True if a receiver is drawn, which says that it has called.
    pub fn draws_a_receiver(self) -> bool {
        matches!(self, RootSync::Random | RootSync::Adaptive)
    }
}

impl FromStr for RootSync {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let micros = |text: &str| text.strip_suffix("us")?.parse::<u32>().ok();
        match text {
            "none" => Ok(RootSync::None),
            "random" => Ok(RootSync::Random),
            "adaptive" => Ok(RootSync::Adaptive),
            delay => micros(delay).map(|us| RootSync::Delay(Nanos::from_micros(us.into()))).ok_or(()),
        }
    }
}

impl fmt::Display for RootSync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RootSync::None => f.write_str("none"),
            RootSync::Delay(delay) => delay.fmt(f),
            RootSync::Random => f.write_str("random"),
            RootSync::Adaptive => f.write_str("adaptive"),
        }
    }
}

/// The receiver that is drawn for a broadcast: its distance from the root in the ring, `1..nodes`.
pub fn drawn_receiver(operation: u64, nodes: u32) -> u32 {
    1 + (mixed(operation) % u64::from(nodes.max(2) - 1)) as u32
}

/// The finalizer of splitmix64: neighbouring numbers give unrelated ones.
pub(super) fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The fragments that a receiver has seen since its last report, and those that multicast did not
/// bring; of broadcasts whose root had not waited, and of those whose root had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceptionReport {
    /// Fragments of the broadcasts.
    pub seen: [u32; 2],
    /// Fragments that had to be repaired.
    pub repaired: [u32; 2],
}

impl ReceptionReport {
    /// Bytes of an encoded report.
    pub const BYTES: usize = 16;

    /// Adds a broadcast that is over.
    pub fn add(&mut self, root_waited: bool, fragments: u32, repaired: u32) {
        let kind = usize::from(root_waited);
        self.seen[kind] = self.seen[kind].saturating_add(fragments);
        self.repaired[kind] = self.repaired[kind].saturating_add(repaired);
    }

    pub(super) fn to_bytes(self) -> [u8; ReceptionReport::BYTES] {
        let mut bytes = [0; ReceptionReport::BYTES];
        for (place, number) in bytes.chunks_exact_mut(4).zip(self.seen.into_iter().chain(self.repaired)) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: [u8; ReceptionReport::BYTES]) -> ReceptionReport {
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        ReceptionReport { seen: [number(0), number(4)], repaired: [number(8), number(12)] }
    }
}

/// A node's experience as a root, from the reports of receivers.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    /// Fragments of broadcasts without and with waiting; sums that forget.
    seen: [f64; 2],
    /// Fragments of these that had to be repaired.
    repaired: [f64; 2],
}

/// The part of older reports that each report leaves.
const KEPT: f64 = 0.75;
/// The weight of a report in fragments is at most this: a long broadcast is forgotten within some
/// dozen short ones.
const MOST_FRAGMENTS: f64 = 1024.0;
/// The part of the fragments that waiting has to spare at least: it costs a message's time in each
/// broadcast.
const WORTH_WAITING: f64 = 0.02;
/// The other way is tried in one of this many broadcasts.
const TRIES: u64 = 32;

impl Learned {
    /// Learns from the report of a receiver.
    pub fn learn(&mut self, report: &ReceptionReport) {
        for kind in 0..2 {
            if report.seen[kind] > 0 {
                let seen = f64::from(report.seen[kind]);
                let part = (f64::from(report.repaired[kind]) / seen).min(1.0);
                let weight = seen.min(MOST_FRAGMENTS);
                self.seen[kind] = KEPT * self.seen[kind] + weight;
                self.repaired[kind] = KEPT * self.repaired[kind] + part * weight;
            }
        }
    }

    /// True if the root of this broadcast waits for the drawn receiver.
    pub fn waits(&self, operation: u64) -> bool {
        let part =
            |kind: usize| if self.seen[kind] > 0.0 { self.repaired[kind] / self.seen[kind] } else { 0.0 };
        let [without, with] = [0, 1].map(part);
        // Where nothing is lost, nothing is tried either.
        let is_try = operation % TRIES == TRIES - 1 && without + with > WORTH_WAITING;
        (without - with > WORTH_WAITING) ^ is_try
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_receiver_is_drawn_and_never_the_root() {
        for nodes in 2..20 {
            let drawn: std::collections::BTreeSet<u32> =
                (0..1000).map(|operation| drawn_receiver(operation, nodes)).collect();
            assert!(drawn.into_iter().eq(1..nodes), "{nodes}");
        }
        assert_ne!(drawn_receiver(u64::MAX, 1000), drawn_receiver(0, 1000));
    }

    #[test]
    fn the_root_waits_where_it_helps_and_only_there() {
        let mut learned = Learned::default();
        assert!((0..100).all(|operation| !learned.waits(operation)), "nothing is lost");
        for _ in 0..20 {
            learned.learn(&ReceptionReport { seen: [100, 100], repaired: [40, 1] });
        }
        assert!(
            learned.waits(0) && !learned.waits(TRIES - 1),
            "waiting helps; the other way is tried at times"
        );
        for _ in 0..40 {
            learned.learn(&ReceptionReport { seen: [100, 100], repaired: [30, 30] });
        }
        assert!(!learned.waits(0) && learned.waits(TRIES - 1), "losses that waiting does not spare");
    }

    #[test]
    fn long_broadcasts_say_more_than_short_ones() {
        let mut learned = Learned::default();
        // Of all fragments 1 % are lost, all of them in short broadcasts.
        for _ in 0..20 {
            learned.learn(&ReceptionReport { seen: [500, 500], repaired: [0, 0] });
            learned.learn(&ReceptionReport { seen: [5, 0], repaired: [5, 0] });
            assert!(!learned.waits(0), "waiting could spare 1 %");
        }
        // 4 % are lost, all of them in long ones.
        for _ in 0..20 {
            learned.learn(&ReceptionReport { seen: [500, 500], repaired: [20, 0] });
            learned.learn(&ReceptionReport { seen: [1, 1], repaired: [0, 0] });
            learned.learn(&ReceptionReport { seen: [1, 1], repaired: [0, 0] });
        }
        assert!(learned.waits(0), "waiting spares 4 %");
        // However long a broadcast was, it is forgotten.
        learned.learn(&ReceptionReport { seen: [u32::MAX, 0], repaired: [u32::MAX, 0] });
        for _ in 0..50 {
            learned.learn(&ReceptionReport { seen: [1, 1], repaired: [0, 0] });
        }
        assert!(!learned.waits(0), "nothing has been lost for long");
    }

    #[test]
    fn what_is_printed_is_read_back() {
        for text in ["none", "50us", "random", "adaptive"] {
            assert_eq!(text.parse::<RootSync>().unwrap().to_string(), text);
        }
        assert!("50".parse::<RootSync>().is_err() && "sometimes".parse::<RootSync>().is_err());
    }
}
