use std::collections::VecDeque;

use super::race::HOPELESS;
use super::{Effort, Found, Levels, Measured, Race};
use crate::policy::Choice;
use crate::units::statistics::{self, Estimate};

/// Repetitions in a unit of effort: with so many an interval says something.
const REPETITIONS: u32 = 6;
/// The fewest repetitions: with fewer nothing is known.
const LEAST_REPETITIONS: u32 = 2;
/// The whole time divided by the time of the first round, in which most ways leave.
const FIRST_ROUND: f64 = 2.0;
/// The fewest ways that are measured in the first round, whatever its time.
const LEAST_WAYS: usize = 6;
/// The fewest ways, where time does not suffice for those, of which something can be said where the
/// MPI is far behind.
const LEAST_FOR_A_WORD: usize = 3;

/// The step that all ranks take next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The way to serve the calls.
    pub choice: Choice,
    /// True if a call comes before those that count: connections are made, memory is touched.
    pub warms_up: bool,
    /// The most repetitions.
    pub repetitions: u32,
}

/// A [`Race`] that ranks of a job run together, as one of them leads it: one way after the other, for as long as there is time.
///
/// ```text
///  next ─▶ Order ─▶ all ranks: a repetition … goes_on? … a repetition ─▶ took
///    ▲                                                                    │
///    └────────────────────────────────────────────────────────────────────┘          found, in the end
/// ```
#[derive(Clone, Debug)]
pub struct Session {
    race: Race,
    waiting: VecDeque<Choice>,
    effort: Effort,
    /// The times of this round.
    took: Vec<(Choice, Option<Measured>)>,
    fastest_us: f64,
    /// The time that the order that was given last may take, in µs.
    share_us: f64,
    /// The time that there was in the beginning, in µs.
    whole_us: Option<f64>,
    /// True once all ways were measured once, or there was no time for more of them.
    is_round: bool,
}

impl Session {
    /// A session between these ways to serve calls of this size on `ranks` ranks. What is likely to
    /// be fast had better come first, for it tells how long others are worth waiting for.
    pub fn new(candidates: Vec<Choice>, levels: Vec<Levels>, ranks: u32, bytes: u64) -> Session {
        // Trials do that in the job's own calls.
        let race = Race::new(candidates, ranks, bytes).on_levels(levels).without_confirmation();
        let (waiting, took) = Default::default();
        let (effort, fastest_us, share_us, whole_us) = (Effort(0), f64::INFINITY, 0.0, None);
        Session { race, waiting, effort, took, fastest_us, share_us, whole_us, is_round: false }
    }

    /// The order that comes next, if `left_us` µs are left; `None`: the session is over.
    pub fn next(&mut self, left_us: f64) -> Option<Order> {
        let whole_us = *self.whole_us.get_or_insert(left_us);
        let of_round_us = if self.is_round { left_us } else { left_us - whole_us / FIRST_ROUND };
        if !self.is_round && of_round_us <= 0.0 && self.took.len() >= LEAST_WAYS {
            // They are less likely to be fast than those before them.
            let dropped = self.waiting.drain(..).map(|choice| (choice, None));
            self.took.extend(dropped);
        }
        if self.waiting.is_empty() {
            if !self.took.is_empty() {
                self.race.took(&std::mem::take(&mut self.took));
                self.is_round = true;
            }
            let (choices, effort) = self.race.next()?;
            (self.waiting, self.effort) = (choices.into(), effort);
        }
        if left_us <= 0.0 {
            return None;
        }
        let choice = *self.waiting.front()?;
        let most = REPETITIONS * self.effort.0;
        let warms_up = !self.is_round;
        self.share_us = of_round_us.max(0.0) / self.waiting.len() as f64;
        let affordable = (self.share_us / self.fastest_us).min(f64::from(most)) as u32;
        let repetitions = affordable.clamp(LEAST_REPETITIONS, most);
        Some(Order { choice, warms_up, repetitions })
    }

    /// Whether a way whose last repetition took `last_us` µs, and all of this order `all_us` µs, is
    /// worth another one.
    pub fn goes_on(&self, last_us: f64, all_us: f64) -> bool {
        last_us <= HOPELESS * self.fastest_us && all_us <= self.share_us
    }

    /// Takes the times of the order's repetitions, in µs, from the beginning to the end of the last
    /// rank; none: the way cannot be had.
    pub fn took(&mut self, samples_us: Vec<f64>) {
        let Some(choice) = self.waiting.pop_front() else { return };
        let measured = Measured::of(samples_us);
        if let Some(measured) = measured {
            self.fastest_us = self.fastest_us.min(measured.median_us);
        }
        self.took.push((choice, measured));
    }

    /// The outcome by what is known; `None` if time was up before some ways were measured once, or
    /// before it could be said whether the MPI is beaten.
    pub fn found(&self) -> Option<Found> {
        let mut race = self.race.clone();
        // A later round that was cut short still tells more than the one before.
        race.learn(&self.took);
        let is_something = self.is_round || self.took.len() >= LEAST_FOR_A_WORD;
        is_something.then(|| race.found()).filter(|found| !Session::is_open(found))
    }

