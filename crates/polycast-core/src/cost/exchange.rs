//! Scatter followed by an exchange: the two algorithms that are not trees.
//!
//! ```text
//!   scatter    blocks down a binomial tree, larger subtrees first
//!   ring       P-1 hops: the root's block goes all the way round, and the others' follow it
//!   doubling   log2 P rounds, in round r all pairs at distance 2^r exchange 2^r blocks
//! ```
//!
//! What a rank has to send in the exchange is under way from the beginning and takes its share of the port, so the scatter is
//! slower than alone.

use std::collections::HashMap;
use std::num::NonZeroU32;

use super::{Bottleneck, CostedNetwork, LinkIndex, Sends};
use crate::tree::{Tree, k_nomial_subtree};
use crate::units::Rank;

const TWO: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// The two kinds of exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeKind {
    Ring,
    Doubling,
}

/// Messages that are under way at the same time, and what they use.
struct Round {
    /// Hops of a message of this round that follow each other.
    hops: Vec<(Rank, Rank)>,
    /// The number of messages that use each link.
    messages_on: Vec<u32>,
}

/// Both halves of one of the two algorithms on a network.
pub(super) struct ScatterExchange {
    kind: ExchangeKind,
    /// The ranks by position, the root first; in the doubling those beyond the largest power of two stand last.
    rank_at: Vec<Rank>,
    /// The rounds of the exchange: a single one for the ring, log2 P for the doubling.
    rounds: Vec<Round>,
    /// The messages of the doubling that bring all data to the ranks beyond the largest power of
    /// two.
    feeding: Round,
}

/// Times of a scatter and an exchange.
pub(super) struct Halves {
    pub scatter_ns: f64,
    pub exchange_ns: f64,
    pub bottleneck: Bottleneck,
}

impl ScatterExchange {
    pub fn new(network: &mut CostedNetwork, kind: ExchangeKind, rank_at: Vec<Rank>) -> ScatterExchange {
        let ranks = rank_at.len();
        let rounds = match kind {
            ExchangeKind::Ring => {
                vec![(0..ranks).map(|p| (p, (p + ranks - 1) % ranks)).filter(|(_, to)| *to != 0).collect()]
            }
            ExchangeKind::Doubling => {
                (0..ranks.ilog2()).map(|round| doubling_round(ranks, round)).collect::<Vec<Vec<_>>>()
            }
        };
        let mut round = |messages: Vec<(usize, usize)>| {
            let hops: Vec<_> = messages.into_iter().map(|(from, to)| (rank_at[from], rank_at[to])).collect();
            let paths: Vec<LinkIndex> = hops.iter().flat_map(|(from, to)| network.path(*from, *to)).collect();
            let mut messages_on = vec![0; network.links()];
            paths.into_iter().for_each(|link| messages_on[link as usize] += 1);
            Round { hops, messages_on }
        };
        let rounds = rounds.into_iter().map(&mut round).collect();
        let beyond = if kind == ExchangeKind::Ring { ranks..ranks } else { 1 << ranks.ilog2()..ranks };
        let feeding = round(beyond.clone().map(|position| (position - beyond.start + 1, position)).collect());
        ScatterExchange { kind, rank_at, rounds, feeding }
    }

    /// The number of blocks that the data is cut into.
    fn blocks(&self) -> u64 {
        let ranks = self.rank_at.len() as u64;
        if self.kind == ExchangeKind::Ring { ranks } else { 1 << ranks.ilog2() }
    }

    /// The times of a broadcast of `bytes` in messages of at most `segment` bytes.
    pub fn cost(&self, network: &CostedNetwork, sends: Sends, bytes: u64, segment: Option<u64>) -> Halves {
        let block = bytes.div_ceil(self.blocks());
        let scatter_ns = self.scatter_ns(network, sends, block);
        let mut exchange_ns = 0.0;
        let mut slowest = (0.0, Bottleneck::Rank(self.rank_at[0]));
        for (number, round) in self.rounds.iter().enumerate() {
            let bytes = block << number;
            let segment = segment.unwrap_or(bytes).clamp(1, bytes.max(1));
            let (hop_ns, interval_ns, bottleneck) = round.hop(network, segment);
            let further_ns = |bytes: u64| (bytes as f64 / segment as f64 - 1.0).max(0.0) * interval_ns;
            exchange_ns += match self.kind {
                // The root's block goes over all hops, and each hop carries as many blocks as there are hops.
                ExchangeKind::Ring => {
                    let hops = round.hops.len() as u64;
                    (hops as f64 * hop_ns + further_ns(block)).max(hop_ns + further_ns(hops * block))
                }
                ExchangeKind::Doubling => hop_ns + further_ns(bytes),
            };
            slowest = if hop_ns > slowest.0 { (hop_ns, bottleneck) } else { slowest };
        }
        // A feeder's port has no time for it before: it is busy with the rounds.
        exchange_ns += self.feeding.hop(network, bytes).0;
        Halves { scatter_ns, exchange_ns, bottleneck: slowest.1 }
    }

