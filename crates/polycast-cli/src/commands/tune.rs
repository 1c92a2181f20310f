//! `polycast tune`.

mod native;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::HumanDuration;
use polycast_core::network::Network;
use polycast_core::policy::tune::{self, Effort, Found, Measured, Race, candidates, promising};
use polycast_core::policy::{Capabilities, Choice, Collective, CommunicatorShape, Table};
use polycast_core::units::{Bytes, Nanos};
use polycast_lab::Lab;

use super::bench::{Operations, PRELOAD, Sizes, parse_operations, parse_sizes, variables};
use super::job_args::JobArgs;
use super::{Outcome, beside, interruption, print, write_file};
use crate::bench::arrival::{Arrival, Pattern, Root, parse_duration};
use crate::bench::fidelity::Fidelity;
use crate::bench::operation::Operation;
use crate::bench::plan::{ClockMethod, Links, Method, Plan};
use crate::bench::point::Point;
use crate::bench::report::Report;
use crate::bench::session::Session;
use crate::bench::variant::{MAX_VARIANTS, Variant};
use crate::bench::view::Silent;
use crate::install::Installation;
use crate::jobs::target::JobTarget;
use crate::mpi::{Abi, Mpi};
use crate::native::Format;
use crate::network::{self, KnownParameters, KnownTopology};
use crate::tune::{Key, Record, Store, map};

const EXAMPLES: &str = "\
Examples:
  polycast tune --hosts n[0-7]:4 -o cluster.toml
  polycast tune --lab hosts=8,rate=100mbit --collective bcast,allreduce \\
    --sizes 1KiB..1MiB:4 --budget 5m -o cluster.toml
  polycast tune --native --mpi openmpi --hosts n[0-7] -o openmpi.rules

Each size is a race: all ways are measured for a short time, in one job and by
turns; who is slower than the best one beyond both intervals is out, the others
are measured for twice the time. Segment sizes next to the best one enter while
they may win. Stock stays wherever nothing is faster beyond the intervals.

The table has the rules that were found for this number of nodes and ranks, with
their measurements, and behind them the built-in ones. Jobs take it by
POLYCAST_TABLE=cluster.toml; `polycast explain --table cluster.toml` shows it.
What was found is kept in FILE.found as it comes: the next run with the same
hosts, MPI and build goes on there.

Exit status: 0 if the table was written; 1 if not; 130 if it was interrupted,
with a table of what there is.";

/// What a short message takes in a lab, for predictions of what cannot win.
const LAB_LATENCY: Nanos = Nanos::from_micros(50);

