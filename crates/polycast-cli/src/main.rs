//! The `polycast` tool.

mod arrival_file;
mod bench;
mod command_line;
mod commands;
mod completions;
mod copy;
mod discover;
mod doctor;
mod draft;
mod generate;
mod helper_process;
mod hosts;
mod install;
mod jobs;
mod json_lines;
mod measure;
mod mpi;
mod native;
mod network;
mod numbers;
mod picture;
mod plot;
mod report;
mod settings;
mod terminal;
mod times;
mod tune;
mod usage;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Makes MPI broadcasts and other collectives run at the speed of the wire, in any unmodified MPI program.
#[derive(Parser)]
#[command(name = "polycast", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  polycast info                          what is installed here
  polycast run -n 8 -- ./a.out           start a program with polycast under it
  polycast run -n 8 --off -- ./a.out     the same without, for comparison
  polycast explain --ranks 16 --nodes 16 --bytes 1MiB
  source <(polycast completions bash)

`polycast VERB --help` has more for each verb.";

#[derive(Subcommand)]
enum Command {
    /// Start an MPI program with polycast under it
    Run(commands::run::Args),
    /// Say what is installed: version, doors and the MPIs they match, tables
    Info(commands::info::Args),
    /// Say which algorithm a call would get, and by which rule
    Explain(commands::explain::Args),
    /// Measure collectives as a program calls them
    Bench(Box<commands::bench::Args>),
    /// Draw what jobs and measurements have left: traces, results
    Report(commands::report::Args),
    /// Find what serves a network best, by measuring, and write it as a table
    Tune(Box<commands::tune::Args>),
    /// Measure the times of messages between hosts, into a file for predictions
    Measure(commands::measure::Args),
    /// How long broadcasts take, from measured parameters: all algorithms, and the best one
    Predict(commands::predict::Args),
    /// What trials of jobs have found, for later jobs: show it, forget it
    Cache(commands::cache::Args),
    /// Bring the same files to many nodes, without MPI
    Cp(Box<commands::cp::Args>),
    #[command(hide = true)]
    CpAgent {
        /// This file is for this process alone
        #[arg(long)]
        remove_tool: bool,
    },
    /// Why does multicast not work here? Checks hosts and the network between them
    Doctor(commands::doctor::Args),
    #[command(hide = true)]
    DoctorAgent,
    /// Write a broadcast for given hosts as a C file that needs nothing but MPI
    Generate(commands::generate::Args),
    /// A cluster in a box: emulated hosts, switches and links on this machine
    Lab(commands::lab::Args),
    /// Give out multicast addresses to the jobs of a site (RFC 2730)
    Madcap(commands::madcap::Args),
    /// Draw and count broadcast trees over a cluster
    Tree(Box<commands::tree::Args>),
    /// Run collectives in virtual time: under every fault, or on thousands of nodes
    Simulate(Box<commands::simulate::Args>),
    /// Check, format or start a table of rules that choose algorithms
    Table(commands::table::Args),
    /// The tree of switches and hosts: show, check, convert or discover it
    Topology(commands::topology::Args),
    /// Print a shell completion script: source <(polycast completions bash)
    Completions {
        /// The shell
        shell: completions::Shell,
    },
    #[command(hide = true)]
    CompleteWords,
    /// Write a manual page for each verb, made from its help
    #[command(hide = true)]
    ManPages {
        /// Where to
        directory: PathBuf,
    },
}

fn main() -> ExitCode {
    let cli: Cli = match command_line::read() {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    let result = match cli.command {
        Command::Run(args) => commands::run::run(args),
        Command::Info(args) => commands::info::run(args),
        Command::Explain(args) => commands::explain::run(args),
        Command::Bench(args) => commands::bench::run(*args),
        Command::Report(args) => commands::report::run(&args),
        Command::Tune(args) => commands::tune::run(*args),
        Command::Measure(args) => commands::measure::run(args),
        Command::Predict(args) => commands::predict::run(args),
        Command::Cache(args) => commands::cache::run(&args),
        Command::Cp(args) => commands::cp::run(*args),
        Command::CpAgent { remove_tool } => Ok(copy::agent::run(remove_tool)),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::DoctorAgent => Ok(doctor::agent::run()),
        Command::Generate(args) => commands::generate::run(args),
        Command::Lab(args) => commands::lab::run(args),
        Command::Madcap(args) => commands::madcap::run(args),
        Command::Tree(args) => commands::tree::run(&args),
        Command::Simulate(args) => commands::simulate::run(&args),
        Command::Table(args) => commands::table::run(args),
        Command::Topology(args) => commands::topology::run(args),
        Command::Completions { shell } => {
            let mut command = command_line::without_help(command_line::command::<Cli>());
            let script = completions::script(shell, &mut command);
            commands::print(&script).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
        Command::CompleteWords => {
            let command = command_line::without_help(command_line::command::<Cli>());
            let line = std::env::var("COMMAND_LINE").unwrap_or_default();
            commands::print(&completions::words(&command, &line))
                .map(|()| ExitCode::SUCCESS)
                .map_err(Into::into)
        }
        Command::ManPages { directory } => {
            commands::man_pages::write(command_line::command::<Cli>(), &directory)
                .map(|()| ExitCode::SUCCESS)
                .map_err(Into::into)
        }
    };
    result.unwrap_or_else(|error| {
        if commands::has_lost_reader(&*error) {
            return ExitCode::SUCCESS;
        }
        // In one piece: others write there, too.
        let _ = io::stderr().write_all(format!("polycast: {error}\n").as_bytes());
        ExitCode::from(commands::status::status_of(&*error))
    })
}
