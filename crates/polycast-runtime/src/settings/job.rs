//! Settings that hold for all ranks of a communicator: how calls are served, and what is known of
//! the network.
//!
//! The files are read once per process. Rank 0's count; it sends them where another rank has others.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use polycast_core::files::FileKind;
use polycast_core::model::{self, Parameters};
use polycast_core::policy::{
    self, Capabilities, Choice, Collective, CommunicatorShape, Epoch, Policy, Prediction, ServedSums, Table,
};
use polycast_core::topology::{self, Reading, Topology};
use polycast_core::units::Bytes;
use polycast_core::variables::budget;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::of_process::{Shared, of_process};

use super::loaded::Content;
use super::{FORCED, Loaded, PARAMETERS, SUMS, TABLE, TOPOLOGY, TRIALS, TUNE, is_off, lookup};

/// Settings that rank 0 can send to the others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    pub rules: ServiceRules,
    pub network: NetworkSetting,
    /// Measured parameters; without them, tables choose.
    pub parameters: Option<Loaded<Arc<Parameters>>>,
    /// True if ways that the rules choose are compared with the MPI.
    pub trials: bool,
    /// Time for which ways are measured; earlier findings are read, too. `None`: not wanted.
    pub tune: Option<Duration>,
}

/// Rules by which calls are served. Where the user sets nothing: the table that is built in, or
/// prediction if parameters are known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServiceRules {
    /// The way that always serves a collective, for some collectives.
    #[serde(with = "as_text")]
    pub forced: Vec<(Collective, Choice)>,
    /// The user's table.
    pub table: Option<Loaded<Table>>,
    /// The user's word on sums, which counts before the table's.
    #[serde(with = "sums_as_text")]
    pub sums: Option<ServedSums>,
}

/// The user's word on the network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum NetworkSetting {
    /// The user sets nothing: what Slurm tells the ranks counts.
    #[default]
    Unsaid,
    /// The network is to be taken for one switch.
    Flat,
    /// The user's topology file.
    Known(Loaded<Topology>),
}

/// The settings of this process.
#[derive(Clone, Debug)]
pub struct Current {
    pub settings: Arc<Settings>,
    /// Digest of the settings, equal if the settings are.
    pub digest: u64,
    /// Problem with the settings, if there is one. The job goes on: the default counts.
    pub problem: Option<String>,
}

/// The values of the variables that name the settings.
#[derive(Clone, Debug, Default, PartialEq)]
struct Names {
    /// Forced ways, by collective.
    forced: [Option<String>; FORCED.len()],
    table: Option<String>,
    topology: Option<String>,
    parameters: Option<String>,
    sums: Option<String>,
    trials: Option<String>,
    tune: Option<String>,
}

of_process! {
    /// The settings that were read last, with the variables' values.
    static READ: Mutex<Option<(Names, Current)>> = Mutex::new(None);
}

impl Settings {
    /// The settings in force in this process. Files are read when they are first named, and kept:
    /// communicators are made by the thousand.
    pub fn current() -> Current {
        let names = Names {
            forced: FORCED.map(lookup),
            table: lookup(TABLE),
            topology: lookup(TOPOLOGY),
            parameters: lookup(PARAMETERS),
            sums: lookup(SUMS),
            trials: lookup(TRIALS),
            tune: lookup(TUNE),
        };
        READ.change(|read| match read {
            Some((known, current)) if *known == names => current.clone(),
            _ => read.insert((names.clone(), Settings::read(names))).1.clone(),
        })
    }

    fn read(Names { forced, table, topology, parameters, sums, trials, tune }: Names) -> Current {
        let mut problems = Vec::new();
        let mut without = |instead: &str, problem: String| problems.push(format!("{problem}; {instead}"));
        let mut rules = ServiceRules::default();
        for ((collective, name), text) in Collective::ALL.into_iter().zip(FORCED).zip(forced) {
            let Some(text) = text else { continue };
            match Choice::read(collective, &text) {
                Ok(choice) => rules.forced.push((collective, choice)),
                Err(error) => without("the table chooses", format!("{name}={text}: {error}")),
            }
        }
        rules.table = table.map(Loaded::read).transpose().unwrap_or_else(|problem| {
            without("the default table is used", problem);
            None
        });
        let network = NetworkSetting::read(topology).unwrap_or_else(|problem| {
            without("the network is taken for one switch", problem);
            NetworkSetting::Flat
        });
        let parameters = parameters.map(Loaded::read).transpose().unwrap_or_else(|problem| {
            without("tables choose", problem);
            None
        });
        let trials = !trials.is_some_and(|word| is_off(&word));
        // What is no word for them, and what is no time, is said with the other variables.
        rules.sums = sums.and_then(|word| word.parse().ok());
        let tune = tune.and_then(|time| budget(&time)).flatten().map(Duration::from_nanos);
        let settings = Settings { rules, network, parameters, trials, tune };
        let digest = Digest::of("polycast settings").bytes(&settings.to_bytes()).finish();
        let problem = (!problems.is_empty()).then(|| problems.join("; "));
        Current { settings: Arc::new(settings), digest, problem }
    }

