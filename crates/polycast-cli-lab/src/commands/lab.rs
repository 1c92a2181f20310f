//! `polycast lab`: emulated clusters on this machine.

mod calibrate;
mod list;
mod run;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use polycast_lab::{
    Lab, LabError, LabSpec, Lifetime, Rate, hidden, parse_bucket_bytes, parse_loss_per_million,
};

use super::{Outcome, print, print_json};
use crate::numbers::whole;

/// Arguments of `polycast lab`.
#[derive(clap::Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  polycast lab run -n 16 --rate 20mbit -- ./a.out        a lab around one run
  polycast lab up box --topology cluster.conf            a lab that stays
  polycast lab run --lab box -n 16 --mpi mpich -- ./a.out
  polycast lab exec box h3 -- ip address                 a command on one host
  polycast lab down box";

#[derive(Subcommand)]
enum Verb {
    /// Make a lab that stays until `polycast lab down`
    Up(Up),
    /// Run a command on a host
    Exec(Exec),
    /// Show the labs there are
    List(list::Args),
    /// Remove labs
    Down(Down),
    /// Start an MPI program across the hosts of a lab
    Run(run::Args),
    /// Measure for which sizes and loads a lab is to be believed
    Calibrate(calibrate::Args),
    #[command(hide = true)]
    Keeper {
        /// Shown by `ps`
        name: String,
    },
    #[command(hide = true)]
    Agent {
        directory: PathBuf,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    #[command(hide = true)]
    Probe { task: String },
}

/// What a lab is made of.
#[derive(clap::Args, Clone)]
pub struct Shape {
    /// Number of hosts, h0, h1, …, on one switch [default: 16, for `run` what the ranks need]
    #[arg(long, value_name = "N", value_parser = whole(1usize..))]
    hosts: Option<usize>,
    /// A topology in any format: hosts and any tree of switches, with the rates of links
    #[arg(long, value_name = "FILE", conflicts_with = "hosts")]
    topology: Option<PathBuf>,
    /// Rate of every link (of those without one there), in each direction
    #[arg(long, default_value = LabSpec::DEFAULT_RATE)]
    rate: Rate,
    /// Bucket of every link: what an idle link forwards at once. More than a packet is needed at high rates only
    #[arg(long, value_name = "BYTES", value_parser = parse_bucket_bytes)]
    burst: Option<u32>,
    /// Packets that every link loses, in each direction, at random
    #[arg(long, value_name = "PERCENT", value_parser = parse_loss_per_million)]
    loss: Option<u32>,
    /// Hosts from and to which their switch forwards no UDP multicast: h1,h[3-7]; may be repeated
    #[arg(long, value_name = "HOSTS")]
    block_multicast: Vec<String>,
}

/// The options of [`Shape`], for those that take a lab as it is.
const SHAPE: [&str; 6] = ["hosts", "topology", "rate", "burst", "loss", "block_multicast"];

impl Shape {
    fn spec(&self) -> LabSpec {
        LabSpec {
            hosts: self.hosts,
            topology: self.topology.clone(),
            rate: Some(self.rate),
            burst_bytes: self.burst,
            loss_per_million: self.loss,
            block_multicast: self.block_multicast.clone(),
            name: None,
        }
    }
}

#[derive(clap::Args)]
struct Up {
    /// Its name [default: the first free one of lab0, lab1, …]
    name: Option<String>,
    #[command(flatten)]
    shape: Shape,
    /// Print what was made as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Exec {
    /// The command is an mpiexec
    #[arg(long, hide = true)]
    launcher: bool,
    /// The lab
    lab: String,
    /// The host
    host: String,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

#[derive(clap::Args)]
struct Down {
    /// The labs
    #[arg(required_unless_present = "all")]
    names: Vec<String>,
    /// All labs of this user, and what is left of labs that were killed
    #[arg(long, conflicts_with = "names")]
    all: bool,
}

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    match args.verb {
        Verb::Up(args) => up(&args),
        Verb::Exec(args) => Ok(hidden::exec(&args.lab, &args.host, &args.command, args.launcher)?),
        Verb::List(args) => list::run(&args),
        Verb::Down(args) => down(&args),
        Verb::Run(args) => run::run(&args),
        Verb::Calibrate(args) => calibrate::run(&args),
        Verb::Keeper { name: _ } => Ok(hidden::keeper()),
        Verb::Agent { directory, words } => Ok(hidden::agent(&directory, &words)),
        Verb::Probe { task } => Ok(hidden::probe(&task)),
    }
}

fn up(args: &Up) -> Outcome {
    let plan = args.shape.spec().plan()?;
    let lab = Lab::up(&plan, args.name.as_deref(), Lifetime::UntilDown)?;
    if args.json {
        print_json(lab.summary())?;
    } else {
        print(&format!("{}\n", lab.name()))?;
        eprintln!(
            "{}; run something on it: polycast lab exec {} {} -- hostname",
            list::describe(lab.summary()),
            lab.name(),
            plan.hosts[0].name
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn down(args: &Down) -> Outcome {
    if args.all {
        Lab::sweep()?;
    }
    let names = if args.all { Lab::all_names()? } else { args.names.clone() };
    // A lab that ended by itself after it was listed is down.
    let is_failure = |error: &LabError| !(args.all && matches!(error, LabError::UnknownLab { .. }));
    // One lab that cannot be removed must not keep the others.
    let failed = names.iter().filter_map(|name| Lab::down_named(name).err()).filter(is_failure);
    let failed: Vec<LabError> = failed.collect();
    for error in &failed {
        eprintln!("polycast: {error}");
    }
    // What failed counts more than a name that no lab has.
    Ok(failed
        .iter()
        .map(|error| if error.is_usage() { 2 } else { 1 })
        .min()
        .map_or(ExitCode::SUCCESS, ExitCode::from))
}
