//! The records of the ranks of MPI_COMM_WORLD, which they tell each other when MPI begins.

use std::collections::HashMap;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use super::network::{self, Here, Told};
use super::record::{RECORD_BYTES, RankRecord};
use super::view::{View, agree_on_settings};
use crate::abi::{CAN_PACK, MpiError};
use crate::door::Door;
use crate::fault::{self, Point};
use crate::identity::build_identity;
use crate::machine::{self, process_identity};
use crate::node_memory::{ArenaOffer, Arenas, Opened, do_share_hosts};
use crate::of_process::of_process;
use crate::passing;
use crate::report;
use crate::say::warn_once;
use crate::settings::{self, Settings};
use crate::tags::TagSpace;
use crate::trace;

/// Bit beside the door's capabilities: this rank was asked for a report.
const WANTS_REPORT: u64 = 1 << 32;
/// Bit: several of this rank's threads may be in MPI at a time.
const HAS_THREADS: u64 = 1 << 33;
/// Bit: this rank was asked for a trace.
const WANTS_TRACE: u64 = 1 << 34;
/// First of five bits for the memory that a call may need on this rank: the binary digits of its
/// bytes; 0: any number.
const ROOM_AT: u32 = 35;
const ROOM_DIGITS: u64 = 31;
/// First bit of a byte for the bits that this rank's tags have.
const TAG_BITS_AT: u32 = 40;
/// First bit of the number of processors that this rank may run on.
const PROCESSORS_AT: u32 = 48;
const MAX_PROCESSORS: usize = 0xffff;

/// All ranks of MPI_COMM_WORLD, by their ranks there.
pub struct World {
    pub hosts: Arc<[u64]>,
    pub kernels: Vec<u64>,
    /// Digest of each rank's kernel, whatever its host's name.
    pub kernel_starts: Vec<u32>,
    /// Ranks of the job for each processor that a rank may run on, rounded up, by rank.
    pub ranks_per_processor: Vec<u32>,
    /// Most bytes that a call may need on any rank; `None`: no rank's memory is limited.
    pub room: Option<u64>,
    pub processes: Arc<[u64]>,
    pub told: Told,
    pub tags: TagSpace,
    /// True if some rank's threads may be in MPI at a time.
    pub has_threads: bool,
    /// The settings that the ranks have agreed on; beside them the number of changes that this
    /// process had made to its own by then.
    pub view: Arc<View>,
    pub changes: u64,
    /// The memory of the hosts.
    pub arenas: Arenas,
}

of_process! {
    /// The world; `None` inside: the stock MPI serves all.
    static WORLD: OnceLock<Result<Option<Arc<World>>, MpiError>> = OnceLock::new();
}

impl World {
    /// The records that the ranks have told; `None`: the stock MPI serves everything.
    ///
    /// # Errors
    /// MPI's error, where it failed meanwhile: this rank does not know what the others do.
    pub fn get() -> Result<Option<Arc<World>>, MpiError> {
        WORLD.with(|world| world.get().cloned().unwrap_or(Ok(None)))
    }

    /// True if these ranks of MPI_COMM_WORLD are on one host, whose processes have an arena with numbers
    /// for communicators.
    pub fn are_in_arena(&self, ranks: &[u32]) -> bool {
        let host = |rank: &u32| self.hosts[*rank as usize];
        ranks.windows(2).all(|pair| host(&pair[0]) == host(&pair[1]))
            && self.tags.slot_numbers() > 0
            && self.arenas.have(ranks.iter().take(1).copied())
    }

    /// Ranks that look like several hosts and run on one kernel: one of each such host, out of
    /// these ranks of MPI_COMM_WORLD.
    pub fn on_one_kernel(&self, ranks: &[u32]) -> Vec<u32> {
        let mut hosts: Vec<(u32, u64, u32)> = ranks
            .iter()
            .map(|rank| (self.kernel_starts[*rank as usize], self.hosts[*rank as usize], *rank))
            .collect();
        hosts.sort_unstable();
        hosts.dedup_by_key(|(kernel, host, _)| (*kernel, *host));
        let mut alike: Vec<u32> = hosts
            .chunk_by(|(one, ..), (other, ..)| one == other)
            .filter(|alike| alike.len() > 1)
            .flat_map(|alike| alike.iter().map(|(.., rank)| *rank))
            .collect();
        alike.sort_unstable();
        alike
    }

