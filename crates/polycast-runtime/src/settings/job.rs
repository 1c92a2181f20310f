//! What holds for all ranks of a communicator: how broadcasts are chosen, and what is known of the network.
//!
//! The files are read once per process. Rank 0's count; it sends them where another rank has others.

use std::sync::{Arc, LazyLock, Mutex};

use polycast_core::files::FileKind;
use polycast_core::model::{self, Parameters};
use polycast_core::policy::{self, Choice, Prediction, Table};
use polycast_core::topology::{self, Reading, Topology};

use crate::digest::Digest;
use crate::of_process::{Shared, of_process};

use super::{FORCED, Loaded, PARAMETERS, TABLE, TOPOLOGY, is_off, lookup};

/// What rank 0 can send to the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    pub rules: Rules,
    pub network: Network,
    /// Measured; without them, tables choose.
    pub parameters: Option<Arc<Loaded<Arc<Parameters>>>>,
}

/// How broadcasts are chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Rules {
    /// By the table that is built in, and by prediction where parameters are known.
    #[default]
    Shipped,
    /// By the user's table.
    Table(Arc<Loaded<Table>>),
    /// Always the same.
    Forced(Choice),
}

/// What is said of the network.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Network {
    /// Nothing: what Slurm tells the ranks counts.
    #[default]
    Unsaid,
    /// It is to be taken for one switch.
    Flat,
    /// This.
    Known(Arc<Loaded<Topology>>),
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
type Names = [Option<String>; 4];

of_process! {
    /// What was read last.
    static READ: Mutex<Option<(Names, Current)>> = Mutex::new(None);
}

impl Settings {
    /// The settings in force in this process. The files are read when they are named first: communicators are made by the
    /// thousand.
    pub fn current() -> Current {
        let names = [FORCED, TABLE, TOPOLOGY, PARAMETERS].map(lookup);
        READ.change(|read| match read {
            Some((known, current)) if *known == names => current.clone(),
            _ => read.insert((names.clone(), Settings::read(names))).1.clone(),
        })
    }

    fn read([forced, table, topology, parameters]: Names) -> Current {
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
        let parameters = parameters.map(|file| {
            Loaded::read(PARAMETERS, file, (FileKind::Parameters, model::MAX_TEXT_BYTES), parse_parameters)
                .map(Arc::new)
        });
        let parameters = parameters.transpose().unwrap_or_else(|problem| {
            without("tables choose", problem);
            None
        });
        let settings = Settings { rules, network, parameters };
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
            Rules::Forced(choice) => (Some(*choice), None),
        };
        policy::Rules::new(forced, own, &SHIPPED, prediction)
    }

    /// Texts with their lengths.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (rules, rules_text) = match &self.rules {
            Rules::Shipped => ("shipped", [String::new(), String::new()]),
            Rules::Table(table) => ("table", [table.file.clone(), table.text.clone()]),
            Rules::Forced(choice) => ("forced", [choice.to_string(), String::new()]),
        };
        let (network, [network_file, network_text]) = match &self.network {
            Network::Unsaid => ("unsaid", ["", ""]),
            Network::Flat => ("flat", ["", ""]),
            Network::Known(known) => ("known", [&*known.file, &*known.text]),
        };
        let (parameters, [parameters_file, parameters_text]) = match &self.parameters {
            None => ("none", ["", ""]),
            Some(known) => ("known", [&*known.file, &*known.text]),
        };
        let [rules_name, rules_text] = &rules_text;
        let texts = [
            [rules, rules_name, rules_text],
            [network, network_file, network_text],
            [parameters, parameters_file, parameters_text],
        ];
        let mut bytes = Vec::new();
        for text in texts.as_flattened() {
            bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }

    /// Undoes [`Settings::to_bytes`]; `None` for anything else.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Settings> {
        let mut text = || {
            let (length, rest) = bytes.split_first_chunk()?;
            let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            bytes = rest;
            std::str::from_utf8(text).ok()
        };
        let mut texts = || Some([text()?, text()?, text()?]);
        let rules = match texts()? {
            ["shipped", ..] => Rules::Shipped,
            ["table", file, text] => Rules::Table(loaded(file, text, parse_table)?),
            ["forced", choice, _] => Rules::Forced(choice.parse().ok()?),
            _ => return None,
        };
        let network = match texts()? {
            ["unsaid", ..] => Network::Unsaid,
            ["flat", ..] => Network::Flat,
            ["known", file, text] => Network::Known(loaded(file, text, parse_topology)?),
            _ => return None,
        };
        let parameters = match texts()? {
            ["none", ..] => None,
            ["known", file, text] => Some(loaded(file, text, parse_parameters)?),
            _ => return None,
        };
        Some(Settings { rules, network, parameters })
    }
}

impl Rules {
    fn read(forced: Option<String>, table: Option<String>) -> Result<Rules, String> {
        match (forced, table) {
            (Some(text), _) => {
                text.parse().map(Rules::Forced).map_err(|error| format!("{FORCED}={text}: {error}"))
            }
            (None, Some(file)) => {
                let table =
                    Loaded::read(TABLE, file, (FileKind::Table, policy::MAX_TEXT_BYTES), parse_table)?;
                Ok(Rules::Table(Arc::new(table)))
            }
            (None, None) => Ok(Rules::Shipped),
        }
    }
}

impl Network {
    fn read(file: Option<String>) -> Result<Network, String> {
        match file {
            None => Ok(Network::Unsaid),
            Some(word) if is_off(&word) => Ok(Network::Flat),
            Some(file) => {
                let topology = Loaded::read(
                    TOPOLOGY,
                    file,
                    (FileKind::Topology, topology::MAX_TEXT_BYTES),
                    parse_topology,
                )?;
                Ok(Network::Known(Arc::new(topology)))
            }
        }
    }
}

fn loaded<T>(
    file: &str,
    text: &str,
    parse: impl FnOnce(&str, &str) -> Result<T, String>,
) -> Option<Arc<Loaded<T>>> {
    let content = parse(text, file).ok()?;
    Some(Arc::new(Loaded { file: file.to_owned(), text: text.to_owned(), content }))
}

fn parse_table(text: &str, file: &str) -> Result<Table, String> {
    Table::parse(text, file).map_err(|error| error.to_string())
}

fn parse_parameters(text: &str, file: &str) -> Result<Arc<Parameters>, String> {
    Parameters::parse(text, file).map(Arc::new).map_err(|error| error.to_string())
}

/// Of a graph that is no tree, a spanning tree: better than nothing known.
fn parse_topology(text: &str, file: &str) -> Result<Topology, String> {
    Topology::parse(text, file, Reading { spanning_tree: true }).map_err(|error| {
        let first = error.problems.first().map(ToString::to_string).unwrap_or_default();
        match error.problems.len().saturating_sub(1) {
            0 => first,
            more => format!("{first} (and {more} more: `polycast topology check`)"),
        }
    })
}

#[cfg(test)]
mod tests;
