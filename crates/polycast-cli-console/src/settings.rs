//! What the environment and the site's files tell the library, read here as the library reads it in a job.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::LazyLock;

use polycast_core::files::FileKind;
use polycast_core::model::{self, Parameters};
use polycast_core::policy::{self, Choice, Collective, ServedSums, Table};
use polycast_core::topology::{self, Problem, Reading, Topology, TopologyError};
use polycast_core::variables::{self, LIBRARY_DIRECTORY, Reader, SiteFiles, is_off};
pub use polycast_core::variables::{
    BROADCAST, CACHE, FORCED, MULTICAST, PARAMETERS, REPORT, SHARED_MEMORY, SUMS, SWITCH, TABLE, TOPOLOGY,
    TRIALS, WITNESS,
};
use polycast_net::InterfaceChoice;

/// A file that is of no use.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("{kind} {file}: {source}")]
    Unreadable {
        /// The kind of file that was expected.
        kind: &'static str,
        /// The file.
        file: String,
        /// The system's reason, or what was found instead.
        source: io::Error,
    },
    /// The file is not of the expected kind or has a mistake: the problem, with the file's name.
    #[error("{kind} {problem}")]
    Wrong {
        /// The kind of file that was expected.
        kind: &'static str,
        /// The mistake in the file, in words.
        problem: String,
    },
}

/// Reads a table file.
pub fn read_table(file: &Path) -> Result<Table, ReadError> {
    read(("table", FileKind::Table), file, policy::MAX_TEXT_BYTES, Table::parse)
}

/// Reads a topology file of any format. Of a graph that is no tree, a spanning tree counts, as in a job.
pub fn read_topology(file: &Path) -> Result<Topology, ReadError> {
    let parse = |text: &str, file: &str| parse_topology(text, file, Reading { spanning_tree: true });
    read(("topology", FileKind::Topology), file, topology::MAX_TEXT_BYTES, parse)
}

