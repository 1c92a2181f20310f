//! `polycast info`.

mod algorithms;
mod groups;

use std::fmt::Write;
use std::process::ExitCode;

use polycast_core::policy::{Collective, Table};
use polycast_core::variables;
use polycast_net::verbs::OBJECT;
use serde::Serialize;

use super::{Outcome, cache, print, print_json};
use crate::install::Installation;
use crate::mpi::{Abi, Mpi};
use crate::settings::{self, Settings};

/// Arguments of `polycast info`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  polycast info
  polycast info --algorithms
  polycast info --groups
  polycast info --cache
  polycast info --json | jq '.launchers[] | select(.has_door) | .path'")]
pub struct Args {
    /// List the algorithms that tables and POLYCAST_BCAST can name, with their parameters
    #[arg(long)]
    algorithms: bool,
    /// Tell how likely it is that jobs share a multicast group
    #[arg(long, conflicts_with_all = ["algorithms", "json"])]
    groups: bool,

    /// List what jobs of this user have found by trials, as `polycast cache show`
    #[arg(long, conflicts_with_all = ["algorithms", "groups"])]
    cache: bool,

    /// Print one JSON object; with --algorithms, an array
    #[arg(long)]
    json: bool,
}

/// Everything that is said, as `--json` says it.
#[derive(Serialize)]
struct Info {
    version: &'static str,
    /// The reason why there is no library, if there is none.
    problem: Option<String>,
    library_directory: Option<String>,
    preload: Option<String>,
    doors: Vec<Door>,
    /// The component for Open MPI; `None` if it was not built.
    component: Option<String>,
    launchers: Vec<Launcher>,
    verbs: VerbsInfo,
    tables: Vec<TableInfo>,
    /// The settings in the environment, one line each.
    environment: Vec<String>,
    variables: Vec<VariableInfo>,
    /// Names that are unknown, and values that are none.
    problems: Vec<String>,
}

#[derive(Serialize)]
struct VariableInfo {
    name: &'static str,
    /// The value in force; `None` if the default counts.
    value: Option<String>,
    /// The file that sets the value; `None` if the environment does.
    file: Option<&'static str>,
    values: String,
    default: &'static str,
    meaning: &'static str,
}

#[derive(Serialize)]
struct Door {
    name: &'static str,
    /// The path of the door; `None` if it was not built.
    path: Option<String>,
    serves: &'static [&'static str],
}

/// The state of InfiniBand and RoCE.
#[derive(Serialize)]
struct VerbsInfo {
    /// The object that multicasts over them; `None` if it was not built.
    path: Option<String>,
    /// The verbs devices of this host, as the kernel lists them.
    devices: Vec<String>,
}

#[derive(Serialize)]
struct Launcher {
    path: String,
    mpi: String,
    version: String,
    family: &'static str,
    has_door: bool,
    /// The compiler that builds the door.
    #[serde(skip)]
    mpicc: &'static str,
}

