//! `polycast topology show`.

use std::path::PathBuf;
use std::process::ExitCode;

use polycast_core::files::FileKind;
use polycast_core::topology::Format;

use super::super::{Outcome, print};
use super::draw::draw;
use super::input::Input;
use crate::terminal::Paint;

/// Arguments of `polycast topology show`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  polycast topology show /etc/slurm/topology.conf
  polycast topology show topology.yaml --json            as `convert --to json`
  scp head:/etc/slurm/topology.conf /dev/stdout | polycast topology show -")]
pub struct Args {
    /// Slurm's topology.conf or topology.yaml, or polycast's JSON; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Print polycast's JSON
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(args: &Args) -> Outcome {
    let topology = Input::read(&args.file, FileKind::Topology)?.topology()?;
    match args.json {
        true => print(&topology.write(Format::Json).text)?,
        false => print(&draw(&topology, Paint::of_standard_output()))?,
    }
    Ok(ExitCode::SUCCESS)
}
