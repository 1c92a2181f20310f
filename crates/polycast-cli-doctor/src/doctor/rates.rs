//! The rates at which hosts send to each other, and the hosts that hold others up.
//!
//! ```text
//!   h0 ⇄ h1 ⇄ h2 ⇄ … ⇄ h0      each way by itself: the slower of two hosts makes it slow
//!   who seems slow ⇄ the fastest one      so nobody is blamed for a slow neighbour
//! ```

use std::collections::BTreeMap;

use polycast_core::units::quantity::rate as in_words;

use super::finding::{Finding, Topic};

/// A host that is that many times as slow as most others is named.
const SLOW: u64 = 2;
/// Steps that all ways are measured in: where hosts are many, several pairs that have no host in common go at the same time.
const STEPS: usize = 64;

/// A direction of travel: from the first member to the second one.
pub type Way = (usize, usize);

/// The fastest that each way was seen, in bits per second.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    ways: BTreeMap<Way, u64>,
    members: usize,
}

/// The ways between neighbours in a ring, in steps of which each has no member twice.
pub fn ring(members: usize) -> Vec<Vec<Way>> {
    let all: Vec<Way> = match members {
        0 | 1 => Vec::new(),
        2 => vec![(0, 1)],
        _ => (0..members).map(|one| (one, (one + 1) % members)).collect(),
    };
    let at_once = (2 * all.len()).div_ceil(STEPS).max(1);
    let is_last_of_odd = |way: &Way| way.1 == 0 && members % 2 == 1;
    let part = |wanted: usize| -> Vec<Way> {
        all.iter().filter(|way| !is_last_of_odd(way) && way.0 % 2 == wanted).copied().collect()
    };
    let last: Vec<Way> = all.iter().filter(|way| is_last_of_odd(way)).copied().collect();
    let both = |ways: &[Way]| [ways.to_vec(), ways.iter().map(|(one, other)| (*other, *one)).collect()];
    let parts = [part(0), part(1), last];
    parts.iter().flat_map(|part| part.chunks(at_once)).flat_map(both).collect()
}

impl Rates {
    pub fn new(members: usize) -> Rates {
        Rates { ways: BTreeMap::new(), members }
    }

    pub fn add(&mut self, way: Way, bits_per_second: u64) {
        let known = self.ways.entry(way).or_default();
        *known = (*known).max(bits_per_second);
    }

    /// All that were measured.
    pub fn ways(&self) -> impl Iterator<Item = (Way, u64)> {
        self.ways.iter().map(|(way, rate)| (*way, *rate))
    }

    /// The fastest that a member sends.
    pub fn sends(&self, member: usize) -> Option<u64> {
        self.ways.iter().filter(|((from, _), _)| *from == member).map(|(_, rate)| *rate).max()
    }

    /// The fastest rate at which a member receives.
    pub fn receives(&self, member: usize) -> Option<u64> {
        self.ways.iter().filter(|((_, to), _)| *to == member).map(|(_, rate)| *rate).max()
    }

    /// The slower of both.
    fn rate(&self, member: usize) -> Option<u64> {
        Some(self.sends(member)?.min(self.receives(member)?))
    }

    /// The upper median of the members' rates: half of the members have this rate or a higher one.
    fn usual(&self) -> Option<u64> {
        let mut all: Vec<u64> = (0..self.members).filter_map(|member| self.rate(member)).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }

    /// The member with the highest rate, against which others are measured.
    pub fn fastest(&self) -> Option<usize> {
        (0..self.members)
            .filter(|member| self.rate(*member).is_some())
            .max_by_key(|member| self.rate(*member))
    }

    /// The members that are much slower than most. Empty for two members: nobody knows which of
    /// them is the slow one.
    pub fn slow(&self) -> Vec<usize> {
        let Some(usual) = self.usual().filter(|_| self.members > 2) else { return Vec::new() };
        let is_slow = |rate: u64| rate.saturating_mul(SLOW) < usual;
        (0..self.members).filter(|member| self.rate(*member).is_some_and(is_slow)).collect()
    }

