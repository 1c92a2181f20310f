//! What a copy is asked for, and what is shown of it while it goes on.

use std::ffi::OsString;
use std::process::Command as Process;
use std::sync::Arc;
use std::time::Duration;

/// What is to be copied where, and how.
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
    /// Blocks travel compressed where that makes them shorter.
    pub compress: bool,
}

/// A node to be.
pub struct Target {
    pub host: String,
    pub destination: OsString,
    /// What starts its agent.
    pub process: Process,
    /// What that expects on its standard input first: the tool itself.
    pub tool: Option<Arc<Vec<u8>>>,
}

/// How far the nodes are.
pub struct Progress<'a> {
    pub bytes: u64,
    /// Of all bytes of the slowest node that takes.
    pub least_bytes: u64,
    pub done: usize,
    pub nodes: usize,
    /// Those that are behind the others.
    pub behind: Vec<&'a str>,
}
