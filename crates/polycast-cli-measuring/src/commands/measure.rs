//! `polycast measure`.

pub(super) mod sharing;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use polycast_core::files::FileKind;
use polycast_core::model::{
    ClassParameters, CurveError, LinkClass, MAX_NOTE_BYTES, Parameters, Provenance, Sharing,
};
use polycast_core::topology::Topology;
use polycast_core::units::Bytes;
use polycast_lab::Lab;

use self::sharing::{Effort, Learning};
use super::{Outcome, file_of, interruption, require_writable, write_output};
use crate::bench::arrival::parse_duration;
use crate::bench::environment::Machine;
use crate::bench::operation::Operation;
use crate::bench::sizes as size_list;
use crate::install::Installation;
use crate::job_args::JobArgs;
use crate::jobs::{ARGUMENT, DialogueError, RankJob, RankServerError};
use crate::measure::pairs::{self, Pairs};
use crate::measure::size::Figures;
use crate::measure::sizes::{self, SizesPlan};
use crate::measure::{doubt, parameters, table};
use crate::mpi::Mpi;
use crate::numbers::whole;
use crate::terminal::{count, hanging, paragraph};
use crate::time_stamp::time_stamp;
use crate::topology_input::Input;
use crate::usage::wrong;

const EXAMPLES: &str = "\
Examples:
  polycast measure --hosts a,b,c -o params.json
  polycast measure --hosts a:2,b,c --topology topology.conf -o params.json
  polycast measure --hosts a:4,b:4 -o params.json
  polycast measure --lab hosts=4,rate=20mbit --sizes 256..64KiB --time 1s \\
    -o params.json

Give a host two ranks to measure what is passed within a host. The other ranks
sleep meanwhile, so a pair of hosts for each link class is enough. Where hosts
have several ranks, jobs with polycast follow, which measure what so many ranks
take to share a message through memory (`polycast predict` needs it for
two-level broadcasts): give hosts as many ranks as your jobs.
docs/measuring.md says how each parameter is measured.

Exit status: 0 if the parameters were written; 1 if not, for example because
intervals are too wide; 130 if it was interrupted. Then what was measured
between hosts is written if it was complete, and nothing else.";

/// Arguments of `polycast measure`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    job: JobArgs,
    /// The switches between the hosts, as read by `polycast topology show`, to tell hosts on the same switch from others
    /// [default: in a lab its own, elsewhere one switch for all]
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
    /// Message sizes to begin with: 1KiB,64KiB or 1KiB..64KiB:4; where a curve bends, sizes between them are added
    /// [default: 1 B to 4 MiB in powers of 4, up to the size whose fewest samples take longer than twice the time]
    #[arg(long, value_name = "SIZES", value_parser = parse_sizes)]
    sizes: Option<Sizes>,
    /// The most sizes for each link class
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = whole(1u16..=256))]
    most_sizes: u16,
    /// Time for a size; less is used where 95 % intervals are within 2 % earlier
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_duration)]
    time: Duration,
    /// The parameter file [default: to standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write also what is hardly known, and is left out else: sizes with a 95 % interval that reaches further to a side
    /// than half of its value
    #[arg(long)]
    force: bool,
    /// Do not measure what ranks of a host take to share
    #[arg(long)]
    no_sharing: bool,
}

// clap takes a Vec for an option that may be repeated; this is a single value.
type Sizes = Arc<[Bytes]>;

