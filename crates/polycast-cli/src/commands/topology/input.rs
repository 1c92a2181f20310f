//! Files that hold topologies, and standard input.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use polycast_core::topology::{Reading, Topology, TopologyError};

/// The most bytes of a file: the largest cluster that is allowed needs less.
const MAX_BYTES: u64 = 64 << 20;

/// A file that is not there or cannot be a topology.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {source}", path.display())]
pub struct InputError {
    path: PathBuf,
    source: io::Error,
}

impl InputError {
    /// What happened at `path`.
    pub fn new(path: &Path, source: io::Error) -> InputError {
        InputError { path: path.to_owned(), source }
    }
}

/// A text with the name that problems show.
pub struct Input {
    pub text: String,
    pub name: String,
}

impl Input {
    /// Reads a file; `-` is standard input.
    pub fn read(path: &Path) -> Result<Input, InputError> {
        let error = |source| InputError::new(path, source);
        let mut text = String::new();
        let (mut reader, name): (Box<dyn Read>, String) = match path == Path::new("-") {
            true => (Box::new(io::stdin().lock()), "standard input".to_owned()),
            false => (Box::new(fs::File::open(path).map_err(error)?), path.display().to_string()),
        };
        reader.by_ref().take(MAX_BYTES + 1).read_to_string(&mut text).map_err(error)?;
        if text.len() as u64 > MAX_BYTES {
            let problem = format!("expected at most {MAX_BYTES} bytes, found more");
            return Err(error(io::Error::new(io::ErrorKind::FileTooLarge, problem)));
        }
        Ok(Input { text, name })
    }

    /// The topology in the text; of a graph that is no tree, a spanning tree.
    pub fn topology(&self) -> Result<Topology, TopologyError> {
        Topology::parse(&self.text, &self.name, Reading { spanning_tree: true })
    }
}
