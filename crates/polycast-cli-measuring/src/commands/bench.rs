//! `polycast bench`.

mod compare;
mod suite;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use polycast_core::units::Bytes;
use polycast_lab::{Carried, LabError, Rate};

use super::{Outcome, beside as file_beside, interruption, require_writable, write_file};
use crate::bench::arrival::{Arrival, Pattern, Root, parse_duration};
use crate::bench::chart;
use crate::bench::fidelity::Fidelity;
use crate::bench::operation::{Operation, OperationsError};
use crate::bench::plan::{ClockMethod, Links, Method, Plan};
use crate::bench::report::Report;
use crate::bench::session::Session;
use crate::bench::variant::Variant;
use crate::bench::view::Format;
use crate::bench::{beside, crossover, sizes, variant};
use crate::install::{Installation, LD_PRELOAD};
use crate::job_args::JobArgs;
use crate::jobs::RankCounts;
use crate::jobs::target::JobTarget;
use crate::mpi::{Abi, Mpi};
use crate::network::{self, KnownParameters, KnownTopology, Variables};
use crate::numbers::whole;
use crate::plot::PlotError;
use crate::settings;
use crate::terminal::{digits, hanging};
use crate::usage::wrong;

const EXAMPLES: &str = "\
Examples:
  polycast bench --lab hosts=16,rate=20mbit --sizes 1KiB..4MiB:4 \\
    --variants stock,polycast
  polycast bench -n 4 --sizes 64KiB --json results.json \\
    --variants stock,polycast,chain:segment=8KiB
  polycast bench --lab topology=cluster.conf,rate=20mbit --no-topology \\
    --variants stock,chain:segment=4KiB
  polycast bench --hosts a,b,c,d --root rotate --arrival one-late:2ms \\
    --time 10s --launches 3
  polycast bench --lab hosts=16,rate=20mbit --ranks 2..16 --sizes 64KiB
  polycast bench -n 8 --mpi openmpi,mpich --collective allreduce --sizes 1KiB
  polycast bench compare before.json after.json
  polycast bench --suite never-slower --budget 1h --only hosts=2,4,16

Exit status: 0 if all data was right; 1 if not, or if the measurement failed;
130 if it was interrupted.";

/// Arguments of `polycast bench`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// The operations: all, or a list of bcast, scatter, gather, allgather, allgatherv, alltoall, barrier, reduce, allreduce, a job each
    #[arg(long, value_name = "LIST", default_value = "bcast", value_parser = parse_operations)]
    collective: Operations,
    /// Sizes of the largest buffer of a rank (the message, or all blocks together) and ranges: 1KiB,1000003 or 1KiB..4MiB
    /// (doubling) or 1KiB..4MiB:4 (times 4)
    #[arg(long, value_name = "SIZES", default_value = "1KiB..4MiB:4", value_parser = parse_sizes)]
    sizes: Sizes,
    /// What to compare: stock, polycast (its choice by table), algorithms, or blast, a bare UDP multicast of the same
    /// bytes, which is not MPI and loses what is lost. An item that is `ready` or `name=value` belongs to the algorithm
    /// before it. Of several operations each gets what serves it
    #[arg(long, value_name = "LIST", default_value = "stock,polycast")]
    variants: String,
    /// Time limit for a size, for each variant, over all launches; less is used where the results are clear
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = parse_duration)]
    time: Duration,
    /// Start the job so many times and put the results together [default: 1, of several MPIs 3 each, in turn]
    #[arg(long, value_name = "N", value_parser = whole(1u32..=100))]
    launches: Option<u32>,
    /// When ranks call: none, root-first, root-last, one-late or random, with an optional delay as in root-last:2ms; or a file of `polycast report --arrivals`, for a job of as many ranks
    #[arg(long, value_name = "PATTERN", default_value = "none")]
    arrival: Arrival,
    /// Who sends: a rank, or rotate
    #[arg(long, value_name = "RANK", default_value = "0")]
    root: Root,
    /// What a time is
    #[arg(long, value_enum, default_value_t = Method::Clock)]
    method: Method,
    /// Empty the caches before each repetition, outside of its time
    #[arg(long)]
    cold: bool,
    /// How the clocks of the ranks are brought together
    #[arg(long, value_enum, default_value_t = ClockMethod::Auto)]
    clock: ClockMethod,

    #[command(flatten)]
    job: JobArgs,
    /// Leave out the measurement without MPI that says how far the lab is to be believed
    #[arg(long, requires = "lab")]
    no_calibration: bool,
    #[command(flatten)]
    topology: KnownTopology,
    #[command(flatten)]
    parameters: KnownParameters,
    /// The hosts' network interface on which blast multicasts [default: in a lab its own, elsewhere as routed]
    #[arg(long, value_name = "NAME", conflicts_with = "lab")]
    interface: Option<String>,
    /// Rate of the slowest link, to compare with the wire; known in a lab
    #[arg(long, value_name = "RATE", conflicts_with = "lab")]
    rate: Option<Rate>,

    /// How results are shown
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Write JSON lines: the environment, then one object per size and variant; - for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a plot of the medians over the sizes, with their intervals
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write all samples of all ranks [default: beside the JSON file, with .samples added]
    #[arg(long, value_name = "FILE")]
    raw: Option<PathBuf>,
    #[command(flatten)]
    suite: suite::SuiteArgs,
    /// A rank that damages its data before it is checked, to test the check
    #[arg(long, value_name = "RANK", hide = true, value_parser = whole(0u32..))]
    corrupt: Option<u32>,
}