    /// The time in nanoseconds until the scatter's last blocks have come. A scatter in segments
    /// takes no less: the segments of all children and of the exchange take turns, so that the last
    /// ones come late to all.
    fn scatter_ns(&self, network: &CostedNetwork, sends: Sends, block: u64) -> f64 {
        let positions = self.blocks() as u32;
        // Few different numbers of blocks occur.
        let mut known = HashMap::new();
        let mut times_of =
            |blocks: u64| *known.entry(blocks).or_insert_with(|| network.times(blocks * block));
        let mut arrived = vec![0.0; positions as usize];
        let mut last: f64 = 0.0;
        for position in 0..positions {
            let held = u64::from(k_nomial_subtree(TWO, position, positions).len() as u32);
            let children = Tree::KNomial(TWO).local(positions, Rank(0), Rank(position)).children;
            let from = self.rank_at[position as usize];
            let messages: Vec<(u32, f64, f64)> = children
                .into_iter()
                .map(|child| {
                    let blocks = k_nomial_subtree(TWO, child.0, positions).len() as u64;
                    let class = network.class(from, self.rank_at[child.index()]);
                    let times = times_of(blocks)[class as usize];
                    (child.0, times.gap_ns, times.latency_ns)
                })
                .collect();
            // At least what the scatter has not brought to the neighbour.
            let exchanged =
                network.slowest_gap_ns((u64::from(positions) - held.min(u64::from(positions) - 1)) * block);
            let mut before = 0.0;
            for &(child, gap_ns, latency_ns) in &messages {
                before += gap_ns;
                let shared =
                    messages.iter().map(|other| other.1.min(gap_ns)).sum::<f64>() + exchanged.min(gap_ns);
                let sent = if sends == Sends::InTurn { before } else { shared };
                let at: f64 = arrived[position as usize] + sent + latency_ns;
                arrived[child as usize] = at;
                last = last.max(at);
            }
        }
        last
    }
}

/// The messages of a round of recursive doubling, as positions of sender and receiver; see
/// `algorithm::broadcast::scatter_doubling`.
fn doubling_round(ranks: usize, round: u32) -> Vec<(usize, usize)> {
    let core = 1usize << ranks.ilog2();
    let receivers = (1..core).filter(|position| round >= position.trailing_zeros());
    receivers.map(|position| (position ^ (1 << round), position)).collect()
}

impl Round {
    /// The time of a hop of a segment, the time between two segments that follow each other, both
    /// in nanoseconds, and the slowest rank or link.
    fn hop(&self, network: &CostedNetwork, segment: u64) -> (f64, f64, Bottleneck) {
        let times = network.times(segment);
        let mut hop: (f64, f64, Bottleneck) = (0.0, 0.0, Bottleneck::Rank(Rank(0)));
        for &(from, to) in &self.hops {
            let times = times[network.class(from, to) as usize];
            if times.gap_ns > hop.1 {
                hop = (times.gap_ns + times.latency_ns, times.gap_ns, Bottleneck::Rank(to));
            }
        }
        for (link, messages) in (0..).zip(&self.messages_on) {
            let load = f64::from(*messages) * network.occupancy_ns(link, segment);
            if load > hop.1 {
                hop = (hop.0 + load - hop.1, load, Bottleneck::Link(link));
            }
        }
        hop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_of_doubling_as_the_algorithm_draws_them() {
        let receivers = |round| doubling_round(9, round).into_iter().map(|(_, to)| to).collect::<Vec<_>>();
        assert_eq!(receivers(0), [1, 3, 5, 7]);
        assert_eq!(receivers(1), [1, 2, 3, 5, 6, 7]);
        assert_eq!(receivers(2), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(doubling_round(8, 2)[0], (5, 1));
    }
}