/// Arguments of `polycast tune`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The operations: all, or a list of bcast, scatter, gather, allgather, alltoall, barrier, reduce, allreduce
    #[arg(long, value_name = "LIST", default_value = "bcast", value_parser = parse_operations)]
    collective: Operations,
    /// Sizes of the largest buffer of a rank, as for `polycast bench`; where two neighbours are served best in different ways, sizes between
    /// them are added
    #[arg(long, value_name = "SIZES", default_value = "1KiB..4MiB:4", value_parser = parse_sizes)]
    sizes: Sizes,
    /// Time in all; what is left of it is shared by the sizes that are left
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_duration)]
    budget: Duration,
    /// The shortest time for which a way is measured; the longest is eight times that
    #[arg(long, value_name = "TIME", default_value = "150ms", value_parser = parse_duration)]
    time: Duration,
    /// Measure all ways with all segment sizes for the longest time, whatever it takes: for comparison
    #[arg(long, conflicts_with = "budget")]
    exhaustive: bool,
    /// Measure Open MPI's own algorithms, segments and fan-outs, one launch each, and write a file for it: no polycast is needed where it is
    /// used
    #[arg(long, value_name = "FORMAT", conflicts_with = "exhaustive", num_args = 0..=1, require_equals = true, default_missing_value = "openmpi")]
    native: Option<Format>,
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    topology: KnownTopology,
    #[command(flatten)]
    parameters: KnownParameters,
    /// The table, or the file for the stock library
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    if let Some(format) = args.native {
        return native::run(&args, format);
    }
    // Allgatherv is served by what serves allgather.
    let operations: Vec<Operation> =
        args.collective.iter().copied().filter(|operation| *operation != Operation::Allgatherv).collect();
    let mpi = args.job.mpi()?;
    let installation = Installation::find()?;
    installation.require_door(Abi::from(mpi.family()))?;
    let program = args.job.measuring_program(&installation, &mpi)?;
    let mut variables = variables(&args.job, &args.topology, &args.parameters, &installation, &mpi)?;
    let mut store = Store::open(&beside(&args.output, ".found"))?;
    let interrupted = interruption()?;
    let target = args.job.target()?;
    target.lab().into_iter().for_each(|lab| network::tell_of_lab(&mut variables, lab));
    let shape = shape(&target)?;
    let mut rules = Vec::new();
    let mut text = String::new();
    let began = Instant::now();
    for (index, operation) in operations.iter().enumerate() {
        let key = key(&args, &mpi, &target, shape, *operation);
        let left = args.budget.saturating_sub(began.elapsed()) / (operations.len() - index) as u32;
        let mut tuning = Tuning {
            args: &args,
            mpi: &mpi,
            target: &target,
            program: &program,
            variables: &variables,
            shape,
            operation: *operation,
            key,
            ends: (!args.exhaustive).then(|| Instant::now() + left),
            interrupted: &interrupted,
        };
        let found = tuning.run(&mut store)?;
        if found.is_empty() {
            continue;
        }
        text += &map(operation.name(), &found);
        rules.extend(tune::rules(operation.collective(), shape, &found));
    }
    if rules.is_empty() {
        return Err("nothing was measured: no table is written".into());
    }
    let table = Table::of_rules("tuned", head(&mpi, &target, shape), rules, Table::shipped());
    write_file(&args.output, table.to_string())?;
    print(&format!("{text}\nwritten: {}\n", args.output.display()))?;
    Ok(if interrupted.load(Ordering::Relaxed) { ExitCode::from(130) } else { ExitCode::SUCCESS })
}

fn shape(target: &JobTarget) -> Result<CommunicatorShape, Box<dyn Error>> {
    let hosts = target.hosts();
    let nodes = hosts.len().max(1) as u32;
    let ranks = target.ranks() as u32;
    let fullest = hosts.iter().map(|(_, ranks)| *ranks as u32).max().unwrap_or(ranks);
    if ranks < 2 {
        return Err(
            "expected at least two ranks, found 1: a collective of one rank is no matter of a network".into(),
        );
    }
    Ok(CommunicatorShape { ranks, nodes, ranks_per_node: fullest, switches: 1, network: None })
}

fn place(target: &JobTarget) -> String {
    match (target.lab().map(Lab::plan), target.hosts()) {
        (Some(plan), _) => format!(
            "lab of {} hosts, switches: {}, {}, bursts of {} bytes, loss {} ppm",
            plan.hosts.len(),
            plan.switches.len(),
            plan.slowest_rate(),
            plan.burst_bytes,
            plan.loss_per_million
        ),
        (None, []) => "this machine".to_owned(),
        (None, hosts) => hosts.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(","),
    }
}

fn key(args: &Args, mpi: &Mpi, target: &JobTarget, shape: CommunicatorShape, operation: Operation) -> Key {
    Key {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        mpi: mpi.to_string(),
        place: place(target),
        ranks: shape.ranks,
        nodes: shape.nodes,
        ranks_per_node: shape.ranks_per_node,
        collective: operation.name().to_owned(),
        exhaustive: args.exhaustive,
    }
}

fn head(mpi: &Mpi, target: &JobTarget, shape: CommunicatorShape) -> Vec<String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    vec![
        format!(
            "Made by polycast {} on {}: {}",
            env!("CARGO_PKG_VERSION"),
            crate::measure::time_stamp(),
            words.join(" ")
        ),
        format!(
            "{} ranks on {} nodes ({}), {}. Medians with 95 % intervals; behind the rules for these ranks and nodes stand",
            shape.ranks,
            shape.nodes,
            place(target),
            mpi.to_string().split(" (").next().unwrap_or_default()
        ),
        "the built-in ones. The format is documented in docs/table.md.".to_owned(),
    ]
}

