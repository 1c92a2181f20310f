//! `polycast cache`: what trials of jobs have found, which later jobs begin with.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use polycast_core::policy::trials::{CACHE_FILE, MAX_AGE_DAYS, Memory};
use polycast_core::units::Bytes;
use polycast_core::variables::cache_folder;
use serde::Serialize;

use super::{Outcome, print, print_json};
use crate::settings::{CACHE, variable};
use crate::terminal::{count, nanoseconds, paragraph, table};

/// Arguments of `polycast cache`.
#[derive(clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  polycast cache show                what jobs have found, by MPI
  polycast cache show --json
  polycast cache clear               jobs compare anew

POLYCAST_CACHE names the folder. docs/table.md says what trials compare."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// List what jobs of this user have found by trials, by MPI and hosts
    Show {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Forget all of it: jobs compare anew
    Clear,
}

/// Runs the verb.
pub fn run(args: &Args) -> Outcome {
    match args.verb {
        Verb::Show { json } => show(json),
        Verb::Clear => clear(),
    }
}

/// The contents of the cache, as `--json` says them.
#[derive(Serialize)]
struct Cache {
    /// The file; `None` if POLYCAST_CACHE is off, or this user has no home.
    file: Option<String>,
    found: Vec<Finding>,
    /// Lines that no trial of this version has written.
    unread_lines: usize,
}

/// The finding of trials about calls of about one size.
#[derive(Serialize)]
struct Finding {
    mpi: String,
    hosts: String,
    ranks: u32,
    nodes: u32,
    collective: String,
    /// The smallest size in bytes; the finding is about sizes up to twice as many.
    first_bytes: u64,
    stays: String,
    ways: Vec<CachedWay>,
    is_tuned: bool,
    age_days: u64,
}

#[derive(Serialize)]
struct CachedWay {
    choice: String,
    ns: u64,
}

/// Prints the contents of the cache.
pub fn show(json: bool) -> Outcome {
    let cache = Cache::read()?;
    if json {
        print_json(&cache)?
    } else {
        print(&cache.text())?
    }
    Ok(ExitCode::SUCCESS)
}

fn clear() -> Outcome {
    let cache = Cache::read()?;
    let Some(file) = &cache.file else { return Ok(nowhere()?) };
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(format!("cannot remove {file}: {error}").into());
        }
        _ => {}
    }
    let findings = count(cache.found.len(), "finding", "findings");
    print(&format!("{}\n", paragraph(&format!("{file}: {findings} forgotten; jobs compare anew"))))?;
    Ok(ExitCode::SUCCESS)
}

fn nowhere() -> io::Result<ExitCode> {
    print(&format!(
        "{}\n",
        paragraph(&format!("nothing is kept: {CACHE} is off, or there is no home folder"))
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The file of trials of this user; `None`: none is kept.
pub fn file() -> Option<PathBuf> {
    Some(cache_folder(variable)?.join(CACHE_FILE))
}

/// Days since 1970, as findings count them.
pub fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / (24 * 60 * 60))
}

impl Cache {
    fn read() -> Result<Cache, String> {
        let Some(file) = file() else {
            return Ok(Cache { file: None, found: Vec::new(), unread_lines: 0 });
        };
        // A name may lead to a pipe that nobody writes to.
        let text = match file.is_file().then(|| fs::read(&file)) {
            None => Vec::new(),
            Some(text) => text.map_err(|error| format!("cannot read {}: {error}", file.display()))?,
        };
        let today = today();
        let (memories, unread_lines) = Memory::read_all(&String::from_utf8_lossy(&text), today);
        let mut found: Vec<Finding> = memories.iter().map(|memory| Finding::new(memory, today)).collect();
        found.sort_by(|one, other| one.order().cmp(&other.order()));
        Ok(Cache { file: Some(file.display().to_string()), found, unread_lines })
    }

    fn text(&self) -> String {
        let Some(file) = &self.file else {
            return format!("nothing is kept: {CACHE} is off, or there is no home folder\n");
        };
        let findings = count(self.found.len(), "finding", "findings");
        let mut text =
            format!("{}\n", paragraph(&format!("{file}: {findings}, each kept for {MAX_AGE_DAYS} days")));
        for of_place in self.found.chunk_by(|one, other| (&one.mpi, &one.hosts) == (&other.mpi, &other.hosts))
        {
            let head = format!("on {} above {}", of_place[0].hosts, of_place[0].mpi);
            let header = ["COLLECTIVE", "STAYS", "COMPARED", "RANKS", "NODES", "FROM", "DAYS"];
            let rows = of_place.iter().map(Finding::row).collect();
            text += &format!("\n{}\n{}", paragraph(&head), table(header, rows, 3));
        }
        if self.unread_lines > 0 {
            let lines = count(self.unread_lines, "line", "lines");
            text += &format!("\n{}\n", paragraph(&format!("{lines} cannot be read, and count as not there")));
        }
        text
    }
}

impl Finding {
    fn new(memory: &Memory, today: u64) -> Finding {
        let (mpi, hosts) = memory.place();
        let (collective, first_bytes, ranks, nodes) = memory.about();
        Finding {
            mpi: mpi.to_owned(),
            hosts: hosts.to_owned(),
            ranks,
            nodes,
            collective: collective.to_owned(),
            first_bytes,
            stays: memory.stays().to_owned(),
            ways: memory.times().map(|(choice, ns)| CachedWay { choice: choice.to_owned(), ns }).collect(),
            is_tuned: memory.recall_tuned().is_some(),
            age_days: today.saturating_sub(memory.day()),
        }
    }

    fn order(&self) -> impl Ord {
        let Finding { mpi, hosts, collective, nodes, ranks, first_bytes, .. } = self;
        (mpi.clone(), hosts.clone(), collective.clone(), *nodes, *ranks, *first_bytes)
    }

    fn row(&self) -> Vec<String> {
        let ways =
            self.ways.iter().map(|CachedWay { choice, ns }| format!("{choice} {}", nanoseconds(*ns as f64)));
        let tuned = if self.is_tuned { " (tuned)" } else { "" };
        vec![
            self.collective.clone(),
            format!("{}{tuned}", self.stays),
            ways.collect::<Vec<_>>().join(", "),
            self.ranks.to_string(),
            self.nodes.to_string(),
            Bytes(self.first_bytes).to_string(),
            self.age_days.to_string(),
        ]
    }
}