    /// The findings about rates, each with the members that it is about; `interface` gives the name
    /// of a member's interface.
    pub fn findings(&self, interface: impl Fn(usize) -> String) -> Vec<(Vec<usize>, Finding)> {
        let slow = self.slow();
        let (Some(usual), true) = (self.usual(), !self.ways.is_empty()) else { return Vec::new() };
        let mut findings = Vec::new();
        for &member in &slow {
            let (Some(sends), Some(receives)) = (self.sends(member), self.receives(member)) else { continue };
            let times = usual / sends.min(receives).max(1);
            let found = format!(
                "sends at {}, receives at {}, where most have {}: {times} times slower, and holds all others up",
                in_words(sends),
                in_words(receives),
                in_words(usual)
            );
            let remedy = format!(
                "look at its cable, its port of the switch and what they have agreed on (ethtool {}), and at what else uses its link; or leave the host out",
                interface(member)
            );
            findings.push((vec![member], Finding::warning(Topic::Rate, found, remedy)));
        }
        if let [((from, to), there), (_, back)] = self.ways().collect::<Vec<_>>()[..]
            && there.min(back).saturating_mul(SLOW) < there.max(back)
        {
            let found = format!(
                "one way at {}, the other way at {}: the slower one holds a job up",
                in_words(there),
                in_words(back)
            );
            let remedy = "look at cables, ports of the switch and what they have agreed on (ethtool)";
            findings.push((vec![from, to], Finding::warning(Topic::Rate, found, remedy)));
        } else if slow.is_empty() {
            let found = format!("each host sends and receives at {} or about", in_words(usual));
            findings.push((Vec::new(), Finding::ok(Topic::Rate, found)));
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    /// Of hosts whose links have these rates, in Mb/s: up and down.
    fn measured(links: &[(u64, u64)]) -> Rates {
        let mut rates = Rates::new(links.len());
        let way = |(from, to): Way| ((from, to), links[from].0.min(links[to].1) * 1_000_000);
        for step in ring(links.len()) {
            step.into_iter().for_each(|one| {
                let (way, rate) = way(one);
                rates.add(way, rate);
            });
        }
        let fastest = rates.fastest();
        for slow in rates.slow() {
            for one in [(slow, fastest.unwrap()), (fastest.unwrap(), slow)] {
                let (way, rate) = way(one);
                rates.add(way, rate);
            }
        }
        rates
    }

    fn said(links: &[(u64, u64)]) -> Vec<(Vec<usize>, Level, String)> {
        let findings = measured(links).findings(|member| format!("e{member}"));
        findings.into_iter().map(|(hosts, finding)| (hosts, finding.level, finding.found)).collect()
    }

    #[test]
    fn every_way_of_a_ring_is_measured_once_and_no_host_twice_at_a_time() {
        for members in [0, 1, 2, 3, 4, 5, 6, 64, 65, 1000] {
            let steps = ring(members);
            let ways: Vec<Way> = steps.iter().flatten().copied().collect();
            let mut unique = ways.clone();
            unique.sort_unstable();
            unique.dedup();
            assert_eq!(
                (ways.len(), unique.len()),
                ([0, 0, 2][members.min(2)].max(if members > 2 { 2 * members } else { 0 }), ways.len())
            );
            assert!(steps.len() <= STEPS + 6, "{members}: {}", steps.len());
            for step in steps {
                let mut hosts: Vec<usize> = step.iter().flat_map(|(from, to)| [*from, *to]).collect();
                let count = hosts.len();
                hosts.sort_unstable();
                hosts.dedup();
                assert_eq!(hosts.len(), count, "{members}");
            }
        }
    }

    #[test]
    fn slow_hosts_are_named_with_their_factor() {
        let links = [1000, 1000, 1000, 100, 100, 10].map(|rate| (rate, rate));
        let said = said(&links);
        let hosts: Vec<&[usize]> = said.iter().map(|said| &*said.0).collect();
        assert_eq!(hosts, [&[3][..], &[4], &[5]]);
        assert!(said.iter().all(|said| said.1 == Level::Warning));
        assert_eq!(
            said[2].2,
            "sends at 10 Mb/s, receives at 10 Mb/s, where most have 1 Gb/s: 100 times slower, and holds all others up"
        );
    }

    #[test]
    fn nobody_is_blamed_for_slow_neighbours() {
        let links = [10, 1000, 10, 1000, 1000, 1000, 1000].map(|rate| (rate, rate));
        assert_eq!(measured(&links).slow(), [0, 2]);
        let one_way = [(1000, 1000), (1000, 20), (1000, 1000), (1000, 1000)];
        assert_eq!(said(&one_way)[0].0, [1]);
        assert!(said(&one_way)[0].2.starts_with("sends at 1 Gb/s, receives at 20 Mb/s"));
    }

    #[test]
    fn where_all_are_alike_that_is_said() {
        assert_eq!(said(&[(900, 1000), (1000, 1000), (600, 1000)])[0].1, Level::Ok);
        assert_eq!(said(&[(1000, 10), (1000, 10)])[0].1, Level::Ok, "of two nobody knows");
        let one_way = said(&[(1000, 1000), (10, 1000)]);
        assert_eq!((one_way[0].1, &*one_way[0].0), (Level::Warning, &[0, 1][..]));
        assert!(said(&[(1, 1)]).is_empty());
    }
}
