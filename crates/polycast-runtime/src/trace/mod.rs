//! The record of this rank's calls (`POLYCAST_TRACE`, docs/trace.md).
//!
//! ```text
//!     calls     the calls of one communicator, as its log tells of them
//!     clock     how far rank 0's clock is ahead of this one's
//!     file      where it is written, when MPI ends or the process does
//!         ending    SIGTERM, and exits without MPI_Finalize
//! ```
//! Where no trace is wanted, nothing of this is there: communicators have no log, or one without a trace.

mod calls;
mod clock;
mod ending;
mod file;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use polycast_trace::{About, EVENTS, Ending, Event, Kind, NOT_NAMED, Recorder};

pub use self::calls::CallTrace;
use self::clock::Clocks;
use self::file::TraceName;
use crate::abi::MpiError;
use crate::digest::Digest;
use crate::door::Door;
use crate::machine;
use crate::of_process::of_process;
use crate::settings;

/// Recorder of this process, and the place of its file.
pub struct Tracer {
    recorder: Recorder,
    /// A moment on two clocks: events are stamped by the distance to it.
    epoch: (Instant, u64),
    /// Beginning of MPI, in nanoseconds since 1970, on the clock of files.
    began_1970_ns: u64,
    place: TraceName,
    /// True if the file is complete: what ends the process later changes nothing.
    is_written: AtomicBool,
    /// Number of communicators there were of each group of ranks. Guards the recorder's tables.
    groups: Mutex<HashMap<u64, u32>>,
    /// Comparison of clocks when MPI ends, if all ranks record.
    clocks: Option<Clocks>,
}

of_process! {
    /// The recorder, set once, when MPI has begun.
    static TRACER: OnceLock<Arc<Tracer>> = OnceLock::new();
}

/// The recorder, if anything is recorded.
pub fn tracer() -> Option<Arc<Tracer>> {
    TRACER.with(|tracer| tracer.get().cloned())
}

/// Begins to record, when MPI has begun. Collective over MPI_COMM_WORLD, whose `door` it is, if all
/// ranks record, which all know (`do_all`); otherwise local. `first_tag`: the first of tags that no
/// communicator uses yet.
pub fn begin(
    door: &Door,
    (rank, ranks): (usize, usize),
    do_all: bool,
    first_tag: std::ffi::c_int,
) -> Result<(), MpiError> {
    let Some(folder) = settings::trace_folder() else { return Ok(()) };
    let identity =
        catch_unwind(|| [clock_identity(), machine::random().unwrap_or(0) | 1]).unwrap_or_default();
    let mut clocks = None;
    let mut job = 0;
    if do_all {
        let told = u128::from(identity[0]) << 64 | u128::from(identity[1]);
        let all = door.allgather(&told.to_le_bytes(), ranks)?.into_iter().map(u128::from_le_bytes);
        let (of_ranks, of_jobs): (Vec<u64>, Vec<u64>) =
            all.map(|told| ((told >> 64) as u64, told as u64)).unzip();
        job = of_jobs.first().copied().unwrap_or(0);
        clocks = Some(Clocks::new(*door, rank as u32, &of_ranks, first_tag));
    } else if ranks == 1 {
        job = identity[1];
    }
    // What goes wrong here is no matter of the others.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let tracer = Arc::new(Tracer::new(&folder, (rank as u32, ranks as u32), job, identity[0], clocks));
        if let Some(clocks) = &tracer.clocks
            && let Some(clock) = clocks.compare()
        {
            tracer.recorder.clock(clock, false);
        }
        if TRACER.with(|place| place.set(tracer.clone())).is_ok() {
            ending::watch(tracer);
        }
    }));
    Ok(())
}

/// Compares clocks again, and writes the file, when MPI ends. Collective over MPI_COMM_WORLD where
/// [`begin`] was.
pub fn end() {
    let Some(tracer) = tracer() else { return };
    if let Some(clock) = tracer.clocks.as_ref().and_then(Clocks::compare) {
        tracer.recorder.clock(clock, true);
    }
    tracer.write_at_end(Ending::Finalized);
}

/// Writes the file, since the process is about to end without [`end`]. Local.
pub fn write_now() {
    if let Some(tracer) = tracer() {
        tracer.write_at_end(Ending::Exited);
    }
}

/// Records a call that went to the MPI for this reason although no communicator was asked.
pub fn left(collective: u32, because: Option<&str>, bytes: u64) {
    instant(Kind::Left, collective as u8, because, bytes);
}

/// Records a call of this function, which nobody serves.
pub fn unserved(function: Option<&str>, bytes: u64) {
    instant(Kind::Unserved, 0, function, bytes);
}

fn instant(kind: Kind, detail: u8, name: Option<&str>, bytes: u64) {
    // One look at a place that does not change, where nothing is recorded.
    TRACER.with(|tracer| {
        if let (Some(tracer), Some(name)) = (tracer.get(), name) {
            let (at_ns, b) = (tracer.nanos(machine::now()), tracer.name(name).into());
            let event = Event { at_ns, kind, detail, communicator: NOT_NAMED, call: 0, a: bytes, b, c: 0 };
            tracer.recorder.record(event);
        }
    });
}

/// Number that is equal for processes that read one clock.
fn clock_identity() -> u64 {
    Digest::of("polycast clock").bytes(machine::clock().as_bytes()).finish()
}

impl Tracer {
    fn new(folder: &str, (rank, ranks): (u32, u32), job: u64, clock: u64, clocks: Option<Clocks>) -> Tracer {
        let epoch = (machine::now(), machine::monotonic_nanos());
        let began_1970_ns = machine::nanos_since_1970();
        let about = About {
            rank,
            ranks,
            job,
            clock,
            process: std::process::id(),
            began_ns: epoch.1,
            began_1970_ns,
            host: &machine::host().0,
            program: &machine::program(),
            polycast: env!("CARGO_PKG_VERSION"),
            mpi: &machine::mpi(),
            command: &machine::command(),
        };
        Tracer {
            recorder: Recorder::new(&about, EVENTS),
            epoch,
            began_1970_ns,
            place: TraceName::new(folder, rank),
            is_written: AtomicBool::new(false),
            groups: Mutex::new(HashMap::new()),
            clocks,
        }
    }

    /// A time on CLOCK_MONOTONIC, in nanoseconds.
    fn nanos(&self, at: Instant) -> u64 {
        self.epoch.1 + at.saturating_duration_since(self.epoch.0).as_nanos() as u64
    }

    /// Index of a name.
    fn name(&self, text: &str) -> u16 {
        let _guard = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        self.recorder.name(text)
    }

    /// Index of a communicator that has its first call.
    fn communicator(&self, rank: u32, world_ranks: &[u32]) -> u16 {
        let digest = Digest::of("polycast group");
        let group = world_ranks.iter().fold(digest, |digest, rank| digest.number((*rank).into())).finish();
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let count = groups.entry(group).or_default();
        let ordinal = *count;
        *count += 1;
        let first = world_ranks.first().copied().unwrap_or(0);
        self.recorder.communicator(group, ordinal, world_ranks.len() as u32, rank, first)
    }
}
