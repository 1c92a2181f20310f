//! `polycast run`.

mod print_env;
mod watched;
mod witness;

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

use polycast_core::policy::Choice;

use super::{Outcome, exit_code, print};
use crate::hosts;
use crate::install::{self, Installation, LD_PRELOAD};
use crate::mpi::{self, Allocation, Launch, Mpi, Part};
use crate::network::{self, KnownParameters, KnownTopology};
use crate::numbers::whole;
use crate::reach::Reach;
use crate::settings::{self, read_table};
use crate::usage::wrong;
use print_env::Form;
use witness::Listener;

/// Arguments of `polycast run`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Ranks to start; by default as many as the hosts or a batch job's allocation take
    #[arg(short = 'n', long, value_name = "N", value_parser = whole(1..=hosts::MAX_RANKS))]
    ranks: Option<usize>,

    /// The MPI: openmpi, mpich or the path of an mpiexec; by default the one that the program is linked with
    #[arg(long, value_name = "MPI")]
    mpi: Option<String>,

    /// Hosts to start on, with the ranks that each takes: a:2,n[0-7]:4
    #[arg(long, value_name = "HOSTS")]
    hosts: Option<String>,

    /// The same from a file as for mpiexec: a line per host, `a`, `a:2` or `a slots=2`
    #[arg(long, value_name = "FILE", conflicts_with = "hosts")]
    hostfile: Option<PathBuf>,

    /// Further arguments for mpiexec, split as a shell does
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    mpiexec_args: Option<String>,

    /// Choose algorithms by this table
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,

    #[command(flatten)]
    topology: KnownTopology,
    #[command(flatten)]
    parameters: KnownParameters,

    /// Use this algorithm for every broadcast: stock, chain:segment=8KiB, …
    #[arg(long, value_name = "SPEC")]
    algorithm: Option<String>,

    /// Print counters to standard error when the program ends
    #[arg(long)]
    report: bool,

    /// Start the program in the same way but without polycast, for comparison
    #[arg(long, conflicts_with_all = ["table", "topology", "no_topology", "params", "algorithm", "report", "print_env"])]
    off: bool,

    /// Print the environment that ranks need, for another launcher, and start nothing
    #[arg(long, value_name = "FORM", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "words")]
    print_env: Option<Form>,

    /// The program and its arguments; behind `:` another one of the same job, `-n N` before it
    #[arg(trailing_var_arg = true, value_name = "PROGRAM", required_unless_present = "print_env")]
    program: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  polycast run -n 8 -- ./a.out input
  polycast run --hosts n[0-7]:4 --report -- ./a.out
  polycast run -- ./a.out                 a batch job: a rank for each place
  polycast run -n 8 --mpi mpich --algorithm chain:segment=8KiB -- ./a.out
  polycast run -n 1 --report -- ./a input : -n 7 ./b
  polycast run -n 8 --mpiexec-args '--bind-to core --report-bindings' -- ./a.out

Under another launcher the environment is for the ranks only, not for itself:
  srun -n 64 env $(polycast run --print-env) ./a.out
  srun -n 64 \"$(polycast run --print-env=srun)\" ./a.out    (no commas in values)
  eval \"srun -n 64 env $(polycast run --print-env=sh) ./a.out\"      (any values)
Of several programs (MPMD) each needs it, but srun's --export is for all:
  E=$(polycast run --print-env); mpiexec -n 1 env $E ./a : -n 7 env $E ./b
  srun -n 8 \"$(polycast run --print-env=srun)\" --multi-prog FILE";

/// The error of a job without any number of ranks.
const NO_RANKS: &str = "expected a number of ranks: give -n N, --hosts or --hostfile. In a batch job (Slurm, PBS, LSF, Grid \
                        Engine) none is needed, but no variable of one is set here";

/// The error of several programs without numbers of ranks.
const NO_RANKS_OF_FIRST: &str =
    "several programs (behind \":\") need a number of ranks each: polycast run -n 1 ./a : -n 3 ./b";

/// Runs the verb. The launcher takes this process over, so its exit status and signals are those of the verb; where a report is wanted, it is
/// watched.
pub fn run(args: Args) -> Outcome {
    if let Some(form) = args.print_env {
        return print_environment(&args, form);
    }
    let (program, further) = mpi::parts(&args.program).map_err(wrong)?;
    let mut launch = placed(&args, further)?;
    let programs: Vec<&OsString> =
        [&program[0]].into_iter().chain(launch.further.iter().map(|part| &part.words[0])).collect();
    // One that is not here may well exist on the hosts and only there.
    let linked = mpi::abis_of(programs.iter().copied(), !launch.hosts.is_empty())?;
    Reach::Here.require_known_hosts(&launch)?;
    let mpi = Mpi::for_programs(args.mpi.as_deref(), &linked)?;
    let unreported = Unreported::of(&programs);
    launch.env = if args.off {
        off()
    } else {
        let installation = Installation::find()?;
        let first = linked.iter().flatten().next();
        installation.require_door(first.copied().unwrap_or(mpi.family().into()))?;
        environment_of_ranks(&args, &installation)?
    };
    launch.env.extend(settings::warn(&launch.env));
    let listener = if args.report { Listener::new() } else { None };
    if let Some(listener) = &listener {
        network::set(&mut launch.env, vec![(settings::WITNESS.to_owned(), listener.name().to_owned())]);
    }
    let mut command = Reach::Here.job(&mpi, launch, &program)?;
    let not_started = |error| format!("{}: could not be started: {error}", mpi.path().display());
    if !args.report {
        return Err(not_started(command.exec()).into());
    }
    let (status, is_reported) = watched::run(command).map_err(not_started)?;
    let early = listener.map(Listener::take).unwrap_or_default();
    // What cannot be said must not change how the job ended.
    let _ = io::stderr().write_all(&early);
    if !is_reported && early.is_empty() {
        let _ = io::stderr().write_all(format!("polycast: report: {}\n", unreported.why(status)).as_bytes());
    }
    Ok(exit_code(status))
}