    /// The rules that decide about calls by these settings. `prediction` is made from these
    /// parameters for the ranks.
    pub fn rules<'a>(&'a self, prediction: Option<&'a Prediction>) -> policy::Rules<'a> {
        // Parsed once: communicators are made by the thousand.
        static SHIPPED: LazyLock<Table> = LazyLock::new(Table::shipped);
        static OF_SUMS: LazyLock<Table> = LazyLock::new(Table::of_sums);
        let own = self.rules.table.as_ref().map(|table| &table.content);
        let rules = policy::Rules::new(&self.rules.forced, own, &SHIPPED, prediction);
        let rules = rules.with_sums(self.rules.sums, &OF_SUMS);
        rules.with_challengers(self.trials && self.tune.is_none())
    }

    /// The settings as bytes for the other ranks, which read the texts of the files again.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and objects with names")
    }

    /// Undoes [`Settings::to_bytes`]; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Settings> {
        serde_json::from_slice(bytes).ok()
    }
}

/// Checks any bytes as settings that rank 0 might send, for fuzzers: those that are settings
/// survive being sent, and decide. Panics if they do not.
pub fn check_any_settings(bytes: &[u8]) {
    let Some(settings) = Settings::from_bytes(bytes) else { return };
    let again = Settings::from_bytes(&settings.to_bytes());
    assert_eq!(again.as_ref(), Some(&settings), "from {}", bytes.escape_ascii());
    for (ranks, nodes) in [(2, 2), (64, 16), (u32::MAX, u32::MAX)] {
        let Ok(shape) = CommunicatorShape::new(ranks, nodes, None) else { continue };
        let policy = Policy::new(settings.rules(None), shape);
        for collective in Collective::ALL {
            for bytes in [0, 1, 8192, u64::MAX].map(Bytes) {
                let _ = policy.choose(&policy::Call::new(collective, bytes), Capabilities::ALL, Epoch::FIRST);
            }
        }
    }
}

impl NetworkSetting {
    fn read(file: Option<String>) -> Result<NetworkSetting, String> {
        match file {
            None => Ok(NetworkSetting::Unsaid),
            Some(word) if is_off(&word) => Ok(NetworkSetting::Flat),
            Some(file) => Loaded::read(file).map(NetworkSetting::Known),
        }
    }
}

impl Content for Table {
    const VARIABLE: &str = TABLE;
    const KIND: FileKind = FileKind::Table;
    const MAX_TEXT_BYTES: usize = policy::MAX_TEXT_BYTES;

    fn parse(text: &str, file: &str) -> Result<Table, String> {
        Table::parse(text, file).map_err(|error| error.to_string())
    }
}

impl Content for Arc<Parameters> {
    const VARIABLE: &str = PARAMETERS;
    const KIND: FileKind = FileKind::Parameters;
    const MAX_TEXT_BYTES: usize = model::MAX_TEXT_BYTES;

    fn parse(text: &str, file: &str) -> Result<Arc<Parameters>, String> {
        Parameters::parse(text, file).map(Arc::new).map_err(|error| error.to_string())
    }
}

impl Content for Topology {
    const VARIABLE: &str = TOPOLOGY;
    const KIND: FileKind = FileKind::Topology;
    const MAX_TEXT_BYTES: usize = topology::MAX_TEXT_BYTES;

    /// Parses a topology. A graph that is no tree gives a spanning tree: better than nothing known.
    fn parse(text: &str, file: &str) -> Result<Topology, String> {
        Topology::parse(text, file, Reading { spanning_tree: true }).map_err(|error| {
            let first = error.problems.first().map(ToString::to_string).unwrap_or_default();
            match error.problems.len().saturating_sub(1) {
                0 => first,
                more => format!("{first} (and {more} more: `polycast topology check`)"),
            }
        })
    }
}

/// Collectives and choices as they are written in tables.
mod as_text {
    use polycast_core::policy::{Choice, Collective};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    type Forced = Vec<(Collective, Choice)>;

    pub fn serialize<S: Serializer>(forced: &Forced, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(forced.iter().map(|(of, choice)| (of.name(), choice.to_string())))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Forced, D::Error> {
        let written = Vec::<(String, String)>::deserialize(deserializer)?.into_iter();
        let read = |(of, choice): (String, String)| {
            let of: Collective = of.parse().map_err(D::Error::custom)?;
            Ok((of, Choice::read(of, &choice).map_err(D::Error::custom)?))
        };
        written.map(read).collect()
    }
}

/// What the user says of sums, as it is written in tables.
mod sums_as_text {
    use polycast_core::policy::ServedSums;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(sums: &Option<ServedSums>, serializer: S) -> Result<S::Ok, S::Error> {
        sums.map(|sums| sums.to_string()).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ServedSums>, D::Error> {
        let written = Option::<String>::deserialize(deserializer)?;
        written.map(|word| word.parse().map_err(D::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests;
