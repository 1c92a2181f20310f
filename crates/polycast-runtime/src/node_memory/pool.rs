//! Slots of communicators that are gone, which this rank has led. A program that makes, uses and frees thousands of communicators takes few.

use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Arc, Mutex};

use polycast_shm::{Arena, Slot};

use super::Mapped;
use crate::machine;
use crate::of_process::{Shared, of_process};

/// Most slots that are kept, of those that nobody uses any more.
const MAX_KEPT: usize = 8;

struct KeptSlot {
    slot: Slot,
    ranks: u32,
    memory: Mapped,
}

impl KeptSlot {
    fn is_free(&self) -> bool {
        // Acquire: with the release of those who leave.
        self.memory.users().load(Acquire) == 0
    }

    fn give_back(self) {
        self.memory.0.arena.give_back(self.slot, self.ranks);
    }
}

of_process! {
    /// The slot that was used last is at the end.
    static POOL: Mutex<Vec<KeptSlot>> = Mutex::new(Vec::new());
}

/// Keeps a slot until all have left it, or for longer.
pub fn put(slot: Slot, ranks: u32, memory: Mapped) {
    let most = if memory.0.arena.is_crowded() { 0 } else { MAX_KEPT };
    let surplus = POOL.change(|pool| {
        pool.push(KeptSlot { slot, ranks, memory });
        let surplus = pool.len().saturating_sub(most);
        pool.extract_if(.., |kept| kept.is_free()).take(surplus).collect::<Vec<_>>()
    });
    // Not under the lock: the kernel may be asked.
    surplus.into_iter().for_each(KeptSlot::give_back);
}

/// Takes a slot for so many ranks, who all use it now, and the last operation in it; `None` if there
/// is none.
pub fn take(arena: &Arc<Arena>, ranks: u32, numbers: usize) -> Option<(Slot, u64)> {
    let kept = POOL.change(|pool| {
        let is_fit =
            |kept: &KeptSlot| kept.ranks == ranks && kept.is_free() && (kept.slot.number as usize) < numbers;
        pool.iter().rposition(is_fit).map(|at| pool.remove(at))
    });
    if let Some(KeptSlot { slot, memory, .. }) = kept {
        // Relaxed: all others have left it; who comes is told by a message.
        memory.users().store(ranks.into(), Relaxed);
        return Some((slot, memory.last_operation().load(Relaxed)));
    }
    let slot = machine::take_slot(arena, ranks, numbers).or_else(|| {
        let kept = POOL.change(|pool| pool.extract_if(.., |kept| kept.is_free()).collect::<Vec<_>>());
        let is_room = !kept.is_empty();
        kept.into_iter().for_each(KeptSlot::give_back);
        is_room.then(|| machine::take_slot(arena, ranks, numbers)).flatten()
    })?;
    // SAFETY: the arena outlives this, and the slot was just taken.
    let memory = unsafe { arena.memory(slot, ranks) }?;
    memory.users().store(ranks.into(), Relaxed);
    Some((slot, 0))
}
