//! Segments of communicators that are gone. A program that makes, uses and frees thousands of communicators opens few.

use std::sync::Mutex;

use super::{Live, NodeMemory};
use crate::of_process::{Shared, of_process};

/// Most segments that are kept; the oldest go first.
const MAX_KEPT: usize = 8;

of_process! {
    static POOL: Mutex<Vec<NodeMemory>> = Mutex::new(Vec::new());
}

pub fn put(memory: NodeMemory) {
    let oldest = POOL.change(|pool| {
        pool.push(memory);
        (pool.len() > MAX_KEPT).then(|| pool.remove(0))
    });
    drop(oldest);
}

/// True if there may be one more segment; kept ones give way for it.
pub fn make_room() -> bool {
    while !Live::is_room() {
        let oldest = POOL.change(|pool| (!pool.is_empty()).then(|| pool.remove(0)));
        // Not under the lock: unmapping takes long.
        let Some(oldest) = oldest else { return false };
        drop(oldest);
    }
    true
}

/// Takes a segment of these ranks in which nothing is on its way, if there is one: the one that all
/// of them find first.
pub fn take(group: &[u32]) -> Option<Box<NodeMemory>> {
    POOL.change(|pool| {
        let is_free = |memory: &mut NodeMemory| {
            *memory.group == *group && memory.streams.is_quiet() && memory.cells.is_quiet()
        };
        let free = pool
            .iter_mut()
            .enumerate()
            .filter_map(|(at, memory)| is_free(memory).then_some((memory.name, at)));
        let (_, least) = free.min()?;
        Some(Box::new(pool.remove(least)))
    })
}
