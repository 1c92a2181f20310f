//! `make soak`: jobs in a lab that verify every byte while things go wrong around them.
//!
//! ```text
//! make soak ROUNDS=1000              so many rounds; from 21 on faults last longer, up to ten seconds
//! make soak ROUNDS=1 SEED=17         the round of this seed again
//! make soak ROUNDS=1000 FAULT=killed only rounds in which this goes wrong
//! make soak ROUNDS=1000 FAULT=killed STOCK=1   the same rounds without polycast: what the MPI does by itself
//! ```
//!
//! Exit status 1 on a wrong byte, on a job that hangs where it does not without polycast, and on anything that is left behind.

#[path = "../lab/cluster.rs"]
mod cluster;
#[path = "../common/mod.rs"]
mod common;
mod fault;
#[path = "../jobs/job.rs"]
mod job;
mod round;
mod totals;

use std::process::ExitCode;
use std::time::Instant;

use round::{FAULTS, HOSTS, Round, fault_of};
use totals::Totals;

/// From so many rounds on somebody has time: faults last longer.
const MANY_ROUNDS: u64 = 21;

/// `NAME=VALUE` among the arguments.
fn argument(name: &str) -> Option<String> {
    let value =
        std::env::args().find_map(|word| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned()));
    value.filter(|value| !value.is_empty())
}

fn number(name: &str, default: u64) -> u64 {
    argument(name).and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn main() -> ExitCode {
    let (rounds, first) = (number("ROUNDS", 20), number("SEED", 0));
    let only = argument("FAULT");
    let names = FAULTS.map(|(name, _)| name);
    if let Some(name) = only.as_ref().filter(|name| !names.contains(&name.as_str())) {
        println!("FAULT={name}: expected one of {}", names.join(", "));
        return ExitCode::from(2);
    }
    let with_polycast = number("STOCK", 0) == 0;
    let is_meant = |seed: &u64| only.as_ref().is_none_or(|name| name == fault_of(*seed).0);
    let mut totals = Totals::default();
    let began = Instant::now();
    let Some(labs) = job::lab(HOSTS, &[]) else { return ExitCode::SUCCESS };
    let files = fault::files();
    for seed in (first..).filter(is_meant).take(rounds as usize) {
        let round = Round::of(seed, rounds >= MANY_ROUNDS);
        let began = Instant::now();
        let problems = round.run(&labs, &mut totals, with_polycast);
        println!("seed {seed:<6} {:>5.1} s  {round}", began.elapsed().as_secs_f64());
        for problem in &problems {
            println!("  FAILED: {problem}\n  again: make soak ROUNDS=1 SEED={seed}");
        }
        totals.failed += u64::from(!problems.is_empty());
    }
    labs.succeeds(&["down", "--all"]);
    labs.are_gone();
    let left = round::lasting(|| fault::files().difference(&files).cloned().collect());
    if !left.is_empty() {
        println!("FAILED: left behind: {left:?}");
        totals.failed += 1;
    }
    println!("{rounds} rounds in {:.0} s: {totals}", began.elapsed().as_secs_f64());
    // As suites of tests are counted.
    let verdict = if totals.failed == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {verdict}. {} passed; {} failed; 0 ignored;",
        rounds.saturating_sub(totals.failed),
        totals.failed
    );
    if totals.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
