//! `polycast tune`.

mod beforehand;
pub(super) mod native;
mod search;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use polycast_core::policy::{CommunicatorShape, Table, tune};
use polycast_lab::Lab;

use self::beforehand::Beforehand;
use self::search::Tuning;
use super::bench::{Operations, Sizes, parse_operations, parse_sizes, variables};
use super::{Outcome, beside, interruption, print, require_writable, write_file};
use crate::bench::arrival::parse_duration;
use crate::bench::operation::Operation;
use crate::install::{Installation, LD_PRELOAD};
use crate::job_args::JobArgs;
use crate::jobs::target::JobTarget;
use crate::mpi::{Abi, Mpi};
use crate::native::Target;
use crate::network::{self, KnownParameters, KnownTopology};
use crate::settings::CACHE;
use crate::terminal::paragraph;
use crate::tune::{Key, Map, Store};
use crate::usage::wrong;

const EXAMPLES: &str = "\
Examples:
  polycast tune --hosts n[0-7]:4 -o cluster.toml
  polycast tune --lab hosts=8,rate=100mbit --collective bcast,allreduce \\
    --sizes 1KiB..1MiB:4 --budget 5m -o cluster.toml
  polycast tune --hosts n[0-15] --shapes 4,8,16,16x2 -o cluster.toml
  polycast tune --native --mpi openmpi --hosts n[0-7] -o openmpi.rules
  polycast tune --native=mpich --mpi mpich --hosts n[0-7] -o mpich.json

Messages between hosts and what ranks of one share are measured first, for a
twentieth of the budget at most; what cannot win by them is left out. They stand
in FILE.params.json, which `polycast predict --params` reads, too.

Each size is a race: all ways are measured for a short time, in one job and by
turns; who is slower than the best one beyond both intervals is out, the others
are measured for twice the time. Segments, overlaps, buffers and radices next to
the best ones enter while they may win. Stock stays wherever nothing is faster
beyond the intervals.

The table has the rules that were found for this number of nodes and ranks, with
their measurements, and behind them the built-in ones. Jobs take it by
POLYCAST_TABLE=cluster.toml; `polycast explain --table cluster.toml` shows it.
What was found is kept in FILE.found as it comes: the next run with the same
hosts, MPI, settings and version goes on there, with the same FILE.params.json.

