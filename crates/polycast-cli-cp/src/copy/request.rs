//! The request for a copy, and the progress that is shown while the copy goes on.

use std::ffi::OsString;
use std::process::Command as Process;
use std::sync::Arc;
use std::time::Duration;

/// The sources of a copy, and its options.
pub struct Request {
    pub sources: Vec<OsString>,
    pub recursive: bool,
    pub force: bool,
    pub preserve: bool,
    pub into_folder: bool,
    pub block_bytes: Option<u32>,
    pub bits_per_second: Option<u64>,
    pub fanout: Option<usize>,
    pub patience: Duration,
    /// True if blocks travel compressed where that makes them shorter.
    pub compress: bool,
}

/// A node to be.
pub struct Target {
    pub host: String,
    pub destination: OsString,
    /// The command that starts the node's agent.
    pub process: Process,
    /// The tool itself, where the command expects it on its standard input before anything else.
    pub tool: Option<Arc<Vec<u8>>>,
}

/// The progress of the nodes.
pub struct Progress<'a> {
    pub bytes: u64,
    /// The bytes that the slowest node has, of those that take part.
    pub least_bytes: u64,
    pub done: usize,
    pub nodes: usize,
    /// The nodes that are behind the others.
    pub behind: Vec<&'a str>,
}
