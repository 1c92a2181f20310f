//! What a pipelined broadcast over a tree takes on links of different rates and latencies.
//!
//! ```text
//!   first segment at the last rank │ one more segment every interval
//!   ├──────────── fill ────────────┼──────┼──────┼──────┤            fill + (X - 1) * interval
//! ```
//! The interval is that of the busiest: a rank that sends a segment to each of its children, or a directed edge that carries
//! it several times.

use std::collections::HashMap;

use super::PlannedTree;
use crate::topology::{Edge, Link, Paths};
use crate::units::{Nanos, Rate};

/// The rate assumed for a link whose rate is unknown, in bits per second: that of the commonest
/// Ethernet.
const UNKNOWN_BITS_PER_SECOND: u64 = 1_000_000_000;
/// The latency assumed for a link whose latency is unknown: half the time of a message through two
/// hosts and a switch.
const UNKNOWN_LATENCY: Nanos = Nanos::from_micros(10);
/// The rate of a copy through a host's memory, in bits per second.
const MEMORY_BITS_PER_SECOND: u64 = 40_000_000_000;
/// The time that a message costs its sender, whatever its length.
const SEND_OVERHEAD: Nanos = Nanos::from_micros(2);

/// The time of a pipelined broadcast over one tree with one segment size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipelined {
    /// The time until the last rank has the first segment.
    pub fill: Nanos,
    /// The time from one segment to the next.
    pub interval: Nanos,
}

impl Pipelined {
    /// The time of a broadcast in segments of `segment_bytes` over a tree whose messages take these
    /// `paths`.
    pub fn over(tree: &PlannedTree, paths: &Paths, segment_bytes: u64) -> Pipelined {
        let mut on_edge = HashMap::<Edge, u64>::new();
        let mut arrival = vec![Nanos(0); tree.ranks() as usize];
        let mut interval = Nanos(0);
        for rank in tree.downwards() {
            let mut sends = Nanos(0);
            for &child in tree.children(rank) {
                let path = paths.between(rank, child);
                let way = PathTimes::along(path.iter().map(|edge| paths.link(*edge)), segment_bytes);
                arrival[child.index()] =
                    arrival[rank.index()] + sends + SEND_OVERHEAD + way.slowest + way.latency;
                sends = sends + SEND_OVERHEAD + way.first;
                path.into_iter().for_each(|edge| *on_edge.entry(edge).or_default() += 1);
            }
            interval = interval.max(sends);
        }
        for (edge, messages) in on_edge {
            interval = interval.max(Nanos(messages * on_link(paths.link(edge), segment_bytes).0));
        }
        Pipelined { fill: arrival.into_iter().max().unwrap_or_default(), interval }
    }

    /// The time until the last rank has `segments` segments.
    pub fn completion(self, segments: u64) -> Nanos {
        let more = u128::from(self.interval.0) * u128::from(segments.saturating_sub(1));
        self.fill + Nanos(u64::try_from(more).unwrap_or(u64::MAX))
    }
}

/// The times of a message along its path.
struct PathTimes {
    /// Time on the path's first link, that of the sender.
    first: Nanos,
    /// Time on the path's slowest link; switches pass a message on packet by packet, so this link
    /// alone counts.
    slowest: Nanos,
    latency: Nanos,
}

impl PathTimes {
    fn along(links: impl Iterator<Item = Link>, bytes: u64) -> PathTimes {
        let mut times = links.map(|link| (on_link(link, bytes), link.latency.unwrap_or(UNKNOWN_LATENCY)));
        let Some((first, latency)) = times.next() else {
            let copied = Nanos::on_link(bytes as usize, MEMORY_BITS_PER_SECOND);
            return PathTimes { first: copied, slowest: copied, latency: Nanos(0) };
        };
        times.fold(PathTimes { first, slowest: first, latency }, |way, (time, latency)| PathTimes {
            slowest: way.slowest.max(time),
            latency: way.latency + latency,
            ..way
        })
    }
}

/// The time that `bytes` take on a link at its rate, without latency.
pub(super) fn on_link(link: Link, bytes: u64) -> Nanos {
    let rate = link.rate.map_or(UNKNOWN_BITS_PER_SECOND, Rate::bits_per_second);
    Nanos::on_link(bytes as usize, rate)
}

/// The time of a message of `bytes` over an idle link: on the link and its latency.
pub(super) fn crossing(link: Link, bytes: u64) -> Nanos {
    on_link(link, bytes) + link.latency.unwrap_or(UNKNOWN_LATENCY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;
    use crate::tree::Tree;
    use crate::units::Rank;

    /// Hosts a, b and c on a switch, c by a tenth of the rate.
    fn paths() -> Paths {
        let mut topology = Topology::flat(["a", "b", "c"].map(str::to_owned));
        for (host, rate) in topology.hosts.iter_mut().zip(["100mbit", "100mbit", "10mbit"]) {
            host.link = Link { rate: rate.parse().ok(), latency: Some(Nanos::from_micros(5)) };
        }
        Paths::new(&topology.place(&["a", "b", "c"]))
    }

    #[test]
    fn the_slowest_link_sets_the_interval() {
        let chain = Tree::Chain.plan(&[0, 1, 2].map(Rank));
        let times = Pipelined::over(&chain, &paths(), 1250);
        // 1250 bytes take 100 us at 100 Mb/s; each message has 2 us to start and twice 5 us on the way.
        assert_eq!(times.fill, Nanos::from_micros(112 + 1012));
        assert_eq!(times.interval, Nanos::from_micros(1000));
        assert_eq!(times.completion(1), times.fill);
        assert_eq!(times.completion(11), times.fill + Nanos::from_micros(10_000));
    }

    #[test]
    fn a_sender_with_two_children_sends_twice() {
        let flat = Tree::Flat.plan(&[0, 1, 2].map(Rank));
        let times = Pipelined::over(&flat, &paths(), 125);
        assert_eq!(times.fill, Nanos::from_micros(12 + 2 + 100 + 10));
        assert_eq!(times.interval, Nanos::from_micros(100), "the edge to c, not the 24 us of the sender");
    }
}
