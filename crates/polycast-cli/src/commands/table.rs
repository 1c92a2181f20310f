//! `polycast table`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use polycast_core::files::FileKind;
use polycast_core::policy::{SHIPPED_TEXT, Table};

use super::topology::Input;
use super::{Outcome, print, write_file};
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
}

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    match args.verb {
        Verb::Check { file } => print(&checked(&read(&file)?)?)?,
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