fn parse_sizes(text: &str) -> Result<Sizes, size_list::SizesError> {
    size_list::parse(text).map(Into::into)
}

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    require_writable(&args.output)?;
    let mut topology = args.topology.as_deref().map(read_topology).transpose()?;
    let mpi = args.job.mpi()?;
    let program = args.job.measuring_program(&Installation::find()?, &mpi)?;
    let variables = args.job.stock_variables(&mpi)?;
    let interrupted = interruption()?;
    let mut target = args.job.target()?;
    topology = topology.or_else(|| target.topology());
    let command = target.command(&mpi, &variables, &[program.clone().into(), ARGUMENT.into()])?;
    let Some(mut job) = start(command, &interrupted)? else { return Ok(nothing_kept(0)) };
    let hosts = hosts(&job);
    let pairs = pairs::choose(&hosts, topology.as_ref());
    check(&pairs, topology.is_some()).map_err(wrong)?;
    let mut measured = Provenance {
        when: time_stamp(),
        place: place(&hosts, target.lab()),
        how: how(&mpi, &pairs, &hosts, &args, topology.is_some()),
    };
    let progress = progress()?;
    let figures = match measure(&mut job, &pairs, &hosts, &plan(&args), &progress) {
        Ok(figures) => figures,
        Err(error)
            if matches!(error.downcast_ref(), Some(RankServerError::Job(DialogueError::Interrupted))) =>
        {
            progress.finish_and_clear();
            return Ok(nothing_kept(progress.position()));
        }
        Err(error) => return Err(error),
    };
    job.shutdown()?;
    let network = parameters_of(&figures, measured.clone())?;
    let learned = (!args.no_sharing).then(|| {
        let (job, target, mpi, hosts) = (&args.job, &mut target, &mpi, &hosts[..]);
        let (program, progress, interrupted) = (program.as_path(), &progress, &interrupted);
        let sizes = args.sizes.as_ref().map_or_else(sharing_sizes, |sizes| sizes.to_vec());
        let (time, force, most_penalties, parameters) = (args.time, args.force, usize::MAX, &network);
        let operations = &SHARED;
        let effort = Effort { operations, sizes, time, force, most_penalties };
        Learning { job, effort, target, mpi, program, hosts, parameters, progress, interrupted }.run()
    });
    progress.finish_and_clear();
    let is_interrupted = interrupted.load(Ordering::Relaxed);
    let (sharing, how) = learned.flatten().unzip();
    let sharing: Vec<Sharing> = sharing.unwrap_or_default();
    if file_of(&args.output).is_some() {
        super::print(&table::print(&network.with_sharing(sharing.clone())?))?;
    }
    let figures = without_doubts(figures, &mut measured, &args)?;
    let classes = if args.force { as_measured(&figures)? } else { credible(&figures, &mut measured)? };
    measured.how.extend(how.map(|how| format!("; {how}")));
    if is_interrupted {
        measured.how += "; interrupted before what ranks of a host share was measured";
    }
    measured.how = as_note(measured.how);
    let text = Parameters::new(measured, classes)?.with_sharing(sharing)?.to_json();
    write_output(&args.output, &text)?;
    if is_interrupted {
        let file =
            file_of(&args.output).map_or("standard output".to_owned(), |file| file.display().to_string());
        let said = format!(
            "polycast: interrupted: {file} has all times of messages, but not all of what ranks of a host take to share; the same command again \
             measures both"
        );
        eprintln!("{}", paragraph(&said));
        return Ok(ExitCode::from(130));
    }
    Ok(ExitCode::SUCCESS)
}

/// The end of a run that was interrupted too early. Of a class that is not complete nothing is written: others would be taken for it.
fn nothing_kept(sizes: u64) -> ExitCode {
    let measured = match sizes {
        0 => "before anything was measured".to_owned(),
        sizes => format!("after {}", count(sizes, "size", "sizes")),
    };
    eprintln!("polycast: interrupted {measured}: nothing is written, for predictions need all of them");
    ExitCode::from(130)
}

type Curves = BTreeMap<LinkClass, ClassParameters>;

fn as_measured(classes: &Classes) -> Result<Curves, CurveError> {
    let of = |(class, figures): (&LinkClass, &Vec<Figures>)| Ok((*class, parameters::class(figures)?));
    classes.iter().map(of).collect()
}

/// The curves without points that are not credible. Such points are
/// named to the user and in `measured`, which the file keeps.
fn credible(classes: &Classes, measured: &mut Provenance) -> Result<Curves, CurveError> {
    let mut curves = Curves::new();
    for (class, figures) in classes {
        let (of_class, clauses) = parameters::credible_class(figures)?;
        for clause in clauses {
            eprintln!("{}", paragraph(&format!("polycast: {class}: {clause}")));
            measured.how += &format!("; {class}: {clause}");
        }
        curves.insert(*class, of_class);
    }
    Ok(curves)
}

