//! What holds for all ranks of a communicator: how broadcasts are chosen, and what is known of the network.
//!
//! The files are read once per process. Rank 0's count; it sends them where another rank has others.

use std::sync::{Arc, LazyLock, Mutex};

use polycast_core::files::FileKind;
use polycast_core::model::{self, Parameters};
use polycast_core::policy::{self, Choice, Collective, Prediction, Table};
use polycast_core::topology::{self, Reading, Topology};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::of_process::{Shared, of_process};

use super::loaded::Content;
use super::{FORCED, Loaded, PARAMETERS, TABLE, TOPOLOGY, TRIALS, is_off, lookup};

/// What rank 0 can send to the others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    pub rules: Rules,
    pub network: Network,
    /// Measured; without them, tables choose.
    pub parameters: Option<Loaded<Arc<Parameters>>>,
    /// What the rules choose is compared with the MPI.
    pub trials: bool,
}

/// How broadcasts are chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Rules {
    /// By the table that is built in, and by prediction where parameters are known.
    #[default]
    Shipped,
    /// By the user's table.
    Table(Loaded<Table>),
    /// Always the same.
    Forced(#[serde(with = "as_text")] Choice),
}

/// What is said of the network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Network {
    /// Nothing: what Slurm tells the ranks counts.
    #[default]
    Unsaid,
    /// It is to be taken for one switch.
    Flat,
    /// This.
    Known(Loaded<Topology>),
}

/// The settings of this process.
#[derive(Clone, Debug)]
pub struct Current {
    pub settings: Arc<Settings>,
    /// The same for settings that are the same.
    pub digest: u64,
    /// What is wrong with them. That stops nobody: the default counts.
    pub problem: Option<String>,
}

/// The values of the variables that name the settings.
type Names = [Option<String>; 5];

of_process! {
    /// What was read last.
    static READ: Mutex<Option<(Names, Current)>> = Mutex::new(None);
}

impl Settings {
    /// The settings in force in this process. The files are read when they are named first: communicators are made by the
    /// thousand.
    pub fn current() -> Current {
        let names = [FORCED, TABLE, TOPOLOGY, PARAMETERS, TRIALS].map(lookup);
        READ.change(|read| match read {
            Some((known, current)) if *known == names => current.clone(),
            _ => read.insert((names.clone(), Settings::read(names))).1.clone(),
        })
    }

    fn read([forced, table, topology, parameters, trials]: Names) -> Current {
        let mut problems = Vec::new();
        let mut without = |instead: &str, problem: String| problems.push(format!("{problem}; {instead}"));
        let rules = Rules::read(forced, table).unwrap_or_else(|problem| {
            without("the default table is used", problem);
            Rules::Shipped
        });
        let network = Network::read(topology).unwrap_or_else(|problem| {
            without("the network is taken for one switch", problem);
            Network::Flat
        });
        let parameters = parameters.map(Loaded::read).transpose().unwrap_or_else(|problem| {
            without("tables choose", problem);
            None
        });
        let trials = !trials.is_some_and(|word| is_off(&word));
        let settings = Settings { rules, network, parameters, trials };
        let digest = Digest::of("polycast settings").bytes(&settings.to_bytes()).finish();
        let problem = (!problems.is_empty()).then(|| problems.join("; "));
        Current { settings: Arc::new(settings), digest, problem }
    }

    /// What decides about calls by these settings. `prediction`: made from these parameters for the ranks.
    pub fn rules<'a>(&'a self, prediction: Option<&'a Prediction>) -> policy::Rules<'a> {
        // Parsed once: communicators are made by the thousand.
        static SHIPPED: LazyLock<Table> = LazyLock::new(Table::shipped);
        let (forced, own) = match &self.rules {
            Rules::Shipped => (None, None),
            Rules::Table(table) => (None, Some(&table.content)),
            Rules::Forced(choice) => (Some((Collective::Broadcast, *choice)), None),
        };
        policy::Rules::new(forced, own, &SHIPPED, prediction)
    }

    /// For the other ranks, which read the texts of the files again.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and objects with names")
    }

    /// Undoes [`Settings::to_bytes`]; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Settings> {
        serde_json::from_slice(bytes).ok()
    }
}

impl Rules {
    fn read(forced: Option<String>, table: Option<String>) -> Result<Rules, String> {
        match (forced, table) {
            (Some(text), _) => {
                text.parse().map(Rules::Forced).map_err(|error| format!("{FORCED}={text}: {error}"))
            }
            (None, Some(file)) => Loaded::read(file).map(Rules::Table),
            (None, None) => Ok(Rules::Shipped),
        }
    }
}

impl Network {
    fn read(file: Option<String>) -> Result<Network, String> {
        match file {
            None => Ok(Network::Unsaid),
            Some(word) if is_off(&word) => Ok(Network::Flat),
            Some(file) => Loaded::read(file).map(Network::Known),
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

    /// Of a graph that is no tree, a spanning tree: better than nothing known.
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

/// A choice as it is written in tables.
mod as_text {
    use polycast_core::policy::Choice;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(choice: &Choice, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(choice)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Choice, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