    fn of(records: &[RankRecord], told: Told, tags: TagSpace, settings: Arc<Settings>) -> World {
        fault::point(Point::Agree);
        if records.iter().all(|other| other.capabilities & WANTS_REPORT != 0) {
            report::all_ranks_report();
        }
        let mut nodes: Vec<u64> = records.iter().map(|other| other.host).collect();
        nodes.sort_unstable();
        nodes.dedup();
        report::world(records.len(), nodes.len());
        let view = Arc::new(View::new(settings, &told));
        let world = World {
            hosts: records.iter().map(|other| other.host).collect(),
            kernels: records.iter().map(|other| other.kernel).collect(),
            kernel_starts: records.iter().map(|other| other.kernel_start).collect(),
            ranks_per_processor: ranks_per_processor(records),
            room: records.iter().filter_map(|other| room_of(other.capabilities)).min(),
            processes: records.iter().map(|other| other.process).collect(),
            told,
            tags,
            has_threads: records.iter().any(|other| other.capabilities & HAS_THREADS != 0),
            view,
            changes: settings::changes(),
            arenas: Arenas::default(),
        };
        let all: Vec<u32> = (0..records.len() as u32).collect();
        let are_told = records.iter().any(|other| other.capabilities & (WANTS_REPORT | WANTS_TRACE) != 0);
        passing::learn(&world.view.settings, world.view.shape(&world, &all), are_told);
        world
    }
}

/// Begins the job: gathers all ranks' records. Collective over MPI_COMM_WORLD, whose `door` it is;
/// once. True if anything can be served: the same on all ranks, but for one on which MPI fails
/// meanwhile. That rank takes part, and gives MPI's error to its calls.
pub fn begin(door: &Door, rank: usize, size: usize, tag_most: c_int, has_threads: bool) -> bool {
    // What goes wrong here is no matter of the others.
    let _ = catch_unwind(|| {
        report::began(size);
        if rank == 0 {
            report::warn_of_place();
            report::have_witness();
        }
    });
    if size == 1 {
        // Nothing can be served, and nobody be asked; what was asked for is recorded all the same.
        let _ = trace::begin(door, (rank, size), false, 0);
        return false;
    }
    let world = gather(door, rank, size, tag_most, has_threads);
    let is_served = !matches!(world, Ok(None));
    // Who begins twice has told nothing new.
    let _ = WORLD.with(|known| known.set(world.map(|world| world.map(Arc::new))));
    is_served
}

