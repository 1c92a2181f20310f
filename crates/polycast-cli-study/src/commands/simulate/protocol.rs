use std::error::Error;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use polycast_sim::protocol::{Failure, Scenario, Search, Simulator};
use serde_json::json;

use super::{Args, node_count};
use crate::commands::{Outcome, print, print_json};
use crate::terminal::paragraph;
use crate::usage::wrong;

/// Runs `polycast simulate --protocol`.
pub fn run(args: &Args) -> Outcome {
    let nodes = args.nodes.as_deref().map_or(Ok(2..=64), node_range)?;
    match args.seed {
        Some(seed) if args.verbose => narrate(seed, nodes),
        _ => search(args, nodes),
    }
}

/// `2..64`, both included, or a number.
fn node_range(text: &str) -> Result<RangeInclusive<u32>, Box<dyn Error>> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let range = node_count(from)?..=node_count(to.trim_start_matches('='))?;
    match range.is_empty() {
        true => Err(wrong(format_args!("--nodes {text}: expected a range such as 2..64"))),
        false => Ok(range),
    }
}

fn narrate(seed: u64, nodes: RangeInclusive<u32>) -> Outcome {
    let scenario = Scenario::from_seed(seed, nodes);
    let (result, timeline) = Simulator::new().narrate(&scenario);
    let end = match &result {
        Ok(outcome) => paragraph(&format!("everything held; {}", words(&outcome.totals.named()))),
        Err(failure) => format!("FAILED {failure}"),
    };
    print(&format!("{scenario:#?}\n\n{timeline}\n{end}\n"))?;
    Ok(status(result.is_ok()))
}

fn search(args: &Args, nodes: RangeInclusive<u32>) -> Outcome {
    let (first_seed, seeds) = args.seed.map_or((args.first_seed, args.seeds), |seed| (seed, 1));
    // Hidden by itself where standard error is no terminal.
    let progress = ProgressBar::with_draw_target(Some(seeds), ProgressDrawTarget::stderr());
    progress.set_style(ProgressStyle::with_template("[{bar:40}] {pos}/{len} runs  {elapsed}, {eta} left")?);
    let started = Instant::now();
    let replay =
        format!("polycast simulate --protocol --nodes {}..{} --verbose --seed", nodes.start(), nodes.end());
    let on_failure = |seed: u64, failure: &Failure| {
        // Above the bar, and while the search goes on.
        progress.suspend(|| eprintln!("seed {seed}: {failure}\n  replay: {replay} {seed}"));
    };
    let found = Search { first_seed, seeds, nodes: nodes.clone() }
        .run(on_failure, |done| progress.set_position(done));
    progress.finish_and_clear();
    let seconds = started.elapsed().as_secs_f64();
    if args.json {
        let mut object = json!({ "first_seed": first_seed, "seeds": seeds, "failures": found.failures, "seconds": seconds });
        for (name, value) in found.totals.named() {
            object[name] = value.into();
        }
        print_json(&object)?;
    } else {
        let failures = found.failures.len();
        let totals = paragraph(&words(&found.totals.named()));
        print(&format!("{seeds} seeds, {failures} failures, {seconds:.1} seconds\n{totals}\n"))?;
    }
    Ok(status(found.failures.is_empty()))
}

/// `3 runs, 12 broadcasts`.
fn words(named: &[(&'static str, u64)]) -> String {
    let words = named.iter().map(|(name, value)| format!("{value} {}", name.replace('_', " ")));
    words.collect::<Vec<_>>().join(", ")
}

fn status(has_held: bool) -> ExitCode {
    if has_held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_nodes() {
        assert_eq!(node_range("2..64").unwrap(), 2..=64);
        assert_eq!(node_range("8").unwrap(), 8..=8);
        for text in ["64..2", "1..3", "2..", "", "2..70000"] {
            assert!(node_range(text).is_err(), "{text}");
        }
    }
}
