//! `polycast topology check`.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use polycast_core::files::FileKind;
use polycast_core::topology::{ProblemKind, Reading, TopologyError};
use serde::Serialize;

use super::super::{Outcome, print};
use super::draw::summary;
use super::input::Input;
use crate::terminal::{count, hanging, paragraph};

/// Arguments of `polycast topology check`.
#[derive(clap::Args)]
#[command(after_help = "\
Exit status 1 if there are mistakes. Where the switches are not a tree, that is
a warning: a job takes a spanning tree, and what it leaves out is told.

Examples:
  polycast topology check /etc/slurm/topology.conf
  polycast topology check topology.yaml --json")]
pub struct Args {
    /// Slurm's topology.conf or topology.yaml, or polycast's JSON; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(args: &Args) -> Outcome {
    let input = Input::read(&args.file, FileKind::Topology)?;
    let report = Report::new(&input);
    let text = if args.json { serde_json::to_string_pretty(&report)? + "\n" } else { report.text()? };
    print(&text)?;
    Ok(if report.topology.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[derive(Serialize)]
struct Report {
    file: String,
    mistakes: Vec<Mistake>,
    /// The findings that keep the description from being a tree.
    warnings: Vec<Mistake>,
    /// The topology that was found, if a job can use it.
    topology: Option<String>,
    /// Notes on what was assumed, and what is left out.
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Mistake {
    /// The line's number, counted from 1; 0 for the file as a whole.
    line: usize,
    text: String,
    /// The finding as compilers print theirs: file, line, text.
    #[serde(skip)]
    printed: String,
}

impl Report {
    fn new(input: &Input) -> Report {
        let strict = input.parse(Reading::default());
        let problems = strict.err().map_or(Vec::new(), |TopologyError { problems }| problems);
        let of_kind = |kind: ProblemKind| {
            let wanted = problems.iter().filter(|problem| problem.kind == kind);
            wanted
                .map(|problem| Mistake {
                    line: problem.line,
                    text: problem.text.clone(),
                    printed: problem.to_string(),
                })
                .collect()
        };
        let topology = input.topology().ok();
        let mut notes = topology.as_ref().map_or(Vec::new(), |topology| topology.notes.clone());
        // A reader that goes on notes what is a warning here.
        notes.retain(|note| problems.iter().all(|problem| problem.text != *note));
        Report {
            file: input.name.clone(),
            mistakes: of_kind(ProblemKind::Mistake),
            warnings: of_kind(ProblemKind::Irregular),
            notes,
            topology: topology.as_ref().map(summary),
        }
    }

    fn text(&self) -> Result<String, std::fmt::Error> {
        let mut out = String::new();
        for mistake in &self.mistakes {
            writeln!(out, "{}", mistake.printed)?;
        }
        for warning in &self.warnings {
            writeln!(out, "{} (warning)", warning.printed)?;
        }
        for note in &self.notes {
            writeln!(out, "{}", hanging("note: ", "    ", note))?;
        }
        match &self.topology {
            Some(found) => writeln!(out, "{}", paragraph(&format!("{}: {found}", self.file)))?,
            None => {
                writeln!(out, "{}: {} to mend", self.file, count(self.mistakes.len(), "mistake", "mistakes"))?
            }
        }
        Ok(out)
    }
}
