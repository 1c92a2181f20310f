use super::{CostedNetwork, wire_bytes};
use crate::units::Rank;
use polycast_protocol::{Form, Multicast, RootSync};

/// Datagrams that get lost, each at each receiver by itself (Siebert 2006, §3.2.2; Hoefler et al. 2007, §5).
///
/// What a node lacks comes around the ring, from the first node before it that has it. Each node that lacks it, too, is one more
/// *penalty round*. With q the probability that a node lacks something, n rounds have probability `q^n (1-q)`:
///
/// ```text
///   q = 1 - (1-e)^F                          F datagrams, each lost with probability e
///   q = 1 - (1-e)^(F+1) - (F+1) e (1-e)^F    with a parity, from which any one that is lost can be restored
///   mean q/(1-q), which is 1 for q = 1/2     of n nodes the most: the sum over k ≥ 1 of 1 - (1-q^k)^n
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    lacks: f64,
}

/// Bytes of a fragment: those that an Ethernet packet of 1500 bytes leaves for it.
const FRAGMENT_BYTES: u64 = 1440;

impl Loss {
    /// The loss of a message in this many fragments, if the part `datagram` of datagrams is lost.
    pub fn of(datagram: f64, fragments: u64, parity: bool) -> Loss {
        let arrives = 1.0 - datagram.clamp(0.0, 1.0);
        let all = power(arrives, fragments + u64::from(parity));
        let all_but_one = (fragments + 1) as f64 * (1.0 - arrives) * power(arrives, fragments);
        let whole = if parity { all + all_but_one } else { all };
        Loss { lacks: (1.0 - whole).clamp(0.0, 1.0) }
    }

    /// Counts the fragments of a message that decide when it is whole. A fragment that is lost
    /// early comes around the ring, `round_ns` later, while others still come by multicast, every
    /// `fragment_ns`. The last fragment counts as 1, each before it as the part of a round by which
    /// its repair comes after the last one.
    pub fn decisive(fragments: u64, fragment_ns: f64, round_ns: f64) -> u64 {
        let mut sum = 0.0;
        for later in 0..fragments {
            let late = 1.0 - later as f64 * fragment_ns / round_ns;
            if late <= 0.0 {
                break;
            }
            sum += late;
        }
        // Rounded; at least the last one.
        ((sum + 0.5) as u64).max(1)
    }

    /// The probability that a node lacks something.
    pub fn lacks(self) -> f64 {
        self.lacks
    }

    /// Penalty rounds of a node, on average; in a ring of at most `nodes` receivers no more than that.
    pub fn mean_rounds(self, nodes: u32) -> f64 {
        // Of the nth receiver after the root: q + q² + … + q^n.
        let mut sum = 0.0;
        let (mut power, mut rounds) = (1.0, 0.0);
        for _ in 0..nodes {
            power *= self.lacks;
            rounds += power;
            sum += rounds;
        }
        sum / f64::from(nodes.max(1))
    }

    /// Penalty rounds, on average, of the node with the most of them among `nodes` receivers.
    pub fn most_rounds(self, nodes: u32) -> f64 {
        let (mut sum, mut lacks) = (0.0, 1.0);
        for _ in 0..nodes {
            lacks *= self.lacks;
            let some = 1.0 - power(1.0 - lacks, nodes.into());
            if some < 1e-9 {
                break;
            }
            sum += some;
        }
        sum
    }
}

/// The power by squaring, so that it is the same on all machines.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}

/// The time of a broadcast by multicast, in nanoseconds. Every link carries the bytes once, at the
/// same time, so the slowest link decides. Multicast itself was not measured; the parameters give
/// the latency of a short message.
///
/// ```text
///   push   wire time + one hop                                   each penalty round: a hop and a fragment
///   pull   the same, and a question and its answer around the ring   each penalty round: a fragment's hop; before the first, a question
///   sync   random: one more hop, from a receiver to the root; a delay: itself
/// ```
pub fn multicast_ns(
    network: &mut CostedNetwork,
    root: Rank,
    multicast: Multicast,
    bytes: u64,
    datagram_loss: f64,
) -> f64 {
    let hop_ns = network.slowest_hop_ns(0);
    let ns_per_byte = network.slowest_ns_per_byte(root);
    let wire_ns = ns_per_byte * wire_bytes(bytes) as f64;
    let ring_ns = if multicast.form == Form::Pull { 2.0 * hop_ns } else { 0.0 };
    let sync_ns = match multicast.sync {
        RootSync::None | RootSync::Adaptive => 0.0,
        RootSync::Delay(delay) => delay.0 as f64,
        RootSync::Random => hop_ns,
    };
    let fragments = bytes.div_ceil(FRAGMENT_BYTES).max(1);
    let fragment_ns = ns_per_byte * wire_bytes(bytes.min(FRAGMENT_BYTES)) as f64;
    // A parity is the last to come, so what it cannot restore is known at the end only.
    let decisive = match multicast.parity {
        true => fragments,
        false => Loss::decisive(fragments, fragment_ns, hop_ns + fragment_ns),
    };
    let loss = Loss::of(datagram_loss, decisive, multicast.parity);
    let receivers = network.nodes().saturating_sub(1);
    let questions = if multicast.form == Form::Pull { loss.most_rounds(receivers).min(1.0) } else { 0.0 };
    let penalty_ns = loss.most_rounds(receivers) * (hop_ns + fragment_ns) + questions * hop_ns;
    sync_ns + wire_ns + hop_ns + ring_ns + penalty_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_all_lost_is_one_round_on_average() {
        let loss = Loss::of(0.5, 1, false);
        assert_eq!(loss.lacks(), 0.5);
        assert!((loss.mean_rounds(10_000) - 1.0).abs() < 1e-3);
        // Three receivers: 1/2, 1/2 + 1/4, 1/2 + 1/4 + 1/8.
        assert_eq!(loss.mean_rounds(3), (0.5 + 0.75 + 0.875) / 3.0);
        // The most of two: 1 - 1/4, and 1 - 9/16 for a second round.
        assert_eq!(loss.most_rounds(2), 0.75 + 0.4375);
        assert_eq!(Loss::of(0.0, 100, true).most_rounds(1000), 0.0);
        assert_eq!(Loss::of(1.0, 1, false).most_rounds(7), 7.0);
    }

    #[test]
    fn what_is_lost_early_costs_nothing() {
        assert_eq!(Loss::decisive(1, 12.0, 42.0), 1);
        // 1 + 30/42 + 18/42 + 6/42
        assert_eq!(Loss::decisive(6, 12.0, 42.0), 2);
        assert_eq!(Loss::decisive(1000, 0.0, 42.0), 1000);
    }

    #[test]
    fn a_parity_restores_one() {
        let (without, with) = (Loss::of(0.001, 6, false), Loss::of(0.001, 6, true));
        assert!((without.lacks() - 0.005_985).abs() < 1e-6, "{without:?}");
        assert!((with.lacks() - 21.0 * 0.001 * 0.001).abs() < 1e-7, "{with:?}");
    }
}