/// The collectives that are measured among ranks of a host: from their times the mixed-mode model
/// makes all that it knows.
const SHARED: [Operation; 4] = [Operation::Bcast, Operation::Reduce, Operation::Gather, Operation::Scatter];

/// The sizes to be shared where the user names none.
fn sharing_sizes() -> Vec<Bytes> {
    crate::measure::sharing::sizes().into_iter().map(Bytes).collect()
}

/// The measured figures by link class and size.
pub(super) type Classes = BTreeMap<LinkClass, Vec<Figures>>;

/// Starts a job that measures; `None` if it was interrupted.
pub(super) fn start(
    command: Command,
    interrupted: &Arc<AtomicBool>,
) -> Result<Option<RankJob>, RankServerError> {
    match RankJob::start(command, Arc::clone(interrupted)) {
        Err(RankServerError::Job(DialogueError::Interrupted)) => Ok(None),
        other => other.map(Some),
    }
}

/// The hosts of the ranks, by rank.
pub(super) fn hosts(job: &RankJob) -> Vec<String> {
    job.hello().places.iter().map(|place| place.host.clone()).collect()
}

pub(super) fn parameters_of(classes: &Classes, measured: Provenance) -> Result<Parameters, Box<dyn Error>> {
    Ok(Parameters::new(measured, as_measured(classes)?)?)
}

/// Predictions would take what is hardly known for known: it is left out, and the file says so. A class of which too little is
/// known leaves nothing to write, for the others would be taken for it.
fn without_doubts(mut classes: Classes, measured: &mut Provenance, args: &Args) -> Result<Classes, String> {
    let doubts: Vec<String> =
        classes.iter().flat_map(|(class, figures)| doubt::doubts(*class, figures)).collect();
    if doubts.is_empty() {
        return Ok(classes);
    }
    let list: String = doubts.iter().map(|line| format!("\n{}", hanging("  ", "    ", line))).collect();
    let percent = doubt::WIDEST * 100.0;
    let is_doubtful = |figures: &&Figures| !doubt::is_known(figures);
    let wide = classes.values().flatten().filter(is_doubtful).count();
    let all = classes.values().flatten().count();
    let what = format!(
        "{wide} of {all} sizes are not credible, for the machine was busy: intervals reach further than {percent:.0} % of their values:{list}"
    );
    if args.force {
        eprintln!("polycast: {what}");
        return Ok(classes);
    }
    let longer = (args.time.as_secs_f64() * 4.0).ceil();
    for figures in classes.values_mut() {
        *figures = doubt::known(figures).ok_or_else(|| {
            let advice = format!(
                "Measure again when nothing else runs on the hosts, or longer: --time {longer}s. --force writes them all the same."
            );
            format!("nothing written: {what}\n{}", paragraph(&advice))
        })?;
    }
    let advice = "These sizes were measured again, to no avail, and are left out; --force keeps them.";
    eprintln!("polycast: {what}\n{}", paragraph(advice));
    let doubts = doubts.join(", ");
    measured.how += &format!("; left out, with intervals that reach further than {percent:.0} %: {doubts}");
    Ok(classes)
}

fn read_topology(file: &Path) -> Result<Topology, Box<dyn Error>> {
    Ok(Input::read(file, FileKind::Topology)?.topology()?)
}

fn plan(args: &Args) -> SizesPlan {
    let mut sizes: Vec<u64> = match &args.sizes {
        Some(sizes) => sizes.iter().map(|size| size.0).collect(),
        None => sizes::powers_of_four(),
    };
    sizes.sort_unstable();
    sizes.dedup();
    SizesPlan {
        sizes,
        may_stop: args.sizes.is_none(),
        most: usize::from(args.most_sizes),
        limit_ns: args.time.as_secs_f64() * 1e9,
    }
}

