//! `polycast generate`.

mod hosts;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polycast_core::files::FileKind;
use polycast_core::model::Parameters;
use polycast_core::topology::Placed;

use super::{Outcome, write_output};
use crate::hosts::{Listed, given};
use crate::numbers::whole;
use crate::topology_input::Input;
use crate::usage::wrong;
use polycast_study::generate::{Model, Request, is_of_name, is_taken, routine};

/// Arguments of `polycast generate`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  polycast generate --topology cluster.conf -o bcast.c   a rank on each host
  polycast generate --topology cluster.conf --hosts 'node[00-15]' \\
    --ranks-per-host 4 -o bcast.c
  polycast generate --topology cluster.conf --hostfile hosts \\
    --params cluster.json --name my_bcast -o bcast.c
  mpicc -O2 program.c bcast.c                            MPI_Bcast is this one

The routine needs nothing but MPI. docs/generate.md shows one and says what it
does.")]
pub struct Args {
    /// The cluster, in any format that `polycast topology` reads
    #[arg(long, value_name = "FILE")]
    topology: PathBuf,

    /// The hosts of the ranks, in the order of the ranks: a,b,c or node[00-15], with the number of ranks as in a:4
    /// [default: all of the topology]
    #[arg(long, value_name = "HOSTS")]
    hosts: Option<String>,
    /// The same from a file as for mpiexec: a line per host, `node00`, `node00:4` or `node00 slots=4`
    #[arg(long, value_name = "FILE", conflicts_with = "hosts")]
    hostfile: Option<PathBuf>,
    /// Ranks on each host that does not say how many
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(1u32..=4096))]
    ranks_per_host: u32,

    /// Measured parameters of the network, from `polycast measure`; without them, times are assumed
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
    /// Build in the binary tree from this rank's switch only; other roots go along the chain
    #[arg(long, value_name = "RANK", value_parser = whole(0usize..))]
    root: Option<usize>,
    /// The name of the function
    #[arg(long, value_name = "NAME", default_value = "MPI_Bcast", value_parser = function_name)]
    name: String,
    /// The file to be written [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    let placed = place(&args)?;
    let ranks = placed.host_of.len();
    if let Some(root) = args.root.filter(|root| *root >= ranks) {
        return Err(wrong(format_args!("--root {root}: expected a rank from 0 to {}", ranks - 1)));
    }
    let model = match &args.params {
        Some(file) => Model::measured(parameters(file)?, file.display().to_string()),
        None => Model::assumed(&placed),
    };
    let routine = routine(Request {
        function: args.name,
        topology_file: args.topology.display().to_string(),
        placed,
        root: args.root,
        model,
        command: command_line(),
        when: now(),
    });
    for note in routine.notes {
        eprintln!("polycast: {note}");
    }
    write_output(&args.output, &routine.text)?;
    Ok(ExitCode::SUCCESS)
}

/// The ranks on the topology. A host that is not in it has no place in the plan.
fn place(args: &Args) -> Result<Placed, Box<dyn Error>> {
    let file = args.topology.display().to_string();
    let input = Input::read(&args.topology, FileKind::Topology)?;
    let topology = input.topology()?;
    let given = given(args.hosts.as_deref(), args.hostfile.as_deref());
    let listed = match given? {
        Some(hosts) => hosts,
        None => topology.hosts.iter().map(|host| Listed { name: host.name.clone(), ranks: None }).collect(),
    };
    let of_ranks = hosts::of_ranks(&listed, args.ranks_per_host as usize).map_err(wrong)?;
    let placed = topology.place(&of_ranks);
    match &placed.unplaced_hosts[..] {
        [] => Ok(placed),
        unplaced_hosts => Err(wrong(format_args!(
            "{file} has no host {}; correct the name, or add the host to its switch there (`polycast topology show {file}` lists the \
             hosts it has)",
            unplaced_hosts.join(", ")
        ))),
    }
}

fn parameters(file: &Path) -> Result<Parameters, String> {
    let input = Input::read(file, FileKind::Parameters).map_err(|error| error.to_string())?;
    Parameters::parse_all(&input.text, &input.name).map_err(|error| error.to_string())
}

/// A word that nothing in the routine, its compiler and MPI has a meaning for.
fn function_name(text: &str) -> Result<String, String> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) && !text.is_empty() && text.chars().all(is_of_name) {
        return match text != "MPI_Bcast" && is_taken(text) {
            true => Err("expected a name that neither C nor MPI nor the routine itself uses".to_owned()),
            false => Ok(text.to_owned()),
        };
    }
    Err("expected a name of C: letters, digits and _, no digit first".to_owned())
}

fn command_line() -> String {
    format!("polycast {}", shell_words::join(crate::command_line::words().iter().skip(1)))
}

/// The time, or that of SOURCE_DATE_EPOCH, by which builds that must give the same again set it.
fn now() -> String {
    let set = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    // Years have four digits.
    let set = set.filter(|seconds| *seconds < 253_402_300_800);
    let time = set.and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
    humantime::format_rfc3339_seconds(time.unwrap_or_else(SystemTime::now)).to_string()
}