    /// Whether stock stays only because time was up.
    fn is_open(found: &Found) -> bool {
        let faster =
            found.second.zip(found.time).filter(|((_, second), time)| second.median_us < time.median_us);
        found.best == Choice::Stock && faster.is_some_and(|((_, second), _)| !second.has_interval())
    }
}

impl Measured {
    /// The median of these samples with the interval that holds the true median with 95 %; of fewer than six samples the interval is all of them.
    pub fn of(samples_us: Vec<f64>) -> Option<Measured> {
        let samples_us = statistics::sorted(samples_us);
        let Estimate { median, interval } = statistics::median(&samples_us)?;
        let (low_us, high_us) = interval.unwrap_or((samples_us[0], samples_us[samples_us.len() - 1]));
        Some(Measured { median_us: median, low_us, high_us, samples: samples_us.len() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::candidates;
    use super::*;
    use crate::policy::{Capabilities, Collective, CommunicatorShape};

    const BYTES: u64 = 256 << 10;

    fn all() -> Vec<Choice> {
        let shape = CommunicatorShape::new(8, 8, None).unwrap();
        candidates(Collective::Broadcast, shape, BYTES, Capabilities::ALL)
    }

    /// How long a way takes, by its name.
    fn truth_us(choice: Choice, seed: u64) -> f64 {
        let name = choice.to_string();
        let hash =
            name.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        100.0 + (hash >> 20) as f64 % 5000.0
    }

    /// Runs it for as long; what it came to, and what it took.
    fn run(budget_us: f64, seed: u64, noise: f64) -> (Session, f64) {
        let mut session = Session::new(all(), Vec::new(), 8, BYTES);
        let (mut spent, mut draw) = (0.0, seed);
        while let Some(order) = session.next(budget_us - spent) {
            let (mut samples, before) = (Vec::new(), spent);
            for made in 0..order.repetitions + u32::from(order.warms_up) {
                draw = draw.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let noise = 1.0 + noise * ((draw >> 33) as f64 / (1u64 << 31) as f64 - 0.5);
                let took = truth_us(order.choice, seed) * noise;
                spent += took;
                if made > 0 || !order.warms_up {
                    samples.push(took);
                }
                if !session.goes_on(took, spent - before) {
                    if samples.is_empty() {
                        samples.push(took);
                    }
                    break;
                }
            }
            session.took(samples);
        }
        (session, spent)
    }

    #[test]
    fn intervals_are_those_of_the_binomial_distribution() {
        for (samples, low, high) in
            [(1, 0, 0), (5, 0, 4), (6, 0, 5), (8, 0, 7), (9, 1, 7), (12, 2, 9), (24, 6, 17)]
        {
            let all = (0..samples).rev().map(f64::from).collect();
            let Measured { low_us, high_us, .. } = Measured::of(all).unwrap();
            assert_eq!((low_us, high_us), (f64::from(low), f64::from(high)), "{samples}");
        }
        assert_eq!(Measured::of(Vec::new()), None);
    }

    #[test]
    fn nothing_is_said_before_all_were_measured() {
        assert_eq!(run(0.0, 7, 0.0).0.found(), None);
        assert_eq!(run(300.0, 7, 0.0).0.found(), None);
    }

    /// Each takes so long that there is time for three.
    #[test]
    fn what_is_far_faster_needs_no_second_look() {
        for (fast_us, expected) in [(40e3, true), (200e3, false)] {
            let mut session = Session::new(all(), Vec::new(), 8, BYTES);
            let mut left_us = 1e6;
            while let Some(order) = session.next(left_us) {
                let took_us = if order.choice == Choice::Stock { 320e3 } else { fast_us };
                session.took(vec![took_us]);
                left_us -= 2.0 * took_us;
            }
            assert_eq!(session.found().is_some_and(|found| found.best != Choice::Stock), expected);
        }
    }

    #[test]
    fn a_way_that_cannot_be_had_is_left_out() {
        let mut session = Session::new(all(), Vec::new(), 8, BYTES);
        while let Some(order) = session.next(1e9) {
            let is_there = !order.choice.is_by_multicast();
            session.took(if is_there { vec![truth_us(order.choice, 1); 6] } else { Vec::new() });
        }
        let found = session.found().unwrap();
        assert!(!found.best.is_by_multicast() && found.measured > 10);
    }

    proptest! {
        /// With time enough, the fastest within the noise; the time is kept but for the last way's.
        #[test]
        fn the_fastest_is_found_in_time(seed in any::<u64>(), budget_ms in 20u32..2000) {
            let budget_us = f64::from(budget_ms) * 1e3;
            let (session, spent) = run(budget_us, seed, 0.04);
            prop_assert!(spent <= budget_us + 9.0 * 5100.0, "{spent} of {budget_us}");
            let is_measured = |found: &Found, way| found.all.iter().any(|(choice, _)| *choice == way);
            let is_whole = |found: &Found| all().into_iter().all(|way| is_measured(found, way));
            if let Some(found) = session.found().filter(is_whole) {
                let least = all().into_iter().map(|choice| truth_us(choice, seed)).fold(f64::INFINITY, f64::min);
                prop_assert!(truth_us(found.best, seed) <= 1.05 * least.max(1.0), "{found:?}");
            } else {
                prop_assert!(budget_ms < 1900);
            }
        }
    }
}