fn check(pairs: &Pairs, has_topology: bool) -> Result<(), String> {
    if pairs.by_class.is_empty() {
        return Err(
            "expected at least two ranks to measure between, found one: choose more hosts, or -n 2".into()
        );
    }
    if !pairs.unplaced_hosts.is_empty() {
        let hosts = pairs.unplaced_hosts.join(", ");
        eprintln!("polycast: the topology lacks {hosts}: taken to be on switches of their own");
    }
    if !has_topology {
        eprintln!("polycast: no --topology: hosts are taken to be on one switch");
    }
    Ok(())
}

/// The hosts and what is known of the network between them.
fn place(hosts: &[String], lab: Option<&Lab>) -> String {
    let mut names = hosts.to_vec();
    names.dedup();
    let shown = match &names[..] {
        [] => String::new(),
        [one] => one.clone(),
        [first, .., last] => format!("{} hosts, {first} … {last}", names.len()),
    };
    let Some(lab) = lab else { return shown };
    let Machine { cores, cpu, kernel, .. } = Machine::here();
    let (rate, burst) = (lab.plan().slowest_rate(), lab.plan().burst_bytes);
    format!(
        "lab of {shown}, slowest link {rate}, buckets of {burst} bytes; on {cores} cores of {cpu}, Linux {kernel}"
    )
}

/// The MPI, the tool, and which ranks stand for what.
fn how(mpi: &Mpi, pairs: &Pairs, hosts: &[String], args: &Args, has_topology: bool) -> String {
    let pairs = pairs.by_class.iter().map(|(class, &(from, to))| {
        format!("{class} by ranks {from} and {to} ({} and {})", hosts[from], hosts[to])
    });
    let switches = if has_topology { "" } else { "; all hosts taken to be on one switch" };
    format!(
        "{}; polycast {} measure, {:?} for a size; {}{switches}; medians with 95 % intervals",
        mpi.title(),
        env!("CARGO_PKG_VERSION"),
        args.time,
        pairs.collect::<Vec<_>>().join(", "),
    )
}

/// Cuts a note at its end to what a parameter file takes. Lists and reasons may be long, and
/// what was measured is not to be lost for them.
pub(super) fn as_note(mut how: String) -> String {
    const REST: &str = " …";
    if how.len() > MAX_NOTE_BYTES {
        let end = (0..=MAX_NOTE_BYTES - REST.len()).rev().find(|at| how.is_char_boundary(*at));
        how.truncate(end.unwrap_or(0));
        how += REST;
    }
    how
}

pub(super) fn measure(
    job: &mut RankJob,
    pairs: &Pairs,
    hosts: &[String],
    plan: &SizesPlan,
    progress: &ProgressBar,
) -> Result<Classes, Box<dyn Error>> {
    let mut classes = BTreeMap::new();
    for (&class, &(from, to)) in &pairs.by_class {
        let figures = sizes::measure(job, (from, to), plan, |bytes| {
            progress.set_message(format!("{class}, {} → {}: {}", hosts[from], hosts[to], Bytes(bytes)));
            progress.inc(1);
        })?;
        classes.insert(class, figures);
    }
    Ok(classes)
}

/// A progress bar, which hides itself where standard error is no terminal.
pub(super) fn progress() -> Result<ProgressBar, Box<dyn Error>> {
    let progress = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    progress.set_style(ProgressStyle::with_template("{spinner} {wide_msg} {pos} sizes  {elapsed}")?);
    Ok(progress)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_notes_are_cut() {
        assert_eq!(as_note("as it is".to_owned()), "as it is");
        let longest = "x".repeat(MAX_NOTE_BYTES);
        assert_eq!(as_note(longest.clone()), longest);
        for word in ["x", "±"] {
            let cut = as_note(word.repeat(MAX_NOTE_BYTES + 1));
            assert!(cut.len() <= MAX_NOTE_BYTES && cut.ends_with(&format!("{word} …")), "{}", cut.len());
        }
    }
}
