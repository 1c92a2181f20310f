//! Set-up of shared memory on the nodes of a communicator: on all, or it is used on none.
//! Collective.
//!
//! ```text
//!   tell     every rank: a segment of an earlier communicator of its node that it has free; its process, and where it keeps its mark
//!            leaders: without such a one, a new segment                                                MPI_Allgather
//!            └─ on some node not all have the same one free: it is forgotten there, and all tell again, the last time as if they had none
//!   vote     has this rank opened its node's and taken its part of it, can it read the others' marks?  the bits that all have
//!            └─ not if no node has a new one
//! ```

use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use polycast_core::schedule::Nodes;
use polycast_core::units::Rank;
use polycast_shm::{Cells, Handed, Offer, Segment, Shape, Streams};

use super::{BUFFER_BYTES, Live, Mapped, NodeMemory, pool};
use crate::abi::MpiError;
use crate::door::Door;
use crate::fault::{self, Point};
use crate::{machine, settings};

/// Bytes that a rank tells: numbers of 8 bytes each.
const TOLD_BYTES: usize = 40;
/// Most tries. In each, one of several segments is forgotten; in the last one ranks that keep
/// different ones make a new one.
const MAX_TRIES: u32 = 4;

/// The agreement of all ranks.
pub enum Found {
    /// Memory of this rank's node, if it shares the node.
    Memory(Option<Box<NodeMemory>>),
    /// No memory: some node has none.
    Unavailable,
}

#[derive(Clone, Copy, Default)]
struct SegmentOffer {
    /// Name of a segment that is free; 0: none.
    free: u64,
    /// Name of a new segment; 0: none.
    new: u64,
    process: u32,
    descriptor: u32,
    mark: u64,
    mark_at: u64,
}

