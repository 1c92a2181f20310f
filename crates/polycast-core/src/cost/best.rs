use std::fmt;
use std::num::NonZeroU64;

use super::{Cost, Predictor, multicast_ns};
use crate::algorithm::{Algorithm, SEGMENTS};
use crate::units::{Bytes, Nanos};
use polycast_protocol::Multicast;

/// What serves a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Candidate {
    /// Point-to-point messages.
    Algorithm(Algorithm),
    /// Multicast, repaired by a ring.
    Multicast(Multicast),
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Candidate::Algorithm(algorithm) => algorithm.fmt(f),
            Candidate::Multicast(multicast) => multicast.fmt(f),
        }
    }
}

/// A candidate and what it is predicted to take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// What serves the broadcast, with the best segment size.
    pub candidate: Candidate,
    /// From the call of the root to the end of the last rank.
    pub time: Nanos,
    /// How that comes about; multicast has no terms.
    pub cost: Option<Cost>,
}

impl Predicted {
    /// What an algorithm takes with these very parameters.
    pub fn of(predictor: &mut Predictor, algorithm: &Algorithm, bytes: Bytes) -> Predicted {
        let cost = predictor.cost(algorithm, bytes);
        Predicted { candidate: Candidate::Algorithm(*algorithm), time: cost.time, cost: Some(cost) }
    }

    /// What a multicast takes without loss.
    pub fn of_multicast(predictor: &mut Predictor, multicast: Multicast, bytes: Bytes) -> Predicted {
        let root = predictor.root();
        let ns = multicast_ns(predictor.network_mut(), root, multicast, bytes.0);
        let time = Nanos(ns.round() as u64);
        Predicted { candidate: Candidate::Multicast(multicast), time, cost: None }
    }
}

/// All candidates for one size, the fastest first; not empty if there were candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Bytes of the broadcast.
    pub bytes: Bytes,
    /// One entry per candidate. Of equally fast ones that which was named first comes first.
    pub predicted: Vec<Predicted>,
}

/// Compares algorithms, each whole and with every of [`SEGMENTS`], and multicasts for these sizes.
pub fn compare(
    predictor: &mut Predictor,
    algorithms: &[Algorithm],
    multicasts: &[Multicast],
    sizes: &[Bytes],
) -> Vec<Comparison> {
    let mut comparisons: Vec<Comparison> =
        sizes.iter().map(|bytes| Comparison { bytes: *bytes, predicted: Vec::new() }).collect();
    for algorithm in algorithms {
        for (comparison, predicted) in comparisons.iter_mut().zip(best_segments(predictor, algorithm, sizes))
        {
            comparison.predicted.push(predicted);
        }
    }
    for comparison in &mut comparisons {
        let of = |multicast: &Multicast| Predicted::of_multicast(predictor, *multicast, comparison.bytes);
        comparison.predicted.extend(multicasts.iter().map(of));
        comparison.predicted.sort_by_key(|predicted| predicted.time);
    }
    comparisons
}

/// By size, the algorithm whole or with its best segment size.
fn best_segments(predictor: &mut Predictor, algorithm: &Algorithm, sizes: &[Bytes]) -> Vec<Predicted> {
    let is_by_size = predictor.is_by_size(algorithm);
    let mut prepared = predictor.prepare(algorithm);
    let cut = |segment: u64| Algorithm { segment: NonZeroU64::new(segment), ..algorithm.whole() };
    let predicted = |segment: u64, cost: Cost| Predicted {
        candidate: Candidate::Algorithm(cut(segment)),
        time: cost.time,
        cost: Some(cost),
    };
    let mut best = Vec::with_capacity(sizes.len());
    for &bytes in sizes {
        if is_by_size {
            prepared = predictor.prepare_for(&cut(0), bytes);
        }
        best.push(predicted(0, prepared.cost(predictor, bytes, None)));
    }
    for segment in SEGMENTS {
        if is_by_size {
            prepared = predictor.prepare_for(&cut(segment), Bytes(segment));
        }
        let segmented = prepared.segmented(predictor, segment);
        for (best, bytes) in best.iter_mut().zip(sizes).filter(|(_, bytes)| bytes.0 > segment) {
            let cost = segmented.cost(*bytes);
            if cost.time < best.time {
                *best = predicted(segment, cost);
            }
        }
    }
    best
}

/// What is fastest for which sizes: the first size of each interval, the candidate, and its time at the size within the
/// interval that was compared first. `comparisons` are by rising sizes; the border between two is their geometric mean.
pub fn intervals(comparisons: &[Comparison]) -> Vec<(Bytes, Candidate, Nanos)> {
    let mut intervals: Vec<(Bytes, Candidate, Nanos)> = Vec::new();
    let mut before = None;
    for comparison in comparisons {
        let Some(fastest) = comparison.predicted.first() else { continue };
        let first = before
            .map_or(0, |before: u64| ((before as f64) * (comparison.bytes.0 as f64)).sqrt().ceil() as u64);
        if intervals.last().is_none_or(|(_, candidate, _)| *candidate != fastest.candidate) {
            intervals.push((Bytes(first), fastest.candidate, fastest.time));
        }
        before = Some(comparison.bytes.0);
    }
    intervals
}

#[cfg(test)]
mod tests;
