//! Terms that suit all nodes: the size of datagrams, and how fast they may come.

use polycast_core::protocol::message::MAX_FRAGMENT_BYTES;
use polycast_core::protocol::wire::HEADER_BYTES;

use super::group::Pace;
use super::offer::{Offer, VerbsOffer};

/// Most bytes of a batch of datagrams on the wire. It goes through the kernel as one packet; an IP
/// packet cannot be larger, and a token bucket cuts what is larger than itself into single packets.
const MAX_BATCH_WIRE_BYTES: u64 = 1 << 16;
/// Bytes of the headers of Ethernet, IPv6 and UDP.
const HEADERS_BYTES: u64 = 14 + 40 + 8;

/// Time in seconds for which a receiver may be away from its socket without losing anything: a time
/// slice or so of the scheduler.
const AWAY_SECONDS: f64 = 0.001;
/// Bytes of buffer for a byte of data: the kernel counts its own book-keeping, about as much again.
const BUFFER_BYTES_PER_BYTE: u64 = 2;

/// Terms that hold for all leaders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    pub is_ipv6: bool,
    /// True over InfiniBand or RoCE.
    pub is_verbs: bool,
    pub pace: Pace,
    /// Rate of the fastest link in bits per second; 0: unknown.
    fastest: u64,
}

impl Terms {
    /// Terms over verbs; `None` if not all leaders can, or by groups of different families.
    pub fn over_verbs(leaders: &[&Offer]) -> Option<Terms> {
        let as_others = |offer: &&Offer| {
            let VerbsOffer { is_ipv6, datagram_bytes, bits_per_second } = offer.verbs?;
            Some(Offer { is_ipv6, datagram_bytes, bits_per_second, ..Offer::none() })
        };
        let offers: Vec<Offer> = leaders.iter().map(as_others).collect::<Option<_>>()?;
        let terms = Terms::of(&offers.iter().collect::<Vec<_>>())?;
        Some(Terms { is_verbs: true, ..terms })
    }

    /// Terms by IP multicast; `None` if the leaders do not want the same family.
    pub fn of(leaders: &[&Offer]) -> Option<Terms> {
        let is_ipv6 = leaders.first()?.is_ipv6;
        let datagram_bytes = leaders.iter().map(|offer| offer.datagram_bytes as usize).min()?;
        let payload_bytes = datagram_bytes.saturating_sub(HEADER_BYTES).clamp(1, MAX_FRAGMENT_BYTES);
        let rates = || leaders.iter().map(|offer| offer.bits_per_second).filter(|rate| *rate > 0);
        let batch = MAX_BATCH_WIRE_BYTES / ((HEADER_BYTES + payload_bytes) as u64 + HEADERS_BYTES);
        let fastest = rates().max().unwrap_or(0);
        let pace = Pace {
            payload_bytes: payload_bytes as u32,
            batch_datagrams: batch.max(1) as u32,
            bits_per_second: rates().min().filter(|slowest| *slowest < fastest),
        };
        leaders.iter().all(|offer| offer.is_ipv6 == is_ipv6).then_some(Terms {
            is_ipv6,
            is_verbs: false,
            pace,
            fastest,
        })
    }

    /// Rate of the slowest link, in bits per second; 0: unknown.
    pub fn slowest(&self) -> u64 {
        self.pace.bits_per_second.unwrap_or(self.fastest)
    }

    /// Bytes of a full datagram on the wire.
    pub fn datagram_wire_bytes(&self) -> usize {
        /// Bytes of preamble, checksum and gap.
        const FRAME_BYTES: u64 = 24;
        (u64::from(self.pace.payload_bytes) + HEADER_BYTES as u64 + HEADERS_BYTES + FRAME_BYTES) as usize
    }

