use std::fmt;
use std::str::FromStr;

use super::problem::TopologyError;
use super::{Topology, slurm_conf};

/// How to read a description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Where the description is no tree, take a spanning tree out of it, breadth first, and name in the notes what is
    /// left out. Otherwise that is an error.
    pub spanning_tree: bool,
}

/// A format that topologies are kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Slurm's `topology.conf`.
    SlurmConf,
}

/// A format that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {}, found {found:?}", names())]
pub struct ParseFormatError {
    found: String,
}

/// What a format can say of a topology.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The file.
    pub text: String,
    /// What the format cannot say, as sentences.
    pub lost: Vec<String>,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 1] = [Format::SlurmConf];

    /// The name, as command lines have it.
    pub fn name(self) -> &'static str {
        match self {
            Format::SlurmConf => "slurm-conf",
        }
    }

    /// Whether [`Topology::parse`] reads what is written in it.
    pub fn is_readable(self) -> bool {
        match self {
            Format::SlurmConf => true,
        }
    }
}

fn names() -> String {
    Format::ALL.map(Format::name).join(", ")
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = ParseFormatError;

    fn from_str(text: &str) -> Result<Format, ParseFormatError> {
        let known = Format::ALL.into_iter().find(|format| format.name() == text);
        known.ok_or_else(|| ParseFormatError { found: text.to_owned() })
    }
}

impl Topology {
    /// Reads a description of a cluster, whatever its format, which its content tells. `file` is the name that problems show.
    ///
    /// # Errors
    /// All mistakes of the description with their lines; where it is no tree, that too, unless `reading` takes a spanning tree.
    pub fn parse(text: &str, file: &str, reading: Reading) -> Result<Topology, TopologyError> {
        slurm_conf::read(text, file, reading)
    }

    /// Writes the topology in a format.
    pub fn write(&self, format: Format) -> Written {
        match format {
            Format::SlurmConf => slurm_conf::write(self),
        }
    }
}
