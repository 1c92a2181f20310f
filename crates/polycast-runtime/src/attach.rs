//! What the ranks of a communicator tell each other at its first broadcast: one record each, and rank 0's settings
//! where they differ.
//!
//! # Invariant
//! Every decision made here is a function of the gathered records and of rank 0's settings, so it is the same on all
//! ranks.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use polycast_core::schedule::RankOrder;
use polycast_core::select::{BroadcastChoices, Shape, Table};

use crate::counters;
use crate::door::{CAN_PACK, Door, INTERFACE_VERSION, MpiError};
use crate::entropy::process_identity;
use crate::idle::Neighbours;
use crate::settings::{self, Settings};

const RECORD_BYTES: usize = 48;

/// The longest settings text that is accepted from rank 0.
const SETTINGS_MOST_BYTES: u64 = 2 << 20;

/// Beside the door's capabilities: this rank was asked for a report.
const WANTS_REPORT: u64 = 1 << 32;

/// What one rank says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    /// Of the library; another one may not speak the same messages.
    version: u64,
    capabilities: u64,
    settings_digest: u64,
    /// The same for ranks that share a host: kernel and host name, since containers and emulated hosts share kernels.
    host: u64,
    /// The same for ranks whose processes run on the same processors.
    kernel: u64,
    /// Tells processes apart.
    process: u64,
}

impl Record {
    fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let Record { version, capabilities, settings_digest, host, kernel, process } = self;
        let fields = [version, capabilities, settings_digest, host, kernel, process];
        for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: [u8; RECORD_BYTES]) -> Record {
        let mut fields = bytes.chunks_exact(8).map(|field| u64::from_le_bytes(field.try_into().unwrap()));
        let mut next = || fields.next().unwrap();
        Record {
            version: next(),
            capabilities: next(),
            settings_digest: next(),
            host: next(),
            kernel: next(),
            process: next(),
        }
    }
}

fn digest(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// What the ranks agreed on.
pub struct Agreement {
    /// How this communicator's broadcasts are chosen.
    pub choices: BroadcastChoices,
    /// How they are chosen where the network has no multicast.
    pub choices_without_multicast: BroadcastChoices,
    /// The order in which data visits its ranks, if that is not theirs.
    pub order: Option<RankOrder>,
    /// Which of its ranks are near this one.
    pub neighbours: Neighbours,
    /// The host and the process of each rank.
    pub hosts: Vec<u64>,
    pub processes: Vec<u64>,
}

/// `None`: leave this communicator to the stock MPI.
pub fn agree(door: &Door, rank: usize, size: usize, is_world: bool) -> Result<Option<Agreement>, MpiError> {
    let (mine, problem) = Settings::current();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let host_name = rustix::system::uname().nodename().to_owned();
    let record = Record {
        version: digest((env!("CARGO_PKG_VERSION"), INTERFACE_VERSION)),
        capabilities: u64::from(door.capabilities())
            | if settings::is_report_wanted() { WANTS_REPORT } else { 0 },
        settings_digest: digest(mine.to_text()),
        host: digest((&kernel, host_name)),
        kernel: digest(&kernel),
        process: process_identity(),
    };
    let records: Vec<Record> =
        door.allgather(&record.to_bytes(), size)?.into_iter().map(Record::from_bytes).collect();

    if let (0, Some(problem)) = (rank, problem) {
        warn_once(&format!("{problem}; the default table is used"));
    }
    if let Some(stranger) = records.iter().position(|other| other.version != record.version) {
        if rank == 0 {
            warn_once(&format!("rank {stranger} has another version of polycast; the stock MPI serves"));
        }
        return Ok(None);
    }
    if records.iter().any(|other| other.capabilities & u64::from(CAN_PACK) == 0) {
        return Ok(None);
    }
    let differ = records.iter().any(|other| other.settings_digest != records[0].settings_digest);
    let settings = if differ { take_from_rank_0(door, rank, &mine)? } else { mine };
    if is_world && records.iter().all(|other| other.capabilities & WANTS_REPORT != 0) {
        counters::all_ranks_report();
    }
    let shape = shape_of(&records);
    let hosts: Vec<u64> = records.iter().map(|other| other.host).collect();
    Ok(Some(Agreement {
        choices: choices(&settings, shape),
        choices_without_multicast: choices(&settings, shape.without_multicast()),
        order: RankOrder::by_host(&hosts),
        neighbours: Neighbours {
            on_this_kernel: records.iter().filter(|other| other.kernel == record.kernel).count(),
            on_this_host: records.iter().filter(|other| other.host == record.host).count(),
        },
        hosts,
        processes: records.iter().map(|other| other.process).collect(),
    }))
}

fn take_from_rank_0(door: &Door, rank: usize, mine: &Settings) -> Result<Settings, MpiError> {
    let mut text = mine.to_text().into_bytes();
    let mut length = (text.len() as u64).to_le_bytes();
    door.broadcast(&mut length, 0)?;
    let length = u64::from_le_bytes(length);
    if length > SETTINGS_MOST_BYTES {
        return Ok(Settings::Shipped);
    }
    if rank != 0 {
        text = vec![0; length as usize];
    }
    door.broadcast(&mut text, 0)?;
    Ok(std::str::from_utf8(&text).ok().and_then(Settings::from_text).unwrap_or(Settings::Shipped))
}

fn shape_of(records: &[Record]) -> Shape {
    let mut ranks_by_host = BTreeMap::<u64, u32>::new();
    for record in records {
        *ranks_by_host.entry(record.host).or_default() += 1;
    }
    Shape {
        ranks: records.len() as u32,
        nodes: ranks_by_host.len() as u32,
        ranks_per_node: ranks_by_host.values().copied().max().unwrap_or(1),
        switches: 1,
        has_multicast: true,
    }
}

fn choices(settings: &Settings, shape: Shape) -> BroadcastChoices {
    match settings {
        Settings::Forced(choice) if shape.has_multicast || !choice.needs_multicast() => {
            BroadcastChoices::always(*choice)
        }
        Settings::Shipped | Settings::Forced(_) => Table::shipped().broadcast_rules(shape),
        // Rank 0 has parsed it already, so the error case does not occur between equal versions.
        Settings::Table(text) => {
            Table::parse(text, "rank 0's table").unwrap_or_else(|_| Table::shipped()).broadcast_rules(shape)
        }
    }
}

/// The one line that polycast prints without being asked, once per process.
pub fn warn_once(text: &str) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| eprintln!("polycast: warning: {text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(host: u64) -> Record {
        Record { version: 1, capabilities: 2, settings_digest: 3, host, kernel: 5, process: 6 }
    }

    #[test]
    fn a_record_survives_the_wire() {
        assert_eq!(Record::from_bytes(record(4).to_bytes()), record(4));
    }

    #[test]
    fn the_shape_counts_hosts_and_their_fullest() {
        let shape = shape_of(&[7, 8, 7, 9, 7].map(record));
        assert_eq!((shape.ranks, shape.nodes, shape.ranks_per_node), (5, 3, 3));
    }
}