#[derive(Serialize)]
struct TableInfo {
    origin: String,
    rules: usize,
    in_use: bool,
}

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    if args.groups {
        print(&groups::text())?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.cache {
        return cache::show(args.json);
    }
    if args.algorithms {
        match args.json {
            true => print_json(&algorithms::all())?,
            false => print(&algorithms::text())?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let info = Info::collect();
    let text = if args.json { serde_json::to_string_pretty(&info)? + "\n" } else { info.text()? };
    print(&text)?;
    if let Some(problem) = &info.problem {
        return Err(problem.as_str().into());
    }
    Ok(ExitCode::SUCCESS)
}

impl Info {
    fn collect() -> Info {
        let installation = Installation::find();
        let (installation, problem) = match installation {
            Ok(installation) => (Some(installation), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let door = |abi| installation.as_ref().and_then(|found| found.door(abi));
        let doors = Abi::ALL.map(|abi| Door {
            name: abi.name(),
            path: door(abi).map(|path| path.display().to_string()),
            serves: abi.sonames(),
        });
        let launchers = Mpi::installed().into_iter().flatten().map(|mpi| Launcher {
            path: mpi.path().display().to_string(),
            mpi: mpi.title(),
            version: mpi.version().to_string(),
            family: mpi.family().name(),
            has_door: door(mpi.family().into()).is_some(),
            mpicc: Abi::from(mpi.family()).example_mpicc(),
        });
        let settings = Settings::from_environment();
        let built = |file: &str| {
            let path = installation.as_ref()?.library_directory().join(file);
            path.is_file().then(|| path.display().to_string())
        };
        Info {
            version: env!("CARGO_PKG_VERSION"),
            problem,
            library_directory: installation.as_ref().map(|i| i.library_directory().display().to_string()),
            preload: installation.as_ref().map(|i| i.preload().display().to_string()),
            doors: doors.into(),
            component: ["openmpi", "openmpi5"]
                .into_iter()
                .find_map(|line| built(&format!("{line}/mca_coll_polycast.so"))),
            launchers: launchers.collect(),
            verbs: VerbsInfo { path: built(OBJECT), devices: polycast_net::verbs::devices() },
            tables: tables(&settings),
            environment: settings.notes,
            variables: variables::ALL.map(VariableInfo::from).into(),
            problems: settings::problems(&[]),
        }
    }

    fn text(&self) -> Result<String, std::fmt::Error> {
        let mut out = String::new();
        writeln!(out, "polycast {}", self.version)?;
        match &self.library_directory {
            Some(directory) => writeln!(out, "library     {directory}")?,
            None => out.push_str("library     none\n"),
        }
        out.push_str("\ndoors\n");
        for door in &self.doors {
            let state = door.path.as_deref().unwrap_or("not built");
            writeln!(out, "  {:<9} {state}   for {}", door.name, door.serves.join(", "))?;
        }
        if let Some(component) = &self.component {
            writeln!(out, "  component {component}   for Open MPI without preloading")?;
        }
        out.push_str("\nmpiexec on PATH\n");
        let width = self.launchers.iter().map(|launcher| launcher.mpi.len()).max().unwrap_or_default();
        for launcher in &self.launchers {
            let door = match launcher.has_door {
                true => format!("door {}", launcher.family),
                false => format!("no door, `make doors MPICC={}` builds it", launcher.mpicc),
            };
            writeln!(out, "  {:<width$}   {}   {door}", launcher.mpi, launcher.path)?;
        }
        if self.launchers.is_empty() {
            out.push_str(
                "  none; Debian: apt-get install openmpi-bin libopenmpi-dev, or mpich libmpich-dev\n",
            );
        }
        let path = self.verbs.path.as_deref().unwrap_or("not built: its headers are in rdma-core");
        let devices =
            if self.verbs.devices.is_empty() { "none".to_owned() } else { self.verbs.devices.join(", ") };
        write!(
            out,
            "\nInfiniBand and RoCE\n  devices   {devices}\n  multicast {path}   not yet run on hardware\n"
        )?;
        out.push_str("\ntables\n");
        for table in &self.tables {
            let rules = if table.rules == 1 { "rule" } else { "rules" };
            let used = if table.in_use { ", in use" } else { "" };
            writeln!(out, "  {}   {} {rules}{used}", table.origin, table.rules)?;
        }
        if !self.environment.is_empty() {
            out.push_str("\nenvironment\n");
        }
        for note in &self.environment {
            writeln!(out, "  {note}")?;
        }
        out.push_str("\nvariables, and in parentheses what holds where nothing is set\n");
        for VariableInfo { name, value, file, default, .. } in &self.variables {
            match value {
                Some(value) => {
                    let from = file.map(|file| format!("   from {file}")).unwrap_or_default();
                    writeln!(out, "  {name:<22} {value}{from}")?;
                }
                None => writeln!(out, "  {name:<22} ({default})")?,
            }
        }
        if !self.problems.is_empty() {
            out.push_str("\nwrong with them\n");
        }
        for problem in &self.problems {
            writeln!(out, "  {problem}")?;
        }
        Ok(out)
    }
}

impl From<variables::Variable> for VariableInfo {
    fn from(variable: variables::Variable) -> VariableInfo {
        let variables::Variable { name, values, default, meaning, .. } = variable;
        let (value, file) = (settings::variable(name), settings::file_of(name));
        VariableInfo { name, value, file, values: values.written(), default, meaning }
    }
}

/// The shipped table, and the one of the environment if there is one.
fn tables(settings: &Settings) -> Vec<TableInfo> {
    let is_forced = settings.forced.iter().any(|(collective, _)| *collective == Collective::Broadcast);
    let decides = !settings.is_off && !is_forced;
    let info = |table: &Table, in_use| TableInfo {
        origin: table.origin().to_owned(),
        rules: table.rules().len(),
        in_use: in_use && decides,
    };
    let shipped = info(&Table::shipped(), settings.table.is_none());
    let named = settings.table.as_ref().map(|table| info(table, true));
    std::iter::once(shipped).chain(named).collect()
}