/// What can be done besides measuring.
#[derive(clap::Subcommand)]
enum Action {
    /// Ratios of the medians of two measurements that were kept with --json
    Compare(compare::Args),
}

// clap takes a Vec for an option that may be repeated; these are single values.
pub(super) type Sizes = Arc<[Bytes]>;
pub(super) type Operations = Arc<[Operation]>;

pub(super) fn parse_sizes(text: &str) -> Result<Sizes, sizes::SizesError> {
    sizes::parse(text).map(Into::into)
}

pub(super) fn parse_operations(text: &str) -> Result<Operations, OperationsError> {
    Operation::parse_list(text).map(Into::into)
}

/// Runs the verb.
pub fn run(mut args: Args) -> Outcome {
    if let Some(Action::Compare(args)) = &args.action {
        return compare::run(args);
    }
    if args.suite.is_wanted() {
        return suite::run(&args);
    }
    let plans = plans(&args)?;
    check_mpis(&args).map_err(wrong)?;
    check_method(&plans).map_err(wrong)?;
    check_use(&args, &plans).map_err(wrong)?;
    check_variables(&args.job.variables, &plans).map_err(wrong)?;
    require_writable(&args.svg)?;
    let mpis = args.job.mpis()?;
    let installation = Installation::find()?;
    let ranks_of = |mpi: &Mpi| -> Result<(PathBuf, Variables), Box<dyn Error>> {
        let program = args.job.measuring_program(&installation, mpi)?;
        if plans.iter().any(Plan::needs_polycast) {
            installation.require_door(Abi::from(mpi.family()))?;
        }
        Ok((program, variables(&args.job, &args.topology, &args.parameters, &installation, mpi)?))
    };
    let by_mpi: Vec<(PathBuf, Variables)> = mpis.iter().map(ranks_of).collect::<Result<_, _>>()?;
    let mut report = Report::new(
        args.format.view(plans.iter().map(|plan| plan.variants.len()).max().unwrap_or(0), mpis.len()),
        args.json.as_deref(),
        raw_file(&args).as_deref(),
        plans
            .iter()
            .map(|plan| plan.sizes.len() * plan.communicators() * plan.launches as usize)
            .sum::<usize>()
            * mpis.len(),
    )?;
    let interrupted = interruption()?;
    let rate_choice = choose_rate(&mut args, &report)?;
    let target = args.job.target_for_most()?;
    check_ranks(&args, target.ranks()).map_err(wrong)?;
    let fidelity = fidelity(&args, &target, &report)?;
    let session = |(mpi, (program, mut variables)): (_, (PathBuf, Variables))| {
        target.lab().into_iter().for_each(|lab| network::tell_of_lab(&mut variables, lab));
        Session {
            plan: &plans[0],
            target: &target,
            mpi,
            program,
            preloaded: variables.iter().any(|(name, _)| name == LD_PRELOAD),
            variables,
            links: links(&args, &target),
            fidelity: fidelity.clone(),
            rate_choice: rate_choice.clone(),
            is_last: false,
            interrupted: Arc::clone(&interrupted),
        }
    };
    let mut sessions: Vec<Session> = mpis.iter().zip(by_mpi).map(session).collect();
    let mut outcome = Ok(());
    for (index, plan) in plans.iter().enumerate() {
        for session in &mut sessions {
            (session.plan, session.is_last) = (plan, index + 1 == plans.len());
        }
        outcome = match &sessions[..] {
            [session] => session.run(None, &mut report),
            several => Session::run_in_turn(several, &mut report),
        };
        if outcome.is_err() || interrupted.load(Ordering::Relaxed) {
            break;
        }
    }
    if let Some(file) = &args.svg {
        // What was measured before an interruption is drawn, too.
        match chart::of_times(&report.points, report.notes.clone()) {
            Err(error @ PlotError::Empty { .. }) => eprintln!("polycast: {}: {error}", file.display()),
            drawn => write_file(file, drawn?)?,
        }
    }
    if !sweep(&args).is_empty() && matches!(args.format, Format::Table | Format::Summary) {
        report.sentences(&crossover::sentences(&report.points))?;
    }
    if mpis.len() > 1 && args.format != Format::Csv {
        report.sentences(&beside::sentences(&report.points))?;
    }
    outcome?;
    Ok(match (interrupted.load(Ordering::Relaxed), report.wrong) {
        (_, true) => {
            eprintln!("polycast: a rank had wrong data after a call; the table and `verified` say where");
            ExitCode::FAILURE
        }
        (true, false) => ExitCode::from(130),
        (false, false) => ExitCode::SUCCESS,
    })
}