/// The variables that leave polycast out, also where a module or the site has it preloaded: with `off` alone a rank without it would be waited for.
fn off() -> Vec<(String, String)> {
    let preloaded = env::var(LD_PRELOAD).unwrap_or_default();
    let preload = install::preload_without_ours(&preloaded).map(|others| (LD_PRELOAD.to_owned(), others));
    [(settings::SWITCH.to_owned(), "off".to_owned())].into_iter().chain(preload).collect()
}

/// The launch: how many ranks on which hosts.
fn placed(args: &Args, further: Vec<Part>) -> Result<Launch, Box<dyn std::error::Error>> {
    let given = hosts::given(args.hosts.as_deref(), args.hostfile.as_deref())?;
    let of_further: usize = further.iter().map(|part| part.ranks).sum();
    if of_further > 0 && args.ranks.is_none() {
        return Err(wrong(NO_RANKS_OF_FIRST));
    }
    let has_hosts = given.is_some();
    let all = args.ranks.map(|ranks| ranks + of_further);
    let mut launch = Launch {
        ranks: args.ranks,
        further,
        hosts: given.map_or(Ok(Vec::new()), |given| hosts::place(&given, all).map_err(wrong))?,
        extra: mpiexec_args(args.mpiexec_args.as_deref().unwrap_or_default()).map_err(wrong)?,
        ..Launch::default()
    };
    if has_hosts {
        launch.ranks = args.ranks.or_else(|| Some(launch.hosts.iter().map(|(_, ranks)| ranks).sum()));
    } else if args.ranks.is_none() && Allocation::of_this_process().is_none() {
        return Err(wrong(NO_RANKS));
    }
    Ok(launch)
}

/// The facts, known beforehand, that can explain why ranks do not report.
struct Unreported {
    statics: Vec<String>,
    programs: String,
}

impl Unreported {
    fn of(programs: &[&OsString]) -> Unreported {
        let named = |program: &&OsString| Path::new(program).display().to_string();
        let statics = programs.iter().filter(|program| mpi::is_static(program)).map(named).collect();
        let all: Vec<String> = programs.iter().map(named).collect();
        Unreported { statics, programs: all.join(", ") }
    }

    fn why(&self, status: ExitStatus) -> String {
        let Unreported { statics, programs } = self;
        if !statics.is_empty() {
            let statics = statics.join(", ");
            return format!(
                "nothing is reported: {statics} is linked statically, and nothing can be preloaded into such a program: the stock MPI \
                 serves every call"
            );
        }
        let ending = if status.success() { String::new() } else { format!(" ({status})") };
        format!(
            "nothing is reported: no rank of {programs} came by with its MPI_Init and MPI_Finalize. It is no MPI program, or ended \
             otherwise{ending}, or finds MPI's functions past what is preloaded (by handles of the MPI library from dlopen, RTLD_DEEPBIND)"
        )
    }
}

fn print_environment(args: &Args, form: Form) -> Outcome {
    let environment = environment_of_ranks(args, &Installation::find()?)?;
    print(&print_env::write(form, &environment)?)?;
    // Scripts read standard output; this is for a person who does not yet know what to do with it.
    if let Some(example) = print_env::example(form).filter(|_| std::io::stdout().is_terminal()) {
        eprintln!("with Slurm: {example}");
    }
    Ok(ExitCode::SUCCESS)
}

/// The variables that put polycast under the ranks. What the user set for the library goes along, because launchers do
/// not carry the environment to other hosts; options win over it.
fn environment_of_ranks(
    args: &Args,
    installation: &Installation,
) -> Result<Vec<(String, String)>, Box<dyn std::error::Error>> {
    let mut environment: Vec<(String, String)> = settings::of_the_library().collect();
    network::set(&mut environment, args.topology.variables()?);
    network::set(&mut environment, args.parameters.variables()?);
    let mut set = |name: &str, value: String| network::set(&mut environment, vec![(name.to_owned(), value)]);
    if let Some(file) = &args.table {
        read_table(file)?;
        set(settings::TABLE, network::absolute(file)?);
    }
    if let Some(text) = &args.algorithm {
        let choice: Choice = text.parse().map_err(|error| wrong(format_args!("--algorithm: {error}")))?;
        set(settings::BROADCAST, choice.to_string());
    }
    if args.report {
        set(settings::REPORT, "1".to_owned());
    }
    set(LD_PRELOAD, env::var(LD_PRELOAD).unwrap_or_default());
    installation.preload_in(&mut environment)?;
    Ok(environment)
}

fn mpiexec_args(text: &str) -> Result<Vec<String>, String> {
    shell_words::split(text).map_err(|error| format!("--mpiexec-args {text:?}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mpiexec_arguments_are_split_as_a_shell_does() {
        let words = mpiexec_args("--bind-to core -x 'A=b c'").unwrap();
        assert_eq!(words, ["--bind-to", "core", "-x", "A=b c"]);
        assert!(mpiexec_args("'open").unwrap_err().contains("'open"));
    }
}
