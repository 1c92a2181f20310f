//! Linear all-to-all: every rank sends to all others at once, beginning with the next one.
//!
//! ```text
//!   rank 1 of 4    to 2  ──────────────     the sends share the port; none waits for the step before,
//!                  to 3  ──────────────     so a rank that is late holds up nobody but itself
//!                  to 0  ──────────────
//! ```
//!
//! As many messages on their way as there are ranks: for few of them, as nodes are (Thakur et al. 2005, §3.4).

use super::pairwise::exchange;
use crate::algorithm::{Algorithm, Entry};
use crate::collective::{Call, Collective};
use crate::schedule::Schedule;
use crate::units::Rank;

pub(super) static ENTRIES: [Entry; 1] = [Entry::any(
    &[Collective::Alltoall],
    "linear",
    "every rank sends to all others at once",
    "Thakur et al. 2005, §3.4",
    schedule,
)];

fn schedule(_: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    exchange(call, rank, false)
}
