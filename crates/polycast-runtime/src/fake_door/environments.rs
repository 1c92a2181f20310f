//! Programs whose ranks have other floating-point environments: what the door is asked is asked in the program's, and all ranks choose alike.

use std::cell::Cell;

use super::job::{Job, Outcome};
use super::network::Weather;
use super::random::{Random, with_seeds};

/// MXCSR of a program that sets nothing, and without what was raised.
const USUAL: u32 = 0x1f80;
const RAISED: u32 = 0x3f;

const PARAMETERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/params/lab-20mbit.json");

thread_local! {
    static OF_PROGRAM: Cell<u32> = const { Cell::new(USUAL) };
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod machine {
    use crate::floating_point::Environment;

    pub fn set(mxcsr: u32) {
        Environment::of(mxcsr).enter();
    }

    pub fn now() -> u32 {
        Environment::now().mxcsr()
    }
}

/// Nothing can be set.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod machine {
    pub fn set(_: u32) {}

    pub fn now() -> u32 {
        super::OF_PROGRAM.get()
    }
}

/// The program of this thread's rank sets its own.
pub fn enter(mxcsr: Option<u32>) {
    OF_PROGRAM.set(mxcsr.unwrap_or(USUAL));
    machine::set(OF_PROGRAM.get());
}

/// Whether this is what the program has set.
pub fn is_programs() -> bool {
    machine::now() & !RAISED == OF_PROGRAM.get()
}

/// Invalid operations, divisions by zero and overflows trap, or not; each way of rounding; the smallest numbers are zero, or not.
pub fn random_environment(random: &mut Random) -> u32 {
    let traps = random.one_of(&[0, 0x280 | 0x400]);
    let (rounding, zero) = (0x2000 * random.below(4) as u32, random.one_of(&[0, 0x8040]));
    USUAL & !traps | rounding | zero
}

fn all_alike(job: &Job, outcome: &Outcome) -> Vec<String> {
    let first = &outcome.ranks[0];
    for told in &outcome.ranks {
        assert_eq!(told.choices, first.choices, "{job:?}");
        assert!(told.calls.iter().all(|ended| ended.is_right()), "{job:?}\n{:?}", told.calls);
    }
    first.choices.iter().map(ToString::to_string).collect()
}

#[test]
fn ranks_choose_alike_however_each_rounds() {
    with_seeds(12, |seed| {
        let random = &mut Random::new(seed);
        let hosts: Vec<u32> = (0..random.within(2, 5)).map(|_| random.below(4) as u32).collect();
        let call = |random: &mut Random| {
            (random.below(hosts.len() as u64) as u32, 1 << random.within(1, 17) as usize)
        };
        let calls: Vec<(u32, usize)> = (0..random.within(5, 30)).map(|_| call(random)).collect();
        let mut job = Job::new(hosts.len() as u32, seed, "", &calls).on_hosts(&hosts, Weather::FINE);
        let is_predicted = random.one_in(2);
        if is_predicted {
            job = job.with(None, "POLYCAST_PARAMS", PARAMETERS);
        } else {
            job = job.with(None, "POLYCAST_TRIALS", "on").with(None, "POLYCAST_TUNE", "100ms");
        }
        let usual = all_alike(&job, &job.run());
        job.environments = hosts.iter().map(|_| random_environment(random)).collect();
        let choices = all_alike(&job, &job.run());
        assert!(!is_predicted || choices == usual, "{choices:?}, usually {usual:?}: {job:?}");
    });
}
