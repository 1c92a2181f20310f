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
//!     witness    a process that reports for one that ends early
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
mod witness;

use std::sync::{Mutex, TryLockError};

use polycast_core::network::{Links, Network};
use polycast_core::variables::ReportTo;

pub use self::log::Log;
pub use self::publish::warn_of_place;
pub use self::record::{Dropped, Found, MulticastCounts, nanos};
use self::record::{Job, Record};
use self::summary::Summary;
pub use self::untimed::{LEFT, UNSERVED};
use crate::machine;
use crate::of_process::{Shared, of_process};
use crate::{say, settings};

/// How a program ended, in the words of the report.
const FINALIZED: &str = "MPI_Finalize";
const ABORTED: &str = "MPI_Abort";

of_process! {
    static RECORD: Mutex<Option<Record>> = Mutex::new(None);
}

fn with_record<R>(change: impl FnOnce(&mut Record) -> R) -> R {
    RECORD.change(|record| change(record.get_or_insert_default()))
}

/// Notes that MPI has begun, with `ranks` ranks in MPI_COMM_WORLD.
pub fn began(ranks: usize) {
    with_record(|record| record.world_ranks = ranks);
}

/// Reports for a rank of MPI_COMM_WORLD that calls MPI_Abort: the others may not come to report any
/// more. Local.
pub fn aborting(rank: u32) {
    // The thread that calls it may be within a report: of a signal, for example.
    let is_free = RECORD.with(|record| !matches!(record.try_lock(), Err(TryLockError::WouldBlock)));
    let to = settings::report_to();
    if !is_free || to == ReportTo::Nowhere {
        return;
    }
    let summary = with_record(|record| Summary::alone(record, ABORTED));
    say::text(&format!("polycast: report: rank {rank} calls MPI_Abort; its own numbers:\n"));
    match rank {
        0 => publish(&summary),
        _ => say::text(&format!("polycast: report: {}\n", summary.sentence_of(rank))),
    }
}

/// Counts a communicator that has got its rules.
pub fn attached() {
    with_record(|record| record.attached += 1);
}

/// Counts a communicator that goes. `ring`: counts of the ring of its nodes, if this rank leads
/// one.
pub fn released(ring: Option<MulticastCounts>) {
    with_record(|record| {
        record.released += 1;
        if let Some(ring) = ring {
            record.multicast.add(&ring);
        }
    });
}

/// Adds the drops of a group that a ring has left for another.
pub fn left_group(dropped: Dropped) {
    with_record(|record| record.multicast.dropped.add(&dropped));
}

/// Has a witness for this process, rank 0, if a report is wanted.
pub fn have_witness() {
    if settings::is_report_wanted() {
        with_record(Record::have_witness);
    }
}

/// Writes the report to where it was asked for. To be called on rank 0.
pub fn publish(summary: &Summary) {
    summary.publish();
    // From here on there is nothing to report any more.
    with_record(|record| record.witness = None);
}

/// Notes that all ranks of MPI_COMM_WORLD have been asked for a report.
pub fn all_ranks_report() {
    with_record(|record| record.all_ranks_report = true);
}

/// Notes the ranks and the nodes of MPI_COMM_WORLD.
pub fn world(ranks: usize, nodes: usize) {
    let began_1970_ns = machine::nanos_since_1970();
    with_record(|record| {
        record.job = Some(Job { ranks, nodes, began_1970_ns });
        record.tell_witness();
    });
}

/// Notes the source of a communicator's choices.
pub fn choices(by: String) {
    with_record(|record| record.choices(by));
}

/// Notes the measured network between `nodes` nodes, and their links; `host` names a node by its
/// place in the ring.
pub fn asked(nodes: u32, network: Network, links: &Links, host: impl Fn(usize) -> String) {
    with_record(|record| record.asked(nodes, network, links, host));
}

/// Counts a communicator that was to use multicast and does without, with the reason.
pub fn fell_back(reason: String) {
    with_record(|record| *record.without_multicast.entry(reason).or_default() += 1);
}

/// Notes the finding of a trial that is over.
pub fn found(found: Found) {
    with_record(|record| record.found(found));
}

/// The summary, with the sums over all ranks if all take part: `sum` is called only then, on all
/// ranks, with the same number of values.
pub fn summary(sum: impl FnOnce(&mut [u64]) -> bool) -> Summary {
    with_record(|record| Summary::of(record, sum))
}