    /// Slows down to the smallest receive buffer: a batch is at most a quarter of it, and what
    /// comes while its owner is away fits.
    pub fn fit_into(&mut self, buffer_bytes: u64) {
        let data_bytes = buffer_bytes / BUFFER_BYTES_PER_BYTE;
        let datagram_bytes = u64::from(self.pace.payload_bytes) + HEADER_BYTES as u64;
        let batch = (data_bytes / 4 / datagram_bytes).clamp(1, self.pace.batch_datagrams.into());
        self.pace.batch_datagrams = batch as u32;
        let rate = rate_into(buffer_bytes);
        if rate < self.slowest() {
            self.pace.bits_per_second = Some(rate.max(1));
        }
    }
}

/// Rate of datagrams, in bits per second, at which those that come while their receiver is away fit
/// into its buffer.
pub fn rate_into(buffer_bytes: u64) -> u64 {
    ((buffer_bytes / BUFFER_BYTES_PER_BYTE) as f64 * 8.0 / AWAY_SECONDS) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIGABIT: u64 = 1_000_000_000;

    fn offer(datagram_bytes: u32, bits_per_second: u64) -> Offer {
        Offer { datagram_bytes, bits_per_second, ..Offer::none() }
    }

    fn terms(offers: &[Offer]) -> Terms {
        Terms::of(&offers.iter().collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn the_smallest_datagram_and_the_slowest_link_count() {
        let slow = terms(&[offer(1472, 10 * GIGABIT), offer(1400, GIGABIT), offer(8972, 0)]);
        assert_eq!((slow.pace.payload_bytes, slow.pace.bits_per_second), (1368, Some(GIGABIT)));
        let equal = terms(&[offer(1472, GIGABIT), offer(1472, GIGABIT), offer(1472, 0)]);
        assert_eq!((equal.pace.batch_datagrams, equal.pace.bits_per_second), (42, None), "no pacing");
    }

    #[test]
    fn no_fragment_is_longer_than_a_message_takes() {
        assert_eq!(terms(&[offer(65_508, 0)]).pace.payload_bytes as usize, MAX_FRAGMENT_BYTES);
        assert_eq!(terms(&[offer(0, 0)]).pace.payload_bytes, 1);
    }

    #[test]
    fn families_must_agree() {
        let six = Offer { is_ipv6: true, ..offer(1452, 0) };
        assert_eq!(Terms::of(&[&offer(1472, 0), &six]), None);
    }

    #[test]
    fn all_have_verbs_or_none_uses_them() {
        let verbs = |is_ipv6, datagram_bytes| Offer {
            verbs: Some(VerbsOffer { is_ipv6, datagram_bytes, bits_per_second: 100 * GIGABIT }),
            ..offer(1472, GIGABIT)
        };
        let (large, small) = (verbs(false, 4096), verbs(false, 2048));
        let terms = Terms::over_verbs(&[&large, &small]).unwrap();
        assert_eq!((terms.is_verbs, terms.pace.payload_bytes, terms.slowest()), (true, 2016, 100 * GIGABIT));
        assert_eq!(Terms::over_verbs(&[&large, &offer(1472, 0)]), None);
        assert_eq!(Terms::over_verbs(&[&large, &verbs(true, 4096)]), None);
        assert!(!Terms::of(&[&large, &offer(1472, 0)]).unwrap().is_verbs);
    }

    #[test]
    fn a_small_buffer_holds_the_sender_up() {
        let paced = |buffer_bytes: u64, rate: u64| {
            let mut terms = terms(&[offer(1472, rate), offer(1472, rate)]);
            terms.fit_into(buffer_bytes);
            (terms.pace.batch_datagrams, terms.pace.bits_per_second)
        };
        assert_eq!(paced(8 << 20, 10 * GIGABIT), (42, None));
        assert_eq!(paced(425_984, GIGABIT), (36, None), "what Linux grants by default is enough here");
        assert_eq!(paced(425_984, 10 * GIGABIT), (36, Some(1_703_936_000)), "and not here");
        assert_eq!(paced(4096, GIGABIT).0, 1);
        assert_eq!(paced(0, GIGABIT), (1, Some(1)));
    }
}
