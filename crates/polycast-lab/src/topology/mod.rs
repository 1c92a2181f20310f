//! Trees of switches, and the file format in which sites have them.
//!
//! [`Topology::parse`] is a function from text to a tree; it reads no file and knows nothing of labs.

mod hostlist;
mod slurm;

use std::fmt;
use std::fs;
use std::path::Path;

use crate::LabError;
use crate::error::at;
use polycast_core::units::Rate;

/// The longest name of a switch or node, as in Slurm.
pub const MAX_NAME: usize = 64;

/// The most nodes of a file. It bounds what a hostlist such as `n[0-999999999]` can ask for.
pub const MAX_NODES: usize = 65_536;

/// A tree of switches with nodes on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// The switches in the order of the file; exactly one has no parent.
    pub switches: Vec<TopologySwitch>,
    /// The nodes in the order of the file.
    pub nodes: Vec<TopologyNode>,
}

/// A switch.
#[derive(Clone, Debug, PartialEq)]
pub struct TopologySwitch {
    /// Its name.
    pub name: String,
    /// The switch above it, an index into [`Topology::switches`].
    pub parent: Option<usize>,
    /// Speed of the links from this switch down to its nodes and switches, if the file gives it.
    pub link_speed: Option<Rate>,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct TopologyNode {
    /// Its name.
    pub name: String,
    /// The switch it is joined to, an index into [`Topology::switches`].
    pub switch: usize,
}

/// What is wrong with a topology, and in which line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError {
    /// The file, as the user named it.
    pub file: String,
    /// The line, from 1; 0 if it is the file as a whole.
    pub line: usize,
    /// What was expected and what was found.
    pub problem: String,
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.problem),
            line => write!(f, "{}:{line}: {}", self.file, self.problem),
        }
    }
}

impl std::error::Error for TopologyError {}

impl Topology {
    /// Reads the text of a Slurm `topology.conf`. `file` is the name that errors show.
    pub fn parse(text: &str, file: &str) -> Result<Topology, TopologyError> {
        slurm::parse(text).map_err(|(line, problem)| TopologyError { file: file.into(), line, problem })
    }

    /// Reads a Slurm `topology.conf`.
    pub fn read(file: &Path) -> Result<Topology, LabError> {
        let text = fs::read_to_string(file).map_err(at("read", file))?;
        Ok(Topology::parse(&text, &file.display().to_string())?)
    }
}

impl fmt::Display for Topology {
    /// As a `topology.conf` that reads back as the same tree.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, switch) in self.switches.iter().enumerate() {
            write!(f, "SwitchName={}", switch.name)?;
            let nodes: Vec<_> =
                self.nodes.iter().filter(|n| n.switch == index).map(|n| n.name.as_str()).collect();
            if !nodes.is_empty() {
                write!(f, " Nodes={}", nodes.join(","))?;
            }
            let below = self.switches.iter().filter(|child| child.parent == Some(index));
            let switches: Vec<_> = below.map(|child| child.name.as_str()).collect();
            if !switches.is_empty() {
                write!(f, " Switches={}", switches.join(","))?;
            }
            if let Some(speed) = switch.link_speed {
                write!(f, " LinkSpeed={}", speed.bits_per_second() / 1_000_000)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
