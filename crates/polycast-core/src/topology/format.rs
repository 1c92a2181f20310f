use std::fmt;
use std::str::FromStr;

use super::problem::TopologyError;
use super::{MAX_TEXT_BYTES, Topology, dot, json, slurm_conf, slurm_yaml};

/// Options for reading a description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// If true, a description that is no tree is read as a spanning tree of it, breadth first, and
    /// the notes name the links that are left out. If false, such a description is an error.
    pub spanning_tree: bool,
}

/// A format that topologies are kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Slurm's `topology.conf`.
    SlurmConf,
    /// Slurm's `topology.yaml`.
    SlurmYaml,
    /// polycast's own JSON, which says everything.
    Json,
    /// Graphviz's DOT, which is written only.
    Dot,
}

/// A format that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected slurm-conf, slurm-yaml, json or dot, found {found:?}")]
pub struct ParseFormatError {
    found: String,
}

/// A topology written in a format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The file.
    pub text: String,
    /// Facts of the topology that the format cannot express, as sentences.
    pub lost: Vec<String>,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 4] = [Format::SlurmConf, Format::SlurmYaml, Format::Json, Format::Dot];

    /// The name, as command lines have it.
    pub fn name(self) -> &'static str {
        match self {
            Format::SlurmConf => "slurm-conf",
            Format::SlurmYaml => "slurm-yaml",
            Format::Json => "json",
            Format::Dot => "dot",
        }
    }

    /// True if [`Topology::parse`] reads the format.
    pub fn is_readable(self) -> bool {
        self != Format::Dot
    }

    /// The format that a text looks like: its first line that is neither empty nor a comment tells.
    fn of(text: &str) -> Format {
        let mut lines = text.lines().map(|line| line.trim_start_matches('\u{feff}').trim());
        let first = lines.find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or("");
        let is_dot = |word: &str| first.strip_prefix(word).is_some_and(|rest| !rest.contains('='));
        match first.chars().next() {
            Some('{') => Format::Json,
            Some('-' | '[' | '%') => Format::SlurmYaml,
            _ if ["strict ", "graph ", "digraph ", "graph{", "digraph{"].into_iter().any(is_dot) => {
                Format::Dot
            }
            // Of SwitchName=… there is no key with a colon.
            _ if first.split('=').next().is_some_and(|key| key.contains(':')) => Format::SlurmYaml,
            _ => Format::SlurmConf,
        }
    }
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
        if text.len() > MAX_TEXT_BYTES {
            let problem = format!("expected at most {MAX_TEXT_BYTES} bytes of text, found {}", text.len());
            return Err(TopologyError::mistake(file, 0, problem));
        }
        // A byte order mark, which editors write, says nothing.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let read = match Format::of(text) {
            Format::SlurmConf => slurm_conf::read(text, file, reading),
            Format::SlurmYaml => slurm_yaml::read(text, file, reading),
            Format::Json => json::read(text, file, reading),
            Format::Dot => {
                let problem = "expected a topology.conf, a topology.yaml or polycast's JSON, found DOT, which is for drawing";
                Err(TopologyError::mistake(file, 0, problem))
            }
        };
        // What is missing at the end is missing in the last line: readers of JSON and YAML name one behind it.
        read.map_err(|error| error.within(lines(text)))
    }

    /// Writes the topology in a format.
    pub fn write(&self, format: Format) -> Written {
        match format {
            Format::SlurmConf => slurm_conf::write(self),
            Format::SlurmYaml => slurm_yaml::write(self),
            Format::Json => json::write(self),
            Format::Dot => dot::write(self),
        }
    }
}

/// The number of lines of a text, at least 1. A carriage return counts as the end of a line too, as
/// in YAML.
fn lines(text: &str) -> usize {
    text.lines().map(|line| line.split('\r').count()).sum::<usize>().max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::any_topology;
    use super::*;

    #[test]
    fn the_content_tells_the_format() {
        for (text, format) in [
            ("", Format::SlurmConf),
            ("# a\n\n  SwitchName=s Nodes=a", Format::SlurmConf),
            ("graph=x", Format::SlurmConf),
            ("---\n- topology: x", Format::SlurmYaml),
            ("- topology: x", Format::SlurmYaml),
            ("topology: x", Format::SlurmYaml),
            ("[{topology: x}]", Format::SlurmYaml),
            ("\n { \"format\": 1 }", Format::Json),
            ("\u{feff}{}", Format::Json),
            ("graph topology {", Format::Dot),
        ] {
            assert_eq!(Format::of(text), format, "{text:?}");
        }
    }

    #[test]
    fn a_byte_order_mark_says_nothing() {
        let topology = Topology::parse("SwitchName=s Nodes=a,b", "t", Reading::default()).unwrap();
        for format in Format::ALL.into_iter().filter(|format| format.is_readable()) {
            let text = format!("\u{feff}{}", topology.write(format).text);
            assert!(Topology::parse(&text, "t", Reading::default()).is_ok(), "{format}");
        }
    }

    #[test]
    fn the_limit_of_a_text() {
        let start = "SwitchName=s Nodes=a #";
        let padded = |bytes: usize| start.to_owned() + &"x".repeat(bytes - start.len());
        let read = |text: &str| Topology::parse(text, "t", Reading::default());
        assert!(read(&padded(MAX_TEXT_BYTES)).is_ok());
        assert!(read(&padded(MAX_TEXT_BYTES + 1)).unwrap_err().to_string().contains("bytes of text"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_known_again(topology in any_topology()) {
            for format in Format::ALL {
                prop_assert_eq!(Format::of(&topology.write(format).text), format);
                prop_assert_eq!(format.to_string().parse(), Ok(format));
            }
        }
    }

    #[test]
    fn what_ends_too_early_ends_on_a_line_of_the_text() {
        for (text, line) in
            [("{ \"format\": \"polycast-topology\",\n", 1), ("---\n\r topolo", 3), ("---\n\r ", 3)]
        {
            let error = Topology::parse(text, "t", Reading::default()).unwrap_err();
            assert!(error.problems.iter().all(|problem| problem.line <= line), "{text:?}: {error}");
        }
    }
}
