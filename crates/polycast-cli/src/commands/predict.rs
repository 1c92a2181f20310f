//! `polycast predict`.

mod against;
mod chart;
mod collectives;
mod crossover;
pub(super) mod mixed;
mod models;
pub(super) mod place;
mod results;
mod table;

use self::crossover::Crossover;
pub use self::place::MAX_RANKS;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use polycast_core::cost::{self, Comparison, Predictor, Work};
use polycast_core::files::FileKind;
use polycast_core::model::Parameters;
use polycast_core::policy::{Choice, Collective};
use polycast_core::topology::Placed;
use polycast_core::units::{Bytes, Rank, Rate};

use super::topology::Input;
use super::{Outcome, print, print_json, write_file};
use crate::bench::operation::Operation;
use crate::bench::{sizes, variant};
use crate::numbers::{percentage, whole};

/// Arguments of `polycast predict`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  polycast predict --params cluster.json --ranks 32 --bytes 64KiB,1MiB
  polycast predict --params cluster.json --topology topology.conf \\
    --bytes 1KiB..4MiB --svg times.svg
  polycast predict --params cluster.json --hosts a,b:2,c \\
    --algorithms chain,binary:segment=4KiB
  polycast predict --params cluster.json --topology topology.conf \\
    --against results.json
  polycast predict --params cluster.json --ranks 32 --ranks-per-host 4
  polycast predict --params cluster.json --collective allreduce --ranks 32
  polycast predict --params cluster.json --crossover --ranks 512 --bytes 8,1KiB
  polycast predict --params cluster.json --models --ranks 32 --bytes 64KiB

`polycast measure` writes the parameters, `polycast bench --json results.json`
the results.")]
pub struct Args {
    /// Measured parameters
    #[arg(long, value_name = "FILE")]
    params: PathBuf,

    /// The switches and hosts; without it all hosts are on one switch
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,

    /// Ranks in all [default: one on each host]
    #[arg(short = 'n', long, value_name = "N", value_parser = whole(1u32..=place::MAX_RANKS))]
    ranks: Option<u32>,

    /// Ranks on each host
    #[arg(long, value_name = "K", value_parser = whole(1u32..=place::MAX_RANKS),
          conflicts_with_all = ["hosts", "against", "crossover"])]
    ranks_per_host: Option<u32>,

    /// Hosts in the order of their ranks, each with an optional number of ranks: a:2,n[0-7] [default: those of the topology]
    #[arg(long, value_name = "HOSTS")]
    hosts: Option<String>,

    /// Who has the data
    #[arg(long, value_name = "RANK", default_value = "0", value_parser = whole(0u32..),
          conflicts_with_all = ["against", "crossover"])]
    root: u32,

    /// The operation, named as its MPI function; of scatter, gather, allgather and alltoall the bytes are those of a block
    #[arg(long, value_name = "NAME", default_value = "bcast")]
    collective: Collective,

    /// How fast a rank combines data of a reduction [default: 40gbit, which nobody measured]
    #[arg(long, value_name = "RATE", conflicts_with_all = ["against", "crossover", "models"])]
    combine: Option<Rate>,

    /// Message sizes and ranges: 1KiB,1000003 or 1KiB..4MiB (doubling) or 1KiB..4MiB:4 (times 4)
    #[arg(long, value_name = "SIZES", default_value = "1KiB..4MiB:4", conflicts_with = "against")]
    bytes: String,

    /// What to predict: names with their best segment size, or with the one given, as in chain,binary:segment=4KiB
    /// [default: all, and multicast]
    #[arg(long, value_name = "LIST", conflicts_with = "against")]
    algorithms: Option<String>,

    /// Show the slower algorithms too, not only the best few of each size
    #[arg(long, conflicts_with_all = ["against", "crossover", "models"])]
    all: bool,

    /// Datagrams of a multicast that each node misses, in percent
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = percentage, conflicts_with_all = ["against", "models"])]
    loss: f64,

    /// The network between the nodes does not carry multicast
    #[arg(long, conflicts_with_all = ["against", "models"])]
    no_multicast: bool,

    /// Tell from how many nodes on multicast is ahead, up to --ranks of them on one switch
    #[arg(long, conflicts_with_all = ["against", "models", "svg", "topology", "hosts", "no_multicast"])]
    crossover: bool,

    /// Show the models fitted to the parameters, with how well they fit, and where there are ranks the papers' closed forms
    #[arg(long, conflicts_with_all = ["against", "algorithms", "svg"])]
    models: bool,

    /// Hold predictions against what `polycast bench --json` has measured
    #[arg(long, value_name = "RESULTS")]
    against: Option<PathBuf>,

    /// Results of the nodes among themselves, one rank each, by the same trees and segments: what two-level broadcasts in --against
    /// take is held against them, and not against predictions [default: predicted]
    #[arg(long, value_name = "RESULTS", requires = "against")]
    between: Option<PathBuf>,

    /// Draw the times, or the predicted over the measured ones, into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What is predicted in seconds.
