//! What the ranks of a communicator tell each other at its first broadcast: one record each, rank 0's settings where they
//! differ, and where their hosts are if somebody knows the network.
//!
//! # Invariant
//! Every decision made here is a function of what was gathered and of rank 0's settings, so it is the same on all ranks.

mod network;
mod record;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use polycast_core::policy::{CommunicatorShape, Policy, Prediction};
use polycast_core::tree::Site;
use polycast_core::{model, policy, topology};

use self::network::{Here, Known, Told};
use self::record::{RECORD_BYTES, Record};
use crate::door::{CAN_PACK, Door, MpiError};
use crate::fault::{self, Point};
use crate::identity::build_identity;
use crate::idle::Neighbours;
use crate::machine::process_identity;
use crate::report;
use crate::say::warn_once;
use crate::settings::{self, Rules, Settings};

/// The longest settings that are accepted from rank 0: three files, in JSON with their quotes escaped, and their names.
const MAX_SETTINGS_BYTES: u64 =
    (2 * (policy::MAX_TEXT_BYTES + topology::MAX_TEXT_BYTES + model::MAX_TEXT_BYTES) + (64 << 10)) as u64;

/// Beside the door's capabilities: this rank was asked for a report.
const WANTS_REPORT: u64 = 1 << 32;

/// What the ranks agreed on.
pub struct Agreement {
    /// Those of all ranks.
    pub settings: Arc<Settings>,
    pub shape: CommunicatorShape,
    /// How this communicator's calls are decided.
    pub policy: Policy,
    /// Where its ranks are.
    pub site: Site,
    /// Which of its ranks are near this one.
    pub neighbours: Neighbours,
    /// The host and the process of each rank.
    pub hosts: Vec<u64>,
    pub processes: Vec<u64>,
}

impl Agreement {
    /// Of a rank that does not know what the others said: it serves nobody.
    pub fn unknown(size: usize) -> Agreement {
        let settings = Arc::new(Settings::default());
        let shape = CommunicatorShape {
            ranks: size as u32,
            nodes: 1,
            ranks_per_node: size as u32,
            switches: 1,
            network: None,
        };
        let hosts = vec![0; size];
        Agreement {
            shape,
            policy: Policy::new(settings.rules(None), shape),
            site: Site::by_host(&hosts),
            neighbours: Neighbours { on_this_kernel: 1, on_this_host: 1 },
            processes: hosts.clone(),
            hosts,
            settings,
        }
    }
}

/// What the ranks have told each other.
pub struct Gathered {
    records: Vec<Record>,
    settings: Arc<Settings>,
    told: Told,
    /// What is wrong with this rank's own settings.
    problem: Option<String>,
}

/// All that is exchanged. `None`: leave this communicator to the stock MPI. Between two exchanges nothing is done that could fail on
/// one rank alone, or a vote follows.
pub fn gather(door: &Door, rank: usize, size: usize) -> Result<Option<Gathered>, MpiError> {
    // A rank that cannot even say who it is takes part as one that cannot serve.
    let prepared = catch_unwind(AssertUnwindSafe(|| {
        fault::point(Point::Record);
        let (mine, here) = (Settings::current(), Here::get());
        (record_of(door, mine.digest, &here), mine, here)
    }));
    let Ok((record, mine, here)) = prepared else {
        door.allgather(&Record::unable(build_identity()).to_bytes(), size)?;
        return Ok(None);
    };
    let records = match same_builds(&door.allgather(&record.to_bytes(), size)?) {
        Ok(records) => records,
        Err(stranger) => {
            if rank == 0 {
                warn_once(&format!(
                    "rank {stranger} has another build of polycast than rank 0; the stock MPI serves"
                ));
            }
            return Ok(None);
        }
    };
    if records.iter().any(|other| other.capabilities & u64::from(CAN_PACK) == 0) {
        return Ok(None);
    }
    let differ = records.iter().any(|other| other.settings_digest != records[0].settings_digest);
    let settings = match differ {
        true => take_from_rank_0(door, rank, size, &mine.settings)?.map(Arc::new),
        false => Some(mine.settings),
    };
    let Some(settings) = settings else { return Ok(None) };
    let told = network::ask(door, &records, &settings, &here)?;
    Ok(Some(Gathered { records, settings, told, problem: mine.problem }))
}

