//! The `polycast` tool.

mod completions;
mod man_pages;
mod status;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use polycast_cli_console::{command_line, outcome};
use polycast_cli_cp::commands::cp;
use polycast_cli_doctor::commands::doctor;
use polycast_cli_lab::commands::lab;
use polycast_cli_measuring::commands::{bench, measure, table, tune};
use polycast_cli_serving::commands::{cache, explain, info, madcap, predict, report, run, topology};
use polycast_cli_study::commands::{generate, simulate, tree};

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
    Run(run::Args),
    /// Say what is installed: version, doors and the MPIs they match, tables
    Info(info::Args),
    /// Say which algorithm a call would get, and by which rule
    Explain(explain::Args),
    /// Measure collectives as a program calls them
    Bench(Box<bench::Args>),
    /// Draw what jobs and measurements have left: traces, results
    Report(report::Args),
    /// Find what serves a network best, by measuring, and write it as a table
    Tune(Box<tune::Args>),
    /// Measure the times of messages between hosts, into a file for predictions
    Measure(measure::Args),
    /// How long broadcasts take, from measured parameters: all algorithms, and the best one
    Predict(predict::Args),
    /// What trials of jobs have found, for later jobs: show it, forget it
    Cache(cache::Args),
    /// Bring the same files to many nodes, without MPI
    Cp(Box<cp::Args>),
    #[command(hide = true)]
    CpAgent {
        /// This file is for this process alone
        #[arg(long)]
        remove_tool: bool,
    },
    /// Why does multicast not work here? Checks hosts and the network between them
    Doctor(doctor::Args),
    #[command(hide = true)]
    DoctorAgent,
    /// Write a broadcast for given hosts as a C file that needs nothing but MPI
    Generate(generate::Args),
    /// A cluster in a box: emulated hosts, switches and links on this machine
    Lab(lab::Args),
    /// Give out multicast addresses to the jobs of a site (RFC 2730)
    Madcap(madcap::Args),
    /// Draw and count broadcast trees over a cluster
    Tree(Box<tree::Args>),
    /// Run collectives in virtual time: under every fault, or on thousands of nodes
    Simulate(Box<simulate::Args>),
    /// Check, format or start a table of rules that choose algorithms
    Table(table::Args),
    /// The tree of switches and hosts: show, check, convert or discover it
    Topology(topology::Args),
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
        Command::Run(args) => run::run(args),
        Command::Info(args) => info::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Bench(args) => bench::run(*args),
        Command::Report(args) => report::run(&args),
        Command::Tune(args) => tune::run(*args),
        Command::Measure(args) => measure::run(args),
        Command::Predict(args) => predict::run(args),
        Command::Cache(args) => cache::run(&args),
        Command::Cp(args) => cp::run(*args),
        Command::CpAgent { remove_tool } => Ok(polycast_cli_cp::run_agent(remove_tool)),
        Command::Doctor(args) => doctor::run(args),
        Command::DoctorAgent => Ok(polycast_cli_doctor::run_agent()),
        Command::Generate(args) => generate::run(args),
        Command::Lab(args) => lab::run(args),
        Command::Madcap(args) => madcap::run(args),
        Command::Tree(args) => tree::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Table(args) => table::run(args),
        Command::Topology(args) => topology::run(args),
        Command::Completions { shell } => {
            let mut command = command_line::without_help(command_line::command::<Cli>());
            let script = completions::script(shell, &mut command);
            outcome::print(&script).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
        Command::CompleteWords => {
            let command = command_line::without_help(command_line::command::<Cli>());
            let line = std::env::var("COMMAND_LINE").unwrap_or_default();
            outcome::print(&completions::words(&command, &line))
                .map(|()| ExitCode::SUCCESS)
                .map_err(Into::into)
        }
        Command::ManPages { directory } => man_pages::write(command_line::command::<Cli>(), &directory)
            .map(|()| ExitCode::SUCCESS)
            .map_err(Into::into),
    };
    result.unwrap_or_else(|error| {
        if outcome::has_lost_reader(&*error) {
            return ExitCode::SUCCESS;
        }
        // In one piece: others write there, too.
        let _ = io::stderr().write_all(format!("polycast: {error}\n").as_bytes());
        ExitCode::from(status::status_of(&*error))
    })
}

#[cfg(test)]
mod tests {
    use clap::Command as ClapCommand;
    use polycast_cli_console::terminal::WIDTH;

    use super::*;

    /// Lines that clap would break, each with its verb.
    fn long_lines(command: &ClapCommand) -> Vec<String> {
        let text = [command.get_before_help(), command.get_after_help(), command.get_after_long_help()];
        let text = text.into_iter().flatten().map(|text| text.to_string()).collect::<Vec<_>>().join("\n");
        let long = text.lines().filter(|line| line.chars().count() > WIDTH);
        let own = long.map(|line| format!("{}: {line}", command.get_name()));
        own.chain(command.get_subcommands().flat_map(long_lines)).collect()
    }

    #[test]
    fn examples_can_be_copied_line_by_line() {
        let command = command_line::command::<Cli>();
        assert!(command.get_after_help().is_some_and(|text| text.to_string().contains("Examples:")));
        let long = long_lines(&command);
        assert!(long.is_empty(), "broken by clap:\n{}", long.join("\n"));
    }
}
