//! `polycast topology`.

mod check;
mod convert;
mod discover;
mod draw;
mod input;
mod show;

pub use input::Input;

use super::Outcome;

/// Arguments of `polycast topology`.
#[derive(clap::Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  polycast topology show /etc/slurm/topology.conf        the tree of switches and hosts
  polycast topology check topology.yaml                  every mistake with its line
  polycast topology convert topology.conf --to dot | dot -Tsvg > cluster.svg
  polycast topology discover --hosts a,b,c,d             find it by measurement

A job uses a topology by POLYCAST_TOPOLOGY=FILE.";

/// What to do.
#[derive(clap::Subcommand)]
enum Verb {
    /// Draw the tree, with rates and what was assumed
    Show(show::Args),
    /// Look for mistakes; each is told with its line
    Check(check::Args),
    /// Write the topology in another format
    Convert(convert::Args),
    /// Find the switches by measurement: hosts whose flows disturb each other share a link
    Discover(discover::Args),
}

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    match args.verb {
        Verb::Show(args) => show::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Convert(args) => convert::run(&args),
        Verb::Discover(args) => discover::run(&args),
    }
}
