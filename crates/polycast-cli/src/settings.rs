//! What the environment tells the library, read here as the library reads it in a job.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use polycast_core::select::{Choice, MAX_TEXT_BYTES, Table, TableError};

/// Switches the library off with one of the values [`OFF`].
pub const SWITCH: &str = "POLYCAST";
/// In lower or upper case; the same words as in the library and in doors/pmpi/preload.c.
pub const OFF: [&str; 4] = ["off", "0", "no", "false"];
/// Forces one algorithm for all broadcasts.
pub const BROADCAST: &str = "POLYCAST_BCAST";
/// Names a table file.
pub const TABLE: &str = "POLYCAST_TABLE";
/// Switches multicast off, or chooses between `ipv4` and `ipv6`.
pub const MULTICAST: &str = "POLYCAST_MULTICAST";
/// Asks for counters at finalize with the value `1`.
pub const REPORT: &str = "POLYCAST_REPORT";

/// What only the tool reads: where things are on this host.
const OF_THE_TOOL: [&str; 2] = ["POLYCAST_LIBDIR", "POLYCAST_LAB_DIRECTORY"];

/// A table file that is of no use.
#[derive(Debug, thiserror::Error)]
pub enum ReadTableError {
    /// The file cannot be read.
    #[error("table {file}: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is no table.
    #[error("table {0}")]
    Wrong(#[from] TableError),
}

/// Reads a table file. No more of the file is read than a table may have.
pub fn read_table(file: &Path) -> Result<Table, ReadTableError> {
    let origin = file.display().to_string();
    let mut text = String::new();
    let limit = MAX_TEXT_BYTES as u64 + 1;
    match File::open(file).and_then(|file| file.take(limit).read_to_string(&mut text)) {
        Ok(_) => Ok(Table::parse(&text, &origin)?),
        Err(source) => Err(ReadTableError::Unreadable { file: origin, source }),
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
    /// What is in effect, and what is not and why; one line each.
    pub notes: Vec<String>,
}

impl Settings {
    /// Reads the environment of this process.
    pub fn from_environment() -> Settings {
        let mut settings = Settings::default();
        if let Some(value) =
            variable(SWITCH).filter(|value| OFF.contains(&value.to_ascii_lowercase().as_str()))
        {
            settings.is_off = true;
            settings.notes.push(format!("{SWITCH}={value}: every call goes to stock"));
        }
        if let Some(value) =
            variable(MULTICAST).filter(|value| OFF.contains(&value.to_ascii_lowercase().as_str()))
        {
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

fn variable(name: &str) -> Option<String> {
    let value = env::var_os(name)?.to_string_lossy().into_owned();
    Some(value).filter(|value| !value.is_empty())
}
