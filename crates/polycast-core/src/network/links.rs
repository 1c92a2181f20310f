//! How fast the link of each node is, from what the nodes of a ring have measured of the ways between them.
//!
//! ```text
//!   h0 ──1 Gb/s──▶ h1 ──1 Gb/s──▶ h2 ──10 Mb/s──▶ h3 ──10 Mb/s──▶ h0
//!
//!   the slower of two links makes a way slow: h2's other way is fast, so h3 is to blame
//! ```
//! What makes a single way look slow in a few milliseconds is mostly a rank that had no processor. So a link is as fast as the faster of its two
//! ways, and where links seem to differ all is measured again, until it agrees: noise would have to hit both ways of the same link each time.

use super::{Told, class};
use crate::units::Rate;

/// The most rounds in which the same ways are measured.
const MAX_ROUNDS: usize = 3;

/// The factor by which a link must be slower than most to differ from them.
const DIFFERENT: u64 = 2;

/// Rates of the links of all nodes of a ring, by the nodes' places in it.
#[derive(Clone, Debug, Default)]
pub struct Links {
    /// The fastest rate that was seen of each link, in bits per second.
    best: Vec<Option<u64>>,
    /// True for a link of which both ways could be measured: from one alone nobody knows which of
    /// two links is slow.
    are_sure: Vec<bool>,
    /// The class of the slowest link, for each round.
    slowest: Vec<Option<u64>>,
    is_complete: bool,
}

/// Links of one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alike {
    /// The class of the links' rates.
    pub rate: Rate,
    /// Places of the links' nodes in the ring.
    pub nodes: Vec<usize>,
}

impl Links {
    /// Adds what the nodes of a ring have told in another round.
    pub fn add(&mut self, ring: &[Told]) {
        let way = |node: usize| ring[node].estimate.map(|estimate| estimate.rate.bits_per_second());
        let before = |node: usize| (node + ring.len() - 1) % ring.len();
        let link = |node: usize| way(node).max(way(before(node)));
        let links: Vec<Option<u64>> = (0..ring.len()).map(link).collect();
        let are_sure: Vec<bool> =
            (0..ring.len()).map(|node| way(node).is_some() && way(before(node)).is_some()).collect();
        self.best.resize(ring.len(), None);
        self.are_sure.resize(ring.len(), false);
        self.best.iter_mut().zip(&links).for_each(|(best, link)| *best = (*best).max(*link));
        self.are_sure.iter_mut().zip(&are_sure).for_each(|(all, now)| *all |= now);
        self.slowest.push(slowest(&links, &are_sure).map(class));
        self.is_complete = ring.iter().all(|told| told.estimate.is_some());
    }

    /// True if another round would tell nothing new: the links are alike, two rounds in succession
    /// have found the same class, or there were as many rounds as may be. Also true if some node
    /// could not measure: its messages may still be on their way.
    pub fn are_settled(&self) -> bool {
        let agree = matches!(self.slowest[..], [.., one, other] if one == other);
        !self.is_complete || agree || self.slowest.len() >= MAX_ROUNDS || !self.differ()
    }

    /// The median rate of the links that are known, in bits per second; of two in the middle the
    /// faster.
    fn usual(&self) -> Option<u64> {
        let mut known: Vec<u64> = self.best.iter().flatten().copied().collect();
        known.sort_unstable();
        known.get(known.len() / 2).copied()
    }

    fn slowest(&self) -> Option<u64> {
        slowest(&self.best, &self.are_sure)
    }

    /// True if some link is much slower than most.
    pub fn differ(&self) -> bool {
        let both = self.slowest().zip(self.usual());
        both.is_some_and(|(slowest, usual)| slowest.saturating_mul(DIFFERENT) < usual)
    }

    /// The class of rates that calls are chosen by: the slowest link's, for a pipeline goes as fast
    /// as that, or the median where links are alike.
    pub fn rate(&self) -> Option<Rate> {
        let rate = if self.differ() { self.slowest() } else { self.usual() };
        rate.and_then(|rate| Rate::from_bits_per_second(class(rate)))
    }

    /// Links that are alike, if not all are, the slowest first; those that are not much slower than most are the last.
    pub fn classes(&self) -> Vec<Alike> {
        let mut classes: Vec<Alike> = Vec::new();
        let Some(usual) = self.usual().filter(|_| self.differ()) else { return classes };
        for (node, (rate, is_sure)) in self.best.iter().zip(&self.are_sure).enumerate() {
            let Some(bits) = rate.filter(|_| *is_sure) else { continue };
            let is_usual = bits.saturating_mul(DIFFERENT) >= usual;
            let Some(rate) = Rate::from_bits_per_second(class(if is_usual { usual } else { bits })) else {
                continue;
            };
            match classes.iter_mut().find(|alike| alike.rate == rate) {
                Some(alike) => alike.nodes.push(node),
                None => classes.push(Alike { rate, nodes: vec![node] }),
            }
        }
        classes.sort_by_key(|alike| alike.rate);
        classes
    }
}

