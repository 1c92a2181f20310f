//! The memory that this rank shares with the other ranks of its node: streams and cells in a
//! segment.
//!
//! ```text
//!     setup    all ranks of a communicator agree whether their nodes have segments, and each opens its node's
//!     pool     segments of communicators that are gone, for later ones of the same ranks
//!     live     how many segments a process has
//! ```

mod live;
mod pool;
mod setup;

use std::ops::Deref;
use std::sync::Arc;

use polycast_shm::{Cells, Handed, Memory, Raw, Segment, Streams, Way};

use live::Live;
#[cfg(test)]
pub use live::MAX_SEGMENTS;
pub use setup::{Found, set_up};

use crate::{machine, say};

/// Bytes that are copied before the others are told, who then copy while more comes. Between 4 and
/// 16 KiB makes no difference, less costs more.
const BUFFER_BYTES: usize = 8 << 10;

/// A segment that holds streams and cells.
#[derive(Clone)]
pub struct Mapped(Arc<Segment>);

impl Deref for Mapped {
    type Target = Raw;

    fn deref(&self) -> &Raw {
        &self.0
    }
}

/// Shared memory of one communicator on this node; its ranks there are numbered in their order.
pub struct NodeMemory {
    streams: Streams<Mapped>,
    cells: Cells<Mapped>,
    handed: Handed<Mapped>,
    /// The kernel's number of the process of each rank on the node.
    processes: Vec<u32>,
    /// True if all these processes could read each other's memory, and this rank was not refused
    /// since.
    reads_others: bool,
    operation: u64,
    /// The ranks of the node in MPI_COMM_WORLD.
    group: Box<[u32]>,
    /// Name of the segment.
    name: u64,
    _live: Live,
}

impl NodeMemory {
    /// The number of the operation that begins, the same on all ranks.
    pub fn next_operation(&mut self) -> u64 {
        self.operation += 1;
        self.cells.pass(self.operation as u32);
        self.operation
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
    /// The kernel let ranks read each other when they agreed on this memory; where it does not any
    /// more, the writer hands them over, and all say by data what they publish from then on.
    pub fn read(&mut self, (way, operation): (Way, u64), address: u64, place: &mut [u8]) -> usize {
        if self.reads_others {
            match machine::read_process(self.processes[way.writer as usize], address, place) {
                Ok(()) => return place.len(),
                Err(error) => {
                    self.reads_others = false;
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

    /// Gives the memory to the pool for another communicator: its own is gone, and nothing went
    /// wrong in it.
    pub fn give_back(self: Box<NodeMemory>) {
        pool::put(*self);
    }
}