/// The search for one collective.
struct Tuning<'a> {
    args: &'a Args,
    mpi: &'a Mpi,
    target: &'a JobTarget,
    program: &'a Path,
    variables: &'a [(String, String)],
    shape: CommunicatorShape,
    operation: Operation,
    key: Key,
    /// No race begins later.
    ends: Option<Instant>,
    interrupted: &'a Arc<AtomicBool>,
}

impl Tuning<'_> {
    /// Everything that was found, now or earlier, by rising bytes of a block.
    fn run(&mut self, store: &mut Store) -> Result<Vec<(u64, Found)>, Box<dyn Error>> {
        let sizes: Vec<u64> = match self.operation {
            Operation::Barrier => vec![0],
            _ => self.args.sizes.iter().map(|bytes| bytes.0).collect(),
        };
        let kept = store.of(&self.key).iter().map(|record| record.bytes).collect::<Vec<_>>();
        let mut todo: Vec<(u64, Option<Vec<Choice>>)> =
            sizes.into_iter().filter(|bytes| !kept.contains(bytes)).map(|bytes| (bytes, None)).collect();
        todo.reverse();
        let mut is_refined = false;
        while !self.is_over() {
            let Some((bytes, among)) = todo.pop() else {
                if is_refined {
                    break;
                }
                todo = self.between(store);
                is_refined = todo.is_empty();
                continue;
            };
            let began = Instant::now();
            let share =
                self.ends.map(|ends| began + ends.saturating_duration_since(began) / (todo.len() + 1) as u32);
            let Some((block_bytes, found)) = self.race(bytes, among, share)? else { break };
            let record = Record::new(&self.key, (bytes, block_bytes), &found, began.elapsed().as_secs_f64());
            store.add(record)?;
            self.tell(bytes, &found, began.elapsed(), todo.len());
        }
        let of_record = |record: &&Record| Some((record.block_bytes, record.found(self.collective())?));
        Ok(store.of(&self.key).iter().filter_map(of_record).collect())
    }

    fn is_over(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || self.ends.is_some_and(|ends| Instant::now() > ends)
    }

    fn collective(&self) -> Collective {
        self.operation.collective()
    }

    /// Sizes between neighbours that are served best in different ways, with these two and stock as the only candidates.
    fn between(&self, store: &Store) -> Vec<(u64, Option<Vec<Choice>>)> {
        let records = store.of(&self.key);
        let pairs = records.windows(2).filter(|two| two[0].best != two[1].best);
        pairs
            .filter_map(|two| {
                let bytes = tune::between(two[0].bytes, two[1].bytes)?;
                let choices =
                    two.iter().filter_map(|record| Choice::read(self.collective(), &record.best).ok());
                let mut among = vec![Choice::Stock];
                among.extend(choices.filter(|choice| *choice != Choice::Stock));
                Some((bytes, Some(among)))
            })
            .collect()
    }

    /// A lab's links are known; of other networks nothing is said beforehand.
    fn network(&self) -> Option<Network> {
        let rate = self.target.lab().map(|lab| lab.plan().slowest_rate());
        rate.map(|rate| Network {
            rate: rate.to_string().parse().ok(),
            latency: Some(LAB_LATENCY),
            multicast_rate: None,
        })
    }

    /// The bytes of a block and what was found; `None` if it was interrupted before there was anything.
    fn race(
        &self,
        bytes: u64,
        among: Option<Vec<Choice>>,
        ends: Option<Instant>,
    ) -> Result<Option<(u64, Found)>, Box<dyn Error>> {
        let all = || candidates(self.collective(), self.shape, bytes, Capabilities::ALL);
        let block = self.operation.block_bytes(bytes, self.shape.ranks as usize);
        let some = || promising(all(), self.collective(), self.shape, self.network(), block);
        let mut race = match (among, self.args.exhaustive) {
            (Some(among), _) => Race::new(among, bytes),
            (None, true) => Race::exhaustive(all(), bytes),
            (None, false) => Race::new(some(), bytes),
        };
        let mut block_bytes = None;
        while let Some((choices, effort)) = race.next() {
            let is_late = ends.is_some_and(|ends| Instant::now() > ends) && block_bytes.is_some();
            if is_late || self.interrupted.load(Ordering::Relaxed) {
                break;
            }
            for some in choices.chunks(MAX_VARIANTS) {
                let points = self.measure(bytes, some, effort)?;
                block_bytes = points.first().map(|point| point.block_bytes).or(block_bytes);
                let time = |choice: &Choice| {
                    let name = Variant::from(*choice).to_string();
                    (*choice, points.iter().find(|point| point.variant == name).and_then(measured))
                };
                race.took(&some.iter().map(time).collect::<Vec<_>>());
            }
        }
        Ok(block_bytes.map(|block_bytes| (block_bytes, race.found())))
    }

    fn measure(&self, bytes: u64, choices: &[Choice], effort: Effort) -> Result<Vec<Point>, Box<dyn Error>> {
        let on = On {
            target: self.target,
            mpi: self.mpi,
            program: self.program,
            variables: self.variables.to_vec(),
            interrupted: self.interrupted,
        };
        let variants = choices.iter().map(|choice| Variant::from(*choice)).collect();
        let report = on.measure(self.operation, vec![Bytes(bytes)], variants, self.args.time * effort.0)?;
        if report.wrong {
            return Err(format!(
                "a rank had wrong data after a {} of {}: no table is written; `polycast bench --collective {} --sizes {bytes} \
                 --variants …` says which way it was",
                self.operation,
                Bytes(bytes),
                self.operation.name()
            )
            .into());
        }
        Ok(report.points)
    }

    fn tell(&self, bytes: u64, found: &Found, took: Duration, left: usize) {
        let gain = found.time.zip(found.stock).map(|(time, stock)| stock.median_us / time.median_us);
        let gain = gain
            .filter(|_| found.best != Choice::Stock)
            .map_or_else(String::new, |gain| format!(", {gain:.2} × stock"));
        let time_left = self.ends.map(|ends| ends.saturating_duration_since(Instant::now()));
        let time_left =
            time_left.map_or_else(String::new, |left| format!(", {} at most", HumanDuration(left)));
        eprintln!(
            "{} {}: {}{gain} ({} ways, {:.0} s); {left} more {}{time_left}",
            self.operation,
            Bytes(bytes),
            found.best,
            found.measured,
            took.as_secs_f64(),
            if left == 1 { "size" } else { "sizes" }
        );
    }
}

