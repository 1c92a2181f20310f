//! `polycast table`.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use polycast_core::files::FileKind;
use polycast_core::policy::{CommunicatorShape, SHIPPED_TEXT, Table};

use super::tune::native::{in_its_tree, own_tree};
use super::{Outcome, print, write_file};
use crate::install::Installation;
use crate::job_args;
use crate::mpi::Mpi;
use crate::native::{Library, Rules, RulesFormat, Target, Tree, of_table};
use crate::terminal::count;
use crate::topology_input::Input;
use crate::usage::wrong;

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
        to: Target,

        /// Of a table of ours: for communicators of so many ranks
        #[arg(long, value_name = "N")]
        ranks: Option<u32>,

        /// on so many nodes; else each rank has its own
        #[arg(long, value_name = "N", requires = "ranks")]
        nodes: Option<u32>,

        /// With --to mpich: the MPICH that it is for, whose own decisions are kept for all else
        #[arg(long, value_name = "MPI", default_value = "mpich")]
        mpi: String,
    },
}

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    match args.verb {
        Verb::Check { file } => {
            let input = Input::read(&file, FileKind::Table)?;
            let told = |rules| format!("{}: {}\n", input.name, count(rules, "rule", "rules"));
            print(&match File::read(&input)? {
                File::Rules(rules) => told(rules.count()),
                File::Tree(tree) => told(tree.count()),
                File::Ours(table) => checked(&table)?,
            })?;
        }
        Verb::Show { file } => {
            let input = Input::read(&file, FileKind::Table)?;
            print(&match File::read(&input)? {
                File::Rules(rules) => rules.show(),
                File::Tree(tree) => tree.show(),
                File::Ours(table) => table.to_string(),
            })?;
        }
        Verb::Convert { file, to, ranks, nodes, mpi } => {
            let input = Input::read(&file, FileKind::Table)?;
            let library = if to == Target::Mpich { Library::Mpich } else { Library::OpenMpi };
            let of_table = |table: &Table| -> Result<(Rules, u32), Box<dyn Error>> {
                let ranks = ranks
                    .ok_or_else(|| wrong("--ranks: expected the size of the communicators, found nothing"))?;
                let shape = CommunicatorShape::new(ranks, nodes.unwrap_or(ranks), None)?;
                if library == Library::Mpich && shape.nodes < ranks {
                    return Err(wrong(format_args!(
                        "--nodes: expected one for each of {ranks} ranks, found {}: within a host MPICH has other ways, which no file decides",
                        shape.nodes
                    )));
                }
                let (rules, lacking) = of_table(table, library, shape);
                lacking.iter().for_each(|problem| eprintln!("{}: {problem}", input.name));
                Ok((rules, ranks))
            };
            print(&match (File::read(&input)?, to.format()) {
                (File::Rules(rules), Some(format)) => {
                    rules.write(format, &[]).map_err(|problem| format!("{}: {problem}", input.name))?
                }
                (File::Ours(table), Some(format)) => of_table(&table)?.0.write(format, &[])?,
                (File::Ours(table), None) => {
                    let (rules, ranks) = of_table(&table)?;
                    let mpi = Mpi::resolve(&mpi)?;
                    let program = job_args::installed_program(&Installation::find()?, &mpi)?;
                    in_its_tree(own_tree(&program, &job_args::own_libraries(&mpi)?)?, ranks, &rules)?
                }
                (File::Tree(tree), None) => tree.text(),
                (File::Rules(_), None) | (File::Tree(_), Some(_)) => {
                    let problem = "expected a table of polycast or a file for the same library: the algorithms of Open MPI are not those of MPICH";
                    return Err(format!("{}: {problem}", input.name).into());
                }
            })?;
        }
        Verb::Format { file, write } => {
            let text = read(&file)?.to_string();
            match write {
                true if file == Path::new("-") => {
                    return Err(wrong("--write: expected a FILE, found standard input"));
                }
                true => write_file(&file, text)?,
                false => print(&text)?,
            }
        }
        Verb::Shipped => print(SHIPPED_TEXT)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A file of the user, by the kind of its contents.
enum File {
    Ours(Table),
    /// A file of rules for Open MPI.
    Rules(Rules),
    /// A file of decision trees for MPICH.
    Tree(Tree),
}

impl File {
    fn read(Input { text, name, .. }: &Input) -> Result<File, Box<dyn Error>> {
        let located = |problem| format!("{name}: {problem}");
        if Tree::is_one(text) {
            return Ok(File::Tree(Tree::parse(text).map_err(located)?));
        }
        match RulesFormat::of(text) {
            Some(format) => Ok(File::Rules(Rules::parse(text, format).map_err(located)?)),
            None => Ok(File::Ours(Table::parse(text, name)?)),
        }
    }
}

fn read(file: &Path) -> Result<Table, Box<dyn Error>> {
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
