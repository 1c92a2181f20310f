//! Set-up of shared memory on the nodes of a communicator: on all, or it is used on none. Nothing is mapped or opened for it.
//!
//! ```text
//!   on one node     rank 0 says which slot, beside the communicator's number, which is the slot's           MPI_Bcast
//!   on several      who leads a node: which slot its ranks have; the others: they are able to take part     MPI_Allgather
//!                   └─ on some node there is none: nobody has any
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use polycast_core::schedule::Nodes;
use polycast_core::units::Rank;
use polycast_shm::{Cells, Handed, MAX_SLOTS, Slot, Streams};

use super::arenas::Arenas;
use super::{BUFFER_BYTES, Mapped, NodeMemory, PlaceInArena, pool};
use crate::abi::MpiError;
use crate::door::Door;
use crate::fault::{self, Point};
use crate::settings;

/// Bytes that a rank tells.
const TOLD_BYTES: usize = 16;
/// The word of a rank that leads nobody and is able to take part; no slot's.
const ABLE: u64 = 1;

/// The agreement of all ranks.
pub enum Found {
    /// Memory of this rank's node, if it shares the node.
    Memory(Option<Box<NodeMemory>>),
    /// No memory: some node has none.
    Unavailable,
}

/// A slot that the ranks of a node are offered, as words for them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offered {
    /// The slot; 0: none.
    pub slot: u64,
    /// The last operation in it.
    pub last_operation: u64,
}

impl Offered {
    /// Takes a slot for this rank, which leads so many ranks on its node. `numbers`: numbers below
    /// which it has one.
    pub fn new(arenas: &Arenas, ranks: u32, numbers: usize) -> Offered {
        fault::point(Point::Memory);
        let arena = arenas.mine().filter(|_| settings::is_memory_wanted());
        let taken = arena.and_then(|arena| pool::take(arena, ranks, numbers));
        taken.map_or(Offered::default(), |(slot, last_operation)| Offered {
            slot: slot.to_word(),
            last_operation,
        })
    }

    /// Takes this rank's part in the slot that its node was offered; `None` if there is none.
    pub fn join(
        self,
        arenas: &Arenas,
        rank: Rank,
        nodes: &Nodes,
        world_ranks: &[u32],
    ) -> Option<Box<NodeMemory>> {
        let (slot, arena) = (Slot::from_word(self.slot)?, arenas.mine()?.clone());
        let local = nodes.local().in_order();
        let (ranks, me) = (local.len() as u32, local.iter().position(|of| *of == rank)? as u32);
        // SAFETY: the arena stays as long as the memory, and the slot until this rank has left it, which it was taken for.
        let raw = unsafe { arena.memory(slot, ranks) }?;
        if self.last_operation == 0 {
            raw.meet();
        }
        let memory = Mapped(Arc::new(PlaceInArena { raw, arena }));
        Some(Box::new(NodeMemory {
            streams: Streams::after(memory.clone(), me, BUFFER_BYTES),
            cells: Cells::after(memory.clone(), me, ranks, self.last_operation as u32),
            handed: Handed::after(memory, me),
            processes: local
                .iter()
                .map(|rank| arenas.processes[world_ranks[rank.index()] as usize])
                .collect(),
            reads_others: arenas.reads_others(),
            operation: self.last_operation,
            slot,
            leads: rank == nodes.my_leader(),
        }))
    }

    fn to_bytes(self) -> [u8; TOLD_BYTES] {
        let mut bytes = [0; TOLD_BYTES];
        bytes[..8].copy_from_slice(&self.slot.to_le_bytes());
        bytes[8..].copy_from_slice(&self.last_operation.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; TOLD_BYTES]) -> Offered {
        let word = |first: usize| u64::from_le_bytes(std::array::from_fn(|at| bytes[first + at]));
        Offered { slot: word(0), last_operation: word(8) }
    }
}

/// Sets up shared memory. Collective, unless some host has no arena. `world_ranks`: the rank of each
/// rank in MPI_COMM_WORLD.
pub fn set_up(
    door: &Door,
    rank: Rank,
    nodes: &Nodes,
    world_ranks: &[u32],
    arenas: &Arenas,
) -> Result<Found, MpiError> {
    let mut on_node = vec![0u32; nodes.leaders().len()];
    (0..).map(Rank).take(world_ranks.len()).for_each(|rank| on_node[nodes.of(rank) as usize] += 1);
    let shared: Vec<Rank> =
        nodes.leaders().iter().copied().filter(|leader| on_node[nodes.of(*leader) as usize] > 1).collect();
    if !arenas.have(shared.iter().map(|leader| world_ranks[leader.index()])) {
        return Ok(Found::Unavailable);
    }
    let mine = catch_unwind(AssertUnwindSafe(|| match shared.contains(&rank) {
        true => Offered::new(arenas, nodes.local().ranks(), MAX_SLOTS),
        false => {
            fault::point(Point::Memory);
            Offered { slot: if settings::is_memory_wanted() { ABLE } else { 0 }, last_operation: 0 }
        }
    }));
    let mine = mine.unwrap_or_default();
    let told = door.allgather(&mine.to_bytes(), world_ranks.len())?;
    let all: Vec<Offered> = told.iter().map(Offered::from_bytes).collect();
    let of_node = all[nodes.my_leader().index()];
    let is_alone = nodes.local().ranks() == 1;
    if all.iter().any(|offered| offered.slot == 0) {
        if shared.contains(&rank)
            && let Some(memory) = mine.join(arenas, rank, nodes, world_ranks)
        {
            memory.give_up();
        }
        return Ok(Found::Unavailable);
    }
    // What was agreed on is there: nobody has to vote on it.
    Ok(Found::Memory(if is_alone { None } else { of_node.join(arenas, rank, nodes, world_ranks) }))
}

impl NodeMemory {
    /// Gives back, on the rank that leads, what no rank has begun to use.
    fn give_up(self: Box<NodeMemory>) {
        let others = self.processes.len() as u64 - 1;
        self.streams.memory().users().fetch_sub(others, std::sync::atomic::Ordering::Relaxed);
        self.give_back();
    }
}
