//! `polycast topology convert`.

use std::path::PathBuf;
use std::process::ExitCode;

use polycast_core::files::FileKind;
use polycast_core::topology::{Format, Topology};

use super::super::{Outcome, write_output};
use super::input::Input;
use crate::terminal::paragraph;

/// Arguments of `polycast topology convert`.
#[derive(clap::Args)]
#[command(after_help = "\
What the format cannot say is told on standard error. Where the switches are not
a tree, a spanning tree is written.

Examples:
  polycast topology convert topology.conf --to slurm-yaml -o topology.yaml
  polycast topology convert topology.yaml --to dot | dot -Tsvg > cluster.svg")]
pub struct Args {
    /// Slurm's topology.conf or topology.yaml, or polycast's JSON; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    output: Output,
}

/// In which format and where to a topology is written.
#[derive(clap::Args)]
pub struct Output {
    /// The format to write
    #[arg(long, value_name = "FORMAT", default_value = "json", value_parser = parse_format())]
    to: Format,

    /// The file to write; standard output by default
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: &Args) -> Outcome {
    let topology = Input::read(&args.file, FileKind::Topology)?.topology()?;
    args.output.write(&topology)
}

impl Output {
    /// Writes the topology; notes and what the format cannot say go to standard error.
    pub fn write(&self, topology: &Topology) -> Outcome {
        let written = topology.write(self.to);
        for note in &topology.notes {
            eprintln!("{}", paragraph(&format!("polycast: note: {note}")));
        }
        for lost in &written.lost {
            eprintln!("{}", paragraph(&format!("polycast: not in {}: {lost}", self.to)));
        }
        write_output(&self.output, &written.text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Names the formats in the help and in shell completion.
pub(super) fn parse_format() -> impl clap::builder::TypedValueParser<Value = Format> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| name.parse::<Format>())
}