const MOST_NODES: u32 = 1024;

/// How many are shown of each size, unless all are asked for: the best, and how close the next ones are.
const ROWS_OF_A_SIZE: usize = 4;

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    let input = Input::read(&args.params, FileKind::Parameters)?;
    let parameters = Parameters::parse_all(&input.text, &input.name)?;
    let is_of_broadcasts = args.models || args.crossover || args.against.is_some();
    if args.collective != Collective::Broadcast && is_of_broadcasts {
        let expected = "expected --collective bcast, of which there are closed forms and measurements";
        return Err(format!("--collective {}: {expected}", args.collective).into());
    }
    let idle = [
        ("--root", args.root > 0 && !args.collective.has_root()),
        ("--combine", args.combine.is_some() && !args.collective.combines()),
        ("--loss", args.loss > 0.0 && args.collective != Collective::Broadcast),
        ("--no-multicast", args.no_multicast && args.collective != Collective::Broadcast),
    ];
    if let Some((option, _)) = idle.into_iter().find(|(_, is_idle)| *is_idle) {
        return Err(format!("{option} changes nothing with --collective {}", args.collective).into());
    }
    match &args.against {
        Some(results) => hold_against(&args, &parameters, results),
        None if args.models => show_models(&args, &parameters),
        None if args.crossover => show_crossover(&args, &parameters),
        None => predict(&args, &parameters),
    }
}

