//! `polycast table`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use polycast_core::files::FileKind;
use polycast_core::policy::{CommunicatorShape, SHIPPED_TEXT, Table};

use super::topology::Input;
use super::{Outcome, print, write_file};
use crate::native::{Format, Rules, of_table};
use crate::terminal::count;

/// Arguments of `polycast table`.
#[derive(clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  polycast table shipped > cluster.toml   a table to start from
  polycast table check cluster.toml       mistakes, and rules without use
  polycast table format cluster.toml --write
  polycast table convert cluster.toml --to openmpi --ranks 16 > openmpi.rules
  polycast explain --ranks 64 --nodes 4 --table cluster.toml

A job uses a table by POLYCAST_TABLE=FILE."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

/// What to do.
#[derive(clap::Subcommand)]
enum Verb {
    /// Look for mistakes, and for rules that never decide
    Check {
        /// The table; - is standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Print a table in the form that all have: keys in one order, comments above their rules
    Format {
        /// The table; - is standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,

        /// Write it into the file instead
        #[arg(long)]
        write: bool,
    },
    /// Print the table that is built in
    Shipped,
    /// Say in words what a decision file of a stock library says
    Show {
        /// The file; - is standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Write a table, or a decision file of a stock library, as one of the latter
    Convert {
        /// The file; - is standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,

        /// The format
        #[arg(long, value_name = "FORMAT")]
        to: Format,

        /// Of a table of ours: for communicators of so many ranks
        #[arg(long, value_name = "N")]
        ranks: Option<u32>,

        /// on so many nodes; else each rank has its own
        #[arg(long, value_name = "N", requires = "ranks")]
        nodes: Option<u32>,
    },
}

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    match args.verb {
        Verb::Check { file } => {
            let input = Input::read(&file, FileKind::Table)?;
            match native(&input)? {
                Some(rules) => {
                    print(&format!("{}: {}\n", input.name, count(rules.count(), "rule", "rules")))?
                }
                None => print(&checked(&Table::parse(&input.text, &input.name)?)?)?,
            }
        }
        Verb::Show { file } => {
            let input = Input::read(&file, FileKind::Table)?;
            match native(&input)? {
                Some(rules) => print(&rules.show())?,
                None => print(&Table::parse(&input.text, &input.name)?.to_string())?,
            }
        }
        Verb::Convert { file, to, ranks, nodes } => {
            let input = Input::read(&file, FileKind::Table)?;
            let rules = match native(&input)? {
                Some(rules) => rules,
                None => {
                    let ranks =
                        ranks.ok_or("--ranks: expected the size of the communicators, found nothing")?;
                    let shape = CommunicatorShape::new(ranks, nodes.unwrap_or(ranks), None)?;
                    let (rules, lacking) = of_table(&Table::parse(&input.text, &input.name)?, shape);
                    lacking.iter().for_each(|problem| eprintln!("{}: {problem}", input.name));
                    rules
                }
            };
            print(&rules.write(to, &[]))?;
        }
        Verb::Format { file, write } => {
            let text = read(&file)?.to_string();
            match write {
                true if file == Path::new("-") => {
                    return Err("--write: expected a FILE, found standard input".into());
                }
                true => write_file(&file, text)?,
                false => print(&text)?,
            }
        }
        Verb::Shipped => print(SHIPPED_TEXT)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// `None`: it is none of a stock library.
fn native(input: &Input) -> Result<Option<Rules>, Box<dyn std::error::Error>> {
    let Some(format) = Format::of(&input.text) else { return Ok(None) };
    let rules = Rules::parse(&input.text, format).map_err(|problem| format!("{}: {problem}", input.name))?;
    Ok(Some(rules))
}

fn read(file: &Path) -> Result<Table, Box<dyn std::error::Error>> {
    let input = Input::read(file, FileKind::Table)?;
    Ok(Table::parse(&input.text, &input.name)?)
}

fn checked(table: &Table) -> Result<String, std::fmt::Error> {
    let (name, mut out) = (table.origin(), String::new());
    for (rule, before) in table.idle_rules() {
        let (line, before) = (rule.line, before.line);
        writeln!(
            out,
            "{name}:{line}: never decides: the rule in line {before} is for all its calls (warning)"
        )?;
    }
    writeln!(out, "{name}: {}", count(table.rules().len(), "rule", "rules"))?;
    Ok(out)
}
