//! `polycast lab run`: an MPI program across the hosts of a lab.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use polycast_core::topology::{MAX_HOSTS, expand_hostlist, hostlist};
use polycast_lab::{Lab, LabError};

use super::Shape;
use crate::commands::{Outcome, exit_code};
use crate::hosts::{self, Listed};
use crate::install::{InstallError, Installation};
use crate::job_args::parse_variable;
use crate::jobs::target::fill;
use crate::mpi::{self, Abi, Launch, Mpi, Part};
use crate::network::{self, KnownParameters, NoTopology};
use crate::numbers::whole;
use crate::reach::Reach;
use crate::settings;
use crate::usage::wrong;

/// Arguments of `polycast lab run`.
#[derive(clap::Args)]
pub struct Args {
    /// Number of ranks
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = whole(1..=hosts::MAX_RANKS))]
    ranks: usize,
    /// An existing lab; without it one is made for this run and removed afterwards
    #[arg(long, value_name = "NAME", conflicts_with_all = super::SHAPE)]
    lab: Option<String>,
    /// Only these hosts of that lab, in this order, so that several jobs share its network: h4,h[6-9]
    #[arg(long, value_name = "HOSTS", requires = "lab", value_parser = host_names)]
    on: Option<Names>,
    #[command(flatten)]
    shape: Shape,
    /// The MPI: openmpi, mpich or the path of an mpiexec; by default the one that the program is linked with
    #[arg(long, value_name = "MPI")]
    mpi: Option<String>,
    /// Consecutive ranks on each host
    #[arg(long, default_value_t = 1, value_name = "K", value_parser = whole(1..=hosts::MAX_RANKS))]
    ranks_per_host: usize,
    /// A variable for the ranks; may be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = parse_variable)]
    variables: Vec<(String, String)>,
    /// Further options for mpiexec, split as a shell does
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    mpiexec_args: Option<String>,
    /// Preload polycast under the program, with the POLYCAST_ variables of this environment; without this option the
    /// MPI is as it came
    #[arg(long)]
    polycast: bool,
    #[command(flatten)]
    no_topology: NoTopology,
    #[command(flatten)]
    parameters: KnownParameters,
    /// The program and its arguments; behind `:` another one of the same job, `-n N` before it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    program: Vec<OsString>,
}

/// Runs the verb.
pub fn run(args: &Args) -> Outcome {
    let (program, further) = mpi::parts(&args.program)?;
    let linked =
        mpi::abis_of([&program[0]].into_iter().chain(further.iter().map(|part| &part.words[0])), false)?;
    let mpi = Mpi::for_programs(args.mpi.as_deref(), &linked)?;
    let installation = match args.polycast {
        true => Some(installation_for(linked.into_iter().flatten().next().unwrap_or(mpi.family().into()))?),
        false => None,
    };
    let warned = settings::warn(&args.variables);
    let reach = reach_for(args, &further)?;
    let mut command = launch(args, (program, further), &mpi, installation.as_ref(), &reach, warned)?;
    if args.lab.is_some() {
        // Nothing is to be removed afterwards: the command takes this process over, with the signals that it gets.
        let error = command.exec();
        return Err(format!("cannot start {}: {error}", command.get_program().display()).into());
    }
    Ok(exit_code(command.status()?))
}

/// The way to the lab that is named, or to one that lives as long as this process.
fn reach_for(args: &Args, further: &[Part]) -> Result<Reach, LabError> {
    if let Some(name) = &args.lab {
        return Ok(Reach::Lab(Lab::open(name)?));
    }
    let mut spec = args.shape.spec();
    if spec.hosts.is_none() && spec.topology.is_none() {
        spec.hosts = Some(all_ranks(args, further).div_ceil(args.ranks_per_host));
    }
    Reach::new_lab(&spec)
}

fn all_ranks(args: &Args, further: &[Part]) -> usize {
    args.ranks + further.iter().map(|part| part.ranks).sum::<usize>()
}

/// mpiexec on the first host, with ranks on the first hosts that are needed, in the order of the lab or of `--on`.
fn launch(
    args: &Args,
    (program, further): (Vec<OsString>, Vec<Part>),
    mpi: &Mpi,
    installation: Option<&Installation>,
    reach: &Reach,
    warned: Option<(String, String)>,
) -> Result<Command, Box<dyn std::error::Error>> {
    let lab = reach.lab().ok_or("expected a lab")?;
    let ranks = all_ranks(args, &further);
    let hosts = hosts_for(lab, args.on.as_ref()).map_err(wrong)?;
    let hosts = fill(&hosts, Some(ranks), args.ranks_per_host).map_err(wrong)?;
    // Other hosts do not see this environment, so its settings are sent along.
    let mut env = installation.map_or_else(Vec::new, |_| settings::of_the_library().collect());
    network::set(&mut env, args.no_topology.variables());
    network::set(&mut env, args.parameters.variables()?);
    network::set(&mut env, args.variables.clone());
    if let Some(installation) = installation {
        installation.preload_in(&mut env)?;
    }
    env.extend(warned);
    network::tell_of_lab(&mut env, lab);
    let launch = Launch {
        ranks: Some(args.ranks),
        further,
        hosts,
        env,
        extra: shell_words::split(args.mpiexec_args.as_deref().unwrap_or_default())?,
        ..Launch::default()
    };
    Ok(reach.job(mpi, launch, &program)?)
}

/// The installation, which has to have a door for the program.
fn installation_for(abi: Abi) -> Result<Installation, InstallError> {
    let installation = Installation::find()?;
    installation.require_door(abi)?;
    Ok(installation)
}

/// The hosts that may have ranks: all of the lab, or the named ones, which the lab must have.
fn hosts_for(lab: &Lab, named: Option<&Names>) -> Result<Vec<Listed>, String> {
    let of_lab: Vec<&str> = lab.hosts().iter().map(|host| host.name.as_str()).collect();
    let names = match named {
        None => of_lab.iter().map(ToString::to_string).collect(),
        Some(Names(named)) => match named.iter().find(|name| !of_lab.contains(&name.as_str())) {
            Some(unknown) => {
                return Err(format!(
                    "--on: lab {} has no host {unknown}: expected some of {}",
                    lab.name(),
                    hostlist(&of_lab)
                ));
            }
            None => named.clone(),
        },
    };
    Ok(names.into_iter().map(|name| Listed { name, ranks: None }).collect())
}

/// Hosts that are different, one at least.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Names(Vec<String>);

fn host_names(text: &str) -> Result<Names, String> {
    let names = expand_hostlist(text, MAX_HOSTS).map_err(|error| error.to_string())?;
    let mut seen = HashSet::new();
    match names.iter().find(|name| !seen.insert(name.as_str())) {
        Some(twice) => Err(format!("{twice} is there twice: expected different hosts")),
        None if names.is_empty() => Err("expected hosts such as h4,h[6-9]".into()),
        None => Ok(Names(names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_once_each() {
        assert_eq!(host_names("h4,h[6-7]"), Ok(Names(["h4", "h6", "h7"].map(str::to_owned).into())));
        for (text, problem) in [("h1,h[0-2]", "h1 is there twice"), ("", "expected"), ("h[1", "h[1")] {
            let error = host_names(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
