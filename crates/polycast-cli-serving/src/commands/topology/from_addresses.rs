//! `polycast topology from-addresses`.

use std::path::PathBuf;

use polycast_core::files::FileKind;
use polycast_core::topology::{Address, Reading, Topology, host_of_address};

use super::super::Outcome;
use super::convert::Output;
use super::input::Input;

/// Arguments of `polycast topology from-addresses`.
#[derive(clap::Args)]
#[command(after_help = "\
Slurm's topology plugins tell every rank of a job where its host is, as in
s3.s0.dev0. A job reads this by itself; the file is for what shall outlive the
job.

Examples:
  srun -N 16 sh -c 'echo $(hostname) $SLURM_TOPOLOGY_ADDR' > addresses
  polycast topology from-addresses addresses -o cluster.json
  srun -N 16 printenv SLURM_TOPOLOGY_ADDR |
    polycast topology from-addresses - --to slurm-conf")]
pub struct Args {
    /// A line per host: its name and its SLURM_TOPOLOGY_ADDR, or that alone; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    output: Output,
}

/// Runs the verb.
pub fn run(args: &Args) -> Outcome {
    let input = Input::read(&args.file, FileKind::Addresses)?;
    let mut addresses = Vec::new();
    for (index, line) in input.text.lines().enumerate() {
        let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
        let line = index + 1;
        match words.as_slice() {
            [] => {}
            [address] => addresses.push(Address { line, host: host_of_address(address), address }),
            [host, address] => addresses.push(Address { line, host, address }),
            _ => {
                let expected = "expected a host and its SLURM_TOPOLOGY_ADDR, such as dev0 s3.s0.dev0";
                return Err(format!("{}:{line}: {expected}, found {} words", input.name, words.len()).into());
            }
        }
    }
    args.output.write(&Topology::from_addresses(&addresses, &input.name, Reading { spanning_tree: true })?)
}
