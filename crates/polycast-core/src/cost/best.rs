use std::num::NonZeroU64;

use super::{Cost, Predictor, multicast_ns};
use crate::algorithm::{Algorithm, SEGMENTS};
use crate::collective::Collective;
use crate::units::{Bytes, Nanos};

/// An algorithm and its predicted time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// The algorithm, with the best segment size.
    pub algorithm: Algorithm,
    /// The time from the call of the root to the end of the last rank.
    pub time: Nanos,
    /// The terms of the time; a multicast has none, nor has a call that was followed message by
    /// message.
    pub cost: Option<Cost>,
}

impl Predicted {
    /// Predicts an algorithm with these very parameters; a multicast with the predictor's loss.
    pub fn of(predictor: &mut Predictor, algorithm: &Algorithm, bytes: Bytes) -> Predicted {
        if let Some(multicast) = algorithm.multicast() {
            let (root, loss) = (predictor.root(), predictor.datagram_loss());
            let ns = multicast_ns(predictor.network_mut(), root, multicast, bytes.0, loss);
            return Predicted { algorithm: *algorithm, time: Nanos(ns.round() as u64), cost: None };
        }
        let cost = predictor.cost(algorithm, bytes);
        Predicted { algorithm: *algorithm, time: cost.time, cost: Some(cost) }
    }

    /// Predicts an algorithm of any collective. Broadcasts between nodes go by [`Predicted::of`];
    /// other collectives, and what shares memory on a node, are [followed](Predictor::follow)
    /// message by message. `None` if the messages are too many.
    pub fn of_call(
        predictor: &mut Predictor,
        algorithm: &Algorithm,
        collective: Collective,
        bytes: Bytes,
    ) -> Option<Predicted> {
        if collective == Collective::Broadcast && !algorithm.entry.shares_memory() {
            return Some(Predicted::of(predictor, algorithm, bytes));
        }
        let time = predictor.follow(algorithm, collective, bytes)?;
        Some(Predicted { algorithm: *algorithm, time, cost: None })
    }
}

/// All candidates for one size, the fastest first; not empty if there were candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Bytes of the broadcast.
    pub bytes: Bytes,
    /// The prediction for each candidate, the fastest first; equally fast ones in the order in
    /// which they were named.
    pub predicted: Vec<Predicted>,
}

/// Compares algorithms, each whole and with every of [`SEGMENTS`] if it has segments, for these sizes.
pub fn compare(predictor: &mut Predictor, algorithms: &[Algorithm], sizes: &[Bytes]) -> Vec<Comparison> {
    let mut comparisons: Vec<Comparison> =
        sizes.iter().map(|bytes| Comparison { bytes: *bytes, predicted: Vec::new() }).collect();
    for algorithm in algorithms {
        let predicted = match algorithm.entry.has_schedules() {
            true => best_segments(predictor, algorithm, sizes),
            false => sizes.iter().map(|bytes| Predicted::of(predictor, algorithm, *bytes)).collect(),
        };
        comparisons.iter_mut().zip(predicted).for_each(|(comparison, one)| comparison.predicted.push(one));
    }
    for comparison in &mut comparisons {
        comparison.predicted.sort_by_key(|predicted| predicted.time);
    }
    comparisons
}

/// For each size the algorithm, whole or with its best segment size.
fn best_segments(predictor: &mut Predictor, algorithm: &Algorithm, sizes: &[Bytes]) -> Vec<Predicted> {
    let is_by_size = predictor.is_by_size(algorithm);
    let mut prepared = predictor.prepare(algorithm);
    let cut = |segment: u64| Algorithm { segment: NonZeroU64::new(segment), ..algorithm.whole() };
    let predicted =
        |segment: u64, cost: Cost| Predicted { algorithm: cut(segment), time: cost.time, cost: Some(cost) };
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

/// The intervals of sizes with the fastest algorithm of each: the first size, the algorithm, and
/// its time at the smallest size compared within the interval. `comparisons` are by rising sizes.
pub fn intervals(comparisons: &[Comparison]) -> Vec<(Bytes, Algorithm, Nanos)> {
    let mut intervals: Vec<(Bytes, Algorithm, Nanos)> = Vec::new();
    for (first, comparison) in borders(comparisons) {
        let Some(fastest) = comparison.predicted.first() else { continue };
        if intervals.last().is_none_or(|(_, algorithm, _)| *algorithm != fastest.algorithm) {
            intervals.push((first, fastest.algorithm, fastest.time));
        }
    }
    intervals
}

/// Each comparison with the size from which on it holds: the first that is nearer to its own size
/// than to the one before, as a ratio (their geometric mean). `comparisons` are by rising sizes.
pub fn borders(comparisons: &[Comparison]) -> impl Iterator<Item = (Bytes, &Comparison)> {
    let between = comparisons.windows(2).map(|two| two[0].bytes.border(two[1].bytes));
    std::iter::once(Bytes(0)).chain(between).zip(comparisons)
}

#[cfg(test)]
mod tests;