/// Where something is measured.
struct On<'a> {
    target: &'a JobTarget,
    mpi: &'a Mpi,
    program: &'a Path,
    /// Of the job; polycast is in it if they preload it.
    variables: Vec<(String, String)>,
    interrupted: &'a Arc<AtomicBool>,
}

impl On<'_> {
    /// In one launch, by the clock, without a word on the terminal.
    fn measure(
        self,
        operation: Operation,
        sizes: Vec<Bytes>,
        variants: Vec<Variant>,
        time: Duration,
    ) -> Result<Report, Box<dyn Error>> {
        let plan = Plan {
            rank_counts: Vec::new(),
            operation,
            sizes,
            variants,
            time,
            launches: 1,
            arrival: Arrival { pattern: Pattern::None, delay: None, file: None },
            root: Root::Rank(0),
            method: Method::Clock,
            cold: false,
            clock: ClockMethod::Auto,
            corrupt: None,
        };
        let mut report = Report::new(Box::new(Silent), None, None, 1)?;
        let session = Session {
            plan: &plan,
            target: self.target,
            mpi: self.mpi,
            program: self.program.to_owned(),
            preloaded: self.variables.iter().any(|(name, _)| name == PRELOAD),
            variables: self.variables,
            links: Links::default(),
            fidelity: Fidelity::default(),
            rate_choice: None,
            is_last: true,
            interrupted: Arc::clone(self.interrupted),
        };
        session.run(&mut report)?;
        Ok(report)
    }
}

/// What a point says of a way; `None` if another one served, where this one cannot be had, or there is no time.
fn measured(point: &Point) -> Option<Measured> {
    let served = point.algorithm.as_deref().unwrap_or(&point.variant);
    let median_us = point.median_us.filter(|_| served == point.variant)?;
    let (low, high) = (point.ci_low_us.unwrap_or(median_us), point.ci_high_us.unwrap_or(median_us));
    Some(Measured { median_us, low_us: low, high_us: high, samples: point.samples })
}
