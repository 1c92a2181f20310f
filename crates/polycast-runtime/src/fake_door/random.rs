use std::env;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const REPLAY: &str = "FAKE_DOOR_SEED";

/// Numbers that depend on the seed only.
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// From 0 to below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    pub fn within(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        (1..all.len()).for_each(|last| all.swap(last, self.below(last as u64 + 1) as usize));
    }
}

/// Says which seed it was if the test fails.
struct Said(u64);

impl Drop for Said {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("with seed {}; {REPLAY}={} runs it alone", self.0, self.0);
        }
    }
}

/// Runs a test with the seeds 0..`count`, or with that in FAKE_DOOR_SEED.
pub fn with_seeds(count: u64, test: impl Fn(u64)) {
    let replayed = env::var(REPLAY).ok().map(|seed| seed.parse().expect("FAKE_DOOR_SEED: expected a number"));
    let seeds = replayed.map_or(0..count, |seed: u64| seed..seed + 1);
    for seed in seeds {
        let _said = Said(seed);
        test(seed);
    }
}
