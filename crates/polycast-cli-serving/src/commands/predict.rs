//! `polycast predict`.

mod against;
mod chart;
mod collectives;
mod crossover;
pub(super) mod mixed;
mod models;
mod results;
mod table;

pub use self::against::AgainstError;
pub use self::collectives::NotPredictable;
use self::collectives::{Collectives, sizes_of};
use self::crossover::Crossover;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use polycast_core::algorithm::Algorithm;
use polycast_core::collective::Collective;
use polycast_core::cost::{Comparison, Predictor, Work};
use polycast_core::files::FileKind;
use polycast_core::model::{LinkClass, Parameters, Point};
use polycast_core::topology::Placed;
use polycast_core::units::statistics::{quantile, sorted};
use polycast_core::units::{Bytes, Rank, Rate};

use super::{Outcome, print, require_writable, write_file};
use crate::numbers::{percentage, whole};
use crate::place;
use crate::sizes;
use crate::terminal::paragraph;
use crate::topology_input::Input;
use crate::usage::wrong;

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
  polycast predict --params cluster.json --collective bcast,allreduce --ranks 32
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

    /// The operations, named as their MPI functions: all, or a list; of scatter, gather, allgather and alltoall the bytes are those of a
    /// block [default: bcast; of --against all that were measured]
    #[arg(long, value_name = "LIST", value_parser = collectives::parse)]
    collective: Option<Collectives>,

    /// How fast a rank combines data of a reduction [default: 40gbit, which nobody measured]
    #[arg(long, value_name = "RATE", conflicts_with_all = ["against", "crossover", "models"])]
    combine: Option<Rate>,

    /// Message sizes and ranges: 1KiB,1000003 or 1KiB..4MiB (doubling) or 1KiB..4MiB:4 (times 4)
    #[arg(long, value_name = "SIZES", default_value = "1KiB..4MiB:4", conflicts_with = "against")]
    bytes: String,

    /// What to predict: names with their best segment size, or with the one given, as in chain,binary:segment=4KiB
    /// [default: all, and multicast]. Of several collectives each gets what serves it
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

    /// Tell from how many nodes on multicast is ahead, or else the fastest of most nodes, up to --ranks of them on one switch
    #[arg(long, conflicts_with_all = ["against", "models", "svg", "topology", "hosts", "no_multicast"])]
    crossover: bool,

    /// Show the models fitted to the parameters, with how well they fit, and where there are ranks the papers' closed forms
    #[arg(long, conflicts_with_all = ["against", "algorithms", "svg"])]
    models: bool,

    /// Hold predictions against what `polycast bench --json` has measured
    #[arg(long, value_name = "RESULTS")]
    against: Option<PathBuf>,

    /// Results of the nodes among themselves, one rank each, by the same algorithms and segments: what two levels in --against
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

/// The most nodes for `--crossover`: as many as are predicted in seconds.
const MOST_NODES: u32 = 1024;

