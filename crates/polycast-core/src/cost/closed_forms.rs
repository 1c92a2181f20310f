//! The formulas of the papers, for uniform networks: what the general form of this module comes down to there, and
//! predictions of their own.

use crate::algorithm::Formulas;
use crate::model::{ClassParameters, LogGp};
use crate::tree::{SendTimes, Splits};
use crate::units::Nanos;

/// Times of a broadcast to hosts on one switch by the papers' formulas, in nanoseconds; `None`
/// where a paper has none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClosedForms {
    /// Hockney's model: `(X + H - 1) * D * T(s)` down a tree of height H and degree D in X segments of s bytes, `ceil(log2 P) * T`
    /// for the binomial tree (Patarasuk et al. 2008, §3.1 and Table 1).
    pub hockney: Option<f64>,
    /// LogGP: the longest time of a rank (Siebert 2006, §1.5).
    pub log_gp: Option<f64>,
    /// P-LogP (Patarasuk et al. 2008, §4.2, formulas 1 and 2).
    pub p_log_gp: Option<f64>,
    /// The parameterized model (Nupairoj 1998, Table 4.2; the optimal tree: §4.3).
    pub hold_end: Option<f64>,
}

impl ClosedForms {
    /// The times by an algorithm's formulas, for `bytes` to `ranks` ranks, at least 2, whole or in
    /// segments.
    pub fn of(
        formulas: Formulas,
        class: &ClassParameters,
        ranks: u32,
        bytes: u64,
        segment: Option<u64>,
    ) -> ClosedForms {
        let whole = segment.is_none();
        let segment = segment.unwrap_or(bytes).max(1);
        let segments = (bytes as f64 / segment as f64).max(1.0);
        let (hockney, log_gp) = (class.hockney(), class.log_gp());
        let stages = |height: u32, degree: f64| {
            let message_ns = hockney.alpha_ns + hockney.beta_ns * segment as f64;
            Some((segments + f64::from(height) - 1.0) * degree * message_ns)
        };
        let (hold, end) = (class.hold_ns(bytes), class.end_ns(bytes));
        let if_whole = |ns: f64| whole.then_some(ns);
        match formulas {
            Formulas::Flat if whole => ClosedForms {
                hockney: stages(1, f64::from(ranks - 1)),
                log_gp: Some(log_gp_flat_ns(&log_gp, ranks, bytes)),
                p_log_gp: None,
                hold_end: Some(sequential(ranks, hold, end)),
            },
            Formulas::Chain => ClosedForms {
                hockney: stages(ranks - 1, 1.0),
                log_gp: Some(log_gp_chain_ns(&log_gp, ranks, segments.ceil() as u64, segment)),
                p_log_gp: Some(linear_tree_ns(class, ranks, bytes, segment)),
                hold_end: if_whole(chain(ranks, end)),
            },
            Formulas::Binary => {
                let children: Vec<Vec<usize>> = (0..ranks as usize)
                    .map(|p| (2 * p + 1..2 * p + 3).filter(|child| *child < ranks as usize).collect())
                    .collect();
                let farthest = farthest(&children, class.latency.at(segment), class.gap.at(segment));
                ClosedForms {
                    hockney: stages(ranks.ilog2(), 2.0),
                    log_gp: if_whole(log_gp_binary_ns(&log_gp, ranks, bytes)),
                    p_log_gp: Some(binary_tree_ns(class, farthest, bytes, segment)),
                    hold_end: None,
                }
            }
            Formulas::Binomial if whole => ClosedForms {
                hockney: stages(1, f64::from(ceil_log2(ranks.into()))),
                log_gp: Some(log_gp_binomial_ns(&log_gp, ranks, bytes)),
                p_log_gp: None,
                hold_end: Some(binomial(ranks, hold, end)),
            },
            Formulas::Optimal if whole => {
                let [hold, end] = [hold, end].map(|ns| Nanos(ns.round().max(1.0) as u64));
                let latency = Splits::optimal(SendTimes { hold, end }, ranks).latency(ranks);
                ClosedForms { hold_end: Some(latency.0 as f64), ..ClosedForms::default() }
            }
            _ => ClosedForms::default(),
        }
    }
}

/// A segment counts as efficient if its time per byte exceeds that of the largest messages by at
/// most this part, which is start-up.
const START_UP_SHARE: f64 = 0.1;

/// The smallest measured size from which on a stream of segments takes at most a tenth longer than one of the largest messages
/// that were measured, byte for byte (Patarasuk et al. 2008, Table 4).
pub fn efficient_segment(class: &ClassParameters) -> u64 {
    let points = class.gap.points();
    let per_byte = |bytes: u64| class.gap.at(bytes) / bytes.max(1) as f64;
    let most = (1.0 + START_UP_SHARE) * points.last().map_or(0.0, |largest| per_byte(largest.bytes));
    let efficient = points.iter().rev().take_while(|point| per_byte(point.bytes) <= most);
    efficient.last().map_or(0, |point| point.bytes)
}