Exit status: 0 if the table was written; 1 if not; 130 if it was interrupted,
with a table of what there is, or none if nothing was measured.";

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
    /// The shortest time for which a way is measured; the longest is four times that, 16 where it is in doubt whether the MPI is beaten
    #[arg(long, value_name = "TIME", default_value = "150ms", value_parser = parse_duration)]
    time: Duration,
    /// Measure all ways with all segments, overlaps, buffers and radices for the longest time, whatever it takes: for comparison
    #[arg(long, conflicts_with = "budget")]
    exhaustive: bool,
    /// Measure the own algorithms, segments and fan-outs of Open MPI (openmpi, openmpi-json) or MPICH (mpich), one launch each, and write
    /// a file for it: no polycast is needed where it is used
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["exhaustive", "topology", "no_topology", "params"], num_args = 0..=1, require_equals = true, default_missing_value = "openmpi")]
    native: Option<Target>,
    /// Several sizes of communicators in one table: hosts, or hosts x ranks on each, such as 2,4,8x2: the first ones of all
    #[arg(long, value_name = "SHAPES", value_parser = parse_shapes, conflicts_with = "native")]
    shapes: Option<Shapes>,
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
    if let Some(library) = args.native {
        return native::run(&args, library);
    }
    require_writable(&Some(args.output.clone()))?;
    let operations = operations(&args).map_err(wrong)?;
    let mpi = args.job.mpi()?;
    let installation = Installation::find()?;
    installation.require_door(Abi::from(mpi.family()))?;
    let program = args.job.measuring_program(&installation, &mpi)?;
    let mut variables = variables(&args.job, &args.topology, &args.parameters, &installation, &mpi)?;
    let mut store = Store::open(&beside(&args.output, ".found")).map_err(|problem| {
        format!("{problem}; what is found is kept there as it comes, beside the file of --output")
    })?;
    let interrupted = interruption()?;
    let mut target = args.job.target()?;
    let settings = settings(&args, &target, &variables);
    let topology = beforehand::topology(&variables, &target)?;
    target.lab().into_iter().for_each(|lab| network::tell_of_lab(&mut variables, lab));
    let shapes = match &args.shapes {
        Some(shapes) => shapes.iter().map(|shape| Some(*shape)).collect(),
        None => vec![None],
    };
    // All of them, before the first takes its time.
    shapes.iter().try_for_each(|shape| narrow(&mut target, *shape).map(drop))?;
    target.widen();
    let began = Instant::now();
    let (args, mpi, program, interrupted) = (&args, &mpi, &program, &interrupted);
    let beforehand = Beforehand { args, mpi, program, variables: &variables, interrupted };
    let network = beforehand.network(&mut target, topology)?;
    let (mut rules, mut map, mut told) = (Vec::new(), Map::default(), Vec::new());
    let wanted =
        shapes.len() * operations.iter().map(|operation| sizes(args, *operation).len()).sum::<usize>();
    let mut measured = 0;
    let mut races = shapes.len() * operations.len();
    for of_hosts in shapes {
        let shape = narrow(&mut target, of_hosts)?;
        let known = network.known(&target, shape);
        let job = RefCell::new(None);
        told.push(format!("{} ranks on {} nodes ({})", shape.ranks, shape.nodes, place(&target)));
        for operation in &operations {
            let left = args.budget.saturating_sub(began.elapsed()) / races as u32;
            races -= 1;
            let tuning = Tuning {
                args,
                mpi,
                target: &target,
                program,
                variables: &variables,
                shape,
                known: known.as_ref(),
                operation: *operation,
                key: Key { settings: settings.clone(), ..key(args, mpi, &target, shape, *operation) },
                ends: (!args.exhaustive).then(|| Instant::now() + left),
                interrupted,
                job: &job,
            };
            let found = tuning.run(&mut store)?;
            let by_block: Vec<_> = found.iter().map(|size| (size.block_bytes, size.found.clone())).collect();
            rules.extend(tune::rules(operation.collective(), shape, &by_block));
            measured += found.len();
            map.add(operation.name(), shape, found);
        }
        if let Some(job) = job.into_inner() {
            job.shutdown()?;
        }
    }
    if rules.is_empty() {
        return nothing_measured(interrupted);
    }
    if interrupted.load(Ordering::Relaxed) {
        let found = beside(&args.output, ".found");
        eprintln!("polycast: interrupted: the same command goes on after what is in {}", found.display());
    }
    let missing = incomplete(measured, wanted, interrupted);
    let head = head(mpi, &told, missing.as_deref());
    let notes = vec![
        format!("{}; {}", told.join(", "), mpi.to_string().split(" (").next().unwrap_or_default()),
        format!("polycast {}, {}", env!("CARGO_PKG_VERSION"), crate::time_stamp::time_stamp()),
    ];
    let table = Table::of_rules("tuned", head, rules, Table::shipped());
    let text = table.to_string();
    // There may be too many rules, or bytes.
    if let Err(error) = Table::parse(&text, "the table") {
        return Err(format!(
            "nothing is written, for nobody could read {error}; the same command with fewer --shapes, --collective or --sizes takes what it \
             needs from {}",
            beside(&args.output, ".found").display()
        )
        .into());
    }
    write_file(&args.output, text)?;
    let picture = beside(&args.output, ".svg");
    write_file(&picture, map.svg(&notes))?;
    let mark = missing.map_or(String::new(), |missing| format!("\n{}\n", paragraph(&missing)));
    print(&format!("{}{mark}\nwritten: {}, {}\n", map.text(), args.output.display(), picture.display()))?;
    Ok(if interrupted.load(Ordering::Relaxed) { ExitCode::from(130) } else { ExitCode::SUCCESS })
}

/// The operations that are tuned: not allgatherv, which the rules of allgather serve.
fn operations(args: &Args) -> Result<Vec<Operation>, String> {
    let all = args.collective.iter().copied();
    let operations: Vec<Operation> = all.filter(|operation| *operation != Operation::Allgatherv).collect();
    match operations.is_empty() {
        true => {
            Err("--collective: expected allgather, whose rules serve allgatherv, found allgatherv alone"
                .into())
        }
        false => Ok(operations),
    }
}

/// The sizes that were asked for, rising.
fn sizes(args: &Args, operation: Operation) -> Vec<u64> {
    let asked = || args.sizes.iter().map(|bytes| bytes.0).collect::<BTreeSet<u64>>();
    if operation == Operation::Barrier { vec![0] } else { asked().into_iter().collect() }
}

/// Ends the verb when nothing was measured, so that there is nothing to write.
fn nothing_measured(interrupted: &AtomicBool) -> Outcome {
    if interrupted.load(Ordering::Relaxed) {
        eprintln!("polycast: interrupted before anything was measured: nothing is written");
        return Ok(ExitCode::from(130));
    }
    Err("nothing was measured: nothing is written; a longer --budget may help".into())
}

/// A shape to tune: the first `hosts` of the hosts, with so many ranks on each, or as many as they
/// have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    hosts: usize,
    ranks_per_host: Option<usize>,
}

/// Shapes that are tuned one after the other.
type Shapes = Vec<Shape>;