impl Gathered {
    /// What follows from it. Exchanges nothing.
    pub fn agreement(self, rank: usize, is_world: bool) -> Agreement {
        fault::point(Point::Agree);
        let Gathered { records, settings, told, problem } = self;
        let known = told.find_out(&settings);
        if rank == 0 {
            let of_network = known.as_ref().and_then(|known| known.warning.clone());
            [problem, of_network].into_iter().flatten().for_each(|warning| warn_once(&warning));
        }
        if is_world && records.iter().all(|other| other.capabilities & WANTS_REPORT != 0) {
            report::all_ranks_report();
        }
        report_choices(&settings, known.as_ref());
        let shape =
            CommunicatorShape { switches: known.as_ref().map_or(1, Known::switches), ..shape_of(&records) };
        let hosts: Vec<u64> = records.iter().map(|other| other.host).collect();
        let prediction = settings.parameters.as_ref().map(|parameters| {
            let flat = || network::flat(&hosts);
            let placed = known.as_ref().map_or_else(flat, |known| known.placed.clone());
            Prediction::new(&placed, &parameters.content)
        });
        let mine = records[rank];
        Agreement {
            shape,
            policy: Policy::new(settings.rules(prediction.as_ref()), shape),
            site: known.map_or_else(|| Site::by_host(&hosts), |known| Site::new(&known.placed)),
            neighbours: Neighbours {
                on_this_kernel: records.iter().filter(|other| other.kernel == mine.kernel).count(),
                on_this_host: records.iter().filter(|other| other.host == mine.host).count(),
            },
            hosts,
            processes: records.iter().map(|other| other.process).collect(),
            settings,
        }
    }
}

/// The records, or the first rank whose build is not that of rank 0. All ranks find the same.
fn same_builds(gathered: &[[u8; RECORD_BYTES]]) -> Result<Vec<Record>, usize> {
    let mut records: Vec<Record> = Vec::with_capacity(gathered.len());
    for (rank, bytes) in gathered.iter().enumerate() {
        let record = Record::from_bytes(bytes).ok_or(rank)?;
        if record.build != records.first().unwrap_or(&record).build {
            return Err(rank);
        }
        records.push(record);
    }
    Ok(records)
}

fn record_of(door: &Door, settings_digest: u64, here: &Here) -> Record {
    Record {
        build: build_identity(),
        capabilities: u64::from(door.capabilities())
            | if settings::is_report_wanted() { WANTS_REPORT } else { 0 },
        settings_digest,
        host: here.host,
        kernel: here.kernel,
        process: process_identity(),
        name_bytes: here.name_bytes(),
        address_bytes: here.address_bytes(),
    }
}

/// For the report: by what choices are made, unless it is what every job does without being told anything.
fn report_choices(settings: &Settings, known: Option<&Known>) {
    if known.is_none() && settings.parameters.is_none() {
        return;
    }
    let mut said = match (&settings.rules, &settings.parameters) {
        (Rules::Forced(_), _) => "by=forced".to_owned(),
        (Rules::Table(table), _) => format!("by=table table={}", table.file),
        (Rules::Shipped, Some(parameters)) => format!("by=prediction params={}", parameters.file),
        (Rules::Shipped, None) => "by=table".to_owned(),
    };
    if let Some(known) = known {
        said.push_str(&format!(" topology={} switches={}", known.origin, known.switches()));
    }
    report::choices(said);
}

/// Rank 0's settings; `None`, on all ranks, if some rank does not understand them.
fn take_from_rank_0(
    door: &Door,
    rank: usize,
    size: usize,
    mine: &Settings,
) -> Result<Option<Settings>, MpiError> {
    let mut bytes = mine.to_bytes();
    let mut length = (bytes.len() as u64).to_le_bytes();
    door.broadcast(&mut length, 0)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_SETTINGS_BYTES {
        return Ok(Some(Settings::default()));
    }
    if rank != 0 {
        bytes = vec![0; length as usize];
    }
    door.broadcast(&mut bytes, 0)?;
    let understood = catch_unwind(|| {
        fault::point(Point::Settings);
        Settings::from_bytes(&bytes)
    });
    let settings = understood.ok().flatten();
    let all = door.allgather(&[u8::from(settings.is_some())], size)?;
    Ok(settings.filter(|_| all.iter().all(|is_understood| *is_understood == [1])))
}

fn shape_of(records: &[Record]) -> CommunicatorShape {
    let mut ranks_by_host = BTreeMap::<u64, u32>::new();
    for record in records {
        *ranks_by_host.entry(record.host).or_default() += 1;
    }
    CommunicatorShape {
        ranks: records.len() as u32,
        nodes: ranks_by_host.len() as u32,
        ranks_per_node: ranks_by_host.values().copied().max().unwrap_or(1),
        switches: 1,
        network: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(host: u64) -> Record {
        let [build, capabilities, settings_digest, kernel, process] = [1, 2, 3, 5, 6];
        let (name_bytes, address_bytes) = (7, 8);
        Record { build, capabilities, settings_digest, host, kernel, process, name_bytes, address_bytes }
    }

    #[test]
    fn another_build_is_found_on_all_ranks_alike() {
        let mut gathered = [7, 8, 9].map(|host| record(host).to_bytes());
        assert_eq!(same_builds(&gathered), Ok(vec![record(7), record(8), record(9)]));
        gathered[2] = Record { build: 2, ..record(9) }.to_bytes();
        assert_eq!(same_builds(&gathered), Err(2));
        gathered[1] = [0; RECORD_BYTES];
        assert_eq!(same_builds(&gathered), Err(1), "not polycast at all");
    }

    #[test]
    fn the_shape_counts_hosts_and_their_fullest() {
        let shape = shape_of(&[7, 8, 7, 9, 7].map(record));
        assert_eq!((shape.ranks, shape.nodes, shape.ranks_per_node), (5, 3, 3));
    }
}
