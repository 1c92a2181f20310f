use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::outcome::Failure;
use super::scenario::Scenario;
use super::simulator::Simulator;
use super::totals::Totals;

/// A search for failures that runs many seeds on all processors.
pub struct Search {
    /// The first seed.
    pub first_seed: u64,
    /// The number of seeds.
    pub seeds: u64,
    /// The least and the most nodes of a run.
    pub nodes: RangeInclusive<u32>,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The totals of the runs in which everything held.
    pub totals: Totals,
    /// The seeds of the runs that failed.
    pub failures: Vec<u64>,
}

/// The number of seeds that a processor takes at once: enough that its memory is used again.
const SEEDS_AT_ONCE: u64 = 64;

impl Search {
    /// Runs all seeds. `on_failure` is called with each failure when it is found, `on_progress` now and then with the number of runs done.
    pub fn run(&self, on_failure: impl Fn(u64, &Failure) + Sync, on_progress: impl Fn(u64) + Sync) -> Found {
        let done = AtomicU64::new(0);
        let portions = self.seeds.div_ceil(SEEDS_AT_ONCE);
        let portion = |simulator: &mut Simulator, portion: u64| {
            let mut found = Found::default();
            let from = portion * SEEDS_AT_ONCE;
            let count = SEEDS_AT_ONCE.min(self.seeds - from);
            for seed in (from..from + count).map(|offset| self.first_seed.wrapping_add(offset)) {
                match simulator.run(&Scenario::from_seed(seed, self.nodes.clone())) {
                    Ok(outcome) => found.totals += outcome.totals,
                    Err(failure) => {
                        on_failure(seed, &failure);
                        found.failures.push(seed);
                    }
                }
            }
            // A number for a progress bar: nothing is ordered by it.
            on_progress(done.fetch_add(count, Ordering::Relaxed) + count);
            found
        };
        let merge = |mut all: Found, part: Found| {
            all.totals += part.totals;
            all.failures.extend(part.failures);
            all
        };
        let mut found =
            (0..portions).into_par_iter().map_init(Simulator::new, portion).reduce(Found::default, merge);
        found.failures.sort_unstable();
        found
    }
}