/// Gathers the records of all ranks. Between two exchanges nothing is done that could fail on one
/// rank alone, or a vote follows.
fn gather(
    door: &Door,
    rank: usize,
    size: usize,
    tag_most: c_int,
    has_threads: bool,
) -> Result<Option<World>, MpiError> {
    // A rank that cannot even say who it is takes part as one that cannot serve.
    let prepared = catch_unwind(AssertUnwindSafe(|| {
        fault::point(Point::Record);
        let (mine, here) = (Settings::current(), Here::new());
        let of_tags = u64::from(TagSpace::bits(tag_most)) << TAG_BITS_AT;
        let of_processors = (machine::processors().min(MAX_PROCESSORS) as u64) << PROCESSORS_AT;
        let of_threads = if has_threads { HAS_THREADS } else { 0 };
        let more = of_tags | of_processors | of_threads | room_bits(machine::memory_left());
        (record_of(door, mine.digest, &here, more), mine, here)
    }));
    let Ok((record, mine, here)) = prepared else {
        door.allgather(&RankRecord::unable(build_identity()).to_bytes(), size)?;
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
    let tag_bits = records.iter().map(|other| u32::from((other.capabilities >> TAG_BITS_AT) as u8)).min();
    let tags = tag_bits.and_then(TagSpace::new);
    let Some(tags) =
        tags.filter(|_| records.iter().all(|other| other.capabilities & u64::from(CAN_PACK) != 0))
    else {
        return Ok(None);
    };
    let differ = records.iter().any(|other| other.settings_digest != records[0].settings_digest);
    let Some(settings) = agree_on_settings(door, rank, size, mine, differ)? else { return Ok(None) };
    let hosts: Vec<u64> = records.iter().map(|other| other.host).collect();
    let do_share = do_share_hosts(&hosts);
    let offer = || ArenaOffer::new(&hosts, rank, record.process);
    let offer = if do_share { catch_unwind(offer).unwrap_or_default() } else { ArenaOffer::default() };
    let beside = if do_share { offer.digits() } else { String::new() };
    let (told, beside) = network::ask(door, &records, &here, &beside)?;
    let do_all_trace = records.iter().all(|other| other.capabilities & WANTS_TRACE != 0);
    trace::begin(door, (rank, size), do_all_trace, tags.first_tag(0))?;
    let identities: Vec<u64> = records.iter().map(|other| other.process).collect();
    let open = AssertUnwindSafe(|| offer.open(&beside, &hosts, rank, &identities));
    let arena = if do_share { catch_unwind(open).ok() } else { None };
    let world = catch_unwind(AssertUnwindSafe(|| World::of(&records, told, tags, settings))).ok();
    let vote = u8::from(world.is_some()) | arena.as_ref().map_or(0, Opened::vote);
    let all = door.allgather(&[vote], size)?;
    let arenas = arena.map(|arena| arena.agreed(&hosts, rank, &all)).unwrap_or_default();
    let world = world.filter(|_| all.iter().all(|[vote]| vote & 1 != 0));
    Ok(world.map(|world| World { arenas, ..world }))
}

/// Bits for the memory that a call may need: a sixty-fourth of what is left when MPI begins, for
/// the program comes to need most of it.
fn room_bits(left: Option<u64>) -> u64 {
    let digits = left.map_or(0, |left| u64::from((left / 64).checked_ilog2().unwrap_or(0).max(1)));
    if digits > ROOM_DIGITS { 0 } else { digits << ROOM_AT }
}

fn room_of(capabilities: u64) -> Option<u64> {
    let digits = capabilities >> ROOM_AT & ROOM_DIGITS;
    (digits > 0).then(|| 1 << digits)
}

fn ranks_per_processor(records: &[RankRecord]) -> Vec<u32> {
    let mut ranks: HashMap<u64, u64> = HashMap::new();
    records.iter().for_each(|record| *ranks.entry(record.kernel).or_default() += 1);
    let processors = |record: &RankRecord| (record.capabilities >> PROCESSORS_AT).max(1);
    records.iter().map(|record| ranks[&record.kernel].div_ceil(processors(record)) as u32).collect()
}

/// The records, or the first rank whose build is not that of rank 0. All ranks find the same.
fn same_builds(gathered: &[[u8; RECORD_BYTES]]) -> Result<Vec<RankRecord>, usize> {
    let mut records: Vec<RankRecord> = Vec::with_capacity(gathered.len());
    for (rank, bytes) in gathered.iter().enumerate() {
        let record = RankRecord::from_bytes(bytes).ok_or(rank)?;
        if record.build != records.first().unwrap_or(&record).build {
            return Err(rank);
        }
        records.push(record);
    }
    Ok(records)
}

fn record_of(door: &Door, settings_digest: u64, here: &Here, more: u64) -> RankRecord {
    let wants_report = if settings::is_report_wanted() { WANTS_REPORT } else { 0 };
    let wants_trace = if settings::trace_folder().is_some() { WANTS_TRACE } else { 0 };
    RankRecord {
        build: build_identity(),
        capabilities: u64::from(door.capabilities()) | wants_report | wants_trace | more,
        settings_digest,
        host: here.host,
        kernel: here.kernel,
        process: process_identity(),
        name_bytes: here.name_bytes(),
        address_bytes: here.address_bytes(),
        kernel_start: here.kernel_start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(host: u64) -> RankRecord {
        let [build, capabilities, settings_digest, kernel, process] = [1, 2, 3, 5, 6];
        let (name_bytes, address_bytes, kernel_start) = (7, 8, 9);
        RankRecord {
            build,
            capabilities,
            settings_digest,
            host,
            kernel,
            process,
            name_bytes,
            address_bytes,
            kernel_start,
        }
    }

    #[test]
    fn ranks_on_the_same_processors_share_them() {
        let of = |kernel: u64, processors: u64| RankRecord {
            kernel,
            capabilities: 3 | 31 << TAG_BITS_AT | processors << PROCESSORS_AT,
            ..record(7)
        };
        let records = [of(1, 2), of(1, 2), of(2, 1), of(1, 2), of(3, 0), of(4, 64)];
        assert_eq!(ranks_per_processor(&records), [2, 2, 1, 2, 1, 1]);
    }

    #[test]
    fn a_call_gets_a_sixty_fourth_of_limited_memory() {
        let room = |left| room_of(room_bits(left) | u64::MAX << TAG_BITS_AT | HAS_THREADS);
        assert_eq!(room(None), None);
        assert_eq!(room(Some(1 << 30)), Some(16 << 20));
        assert_eq!(room(Some((1 << 30) - 1)), Some(8 << 20), "rounded down");
        assert_eq!(room(Some(0)), Some(2), "next to nothing");
        assert_eq!(room(Some(u64::MAX)), None, "more than a call ever needs");
    }

    #[test]
    fn another_build_is_found_on_all_ranks_alike() {
        let mut gathered = [7, 8, 9].map(|host| record(host).to_bytes());
        assert_eq!(same_builds(&gathered), Ok(vec![record(7), record(8), record(9)]));
        gathered[2] = RankRecord { build: 2, ..record(9) }.to_bytes();
        assert_eq!(same_builds(&gathered), Err(2));
        gathered[1] = [0; RECORD_BYTES];
        assert_eq!(same_builds(&gathered), Err(1), "not polycast at all");
    }
}
