//! Files that hold topologies, and standard input.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use polycast_core::files::FileKind;
use polycast_core::topology::{MAX_TEXT_BYTES, Reading, Topology, TopologyError};

use crate::settings::parse_topology;

/// A file that is not there or cannot be a topology.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The system cannot.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The contents are not what was expected.
    #[error("{name}: {problem}")]
    Wrong {
        /// The file.
        name: String,
        /// The problem: what was expected and what was found.
        problem: String,
    },
}

impl InputError {
    /// The error for a failure to read `path`.
    pub fn new(path: &Path, source: io::Error) -> InputError {
        InputError::Unreadable { path: path.to_owned(), source }
    }
}

/// A text with the name that problems show.
pub struct Input {
    /// The text of the file.
    pub text: String,
    /// The name of the file, for messages.
    pub name: String,
}

impl Input {
    /// Reads a file; `-` is standard input.
    pub fn read(path: &Path, kind: FileKind) -> Result<Input, InputError> {
        let error = |source| InputError::new(path, source);
        let mut bytes = Vec::new();
        let (mut reader, name): (Box<dyn Read>, String) = match path == Path::new("-") {
            true => (Box::new(io::stdin().lock()), "standard input".to_owned()),
            false => (Box::new(fs::File::open(path).map_err(error)?), path.display().to_string()),
        };
        reader.by_ref().take(MAX_TEXT_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(error)?;
        let wrong = |problem| InputError::Wrong { name: name.clone(), problem };
        let text = kind.text(bytes).map_err(wrong)?;
        Ok(Input { text, name })
    }

    /// The topology in the text; of a graph that is no tree, a spanning tree.
    pub fn topology(&self) -> Result<Topology, TopologyError> {
        self.parse(Reading { spanning_tree: true })
    }

    /// The topology in the text.
    pub fn parse(&self, reading: Reading) -> Result<Topology, TopologyError> {
        parse_topology(&self.text, &self.name, reading)
    }
}