/// The size from which on at most a third of a pipelined broadcast passes before its first segment has arrived everywhere:
/// `X >= 2 (H - 1)` segments down a tree of height H (Patarasuk et al. 2008, §5.4).
pub fn sufficiently_large(height: u32, segment: u64) -> u64 {
    2 * u64::from(height.saturating_sub(1)) * segment
}

/// Pipelined broadcast down a linear tree (Patarasuk et al. 2008, §4.2, formula 1), in nanoseconds:
/// `(P-1) * (L(s) + g(s)) + (X-1) * g(s)` with `X = bytes / s`.
pub fn linear_tree_ns(class: &ClassParameters, ranks: u32, bytes: u64, segment: u64) -> f64 {
    let hops = f64::from(ranks.saturating_sub(1));
    coefficients_ns(class, [hops, hops], 1.0, bytes, segment)
}

/// Pipelined broadcast down a binary tree (Patarasuk et al. 2008, §4.2, formula 2), in nanoseconds: `A * L(s) + B * g(s) + 2 * (X-1) * g(s)`.
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

/// A and B of the receiver with the largest `A * L + B * g` (Patarasuk et al. 2008, Figure 8): a
/// first child counts as (1, 1), a second as (1, 2) and so on, summed over the way from node 0.
/// `children` lists the children of each node, which have higher numbers than the node.
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

/// Sequential tree without segments (Nupairoj 1998, Table 4.2): `(k-2) * t_hold + t_end` over `k` ranks, in the units of the arguments.
pub fn sequential(ranks: u32, hold: f64, end: f64) -> f64 {
    if ranks < 2 { 0.0 } else { f64::from(ranks - 2) * hold + end }
}

/// Chain without segments (Nupairoj 1998, Table 4.2): `(k-1) * t_end`.
pub fn chain(ranks: u32, end: f64) -> f64 {
    f64::from(ranks.saturating_sub(1)) * end
}

/// Binomial tree without segments: the recurrence of Nupairoj 1998, §4.1, with halves, `t[i] = max(t[ceil(i/2)] + t_hold, t[floor(i/2)] + t_end)`:
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

/// LogGP's time of one message: `o + (n-1) * G + L + o` (Siebert 2006, §1.4), in nanoseconds.
pub fn log_gp_message_ns(p: &LogGp, bytes: u64) -> f64 {
    p.latency_ns + 2.0 * p.overhead_ns + body_ns(p, bytes)
}

fn body_ns(p: &LogGp, bytes: u64) -> f64 {
    (bytes as f64 - 1.0).max(0.0) * p.gap_per_byte_ns
}

/// Longest time of the flat ("linear") broadcast (Siebert 2006, §1.5.1): `L + 2o + (p-1)(n-1)G + (p-2)g`.
pub fn log_gp_flat_ns(p: &LogGp, ranks: u32, bytes: u64) -> f64 {
    let ranks = f64::from(ranks);
    p.latency_ns + 2.0 * p.overhead_ns + (ranks - 1.0) * body_ns(p, bytes) + (ranks - 2.0) * p.gap_ns
}

/// Longest time of the chain with `fragments` of `fragment_bytes` (Siebert 2006, §1.5.2):
/// `(p-1)(L + 2o + (n_f-1)G) + (f-1)(g + (n_f-1)G)`.
pub fn log_gp_chain_ns(p: &LogGp, ranks: u32, fragments: u64, fragment_bytes: u64) -> f64 {
    f64::from(ranks - 1) * log_gp_message_ns(p, fragment_bytes)
        + (fragments as f64 - 1.0) * (p.gap_ns + body_ns(p, fragment_bytes))
}

/// Longest time of the binary tree (Siebert 2006, §1.5.3):
/// `(ceil(log2(p+1)) - 1)(L + 2(o + (n-1)G + g)) + 2((n-1)G + g)`.
pub fn log_gp_binary_ns(p: &LogGp, ranks: u32, bytes: u64) -> f64 {
    let levels = f64::from(ceil_log2(u64::from(ranks) + 1)) - 1.0;
    let sent = body_ns(p, bytes) + p.gap_ns;
    levels * (p.latency_ns + 2.0 * (p.overhead_ns + sent)) + 2.0 * sent
}

/// Longest time of the binomial tree (Siebert 2006, §1.5.4): `ceil(log2 p)(L + 2o + (n-1)G)`.
pub fn log_gp_binomial_ns(p: &LogGp, ranks: u32, bytes: u64) -> f64 {
    f64::from(ceil_log2(ranks.into())) * log_gp_message_ns(p, bytes)
}

fn ceil_log2(value: u64) -> u32 {
    value.next_power_of_two().trailing_zeros()
}

#[cfg(test)]
mod tests;
