//! Random numbers that depend on a seed only.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Numbers that depend on the seed only: the generator is named, so that another version of a library does not change
/// what a seed means.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Draws any number.
    pub fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws a number from 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws whether something of this probability happens.
    pub fn chance(&mut self, probability: f64) -> bool {
        // Nothing is drawn where nothing can happen: most faults are off in most runs.
        probability > 0.0 && self.unit() < probability
    }

    /// Draws a number from 0 to below `end`; 0 if that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(end)) >> 64) as u64
    }

    /// Draws a number from `least` to `most`.
    pub fn within(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// Draws a number in a range in which each power of two is as likely as the next.
    pub fn log_within(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.unit())
    }

    /// Draws one of the choices, each as likely as the others.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Fills the bytes with random ones.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_for_ever() {
        let mut random = Random::new(1);
        assert_eq!([random.number(), random.number()], [0xcfc5_d07f_6f03_c29b, 0xbf42_4132_963f_e08d]);
    }

    #[test]
    fn bounds_are_kept() {
        let mut random = Random::new(2);
        for _ in 0..1000 {
            assert!(random.below(3) < 3 && (5..=6).contains(&random.within(5, 6)));
            assert!((1.0..=100.0).contains(&random.log_within(1.0, 100.0)));
        }
        assert_eq!(random.below(0), 0);
        assert!(!random.chance(0.0) && random.chance(1.0));
    }
}
