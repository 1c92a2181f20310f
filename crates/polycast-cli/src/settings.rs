//! What the environment tells the library, read here as the library reads it in a job.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use polycast_core::model::{self, Parameters};
use polycast_core::select::{self, Choice, Table};
use polycast_core::topology::{self, Reading, Topology};

/// Switches the library off with one of the values [`OFF`].
pub const SWITCH: &str = "POLYCAST";
/// In lower or upper case; the same words as in the library and in doors/pmpi/preload.c.
pub const OFF: [&str; 4] = ["off", "0", "no", "false"];
/// Forces one algorithm for all broadcasts.
pub const BROADCAST: &str = "POLYCAST_BCAST";
/// Names a table file.
pub const TABLE: &str = "POLYCAST_TABLE";
/// Names a topology file; with one of the values [`OFF`], the network is taken for one switch.
pub const TOPOLOGY: &str = "POLYCAST_TOPOLOGY";
/// Names a file of measured parameters.
pub const PARAMETERS: &str = "POLYCAST_PARAMS";
/// Switches multicast off, or chooses between `ipv4` and `ipv6`.
pub const MULTICAST: &str = "POLYCAST_MULTICAST";
/// Asks for counters at finalize with the value `1`.
pub const REPORT: &str = "POLYCAST_REPORT";

/// What only the tool reads: where things are on this host.
const OF_THE_TOOL: [&str; 2] = ["POLYCAST_LIBDIR", "POLYCAST_LAB_DIRECTORY"];

/// A file that is of no use.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be read.
    #[error("{kind} {file}: {source}")]
    Unreadable {
        /// What it was to be.
        kind: &'static str,
        /// The file.
        file: String,
        /// The system's reason.
        source: io::Error,
    },
    /// It is not what it was to be: its problem, with the file's name.
    #[error("{kind} {problem}")]
    Wrong {
        /// What it was to be.
        kind: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

/// Reads a table file.
pub fn read_table(file: &Path) -> Result<Table, ReadError> {
    read("table", file, select::MAX_TEXT_BYTES, Table::parse)
}

/// Reads a topology file of any format. Of a graph that is no tree, a spanning tree counts, as in a job.
pub fn read_topology(file: &Path) -> Result<Topology, ReadError> {
    let parse = |text: &str, file: &str| Topology::parse(text, file, Reading { spanning_tree: true });
    read("topology", file, topology::MAX_TEXT_BYTES, parse)
}

/// Reads a file of measured parameters.
pub fn read_parameters(file: &Path) -> Result<Parameters, ReadError> {
    read("parameters", file, model::MAX_TEXT_BYTES, Parameters::parse)
}

/// No more of the file is read than such a file may have.
fn read<T, E: fmt::Display>(
    kind: &'static str,
    file: &Path,
    most_bytes: usize,
    parse: impl FnOnce(&str, &str) -> Result<T, E>,
) -> Result<T, ReadError> {
    let origin = file.display().to_string();
    let mut text = String::new();
    let limit = most_bytes as u64 + 1;
    match File::open(file).and_then(|file| file.take(limit).read_to_string(&mut text)) {
        Ok(_) => {
            parse(&text, &origin).map_err(|problem| ReadError::Wrong { kind, problem: problem.to_string() })
        }
        Err(source) => Err(ReadError::Unreadable { kind, file: origin, source }),
    }
}

/// The settings of the environment. What is wrong with one is kept as a note: in a job, the library says it once and
/// goes on as if the setting were not there.
#[derive(Default)]
pub struct Settings {
    /// Whether polycast is switched off.
    pub is_off: bool,
    /// Whether multicast is switched off.
    pub is_multicast_off: bool,
    /// The choice that is forced on all broadcasts.
    pub forced: Option<Choice>,
    /// The table to use in place of the shipped one.
    pub table: Option<Table>,
    /// What is said of the network.
    pub topology: Option<Topology>,
    /// What has been measured of it, and the file that says so.
    pub parameters: Option<(Parameters, String)>,
    /// What is in effect, and what is not and why; one line each.
    pub notes: Vec<String>,
}

impl Settings {
    /// Reads the environment of this process.
    pub fn from_environment() -> Settings {
        let mut settings = Settings::default();
        if let Some(value) = variable(SWITCH).filter(|value| is_off(value)) {
            settings.is_off = true;
            settings.notes.push(format!("{SWITCH}={value}: every call goes to stock"));
        }
        if let Some(value) = variable(MULTICAST).filter(|value| is_off(value)) {
            settings.is_multicast_off = true;
            settings.notes.push(format!("{MULTICAST}={value}: trees serve what multicast would"));
        }
        if let Some(value) = variable(BROADCAST) {
            settings.notes.push(match value.parse() {
                Ok(choice) => {
                    settings.forced = Some(choice);
                    format!("{BROADCAST}={value}: forced on every broadcast, no table is asked")
                }
                Err(error) => format!("{BROADCAST}={value}: {error}; it is left aside"),
            });
        }
        if let Some(file) = variable(TABLE) {
            settings.notes.push(match read_table(Path::new(&file)) {
                Ok(table) => {
                    settings.table = Some(table);
                    format!("{TABLE}={file}: in place of the shipped table")
                }
                Err(error) => format!("{TABLE}: {error}; the shipped table is used"),
            });
        }
        if let Some(file) = variable(TOPOLOGY).filter(|value| !is_off(value)) {
            settings.notes.push(match read_topology(Path::new(&file)) {
                Ok(topology) => {
                    settings.topology = Some(topology);
                    format!("{TOPOLOGY}={file}: the switches and hosts")
                }
                Err(error) => format!("{TOPOLOGY}: {error}; the network is taken for one switch"),
            });
        }
        if let Some(file) = variable(PARAMETERS) {
            settings.notes.push(match read_parameters(Path::new(&file)) {
                Ok(parameters) => {
                    settings.parameters = Some((parameters, file.clone()));
                    format!("{PARAMETERS}={file}: predictions choose among trees")
                }
                Err(error) => format!("{PARAMETERS}: {error}; tables choose"),
            });
        }
        settings
    }

    /// The table that decides what is not forced.
    pub fn table(&self) -> Table {
        self.table.clone().unwrap_or_else(Table::shipped)
    }
}

/// The variables of this environment that are meant for the library, as they are handed on to ranks. Those whose value
/// is no text cannot be.
pub fn of_the_library() -> impl Iterator<Item = (String, String)> {
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let is_for_it =
        |name: &str| name == SWITCH || name.starts_with("POLYCAST_") && !OF_THE_TOOL.contains(&name);
    env::vars_os().filter_map(text).filter(move |(name, _)| is_for_it(name))
}

fn is_off(value: &str) -> bool {
    OFF.contains(&value.to_ascii_lowercase().as_str())
}

fn variable(name: &str) -> Option<String> {
    let value = env::var_os(name)?.to_string_lossy().into_owned();
    Some(value).filter(|value| !value.is_empty())
}