fn predict(args: &Args, parameters: &Parameters) -> Outcome {
    let sizes = rising_sizes(&args.bytes)?;
    let placed = placed(args)?;
    let mut predictor = predictor(&placed, parameters, args.root)?.loss(args.loss);
    if let Some(rate) = args.combine {
        let combine_ns_per_byte = 8e9 / rate.bits_per_second() as f64;
        predictor = predictor.work(Work { combine_ns_per_byte, ..Work::default() });
    }
    let comparisons = compare(&mut predictor, args, &sizes)?;
    // Who names algorithms wants to see them.
    let most_rows = if args.all || args.algorithms.is_some() { usize::MAX } else { ROWS_OF_A_SIZE };
    let page = table::Page {
        collective: args.collective,
        parameters,
        placed: &placed,
        predictor: &predictor,
        comparisons: &comparisons,
        most_rows,
        levels: mixed::levels(args.collective, &placed, parameters, Rank(args.root), &sizes),
    };
    print(&if args.json { page.json()? } else { page.text() })?;
    if let Some(file) = &args.svg {
        write_file(file, &chart::of_times(&page)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn placed(args: &Args) -> Result<Placed, Box<dyn std::error::Error>> {
    place::placed(args.topology.as_deref(), args.hosts.as_deref(), args.ranks, args.ranks_per_host)
}

fn rising_sizes(text: &str) -> Result<Vec<Bytes>, Box<dyn std::error::Error>> {
    let mut sizes = sizes::parse(text)?;
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

/// Without anything that says how many ranks there are, the models alone.
fn show_models(args: &Args, parameters: &Parameters) -> Outcome {
    let sizes = rising_sizes(&args.bytes)?;
    let mut predictor = match placed(args) {
        Ok(placed) if placed.host_of.len() > 1 => Some(predictor(&placed, parameters, args.root)?),
        Ok(_) => None,
        Err(error) if matches!(error.downcast_ref(), Some(place::PlaceError::Nothing)) => None,
        Err(error) => return Err(error),
    };
    let models = models::Models::new(parameters, predictor.as_mut().map(|predictor| (predictor, &sizes[..])));
    print(&if args.json { models.json()? } else { models.text() })?;
    Ok(ExitCode::SUCCESS)
}

/// Nodes of which each has a rank, on one switch.
fn show_crossover(args: &Args, parameters: &Parameters) -> Outcome {
    let sizes = rising_sizes(&args.bytes)?;
    let most = args.ranks.ok_or("--crossover: expected --ranks, the most nodes")?;
    if !(2..=MOST_NODES).contains(&most) {
        return Err(format!("--ranks {most}: expected 2 to {MOST_NODES} with --crossover").into());
    }
    let found = crossover::find(&sizes, most, |nodes| {
        let placed = place::placed(None, None, Some(nodes), None)?;
        compare(&mut predictor(&placed, parameters, args.root)?.loss(args.loss), args, &sizes)
    })?;
    if let (false, Some(list)) = (found.iter().all(Crossover::has_both), &args.algorithms) {
        return Err(
            format!("--crossover: expected multicast and others in --algorithms, found {list}").into()
        );
    }
    match args.json {
        true => print_json(&serde_json::json!({ "most_nodes": most, "sizes": found }))?,
        false => print(&crossover::text(&found, most))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn hold_against(args: &Args, parameters: &Parameters, file: &Path) -> Outcome {
    let input = Input::read(file, FileKind::Results)?;
    let mut results = results::Results::parse(&input.text, &input.name)?;
    let hosts = args.hosts.clone().unwrap_or_else(|| results.hosts.clone());
    let placed = place::placed(args.topology.as_deref(), Some(&hosts), args.ranks, None)?;
    let (ranks, measured) = (placed.host_of.len(), results.points.len());
    results.points.retain(|point| point.ranks.is_none_or(|of_point| of_point == ranks));
    if results.points.len() < measured {
        let fewer = measured - results.points.len();
        eprintln!(
            "polycast: {fewer} measurements of another number of ranks are left out: predictions are for {ranks}"
        );
    }
    let between = args.between.as_deref().map(|file| {
        let input = Input::read(file, FileKind::Results)?;
        Ok::<_, Box<dyn std::error::Error>>(results::Results::parse(&input.text, &input.name)?)
    });
    let between = between.transpose()?;
    let between = between.as_ref().map(|results| &results.points[..]);
    let comparison = against::Against::new(&results, between, parameters, &placed)?;
    print(&if args.json { comparison.json()? } else { comparison.text() })?;
    if let Some(file) = &args.svg {
        write_file(file, &chart::of_errors(&comparison)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn predictor(placed: &Placed, parameters: &Parameters, root: u32) -> Result<Predictor, RootError> {
    let ranks = placed.host_of.len();
    if root as usize >= ranks {
        return Err(RootError { root, ranks });
    }
    Ok(Predictor::new(placed, parameters, Rank(root)))
}

/// A root that is not there.
#[derive(Debug, thiserror::Error)]
#[error("--root {root}: expected a rank below {ranks}, the number of ranks")]
struct RootError {
    root: u32,
    ranks: usize,
}

/// What was asked for, for all sizes.
fn compare(
    predictor: &mut Predictor,
    args: &Args,
    sizes: &[Bytes],
) -> Result<Vec<Comparison>, Box<dyn std::error::Error>> {
    if args.collective != Collective::Broadcast {
        return collectives::compare(predictor, args.collective, args.algorithms.as_deref(), sizes);
    }
    let mut asked = match &args.algorithms {
        Some(list) => place::asked(&variant::parse(Operation::Bcast, list)?)?,
        None => place::Asked::everything(),
    };
    asked.best_of.retain(|algorithm| !args.no_multicast || algorithm.entry.has_schedules());
    if asked.best_of.is_empty() && asked.exactly.is_empty() {
        return Err("--no-multicast: expected other algorithms, found multicast alone in --algorithms".into());
    }
    let mut comparisons = cost::compare(predictor, &asked.best_of, sizes);
    for comparison in &mut comparisons {
        for algorithm in &asked.exactly {
            comparison.predicted.push(cost::Predicted::of(predictor, algorithm, comparison.bytes));
        }
        comparison.predicted.sort_by_key(|predicted| predicted.time);
    }
    Ok(comparisons)
}

/// Predicted by the same form that a job would choose by.
fn choice_of(text: &str) -> Option<Choice> {
    text.parse().ok()
}
