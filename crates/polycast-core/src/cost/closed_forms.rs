//! The formulas of the papers, for uniform networks: what the general form of this module comes down to there, and
//! predictions of their own.

use crate::model::{ClassParameters, LogGp};

/// Pipelined broadcast down a linear tree (seed 1 §4.2, formula 1), in nanoseconds:
/// `(P-1) * (L(s) + g(s)) + (X-1) * g(s)` with `X = bytes / s`.
pub fn linear_tree_ns(class: &ClassParameters, ranks: u32, bytes: u64, segment: u64) -> f64 {
    let hops = f64::from(ranks.saturating_sub(1));
    coefficients_ns(class, [hops, hops], 1.0, bytes, segment)
}

/// Pipelined broadcast down a binary tree (seed 1 §4.2, formula 2), in nanoseconds: `A * L(s) + B * g(s) + 2 * (X-1) * g(s)`.
/// A and B are those of the receiver that gets the first segment last; see [`farthest`].
pub fn binary_tree_ns(class: &ClassParameters, [a, b]: [u32; 2], bytes: u64, segment: u64) -> f64 {
    coefficients_ns(class, [a, b].map(f64::from), 2.0, bytes, segment)
}

fn coefficients_ns(
    class: &ClassParameters,
    [a, b]: [f64; 2],
    interval: f64,
    bytes: u64,
    segment: u64,
) -> f64 {
    let further = bytes as f64 / segment as f64 - 1.0;
    let gap_ns = class.gap.at(segment);
    a * class.latency.at(segment) + b * gap_ns + interval * further * gap_ns
}

/// A and B of the receiver with the largest `A * L + B * g` (seed 1 §4.2, Figure 8): a first child counts as (1, 1), a second
/// as (1, 2) and so on, summed over the way from node 0. `children` lists each node's, which have higher numbers.
pub fn farthest(children: &[Vec<usize>], latency_ns: f64, gap_ns: f64) -> [u32; 2] {
    let mut sums = vec![[0u32, 0]; children.len()];
    for node in 0..children.len() {
        for (place, &child) in (1..).zip(&children[node]) {
            sums[child] = [sums[node][0] + 1, sums[node][1] + place];
        }
    }
    let time = |[a, b]: &[u32; 2]| f64::from(*a) * latency_ns + f64::from(*b) * gap_ns;
    sums.into_iter().max_by(|a, b| time(a).total_cmp(&time(b))).unwrap_or_default()
}

/// Sequential tree without segments (seed 4, Table 4.2): `(k-2) * t_hold + t_end` over `k` ranks, in the units of the arguments.
pub fn sequential(ranks: u32, hold: f64, end: f64) -> f64 {
    if ranks < 2 { 0.0 } else { f64::from(ranks - 2) * hold + end }
}

/// Chain without segments (seed 4, Table 4.2): `(k-1) * t_end`.
pub fn chain(ranks: u32, end: f64) -> f64 {
    f64::from(ranks.saturating_sub(1)) * end
}

/// Binomial tree without segments: the recurrence of seed 4 §4.1 with halves, `t[i] = max(t[ceil(i/2)] + t_hold, t[floor(i/2)] + t_end)`:
/// the root goes on with the larger half after `t_hold`, if it has to, and its first child with the other after `t_end`.
pub fn binomial(ranks: u32, hold: f64, end: f64) -> f64 {
    if ranks < 2 {
        return 0.0;
    }
    let smaller = ranks / 2;
    let larger = ranks - smaller;
    let root = if larger > 1 { binomial(larger, hold, end) + hold } else { 0.0 };
    root.max(binomial(smaller, hold, end) + end)
}

/// LogGP's time of one message: `o + (n-1) * G + L + o` (seed 0 §1.4), in nanoseconds.
pub fn log_gp_message_ns(p: &LogGp, bytes: u64) -> f64 {
    p.latency_ns + 2.0 * p.overhead_ns + body_ns(p, bytes)
}

fn body_ns(p: &LogGp, bytes: u64) -> f64 {
    (bytes as f64 - 1.0).max(0.0) * p.gap_per_byte_ns
}

/// Longest time of the flat ("linear") broadcast (seed 0 §1.5.1): `L + 2o + (p-1)(n-1)G + (p-2)g`.
pub fn log_gp_flat_ns(p: &LogGp, ranks: u32, bytes: u64) -> f64 {
    let ranks = f64::from(ranks);
    p.latency_ns + 2.0 * p.overhead_ns + (ranks - 1.0) * body_ns(p, bytes) + (ranks - 2.0) * p.gap_ns
}

/// Longest time of the chain with `fragments` of `fragment_bytes` (seed 0 §1.5.2):
/// `(p-1)(L + 2o + (n_f-1)G) + (f-1)(g + (n_f-1)G)`.
pub fn log_gp_chain_ns(p: &LogGp, ranks: u32, fragments: u64, fragment_bytes: u64) -> f64 {
    f64::from(ranks - 1) * log_gp_message_ns(p, fragment_bytes)
        + (fragments as f64 - 1.0) * (p.gap_ns + body_ns(p, fragment_bytes))
}

/// Longest time of the binary tree (seed 0 §1.5.3):
/// `(ceil(log2(p+1)) - 1)(L + 2(o + (n-1)G + g)) + 2((n-1)G + g)`.
pub fn log_gp_binary_ns(p: &LogGp, ranks: u32, bytes: u64) -> f64 {
    let levels = f64::from(ceil_log2(u64::from(ranks) + 1)) - 1.0;
    let sent = body_ns(p, bytes) + p.gap_ns;
    levels * (p.latency_ns + 2.0 * (p.overhead_ns + sent)) + 2.0 * sent
}

/// Longest time of the binomial tree (seed 0 §1.5.4): `ceil(log2 p)(L + 2o + (n-1)G)`.
pub fn log_gp_binomial_ns(p: &LogGp, ranks: u32, bytes: u64) -> f64 {
    f64::from(ceil_log2(ranks.into())) * log_gp_message_ns(p, bytes)
}

fn ceil_log2(value: u64) -> u32 {
    value.next_power_of_two().trailing_zeros()
}

#[cfg(test)]
mod tests;
