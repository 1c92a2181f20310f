use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use polycast_core::policy::Collective;
use polycast_core::policy::trials::{CACHE_FILE, Memory};
use polycast_core::units::Bytes;
use polycast_core::variables::cache_folder;

use super::placement::Placement;
use crate::settings::variable;
use crate::terminal::nanoseconds;

/// What jobs of this user found by trials about such calls on communicators of this shape.
pub fn notes(placement: &Placement, collective: Collective, bytes: Bytes) -> Vec<String> {
    let Some(folder) = cache_folder(variable) else { return Vec::new() };
    let file = folder.join(CACHE_FILE);
    // A name may lead to a pipe that nobody writes to.
    let text = if file.is_file() { fs::read(file).unwrap_or_default() } else { Vec::new() };
    let today =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / (24 * 60 * 60));
    let memories = Memory::read(&String::from_utf8_lossy(&text), today).into_iter();
    memories
        .filter(|memory| memory.is_about(placement.shape, collective, bytes.0))
        .map(|memory| note(&memory))
        .collect()
}

fn note(memory: &Memory) -> String {
    let times = memory.times().map(|(way, nanos)| format!("{way} {}", nanoseconds(nanos as f64)));
    let (mpi, hosts) = memory.place();
    let times = times.collect::<Vec<_>>().join(", ");
    let done = if memory.recall_tuned().is_some() { "tuned" } else { "compared" };
    format!("{done} by a job on {hosts} above {mpi}: {times}: {} stays", memory.stays())
}
