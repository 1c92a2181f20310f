//! What polycast did in this process, and what is said of it when MPI ends (`POLYCAST_REPORT`, docs/report.md).
//!
//! ```text
//!     log        one communicator's calls: how long each took, and why it was left to the MPI
//!         reasons    which rule leaves which sizes to the MPI
//!     record     the totals of this process
//!         sizes      by message size, with times
//!     untimed    calls that only the door sees
//!     summary    what is to be said: rank 0's numbers, and sums over all ranks where all take part
//!         text       lines for people and tests
//!         json       a file for programs
//!         publish    where it goes
//! ```
//!
//! Where no report is wanted, calls are not counted and no clock is read.

mod json;
mod log;
mod publish;
mod reasons;
mod record;
mod sizes;
mod summary;
#[cfg(test)]
mod tests;
mod text;
mod untimed;

use std::sync::Mutex;

use polycast_core::network::{Links, Network};

pub use self::log::Log;
pub use self::publish::expand;
use self::record::Record;
pub use self::record::{Found, nanos};
use self::summary::Summary;
pub use self::untimed::{LEFT, UNSERVED};
use crate::multicast::{Driver, Group, Unavailable};
use crate::of_process::{Shared, of_process};

of_process! {
    static RECORD: Mutex<Option<Record>> = Mutex::new(None);
}

fn with_record<R>(change: impl FnOnce(&mut Record) -> R) -> R {
    RECORD.change(|record| change(record.get_or_insert_default()))
}

/// A communicator has its rules.
pub fn attached() {
    with_record(|record| record.attached += 1);
}

/// A communicator goes, and with it the ring of its nodes if this rank leads one.
pub fn released(ring: Option<&Driver>) {
    with_record(|record| {
        record.released += 1;
        if let Some(ring) = ring {
            record.multicast.add(ring);
        }
    });
}

/// A ring goes on in another group than this.
pub fn left_group(group: &Group) {
    with_record(|record| record.multicast.dropped.add(&group.take_dropped()));
}

/// All ranks of MPI_COMM_WORLD have been asked for a report.
pub fn all_ranks_report() {
    with_record(|record| record.all_ranks_report = true);
}

/// By what the choices of a communicator are made.
pub fn choices(by: String) {
    with_record(|record| record.choices(by));
}

/// What was found out about the network between so many nodes, and about their links; `host` names one by its place in the ring.
pub fn asked(nodes: u32, network: Network, links: &Links, host: impl Fn(usize) -> String) {
    with_record(|record| record.asked(nodes, network, links, host));
}

/// A communicator that was to use multicast does without.
pub fn fell_back(unavailable: Unavailable) {
    with_record(|record| *record.without_multicast.entry(unavailable.to_string()).or_default() += 1);
}

/// A trial is over.
pub fn found(found: Found) {
    with_record(|record| record.found(found));
}

/// What is to be said, with the sums over all ranks if all take part: `sum` is called only then, on all ranks, with the same
/// number of values.
pub fn summary(sum: impl FnOnce(&mut [u64]) -> bool) -> Summary {
    with_record(|record| Summary::of(record, sum))
}