/// The rows that are shown for each size unless all are asked for: the best, and how close the next
/// ones are.
const ROWS_OF_A_SIZE: usize = 4;

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    require_writable(&args.svg)?;
    let input = Input::read(&args.params, FileKind::Parameters)?;
    let parameters = Parameters::parse_all(&input.text, &input.name)?;
    let collectives = args.collective.as_deref().unwrap_or(&[Collective::Broadcast]);
    let some = |serves: fn(Collective) -> bool| collectives.iter().copied().any(serves);
    let has_no_broadcast = !some(|one| one == Collective::Broadcast);
    let idle = [
        ("--root", args.root > 0 && !some(Collective::has_root)),
        ("--combine", args.combine.is_some() && !some(Collective::combines)),
        ("--loss", args.loss > 0.0 && has_no_broadcast),
        ("--no-multicast", args.no_multicast && has_no_broadcast),
    ];
    if let Some((option, _)) = idle.into_iter().find(|(_, is_idle)| *is_idle) {
        let named: Vec<&str> = collectives.iter().map(|one| one.name()).collect();
        let named = named.join(",");
        return Err(wrong(format_args!("{option} changes nothing with --collective {named}")));
    }
    if let Some(results) = &args.against {
        return hold_against(&args, &parameters, results);
    }
    let sizes = rising_sizes(&args.bytes)?;
    let asked = args.algorithms.as_deref().map(|list| collectives::asked(collectives, list)).transpose()?;
    let mut answers = Vec::new();
    for (place, &collective) in collectives.iter().enumerate() {
        let algorithms = asked.as_ref().map(|lists| &lists[place][..]);
        // Another collective has what was asked for.
        if algorithms.is_some_and(<[_]>::is_empty) {
            continue;
        }
        let task = Task {
            args: &args,
            parameters: &parameters,
            collective,
            algorithms,
            sizes: sizes_of(collective, &sizes),
            is_first: place == 0,
            is_alone: collectives.len() == 1,
        };
        answers.push(task.answer()?);
    }
    // Without ranks the models have said all.
    answers.retain(|answer| !answer.is_empty());
    print(&match args.json && collectives.len() > 1 {
        true => format!("{{\"collectives\": [\n{}]}}\n", answers.join(",")),
        false => answers.join("\n"),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The question about a collective, with all that its answer needs.
struct Task<'a> {
    args: &'a Args,
    parameters: &'a Parameters,
    collective: Collective,
    algorithms: Option<&'a [Algorithm]>,
    sizes: &'a [Bytes],
    is_first: bool,
    is_alone: bool,
}

type Answer = Result<String, Box<dyn std::error::Error>>;

impl Task<'_> {
    fn answer(&self) -> Answer {
        match self.args {
            args if args.models => self.models(),
            args if args.crossover => self.crossover(),
            _ => self.times(),
        }
    }

    fn times(&self) -> Answer {
        let Task { args, parameters, collective, sizes, .. } = *self;
        let placed = placed(args)?;
        let mut predictor = predictor(&placed, parameters, args.root)?.loss(args.loss);
        if let Some(rate) = args.combine {
            predictor = predictor.work(Work { combine_ns_per_byte: rate.ns_per_byte(), ..Work::default() });
        }
        if self.is_first {
            warn_of_intervals(parameters, predictor.usual_class());
        }
        let comparisons = self.compare(&mut predictor)?;
        // Who names algorithms wants to see them.
        let most_rows = if args.all || args.algorithms.is_some() { usize::MAX } else { ROWS_OF_A_SIZE };
        let page = table::Page {
            collective,
            parameters,
            placed: &placed,
            predictor: &predictor,
            comparisons: &comparisons,
            most_rows,
            levels: mixed::levels(collective, &placed, parameters, Rank(args.root), sizes),
        };
        if let Some(file) = &args.svg {
            if !self.is_alone {
                return Err(wrong("--svg: expected one --collective"));
            }
            write_file(file, &chart::of_times(&page)?)?;
        }
        Ok(if args.json { page.json()? } else { page.text() })
    }

    /// Without anything that says how many ranks there are, the models alone.
    fn models(&self) -> Answer {
        let Task { args, parameters, collective, sizes, .. } = *self;
        let mut predictor = match placed(args) {
            Ok(placed) if placed.host_of.len() > 1 => Some(predictor(&placed, parameters, args.root)?),
            Ok(_) => None,
            Err(error) if matches!(error.downcast_ref(), Some(place::PlaceError::Nothing)) => None,
            Err(error) => return Err(error),
        };
        let classes: Vec<LinkClass> = match &predictor {
            Some(predictor) => vec![predictor.usual_class()],
            None => parameters.classes().map(|(class, _)| class).collect(),
        };
        if self.is_first {
            classes.into_iter().for_each(|class| warn_of_residual(parameters, class));
        }
        let job = predictor.as_mut().map(|predictor| (collective, predictor, sizes));
        let models = models::Models::new(parameters, job);
        Ok(match args.json {
            true => models.json()?,
            false if self.is_first => models.text(),
            // The models are the same.
            false => models.closed_forms(),
        })
    }

    /// Nodes of which each has a rank, on one switch.
    fn crossover(&self) -> Answer {
        let Task { args, parameters, collective, sizes, .. } = *self;
        let most = args.ranks.ok_or_else(|| wrong("--crossover: expected --ranks, the most nodes"))?;
        if !(2..=MOST_NODES).contains(&most) {
            return Err(wrong(format_args!("--ranks {most}: expected 2 to {MOST_NODES} with --crossover")));
        }
        let found = crossover::find(collective, sizes, most, |nodes| {
            let placed = place::placed(None, None, Some(nodes), None)?;
            self.compare(&mut predictor(&placed, parameters, args.root)?.loss(args.loss))
        })?;
        if let (false, Some(list)) = (found.iter().all(Crossover::has_both), &args.algorithms) {
            let expected = match collective {
                Collective::Broadcast => "multicast and others",
                _ => "at least two algorithms",
            };
            return Err(wrong(format_args!(
                "--crossover: expected {expected} in --algorithms, found {list}"
            )));
        }
        let told = serde_json::json!({ "collective": collective.name(), "most_nodes": most, "sizes": found });
        Ok(match args.json {
            true => serde_json::to_string_pretty(&told)? + "\n",
            false => crossover::text(collective, &found, most),
        })
    }

    fn compare(&self, predictor: &mut Predictor) -> Result<Vec<Comparison>, Box<dyn std::error::Error>> {
        collectives::compare(predictor, self.collective, self.algorithms, self.args.no_multicast, self.sizes)
    }
}

/// The greatest relative error of measured points up to which predictions come without a warning:
/// points that are hardly known predict nothing better.
const FARTHEST_OFF: f64 = 0.25;

/// Predictions go between the points that were measured, and beyond them; where these are hardly known, neither are predictions.
fn warn_of_intervals(parameters: &Parameters, class: LinkClass) {
    let reaches = parameters.class(class).gap.points().iter().map(reach);
    let median = quantile(&sorted(reaches.collect()), 0.5).unwrap_or(0.0);
    if median > FARTHEST_OFF {
        let said = format!(
            "polycast: {class}: the 95 % intervals of what was measured reach {:.0} % far: predictions may be as far off; `polycast measure` again \
             when nothing else runs",
            median * 100.0
        );
        eprintln!("{}", paragraph(&said));
    }
}

/// The distance to the far end of a point's interval, as a part of the value.
fn reach(point: &Point) -> f64 {
    (point.high - point.ns).max(point.ns - point.low) / point.ns.abs().max(1.0)
}

/// The simple models draw a line through what was measured.
fn warn_of_residual(parameters: &Parameters, class: LinkClass) {
    let residual = parameters.class(class).hockney().residual;
    if residual > FARTHEST_OFF {
        let said = format!(
            "polycast: {class}: a line misses what was measured by {:.0} %, so Hockney's and LogGP's times may be as far off: the machine was busy, \
             or the link or the MPI changes its way with the size; schedules follow the measured points",
            residual * 100.0
        );
        eprintln!("{}", paragraph(&said));
    }
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
    if let Some(collectives) = &args.collective {
        results.points.retain(|point| collectives.contains(&point.collective()));
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
pub struct RootError {
    root: u32,
    ranks: usize,
}
