use std::fs;

use polycast_core::policy::Collective;
use polycast_core::policy::trials::Memory;
use polycast_core::units::Bytes;

use super::placement::Placement;
use crate::commands::cache::{file, today};
use crate::terminal::nanoseconds;

/// Notes on what jobs of this user found by trials about such calls, on communicators of this
/// shape.
pub fn notes(placement: &Placement, collective: Collective, bytes: Bytes) -> Vec<String> {
    let Some(file) = file() else { return Vec::new() };
    // A name may lead to a pipe that nobody writes to.
    let text = if file.is_file() { fs::read(file).unwrap_or_default() } else { Vec::new() };
    let mut memories = Memory::read(&String::from_utf8_lossy(&text), today());
    memories.retain(|memory| memory.is_about(placement.shape, collective, bytes.0));
    memories.sort_by(|one, other| one.place().cmp(&other.place()));
    memories.iter().map(note).collect()
}

fn note(memory: &Memory) -> String {
    let times = memory.times().map(|(way, nanos)| format!("{way} {}", nanoseconds(nanos as f64)));
    let (mpi, hosts) = memory.place();
    let times = times.collect::<Vec<_>>().join(", ");
    let done = if memory.recall_tuned().is_some() { "tuned" } else { "compared" };
    format!("{done} by a job on {hosts} above {mpi}: {times}: {} stays", memory.stays())
}