/// "4,8x2": the first four hosts as they are, and eight with two ranks each.
fn parse_shapes(text: &str) -> Result<Shapes, String> {
    let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
    let of = |one: &str| {
        let (hosts, ranks) = one.split_once('x').map_or((one, None), |(hosts, ranks)| (hosts, Some(ranks)));
        let ranks_per_host = ranks.map(number);
        let shape = Shape { hosts: number(hosts)?, ranks_per_host: ranks_per_host.flatten() };
        (ranks_per_host.is_some() == shape.ranks_per_host.is_some()).then_some(shape)
    };
    let read = |one| {
        of(one).ok_or_else(|| format!("expected hosts, or hosts x ranks on each, as in 4,8x2; found {one:?}"))
    };
    text.split(',').map(|one| read(one.trim())).collect()
}

/// Narrows the target so that further jobs have this shape.
fn narrow(target: &mut JobTarget, of_hosts: Option<Shape>) -> Result<CommunicatorShape, Box<dyn Error>> {
    if let Some(Shape { hosts, ranks_per_host }) = of_hosts {
        target.narrow(hosts, ranks_per_host).map_err(|problem| wrong(format_args!("--shapes: {problem}")))?;
    }
    shape(target)
}

fn shape(target: &JobTarget) -> Result<CommunicatorShape, Box<dyn Error>> {
    let hosts = target.hosts();
    let nodes = hosts.len().max(1) as u32;
    let ranks = target.ranks() as u32;
    let fullest = hosts.iter().map(|(_, ranks)| *ranks as u32).max().unwrap_or(ranks);
    if ranks < 2 {
        return Err(wrong(
            "expected at least two ranks, found 1: a collective of one rank is no matter of a network",
        ));
    }
    Ok(CommunicatorShape::new(ranks, nodes, Some(fullest))?)
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
        settings: Vec::new(),
    }
}

/// The other settings that times depend on: the links of a lab, how long calls are measured, how
/// ranks are started, and what they are told.
fn settings(args: &Args, target: &JobTarget, variables: &[(String, String)]) -> Vec<String> {
    let links = target.lab().map(|lab| {
        let mut digest = DefaultHasher::new();
        format!("{:?}", (&lab.plan().switches, &lab.plan().hosts)).hash(&mut digest);
        format!("links {:016x}", digest.finish())
    });
    let of_installation = [LD_PRELOAD, "LD_LIBRARY_PATH", CACHE];
    let told = variables.iter().filter(|(name, _)| !of_installation.contains(&&name[..]));
    let told = told.map(|(name, value)| format!("{name}={value}"));
    let time = format!("--time {:?}", args.time);
    links.into_iter().chain([time]).chain(args.job.mpiexec_args.clone()).chain(told).collect()
}

/// The mark above all else in a table that lacks sizes; `None` if it lacks none.
fn incomplete(measured: usize, wanted: usize, interrupted: &AtomicBool) -> Option<String> {
    let why = if interrupted.load(Ordering::Relaxed) { "interrupted" } else { "the time was up" };
    (measured < wanted).then(|| {
        format!("incomplete: {why} after {measured} of {wanted} sizes; the same command goes on, and the rules here hold for what was measured")
    })
}

fn head(mpi: &Mpi, told: &[String], incomplete: Option<&str>) -> Vec<String> {
    let words: Vec<String> = crate::command_line::words().into_iter().skip(1).collect();
    let mut lines: Vec<String> = incomplete.map(str::to_owned).into_iter().collect();
    lines.extend([
        format!(
            "Made by polycast {} on {}: {}",
            env!("CARGO_PKG_VERSION"),
            crate::time_stamp::time_stamp(),
            // They are in a comment of a line.
            words.join(" ").replace(char::is_control, " ")
        ),
        format!(
            "{}, {}. Medians with 95 % intervals; behind the rules for these ranks and nodes stand",
            told.join(", "),
            mpi.to_string().split(" (").next().unwrap_or_default()
        ),
        "the built-in ones. The format is documented in docs/table.md.".to_owned(),
    ]);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_lacks_sizes_says_so_first() {
        let [goes_on, is_over] = [false, true].map(AtomicBool::new);
        assert_eq!(incomplete(6, 6, &is_over), None);
        let why = incomplete(1, 6, &is_over).unwrap();
        assert!(why.starts_with("incomplete: interrupted after 1 of 6 sizes"), "{why}");
        assert!(incomplete(1, 6, &goes_on).unwrap().contains("the time was up after 1 of 6"));
    }

    #[test]
    fn shapes_are_hosts_with_ranks() {
        let shape = |hosts, ranks_per_host| Shape { hosts, ranks_per_host };
        assert_eq!(parse_shapes("4, 8x2"), Ok(vec![shape(4, None), shape(8, Some(2))]));
        for wrong in ["", "4,", "0", "4x0", "4x", "x2", "4x2x2", "many"] {
            assert!(parse_shapes(wrong).unwrap_err().contains("as in 4,8x2"), "{wrong}");
        }
    }
}