/// The number of launches with each of several MPIs, where the user gives none.
const ROUNDS: u32 = 3;

/// The plans of a bench, one for each operation. Barriers have no sizes.
fn plans(args: &Args) -> Result<Vec<Plan>, variant::VariantsError> {
    let lists = variant::parse_for(&args.collective, &args.variants)?;
    let plan = |(operation, variants)| Plan {
        operation,
        rank_counts: sweep(args).to_vec(),
        sizes: if operation == Operation::Barrier { vec![Bytes(0)] } else { args.sizes.to_vec() },
        variants,
        time: args.time,
        launches: args.launches.unwrap_or(if args.job.mpi_names() > 1 { ROUNDS } else { 1 }),
        arrival: args.arrival.clone(),
        root: args.root,
        method: args.method,
        cold: args.cold,
        clock: args.clock,
        corrupt: args.corrupt,
    };
    Ok(args.collective.iter().copied().zip(lists).map(plan).collect())
}

/// Answers tell how long a call takes only where all wait for the root; and calls in a row have no arrival pattern, and
/// find the caches as the call before left them.
fn check_method(plans: &[Plan]) -> Result<(), String> {
    for plan in plans {
        if plan.method == Method::Responder && !plan.operation.has_source() {
            return Err(format!(
                "--method responder: expected bcast or scatter, whose root has what all others wait for, found {}; the clock \
                 measures all",
                plan.operation
            ));
        }
        if plan.method != Method::Clock && plan.arrival.pattern != Pattern::None {
            return Err("--arrival is for --method clock: other methods have no common start".to_owned());
        }
        if plan.method != Method::Clock && plan.cold {
            return Err("--cold is for --method clock: others empty no caches between their calls".to_owned());
        }
        if plan.method != Method::Clock && plan.variants.contains(&Variant::Blast) {
            return Err(
                "--variants blast is for --method clock: others cannot do with what it loses".to_owned()
            );
        }
    }
    Ok(())
}

/// Refuses several MPIs together with options that make sense for one MPI only.
fn check_mpis(args: &Args) -> Result<(), String> {
    let mpis = args.job.mpi_names();
    let single = [
        ("--program", args.job.program.is_some()),
        ("--format osu and imb", matches!(args.format, Format::Osu | Format::Imb)),
        ("several --ranks", !sweep(args).is_empty()),
    ];
    match single.into_iter().find(|(_, is_given)| mpis > 1 && *is_given) {
        Some((what, _)) => Err(format!("{what}: expected one MPI in --mpi, found {mpis}")),
        None => Ok(()),
    }
}

/// Refuses options that none of the plans uses: they would change nothing.
fn check_use(args: &Args, plans: &[Plan]) -> Result<(), String> {
    if args.root != Root::Rank(0) && !args.collective.iter().any(|one| one.collective().has_root()) {
        return Err(format!("--root {}: expected a --collective that has a root", args.root));
    }
    if args.interface.is_some() && !plans.iter().any(|plan| plan.variants.contains(&Variant::Blast)) {
        return Err("--interface is for --variants blast: others take POLYCAST_NET".to_owned());
    }
    Ok(())
}

/// The variants set what serves their calls, whatever the environment says: here it would be without effect.
fn check_variables(variables: &[(String, String)], plans: &[Plan]) -> Result<(), String> {
    let is_set = |name: &str| plans.iter().any(|plan| name == plan.operation.variable());
    match variables.iter().find(|(name, _)| is_set(name)) {
        None => Ok(()),
        Some((name, value)) => Err(format!(
            "--env {name}={value}: each variant sets {name} itself; to measure {value}, name it: --variants stock,{value}"
        )),
    }
}