/// The slowest rate of the links that are known for sure, in bits per second.
fn slowest(links: &[Option<u64>], are_sure: &[bool]) -> Option<u64> {
    links.iter().zip(are_sure).filter(|(_, is_sure)| **is_sure).filter_map(|(link, _)| *link).min()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Estimate;
    use super::*;
    use crate::units::Nanos;

    /// Of ways, in Mb/s; 0: could not be measured.
    fn links(rounds: &[&[u64]]) -> Links {
        let told = |mbit: &u64| {
            let rate = Rate::from_bits_per_second(*mbit * 1_000_000);
            Told { estimate: rate.map(|rate| Estimate { latency: Nanos(1), rate }), ..Told::default() }
        };
        let mut links = Links::default();
        rounds.iter().for_each(|ways| links.add(&ways.iter().map(told).collect::<Vec<_>>()));
        links
    }

    fn rate(text: &str) -> Option<Rate> {
        text.parse().ok()
    }

    #[test]
    fn the_slow_hosts_of_a_network_are_known_by_both_their_ways() {
        // Three at 1 Gb/s, two at 100 Mb/s, one at 10 Mb/s.
        let ways: &[u64] = &[940, 950, 95, 96, 9, 10];
        let links = links(&[ways]);
        assert!(links.differ() && !links.are_settled());
        assert_eq!(links.rate(), rate("10mbit"));
        let classes = links.classes();
        let rates: Vec<String> = classes.iter().map(|alike| alike.rate.to_string()).collect();
        assert_eq!(rates, ["10mbit", "100mbit", "1gbit"]);
        assert_eq!(
            classes.iter().map(|alike| &*alike.nodes).collect::<Vec<_>>(),
            [&[5][..], &[3, 4], &[0, 1, 2]]
        );
        assert!(super::tests::links(&[ways, ways]).are_settled(), "two rounds agree");
    }

    #[test]
    fn what_was_slow_once_is_measured_again_until_it_agrees() {
        let clean: &[u64] = &[940, 930, 950, 941];
        assert!(links(&[clean]).are_settled() && links(&[clean]).classes().is_empty());
        // A way that was held up blames nobody; both of a link do, until the next round.
        assert!(links(&[&[940, 3, 950, 941]]).are_settled());
        let noise: &[u64] = &[940, 100, 200, 941];
        assert!(!links(&[noise]).are_settled());
        let again = links(&[noise, clean]);
        assert!(again.are_settled());
        assert_eq!(again.rate(), rate("1gbit"));
        let slow: &[u64] = &[940, 50, 50, 941];
        assert!(!links(&[noise, slow]).are_settled(), "200 and 50");
        assert!(links(&[noise, slow, &[940, 20, 20, 941]]).are_settled(), "as often as may be");
    }

    #[test]
    fn who_could_not_measure_ends_it() {
        let links = links(&[&[940, 0, 0, 3]]);
        assert!(links.are_settled());
        assert_eq!(links.rate(), rate("1gbit"), "of the last link one way alone is known");
        assert_eq!(super::tests::links(&[&[0, 0]]).rate(), None);
        assert_eq!((Links::default().rate(), Links::default().are_settled()), (None, true));
    }

    #[test]
    fn of_two_nodes_nobody_is_to_blame() {
        let links = links(&[&[10, 900]]);
        assert!(links.are_settled() && links.classes().is_empty());
    }

    proptest! {
        /// One way that errs in each round, wherever it is, changes nothing; classes are a factor of 2 or 2.5 wide.
        #[test]
        fn a_way_that_errs_does_not_matter(
            mbit in 1u64..100_000,
            spread in prop::collection::vec(0u64..10, 3..12),
            noise in prop::collection::vec((0usize..12, 1u64..1000), 1..4),
        ) {
            let honest: Vec<u64> = spread.iter().map(|spread| (mbit * (100 + spread) / 100).max(1)).collect();
            let rounds: Vec<Vec<u64>> = noise.iter().map(|(at, slower)| {
                let mut ways = honest.clone();
                let at = at % ways.len();
                ways[at] = (ways[at] / slower).max(1);
                ways
            }).collect();
            let links = links(&rounds.iter().map(Vec::as_slice).collect::<Vec<_>>());
            prop_assert!(!links.differ());
            let found = links.rate().unwrap().bits_per_second() as f64 / 1e6 / mbit as f64;
            prop_assert!((0.6..=1.8).contains(&found), "{} for {}", found, mbit);
        }

        #[test]
        fn where_the_ring_begins_does_not_matter(ways in prop::collection::vec(0u64..100_000, 1..20), by in 0usize..20) {
            let before = links(&[&ways]);
            let mut turned = ways.clone();
            turned.rotate_left(by % ways.len());
            let after = links(&[&turned]);
            prop_assert_eq!((before.rate(), before.differ()), (after.rate(), after.differ()));
        }
    }
}
