//! `polycast explain`.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use polycast_core::select::{BroadcastChoices, Choice, Collective, Explanation, Shape, Table, Verdict};
use polycast_core::units::Bytes;
use serde::Serialize;

use super::{Outcome, print};
use crate::settings::{Settings, read_table};

/// Arguments of `polycast explain`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  polycast explain --collective bcast --ranks 16 --nodes 16 --bytes 1MiB
  polycast explain --ranks 64 --nodes 4               what each size would get
  polycast explain --ranks 64 --nodes 4 --no-multicast    in a cloud, for example
  polycast explain --ranks 64 --nodes 4 --bytes 64KiB --table cluster.toml --json

POLYCAST, POLYCAST_BCAST, POLYCAST_TABLE and POLYCAST_MULTICAST count here as they do in a job.")]
pub struct Args {
    /// The operation, named as its MPI function
    #[arg(long, value_name = "NAME", default_value = "bcast")]
    collective: Collective,

    /// Ranks in the communicator
    #[arg(long, value_name = "N")]
    ranks: u32,

    /// Nodes that hold them; by default one for each rank
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,

    /// Ranks on the node that holds most; by default they are spread evenly
    #[arg(long, value_name = "N")]
    ranks_per_node: Option<u32>,

    /// The network between the nodes does not carry multicast (`polycast doctor` tells)
    #[arg(long)]
    no_multicast: bool,

    /// Bytes of the call, such as 64KiB; without it, every size is shown
    #[arg(long, value_name = "SIZE")]
    bytes: Option<Bytes>,

    /// Decide by this table instead of the one in effect
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    let shape = Shape::new(args.ranks, args.nodes.unwrap_or(args.ranks), args.ranks_per_node)?;
    let mut settings = Settings::from_environment();
    let shape =
        if args.no_multicast || settings.is_multicast_off { shape.without_multicast() } else { shape };
    if let Some(file) = &args.table {
        settings.table = Some(read_table(file)?);
        settings.notes.push(format!("--table {}: in place of any other table", file.display()));
    }
    let answer = Answer::new(&args, shape, &settings);
    let text = if args.json { serde_json::to_string_pretty(&answer)? + "\n" } else { answer.text()? };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Everything that is said, as `--json` says it.
#[derive(Serialize)]
struct Answer {
    collective: &'static str,
    ranks: u32,
    nodes: u32,
    ranks_per_node: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Decision>,
    /// Without a size: what each range of sizes gets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sizes: Vec<Size>,
    /// What the environment and options changed, one line each.
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Decision {
    bytes: u64,
    choice: String,
    /// `environment`, or the table that was asked.
    decided_by: String,
    /// The line of the table that decided.
    line: Option<usize>,
    because: Option<String>,
    looked_at: Vec<Rule>,
}

#[derive(Serialize)]
struct Rule {
    line: usize,
    choice: String,
    matches: bool,
    verdict: String,
}

#[derive(Serialize)]
struct Size {
    from_bytes: u64,
    choice: String,
}

impl Answer {
    fn new(args: &Args, shape: Shape, settings: &Settings) -> Answer {
        let table = settings.table();
        let forced = if settings.is_off { Some(Choice::Stock) } else { settings.forced };
        let decision = args.bytes.map(|bytes| match forced {
            Some(choice) => Decision::forced(choice, bytes),
            None => Decision::by_table(table.explain(args.collective, shape, bytes), bytes),
        });
        let sizes = if decision.is_some() { Vec::new() } else { sizes(forced, &table, shape) };
        Answer {
            collective: args.collective.name(),
            ranks: shape.ranks,
            nodes: shape.nodes,
            ranks_per_node: shape.ranks_per_node,
            decision,
            sizes,
            notes: settings.notes.clone(),
        }
    }

    fn text(&self) -> Result<String, std::fmt::Error> {
        let mut out = String::new();
        let Answer { collective, ranks, nodes, ranks_per_node, .. } = self;
        let on = format!("ranks {ranks}, nodes {nodes}, ranks_per_node {ranks_per_node}");
        match &self.decision {
            Some(decision) => {
                writeln!(out, "{collective} of {}, {on}: {}", Bytes(decision.bytes), decision.choice)?;
                decision.write(&mut out)?;
            }
            None => {
                writeln!(out, "{collective}, {on}")?;
                for size in &self.sizes {
                    writeln!(out, "  from {:>8}   {}", Bytes(size.from_bytes), size.choice)?;
                }
            }
        }
        if !self.notes.is_empty() {
            out.push('\n');
        }
        for note in &self.notes {
            writeln!(out, "{note}")?;
        }
        Ok(out)
    }
}

impl Decision {
    fn forced(choice: Choice, bytes: Bytes) -> Decision {
        Decision {
            bytes: bytes.0,
            choice: choice.to_string(),
            decided_by: "environment".to_owned(),
            line: None,
            because: None,
            looked_at: Vec::new(),
        }
    }

    fn by_table(explanation: Explanation, bytes: Bytes) -> Decision {
        let winner = explanation.winner();
        Decision {
            bytes: bytes.0,
            choice: explanation.choice.to_string(),
            line: winner.map(|rule| rule.line),
            because: winner.and_then(|rule| rule.because.clone()),
            looked_at: explanation
                .looked_at
                .iter()
                .map(|rule| Rule {
                    line: rule.line,
                    choice: rule.choice.to_string(),
                    matches: rule.verdict == Verdict::Matches,
                    verdict: rule.verdict.to_string(),
                })
                .collect(),
            decided_by: explanation.origin,
        }
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        match self.line {
            Some(line) => writeln!(out, "  decided by {}, line {line}", self.decided_by)?,
            None if self.decided_by == "environment" => writeln!(out, "  decided by the environment")?,
            None => writeln!(
                out,
                "  decided by {}: no rule matches, so the MPI below serves it",
                self.decided_by
            )?,
        }
        if let Some(because) = &self.because {
            writeln!(out, "  because {because}")?;
        }
        if !self.looked_at.is_empty() {
            out.push_str("\nrules looked at\n");
        }
        let width = self.looked_at.iter().map(|rule| rule.choice.len()).max().unwrap_or(0);
        for rule in &self.looked_at {
            writeln!(out, "  line {:<4} {:<width$}   {}", rule.line, rule.choice, rule.verdict)?;
        }
        Ok(())
    }
}

fn sizes(forced: Option<Choice>, table: &Table, shape: Shape) -> Vec<Size> {
    let choices = forced.map_or_else(|| table.broadcast_rules(shape), BroadcastChoices::always);
    let sizes =
        choices.intervals().map(|(from, choice)| Size { from_bytes: from.0, choice: choice.to_string() });
    sizes.collect()
}
