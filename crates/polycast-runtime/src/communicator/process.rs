//! What a process keeps from one communicator to the next.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::retired::RetiredCommunicators;
use crate::asked::Networks;
use crate::of_process::of_process;
use crate::trials::Ledgers;

/// State of a process that all its communicators share. Whoever needs a part of it is handed that
/// part.
#[derive(Default)]
pub struct Process {
    pub networks: Networks,
    pub ledgers: Ledgers,
    /// Time that was spent on measuring ways apart, whichever rank was rank 0.
    pub measuring: Mutex<Duration>,
    pub retired: RetiredCommunicators,
}

of_process! {
    static PROCESS: OnceLock<Arc<Process>> = OnceLock::new();
}

impl Process {
    /// The state of this process.
    pub fn here() -> Arc<Process> {
        PROCESS.with(|process| process.get_or_init(Arc::default).clone())
    }
}
