//! Predictions of the fastest trees, where parameters have been measured.

use super::{Choice, Collective};
use crate::algorithm::{Algorithm, Registry};
use crate::cost::{Comparison, Predicted, Predictor, borders, compare};
use crate::model::Parameters;
use crate::topology::Placed;
use crate::units::{Bytes, Rank};

/// The largest size that is compared; what is best there serves all larger ones.
const LARGEST: u64 = 64 << 20;

/// Percent by which predictions must differ to tell which is the faster one.
const CLOSE_PERCENT: u64 = 10;

/// Predictions for the broadcasts of one communicator, made once for all sizes.
///
/// Sizes that double are compared; each decides for those that are nearer to it than to its neighbours, as a ratio:
///
/// ```text
///  compared        8KiB           16KiB           32KiB
///  decides      ────┼──────┤├───────┼───────┤├──────┼─── …
///                       11.3KiB         22.6KiB
/// ```
/// The root is rank 0. Another one changes the height of a tree by little.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Comparisons of trees by rising sizes; not empty.
    comparisons: Vec<Comparison>,
    first: Bytes,
}

impl Prediction {
    /// The collective whose calls are predicted.
    pub const COLLECTIVE: Collective = Collective::Broadcast;

    /// Compares all trees, with their segment sizes, on ranks that have been placed.
    pub fn new(placed: &Placed, parameters: &Parameters) -> Prediction {
        let first = smallest_measured(parameters);
        let doubling = (0..).map(|power| 1u64 << power).skip_while(|bytes| *bytes < first);
        let sizes: Vec<Bytes> =
            doubling.take_while(|bytes| *bytes <= LARGEST.max(first)).map(Bytes).collect();
        let mut predictor = Predictor::new(placed, parameters, Rank(0));
        Prediction {
            comparisons: compare(
                &mut predictor,
                &Registry::BUILT_IN.compared_schedules(Prediction::COLLECTIVE),
                &sizes,
            ),
            first: Bytes(first),
        }
    }

    /// The smallest size that the prediction is to decide for: shorter messages were not measured.
    pub fn first(&self) -> Bytes {
        self.first
    }

    /// The comparison that decides for a broadcast of `bytes`: all trees, the fastest first.
    pub fn deciding(&self, bytes: Bytes) -> &Comparison {
        let after = borders(&self.comparisons).take_while(|(first, _)| *first <= bytes).count();
        &self.comparisons[after.max(1) - 1]
    }

    /// The best trees for each size, by rising sizes from [`Prediction::first`] on.
    pub(super) fn best(&self) -> Vec<Best> {
        let of = |(first, comparison): (Bytes, &Comparison)| {
            let (best, others) = comparison.predicted.split_first()?;
            let close = best.time.0.saturating_mul(100 + CLOSE_PERCENT) / 100;
            let runner_up = others.first().filter(|second| second.time.0 <= close).map(choice);
            Some(Best { first: first.max(self.first), choice: choice(best), runner_up })
        };
        borders(&self.comparisons).filter_map(of).collect()
    }
}

/// The tree that is predicted to be best from a size on, to the size of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Best {
    pub first: Bytes,
    pub choice: Choice,
    /// The second tree, if it is predicted to be about as fast.
    pub runner_up: Option<Choice>,
}

/// The bytes of the shortest message that was measured for any link class.
fn smallest_measured(parameters: &Parameters) -> u64 {
    let first = parameters.classes().filter_map(|(_, class)| class.gap.points().first());
    first.map(|point| point.bytes).min().unwrap_or(0)
}

/// The choice of a predicted tree. A tree in segments gets the `ready` signal: it bounds what piles
/// up at a late rank, and costs nothing when the root is the last to arrive.
pub fn choice(predicted: &Predicted) -> Choice {
    let algorithm = predicted.algorithm;
    Choice::Algorithm(Algorithm { ready: algorithm.segment.is_some(), ..algorithm })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    #[test]
    fn what_is_predicted_to_be_nearly_as_fast_is_the_runner_up() {
        let comparison = |bytes, second_ns| {
            let of =
                |name: &str, ns| Predicted { algorithm: name.parse().unwrap(), time: Nanos(ns), cost: None };
            let predicted = vec![of("binary", 1000), of("chain:segment=8KiB", second_ns), of("flat", 1050)];
            Comparison { bytes: Bytes(bytes), predicted }
        };
        let comparisons = vec![comparison(1 << 10, 1100), comparison(4 << 10, 1101)];
        let best = Prediction { comparisons, first: Bytes(64) }.best();
        let runner_ups: Vec<_> = best.iter().map(|best| (best.first.0, best.runner_up)).collect();
        assert_eq!(runner_ups, [(64, "chain:segment=8KiB,ready".parse().ok()), (2 << 10, None)]);
    }
}
