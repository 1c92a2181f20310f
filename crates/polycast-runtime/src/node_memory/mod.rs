//! The memory that this rank shares with the other ranks of its node: streams and cells in the node's arena.
//!
//! ```text
//!     arenas    the arena of each host: made and opened when MPI begins
//!     setup     a slot of it for a communicator: who leads it on a node takes one, and tells the others
//!     pool      slots of communicators that are gone, for later ones
//! ```

mod arenas;
mod pool;
mod setup;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

use polycast_shm::{Arena, Cells, Handed, Memory, NOTES, Raw, Slot, Streams, Way};

pub use arenas::{ArenaOffer, Arenas, Opened, do_share_hosts};
pub use setup::{Found, Offered, set_up};

use crate::{machine, say};

/// Bytes that are copied before the others are told, who then copy while more comes. Between 4 and
/// 16 KiB makes no difference, less costs more.
const BUFFER_BYTES: usize = 8 << 10;

/// The memory of a communicator, in the arena that it is in.
struct PlaceInArena {
    raw: Raw,
    arena: Arc<Arena>,
}

/// Memory that holds streams and cells.
#[derive(Clone)]
pub struct Mapped(Arc<PlaceInArena>);

impl Deref for Mapped {
    type Target = Raw;

    fn deref(&self) -> &Raw {
        &self.0.raw
    }
}

/// Shared memory of one communicator on this node; its ranks there are numbered in their order.
pub struct NodeMemory {
    streams: Streams<Mapped>,
    cells: Cells<Mapped>,
    handed: Handed<Mapped>,
    /// The kernel's number of the process of each rank on the node.
    processes: Box<[u32]>,
    /// True if the processes of this host could read each other's memory, and this rank was not
    /// refused since.
    reads_others: bool,
    operation: u64,
    slot: Slot,
    /// True if this rank has taken the slot, and gives it back.
    leads: bool,
}

impl NodeMemory {
    /// The number of the operation that begins, the same on all ranks.
    pub fn next_operation(&mut self) -> u64 {
        self.operation += 1;
        self.cells.pass(self.operation as u32);
        self.operation
    }

    /// The slot's number, which no other communicator of the node has.
    pub fn number(&self) -> u32 {
        self.slot.number
    }

    pub fn streams(&mut self) -> &mut Streams<Mapped> {
        &mut self.streams
    }

    pub fn cells(&mut self) -> &mut Cells<Mapped> {
        &mut self.cells
    }

    /// Bytes that can be published while nobody reads.
    pub fn ring_bytes(&self) -> u64 {
        self.streams.memory().ring_bytes()
    }

    /// True if a rank that publishes may tell where its bytes are: nobody on the node has been
    /// refused yet.
    pub fn reads_others(&self) -> bool {
        self.reads_others && !self.handed.has_refused()
    }

    pub fn handed(&mut self) -> &mut Handed<Mapped> {
        &mut self.handed
    }

    /// Copies bytes that a writer shows at `address` of its process; returns how many, 0: none yet.
    /// The kernel let ranks read each other when MPI began; where it does not any more, the writer
    /// hands them over, and all say by data what they publish from then on.
    pub fn read(&mut self, (way, operation): (Way, u64), address: u64, place: &mut [u8]) -> usize {
        if self.reads_others {
            match machine::read_process(self.processes[way.writer as usize], address, place) {
                Ok(()) => return place.len(),
                Err(error) => {
                    self.reads_others = false;
                    // Relaxed: later communicators of the node look at it, and who misses it asks.
                    self.streams.memory().0.arena.has_refused().store(1, Relaxed);
                    say::warn_once(&format!(
                        "the kernel let this process read other ranks' memory (process_vm_readv), and now refuses it: {error}; \
                         data between the ranks of this node is copied twice from now on"
                    ));
                }
            }
        }
        // SAFETY: it is as long.
        unsafe { self.handed.take((way, operation), address, place.as_mut_ptr(), place.len()) }
    }

    /// Leaves words for those who come, before they are told of the slot.
    pub fn leave_notes(&self, words: &[u64]) {
        // Relaxed: they come after a message.
        let notes = self.streams.memory().notes();
        notes.iter().zip(words).for_each(|(note, word)| note.store(*word, Relaxed));
    }

    /// The words that were left.
    pub fn notes(&self) -> [u64; NOTES] {
        let notes = self.streams.memory().notes();
        std::array::from_fn(|at| notes[at].load(Relaxed))
    }

    /// Leaves the memory to other communicators: this one is gone, and nothing went wrong in it. They
    /// have it when all ranks have left it.
    pub fn give_back(self: Box<NodeMemory>) {
        let memory = self.streams.memory();
        // Relaxed: before the release.
        memory.last_operation().fetch_max(self.operation, Relaxed);
        // Release: with the acquire of who takes it for others.
        memory.users().fetch_sub(1, Release);
        if self.leads {
            pool::put(self.slot, self.processes.len() as u32, memory.clone());
        }
    }
}
