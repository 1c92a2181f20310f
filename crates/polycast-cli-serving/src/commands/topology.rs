//! `polycast topology`.

mod check;
mod convert;
mod discover;
mod draw;
mod from_addresses;
mod from_lldp;
mod show;

use polycast_cli_console::topology_input as input;

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
  polycast topology show /etc/slurm/topology.conf    the tree of switches
  polycast topology check topology.yaml              every mistake with its line
  polycast topology convert topology.conf --to dot | dot -Tsvg > cluster.svg
  polycast topology discover --hosts a,b,c,d             find it by measurement
  polycast topology from-lldp lldp/ -o cluster.json  from lldpcli on the hosts

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
    /// Find the leaf switches in what lldpcli prints on the hosts
    FromLldp(from_lldp::Args),
    /// Put together what Slurm tells the ranks of a job in SLURM_TOPOLOGY_ADDR
    FromAddresses(from_addresses::Args),
}

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    match args.verb {
        Verb::Show(args) => show::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Convert(args) => convert::run(&args),
        Verb::Discover(args) => discover::run(&args),
        Verb::FromLldp(args) => from_lldp::run(&args),
        Verb::FromAddresses(args) => from_addresses::run(&args),
    }
}
