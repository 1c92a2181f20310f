//! Broadcast: every rank ends with the root's bytes.

mod spec;

pub use spec::{Algorithm, ParseAlgorithmError, Shape};

use crate::schedule::Schedule;
use crate::units::{Bytes, Rank};

/// One broadcast call as every rank of the communicator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Ranks in the communicator, at least 1.
    pub ranks: u32,
    /// Who has the data.
    pub root: Rank,
    /// How much data.
    pub bytes: Bytes,
}

impl Algorithm {
    /// What `rank` does in `call`.
    pub fn schedule(&self, call: Call, rank: Rank) -> Box<dyn Schedule> {
        let _ = (call, rank);
        unimplemented!("by helper C")
    }
}