/// Reads a topology. Of a text that looks like none its first mistake alone says nothing: it is one in a format that was only guessed.
pub fn parse_topology(text: &str, file: &str, reading: Reading) -> Result<Topology, TopologyError> {
    let has_mark = |line: &str| {
        let line = line.to_ascii_lowercase();
        ["switchname=", "blockname=", "blocksizes=", "topology:", "topology {"]
            .iter()
            .any(|mark| line.contains(mark))
    };
    let is_one = text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[', '-', '%'])
        || text.lines().any(has_mark);
    Topology::parse(text, file, reading).map_err(|error| match error.problems.first() {
        Some(first) if !is_one => {
            let expected = FileKind::Topology.description();
            let text = format!("expected {expected}, found none of these: {}", first.text);
            TopologyError { problems: vec![Problem { text, ..first.clone() }] }
        }
        _ => error,
    })
}

/// Reads a file of measured parameters.
pub fn read_parameters(file: &Path) -> Result<Parameters, ReadError> {
    read(("parameters", FileKind::Parameters), file, model::MAX_TEXT_BYTES, Parameters::parse_all)
}

/// Reads and parses a file, of which no more is read than such a file may have.
fn read<T, E: fmt::Display>(
    (name, kind): (&'static str, FileKind),
    file: &Path,
    most_bytes: usize,
    parse: impl FnOnce(&str, &str) -> Result<T, E>,
) -> Result<T, ReadError> {
    let origin = file.display().to_string();
    let mut bytes = Vec::new();
    let limit = most_bytes as u64 + 1;
    if let Err(source) = File::open(file).and_then(|file| file.take(limit).read_to_end(&mut bytes)) {
        return Err(ReadError::Unreadable { kind: name, file: origin, source });
    }
    let wrong = |problem: String| ReadError::Wrong { kind: name, problem };
    let text = kind.text(bytes).map_err(|problem| wrong(format!("{origin}: {problem}")))?;
    parse(&text, &origin).map_err(|problem| wrong(problem.to_string()))
}

/// The settings of the environment. What is wrong with one is kept as a note: in a job, the library says it once and
/// goes on as if the setting were not there.
#[derive(Default)]
pub struct Settings {
    /// True if polycast is switched off.
    pub is_off: bool,
    /// True if multicast is switched off.
    pub is_multicast_off: bool,
    /// True if shared memory is switched off.
    pub is_shared_memory_off: bool,
    /// True if nothing is compared with the MPI.
    pub are_trials_off: bool,
    /// The choices that are forced on all calls of a collective.
    pub forced: Vec<(Collective, Choice)>,
    /// The sums that are served, if the environment says so.
    pub sums: Option<ServedSums>,
    /// The table to use in place of the shipped one.
    pub table: Option<Table>,
    /// The topology of the network that a file describes.
    pub topology: Option<Topology>,
    /// The measured parameters of the network, and the name of their file.
    pub parameters: Option<(Parameters, String)>,
    /// Remarks on which settings are in effect, and which are not and why; one line each.
    pub notes: Vec<String>,
}

impl Settings {
    /// The user's word on sums; where polycast is off, the MPI has all of them.
    pub fn sums_in_force(&self) -> Option<ServedSums> {
        if self.is_off { Some(ServedSums::Mpi) } else { self.sums }
    }

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
        if let Some(value) = variable(SHARED_MEMORY).filter(|value| is_off(value)) {
            settings.is_shared_memory_off = true;
            settings.notes.push(format!("{SHARED_MEMORY}={value}: messages serve what shared memory would"));
        }
        if let Some(value) = variable(TRIALS).filter(|value| is_off(value)) {
            settings.are_trials_off = true;
            settings.notes.push(format!("{TRIALS}={value}: nothing is compared with the MPI"));
        }
        for (collective, name) in Collective::ALL.into_iter().zip(FORCED) {
            let Some(value) = variable(name) else { continue };
            settings.notes.push(match Choice::read(collective, &value) {
                Ok(choice) => {
                    settings.forced.push((collective, choice));
                    let calls =
                        if collective == Collective::Broadcast { "broadcast" } else { collective.name() };
                    format!("{name}={value}: forced on every {calls}, no table is asked")
                }
                Err(error) => format!("{name}={value}: {error}; it is left aside"),
            });
        }
        if let Some(word) = variable(SUMS) {
            settings.sums = word.parse().ok();
            settings.notes.push(match settings.sums {
                Some(sums) => format!("{SUMS}={sums}: {}", of_sums(sums)),
                None => format!(
                    "{SUMS}={word}: expected one of {}; it is left aside",
                    ServedSums::WORDS.join(", ")
                ),
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
}

/// What becomes of sums, in words.
fn of_sums(served: ServedSums) -> &'static str {
    match served {
        ServedSums::Auto => "sums are served where a rule names a way that keeps their order",
        ServedSums::Canonical => "all sums are served, by ways that keep their order",
        ServedSums::Mpi => "sums are left to the MPI",
    }
}

/// Returns the variables of this environment that are meant for the library, as they are handed on
/// to ranks. Variables whose value is no text cannot be handed on.
pub fn of_the_library() -> impl Iterator<Item = (String, String)> {
    let is_for_it = |name: &str| {
        let is_ours = name == SWITCH || name.starts_with("POLYCAST_");
        is_ours && variables::find(name).is_none_or(|variable| variable.reader == Reader::Library)
    };
    environment().filter(move |(name, _)| is_for_it(name))
}

fn environment() -> impl Iterator<Item = (String, String)> {
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    env::vars_os().filter_map(text)
}

/// Lists the mistakes in the variables of this environment, and in `further` ones that ranks will
/// have: unknown names and invalid values. Files are judged where they are read.
pub fn problems(further: &[(String, String)]) -> Vec<String> {
    let is_further = |name: &str| further.iter().any(|(other, _)| other == name);
    let mut all: Vec<_> = environment().filter(|(name, _)| !is_further(name)).collect();
    all.extend_from_slice(further);
    let net = all.iter().find(|(name, value)| name == variables::NET && !value.is_empty());
    let net = net.and_then(|(name, value)| {
        let error = value.parse::<InterfaceChoice>().err()?;
        Some(format!("{name}={value}: {error}; trees serve in place of multicast"))
    });
    let by_files = SITE.problems(all.clone());
    variables::problems(all).into_iter().chain(by_files).chain(net).collect()
}

/// Says on one line what is wrong with the variables, before ranks are started with them, and gives the variable that keeps
/// them from saying it again.
pub fn warn(further: &[(String, String)]) -> Option<(String, String)> {
    let problems = problems(further);
    if problems.is_empty() {
        return None;
    }
    eprintln!("polycast: warning: {}", problems.join("; "));
    Some((variables::WARNED.to_owned(), "on".to_owned()))
}

/// What the files of this host and this user set.
static SITE: LazyLock<SiteFiles> =
    LazyLock::new(|| SiteFiles::find(prefix().as_deref(), own, polycast_system::text_if_there));

/// The folder in which polycast is installed, as the library knows it from its own path.
fn prefix() -> Option<String> {
    if let Some(named) = own(LIBRARY_DIRECTORY) {
        let named = Path::new(&named).canonicalize().ok()?;
        return named.to_str()?.strip_suffix("/lib/polycast").map(str::to_owned);
    }
    let program = env::current_exe().ok()?.canonicalize().ok()?;
    program.parent()?.parent()?.to_str().map(str::to_owned)
}

/// The value of a variable in this environment.
fn own(name: &str) -> Option<String> {
    Some(env::var_os(name)?.to_string_lossy().into_owned())
}

/// Returns the value in force of a variable, unless it is empty: the environment's, or what a file sets.
pub fn variable(name: &str) -> Option<String> {
    SITE.value(name, own(name))
}

/// The file that sets a variable, if its value is the one in force.
pub fn file_of(name: &str) -> Option<&'static str> {
    SITE.file(name, own(name).as_deref())
}