impl SegmentOffer {
    fn to_bytes(self) -> [u8; TOLD_BYTES] {
        let both = u64::from(self.process) | u64::from(self.descriptor) << 32;
        let mut bytes = [0; TOLD_BYTES];
        let words = [self.free, self.new, both, self.mark, self.mark_at];
        bytes
            .chunks_exact_mut(8)
            .zip(words)
            .for_each(|(place, word)| place.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    fn from_bytes(bytes: &[u8; TOLD_BYTES]) -> SegmentOffer {
        let word = |index: usize| u64::from_le_bytes(std::array::from_fn(|at| bytes[8 * index + at]));
        let (process, descriptor) = (word(2) as u32, (word(2) >> 32) as u32);
        SegmentOffer { free: word(0), new: word(1), process, descriptor, mark: word(3), mark_at: word(4) }
    }
}

/// Segments and mark that this rank brings.
struct Mine {
    told: SegmentOffer,
    free: Option<Box<NodeMemory>>,
    new: Option<(Segment, OwnedFd)>,
    /// The mark, which the others read where it stands.
    _mark: Box<u64>,
}

/// Sets up shared memory. Collective. `world_ranks`: the rank of each rank in MPI_COMM_WORLD.
pub fn set_up(door: &Door, rank: Rank, nodes: &Nodes, world_ranks: &[u32]) -> Result<Found, MpiError> {
    let local = nodes.local().in_order();
    let group: Box<[u32]> = local.iter().map(|rank| world_ranks[rank.index()]).collect();
    for further_tries in (0..MAX_TRIES).rev() {
        // Who cannot even tell, or does not want it, takes part as one that has nothing.
        let mine = catch_unwind(AssertUnwindSafe(|| {
            fault::point(Point::Memory);
            Mine::find(&group, rank == nodes.my_leader(), further_tries > 0)
        }));
        let mine = mine.ok().filter(|_| settings::is_memory_wanted());
        let told = mine.as_ref().map_or(SegmentOffer::default(), |mine| mine.told);
        let all: Vec<SegmentOffer> = door
            .allgather(&told.to_bytes(), world_ranks.len())?
            .iter()
            .map(SegmentOffer::from_bytes)
            .collect();
        let has_same = |rank: &Rank| {
            let leader = nodes.leaders()[nodes.of(*rank) as usize];
            all[rank.index()].free == all[leader.index()].free
        };
        let is_old = |leader: &Rank| all[leader.index()].free != 0;
        let ranks = || (0..).map(Rank).take(all.len());
        let mut on_node = vec![0u32; nodes.leaders().len()];
        ranks().for_each(|rank| on_node[nodes.of(rank) as usize] += 1);
        let is_shared = |leader: &Rank| on_node[nodes.of(*leader) as usize] > 1;
        let differ = |rank: &Rank| is_old(&nodes.leaders()[nodes.of(*rank) as usize]) && !has_same(rank);
        if ranks().any(|rank| differ(&rank)) {
            // Kept where all have it.
            if let Some(Mine { free: Some(free), .. }) = mine
                && local.iter().all(has_same)
            {
                free.give_back();
            }
            continue;
        }
        let leaders: Vec<&Rank> = nodes.leaders().iter().filter(|leader| is_shared(leader)).collect();
        if leaders.iter().all(|leader| is_old(leader)) && ranks().all(|rank| all[rank.index()].mark != 0) {
            return Ok(Found::Memory(mine.and_then(|mine| mine.free)));
        }
        let told: Vec<SegmentOffer> = local.iter().map(|rank| all[rank.index()]).collect();
        let leads_at = local.iter().position(|rank| *rank == nodes.my_leader()).unwrap_or(0);
        let opened = catch_unwind(AssertUnwindSafe(|| {
            open(mine?, &told, leads_at, local.iter().position(|of| *of == rank)?, group.clone())
        }));
        let opened = opened.ok().flatten();
        let flag = |is_set: bool| if is_set { u64::MAX } else { 0 };
        let reads = opened
            .as_ref()
            .is_some_and(|opened| opened.memory.as_ref().is_none_or(|memory| memory.reads_others));
        let mut words = [flag(opened.is_some()), flag(reads)];
        door.intersect(&mut words)?;
        let Some(Opened { mut memory, .. }) = opened.filter(|_| words[0] != 0) else {
            return Ok(Found::Unavailable);
        };
        if let Some(memory) = &mut memory {
            memory.reads_others = words[1] != 0;
            // All have taken theirs.
            memory.streams.memory().meet();
        }
        return Ok(Found::Memory(memory));
    }
    Ok(Found::Unavailable)
}

impl Mine {
    fn find(group: &[u32], leads: bool, may_be_old: bool) -> Mine {
        let mark = Box::new(machine::random().unwrap_or(0) | 1);
        let mut told = SegmentOffer {
            process: std::process::id(),
            mark: *mark,
            mark_at: std::ptr::from_ref(&*mark) as u64,
            ..SegmentOffer::default()
        };
        let mut new = None;
        let shares = group.len() > 1;
        let free = if shares && may_be_old { pool::take(group) } else { None };
        if let Some(free) = &free {
            told.free = free.name;
        } else if leads && shares && pool::make_room() {
            let name = machine::random().unwrap_or(0);
            if let Ok((segment, file, offer)) = machine::create_segment(Shape::new(group.len() as u32), name)
                && name != 0
            {
                (told.new, told.descriptor) = (offer.name, offer.descriptor);
                new = Some((segment, file));
            }
        }
        Mine { told, free, new, _mark: mark }
    }
}

struct Opened {
    /// Memory of the node; `None` where a rank is alone.
    memory: Option<Box<NodeMemory>>,
    /// The descriptor through which others open the memory, and the mark that they read: kept until
    /// all have voted.
    _until_vote: (Option<OwnedFd>, Box<u64>),
}

/// Opens the segment of this rank's node; `None` if there is none.
fn open(mine: Mine, told: &[SegmentOffer], leader: usize, me: usize, group: Box<[u32]>) -> Option<Opened> {
    let Mine { free, new, _mark: mark, .. } = mine;
    if told.iter().any(|told| told.mark == 0) {
        return None;
    }
    // The leader may hold an earlier communicator's still, which the others have back: all take what it says.
    let is_old = told[leader].free != 0;
    if told.len() == 1 || is_old {
        return Some(Opened { memory: free, _until_vote: (None, mark) });
    }
    free.into_iter().for_each(NodeMemory::give_back);
    let SegmentOffer { new: name, process, descriptor, .. } = told[leader];
    if name == 0 {
        return None;
    }
    pool::make_room();
    let live = Live::new()?;
    let (segment, file) = match new {
        Some(made) => made,
        None => {
            let offer = Offer { process, descriptor, name };
            machine::open_segment(offer, Shape::new(told.len() as u32)).ok()?
        }
    };
    machine::take_memory(&segment, &file, me as u32).ok()?;
    let mut place = [0; 8];
    let mut can_read = |other: &SegmentOffer| {
        machine::read_process(other.process, other.mark_at, &mut place).is_ok()
            && place == other.mark.to_le_bytes()
    };
    let reads_others = told.iter().all(&mut can_read);
    let mapped = Mapped(Arc::new(segment));
    let streams = Streams::new(mapped.clone(), me as u32, BUFFER_BYTES);
    let handed = Handed::new(mapped.clone(), me as u32);
    let cells = Cells::new(mapped, me as u32, told.len() as u32);
    let processes = told.iter().map(|told| told.process).collect();
    let memory = NodeMemory {
        streams,
        cells,
        handed,
        processes,
        reads_others,
        operation: 0,
        group,
        name,
        _live: live,
    };
    Some(Opened { memory: Some(Box::new(memory)), _until_vote: (Some(file), mark) })
}
