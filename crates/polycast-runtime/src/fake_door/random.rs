use std::env;
use std::num::NonZeroU64;
use std::ops::Range;

use polycast_core::algorithm::{Algorithm, Registry};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The seed of a run that is to be looked at again.
const REPLAY: &str = "FAKE_DOOR_SEED";
/// How many seeds each test is to try.
const SEEDS: &str = "FAKE_DOOR_SEEDS";

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

    /// Any algorithm, whole or in segments that divide something or nothing.
    pub fn algorithm(&mut self) -> Algorithm {
        let sample =
            self.one_of(&Registry::BUILT_IN.samples(polycast_core::collective::Collective::Broadcast));
        let segment = NonZeroU64::new(self.one_of(&[0, 1 << 10, 3000, 16 << 10]));
        Algorithm { segment, ready: self.one_in(3), ..sample }
    }

    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        (1..all.len()).for_each(|last| all.swap(last, self.below(last as u64 + 1) as usize));
    }
}

/// The seeds of [`with_seeds`].
pub fn seeds(count: u64) -> Range<u64> {
    let number = |name| {
        let text = env::var(name).ok()?;
        Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: expected a number")))
    };
    match number(REPLAY) {
        Some(seed) => seed..seed + 1,
        None => 0..number(SEEDS).unwrap_or(count),
    }
}

/// Says which seed it was if the test fails.
struct Said(u64);

impl Drop for Said {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let thread = std::thread::current();
            let test = thread.name().filter(|name| name.contains("::")).unwrap_or("fake_door");
            eprintln!("again: {REPLAY}={} cargo test --workspace --lib {test}", self.0);
        }
    }
}

/// Runs a test with the seeds 0..`count`, or as many as FAKE_DOOR_SEEDS says, or with that in FAKE_DOOR_SEED alone.
pub fn with_seeds(count: u64, test: impl Fn(u64)) {
    for seed in seeds(count) {
        let _said = Said(seed);
        test(seed);
    }
}