/// The numbers of ranks, if there are several.
fn sweep(args: &Args) -> &[usize] {
    args.job.ranks.as_ref().map(RankCounts::all).filter(|counts| counts.len() > 1).unwrap_or_default()
}

fn check_ranks(args: &Args, ranks: usize) -> Result<(), String> {
    let ranks = sweep(args).last().copied().unwrap_or(ranks);
    let named = match args.root {
        Root::Rank(root) => Some(("--root", root)),
        Root::Rotate => None,
    };
    match named
        .into_iter()
        .chain(args.corrupt.map(|rank| ("--corrupt", rank)))
        .find(|(_, rank)| *rank as usize >= ranks)
    {
        Some((option, rank)) => {
            Err(format!("{option} {rank}: expected a rank below {ranks}, the number of ranks"))
        }
        None => Ok(()),
    }
}

/// The facts about the network. The slowest link is the slowest that the data has to pass; none if
/// all ranks are on one host.
fn links(args: &Args, target: &JobTarget) -> Links {
    let of_lab = target.lab().filter(|_| target.hosts().len() > 1).map(|lab| lab.plan().slowest_rate());
    Links {
        interface: target.lab().map(|lab| lab.interface().to_owned()).or_else(|| args.interface.clone()),
        rate_bits_per_second: args.rate.or(of_lab).map(Rate::bits_per_second),
    }
}

/// A lab without a rate gets one that this machine carries. Says which, and why.
fn choose_rate(args: &mut Args, report: &Report) -> Result<Option<String>, LabError> {
    let Some(spec) = args.job.lab.as_mut().filter(|_| !args.no_calibration) else { return Ok(None) };
    report.doing("measuring which rate of links this machine carries".to_owned());
    let Some(carried) = spec.carried_rate()? else { return Ok(None) };
    Arc::make_mut(spec).rate = Some(carried.rate);
    let sentence = rate_choice(&carried, if spec.topology.is_some() { " without a rate" } else { "" });
    report.foreign(&hanging("polycast: ", "  ", &sentence));
    Ok(Some(sentence))
}

fn rate_choice(carried: &Carried, which: &str) -> String {
    let most = carried.most_bits_per_second as f64 / 1e6;
    let reason = match carried.is_verified {
        true => "all of them at once were carried at that rate",
        false => "a busy machine, which did not carry all of them at once at any rate that was tried",
    };
    format!(
        "the links of the lab{which} get {}: with no limit this machine forwards {} Mb/s over each of them at once; two \
         thirds of that at most are asked of it, and {reason}. Another one: --lab rate=…",
        carried.rate,
        digits(most)
    )
}

fn fidelity(args: &Args, target: &JobTarget, report: &Report) -> Result<Fidelity, LabError> {
    let Some(lab) = target.lab() else { return Ok(Fidelity::default()) };
    report.doing("measuring what the lab can show".to_owned());
    Fidelity::of_lab(lab, &args.sizes, !args.no_calibration)
}

/// The variables that the ranks need. Polycast is among them where something other than stock is
/// measured, or where it is there anyway, so that stock is measured as a program under polycast
/// meets it.
/// POLYCAST_ variables of this environment are handed on, but for POLYCAST_BCAST and the like,
/// which the variants set. Each measurement compares anew.
pub(super) fn variables(
    job: &JobArgs,
    topology: &KnownTopology,
    parameters: &KnownParameters,
    installation: &Installation,
    mpi: &Mpi,
) -> Result<Variables, Box<dyn Error>> {
    let abi = Abi::from(mpi.family());
    let mut variables = job.stock_variables(mpi)?;
    // A launcher need not carry the environment to other hosts, and a setting counts only if all ranks have it.
    let is_set_by_variants = |name: &str| Operation::ALL.iter().any(|operation| name == operation.variable());
    variables.extend(settings::of_the_library().filter(|(name, _)| !is_set_by_variants(name)));
    network::set(&mut variables, topology.variables()?);
    network::set(&mut variables, parameters.variables()?);
    job.prefer_wanted(&mut variables);
    if installation.door(abi).is_some() {
        installation.preload_in(&mut variables)?;
    }
    network::forget(&mut variables);
    variables.extend(settings::warn(&variables));
    Ok(variables)
}

/// All samples are kept wherever results are kept; beside a device nothing is.
fn raw_file(args: &Args) -> Option<PathBuf> {
    let is_kept = |json: &&PathBuf| json.as_os_str() != "-" && !json.starts_with("/dev");
    let json = args.json.as_ref().filter(is_kept);
    args.raw.clone().or_else(|| json.map(|json| file_beside(json, ".samples")))
}
