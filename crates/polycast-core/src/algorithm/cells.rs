//! Through cells: every rank of a node has one that it fills and the others read, so a collective of short messages is one round of
//! filling and reading (Wu 2005, §2.4). Longer ones take several, of as much as a cell holds.
//!
//! ```text
//!   bcast       the root fills its cell, all read it                          put · group_get
//!   scatter     the root fills it with a part for each, each reads its own    put · group_seg_get
//!   gather      all fill theirs, the root reads them                          group_seg_put · get
//!   allgather   all fill theirs, all read all                                 group_seg_put · group_get
//!   alltoall    the same with a part for each                                 group_seg_put · group_seg_get
//!   reduce      as gather, allreduce as allgather, where what is read is combined; or in two rounds each:
//!               each combines its share of what is in all cells, and fills its cell with that
//!   barrier     all fill theirs with nothing, all look at all
//! ```
//! Everybody combines by the tree of combinations, so results are the same on all ranks, and sums have its order.
//!
//! [`Rounds`] says what is filled and read; whoever runs them has to see to it that nobody reads a cell before it is filled, or fills it before it
//! was read. What the checker of schedules proves are the same rounds as lanes.

mod lanes;
mod operands;

use std::num::NonZeroU64;
use std::ops::Range;

use super::parameter::{Domain, NONE, Need, Parameter};
use super::shares::Shares;
use super::{Algorithm, Entry, Raced};
use crate::collective::{Call, Collective};
use crate::schedule::Slice;
use crate::units::Rank;
use operands::{Operand, Operands};

/// The bytes that a cell holds where no segment is given, and there is room for them.
const ROOM: u64 = 8 << 10;

/// The bytes from which on each of more than two ranks combines a share of an allreduce. Not of a
/// reduce: all would have to wait for all, where now each goes when its data is in its cell.
const SHARED_FROM: u64 = 2 << 10;

const SHARES: Parameter = Parameter {
    name: "shares",
    about: "from how many bytes on each of more than two ranks combines a share of what is to be combined",
    domain: Domain::SizeOrNone,
    need: Need::Optional,
    default: "2 KiB for allreduce, none for reduce",
    typical: 16,
};

pub(super) static ENTRIES: [Entry; 1] = [Entry::on_one_node(
    &Collective::ALL,
    "cells",
    "on one node: each rank fills a cell in shared memory, which the others read, round by round",
    "Wu 2005, §2.4",
    lanes::schedule,
)
.with(&[SHARES])
.in_segments()
.by_the_tree()
.raced(&[Raced::PLAIN])];

/// Bytes of a buffer that go into this rank's cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// The offset in the cell.
    pub at: u64,
    /// The bytes that go there.
    pub from: Slice,
}

/// The place from which bytes are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellSource {
    /// Bytes of this rank's own buffer.
    Own(Slice),
    /// Bytes of a cell, which may be this rank's own.
    Cell {
        /// The rank that fills the cell.
        writer: Rank,
        /// The offset in the cell.
        at: u64,
    },
}

/// Bytes that this rank gets. Without bytes the rank only waits for the cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    /// The place from which the bytes are taken.
    pub from: CellSource,
    /// The place where the bytes go.
    pub to: Slice,
    /// True if the bytes become the left operand of what is there, instead of replacing it.
    pub combines: bool,
}

impl Take {
    /// Cuts off all but the first `bytes` bytes.
    pub fn shortened(&self, bytes: u64) -> Take {
        let start = self.to.bytes.start;
        Take { to: Slice { bytes: start..start + bytes, ..self.to.clone() }, ..self.clone() }
    }
}

/// The rounds of one rank in a call through cells. In every round the rank first fills its cell, if
/// it has something, and then takes.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    call: Call,
    rank: Rank,
    /// Bytes of a block that go in a round.
    chunk: u64,
    /// True if there are two rounds for each chunk: shares are combined, then told.
    in_shares: bool,
}

/// The step of a reduction that a round does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReductionStep {
    /// Contributions are put into cells, and combined.
    Combine,
    /// Shares that were combined are put into cells, and taken by those who want them.
    Tell,
}

impl Algorithm {
    /// True if a call goes through cells, by [`Rounds`].
    pub fn is_through_cells(&self) -> bool {
        self.entry == &ENTRIES[0]
    }
}

// Inlined where a job runs them: that is compiled for speed, and this crate for size.
impl Rounds {
    /// The rounds of a call for which the algorithm was chosen, through cells of `room` bytes:
    /// enough for an element, and for a byte for each rank.
    #[inline]
    pub fn new(algorithm: &Algorithm, call: &Call, rank: Rank, room: u64) -> Rounds {
        use Collective::{Allreduce, Alltoall, Reduce, Scatter};
        let wanted = algorithm.segment.map_or(ROOM, NonZeroU64::get).min(room);
        let (element, ranks) = (call.element.get(), u64::from(call.ranks));
        let combines = matches!(call.collective, Reduce | Allreduce);
        let chunk = match call.collective {
            Reduce | Allreduce => (wanted / element).max(1) * element,
            // Parts begin at cache lines where there is room.
            Scatter | Alltoall if wanted / ranks >= 64 => (wanted / ranks) & !63,
            Scatter | Alltoall => (wanted / ranks).max(1),
            _ => wanted,
        };
        let from = match algorithm.given(SHARES.name) {
            None if call.collective == Allreduce => SHARED_FROM,
            None | Some(NONE) => u64::MAX,
            Some(bytes) => bytes,
        };
        let in_shares = combines && ranks > 2 && call.bytes.0 >= from;
        Rounds { call: *call, rank, chunk, in_shares }
    }

    /// The rank whose rounds these are.
    #[inline]
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// The number of rounds.
    #[inline]
    pub fn count(&self) -> u64 {
        let chunks = self.call.bytes.0.div_ceil(self.chunk);
        match self.call.collective {
            Collective::Barrier => 1,
            _ if self.in_shares => 2 * chunks,
            _ => chunks,
        }
    }

    /// The bytes of scratch memory that slices name: room for a share that the root is told of, and
    /// for what waits to be combined.
    #[inline]
    pub fn scratch_bytes(&self) -> u64 {
        let combines = match self.call.collective {
            Collective::Allreduce => true,
            Collective::Reduce => self.in_shares || self.is_root(),
            _ => false,
        };
        let share = self.share(0, self.rank);
        let waiting = if combines { u64::from(Operands::waiting(self.call.ranks)) } else { 0 };
        (u64::from(self.is_result_apart()) + waiting) * (share.end - share.start)
    }

    /// True if this rank combines its share of a reduction apart, for the root.
    #[inline]
    fn is_result_apart(&self) -> bool {
        self.in_shares && self.call.collective == Collective::Reduce && !self.is_root()
    }

    /// Returns the chunk that a round is about, and the step that the round does.
    #[inline]
    fn step(&self, round: u64) -> (u64, ReductionStep) {
        match self.in_shares {
            true => (
                round / 2,
                if round.is_multiple_of(2) { ReductionStep::Combine } else { ReductionStep::Tell },
            ),
            false => (round, ReductionStep::Combine),
        }
    }

    /// The bytes of a block that go in a chunk.
    #[inline]
    fn chunk(&self, index: u64) -> Range<u64> {
        let start = index * self.chunk;
        start..(start + self.chunk).min(self.call.bytes.0)
    }

    /// Returns the bytes of a block that a rank combines of a chunk; the whole chunk without
    /// shares.
    #[inline]
    fn share(&self, chunk: u64, rank: Rank) -> Range<u64> {
        let Range { start, end } = self.chunk(chunk);
        if !self.in_shares {
            return start..end;
        }
        let part = Call { bytes: crate::units::Bytes(end - start), ..self.call };
        let share = Shares::new(&part, self.call.ranks, None).bytes(rank.0..rank.0 + 1);
        start + share.start..start + share.end
    }

    #[inline]
    fn is_root(&self) -> bool {
        self.rank == self.call.root
    }

    /// True if this rank's contribution stands where its result goes.
    #[inline]
    fn is_in_place(&self) -> bool {
        self.call.is_in_place_at(self.rank)
    }

    /// Returns bytes of what this rank hands in; of a scatter's root nothing but its own block is
    /// ever in place.
    #[inline]
    fn own(&self, bytes: Range<u64>) -> Slice {
        let is_output = self.is_in_place() && self.call.collective != Collective::Scatter;
        if is_output { Slice::output(bytes) } else { Slice::input(bytes) }
    }

    /// Returns the place of some bytes of a rank's block among the blocks of all.
    #[inline]
    fn of_block(&self, rank: Rank, bytes: Range<u64>) -> Range<u64> {
        let before = u64::from(rank.0) * self.call.bytes.0;
        before + bytes.start..before + bytes.end
    }

    /// Returns all ranks from the one behind this one on, and this one last.
    #[inline]
    fn around(&self) -> impl Iterator<Item = Rank> + use<> {
        let (me, ranks) = (self.rank.0, self.call.ranks);
        (1..=ranks).map(move |distance| Rank((me + distance) % ranks))
    }

    /// True if this rank fills its cell in a round.
    #[inline]
    pub fn fills(&self, round: u64) -> bool {
        use Collective::{Allgather, Allreduce, Alltoall, Barrier, Broadcast, Gather, Reduce, Scatter};
        match self.call.collective {
            Broadcast | Scatter => self.is_root(),
            Gather => !self.is_root(),
            Barrier | Allgather | Alltoall | Allreduce => true,
            Reduce if self.step(round).1 == ReductionStep::Tell => !self.is_root(),
            // It takes what is in place from its own cell.
            Reduce => self.in_shares || !self.is_root() || self.is_in_place(),
        }
    }

    /// Returns how much of a block can be taken from the cell of a rank that was called with `told`
    /// bytes, fewer than this one: an MPI that receives has room for them. `None` where that is
    /// something else than the beginning of the block, or not all of it.
    pub fn fitting_bytes(&self, told: u64) -> Option<u64> {
        let combines = matches!(self.call.collective, Collective::Reduce | Collective::Allreduce);
        (!combines && told < self.call.bytes.0 && self.count() == 1).then_some(told)
    }

    /// Returns the bytes with which this rank fills its cell in a round.
    #[inline]
    pub fn puts(&self, round: u64) -> impl Iterator<Item = Put> + use<> {
        let (this, (index, step)) = (*self, self.step(round));
        let chunk = self.chunk(index);
        let is_in_parts = matches!(self.call.collective, Collective::Scatter | Collective::Alltoall);
        let parts = if is_in_parts { self.call.ranks - 1 } else { 1 };
        let ranks = self.around().take(if self.fills(round) { parts as usize } else { 0 });
        ranks.map(move |to| match this.call.collective {
            Collective::Scatter | Collective::Alltoall => {
                Put { at: u64::from(to.0) * this.chunk, from: this.own(this.of_block(to, chunk.clone())) }
            }
            Collective::Broadcast => Put { at: 0, from: Slice::output(chunk.clone()) },
            Collective::Barrier => Put { at: 0, from: Slice::output(0..0) },
            Collective::Allgather if this.is_in_place() => {
                Put { at: 0, from: Slice::output(this.of_block(this.rank, chunk.clone())) }
            }
            _ if step == ReductionStep::Tell => Put { at: 0, from: this.result(index) },
            _ => Put { at: 0, from: this.own(chunk.clone()) },
        })
    }

    /// Returns the place where this rank's share of a chunk is combined.
    #[inline]
    fn result(&self, chunk: u64) -> Slice {
        let share = self.share(chunk, self.rank);
        match self.is_result_apart() {
            true => Slice::scratch(0..share.end - share.start),
            false => Slice::output(share),
        }
    }

    /// Returns the place where operands of a chunk are combined that wait behind so many others; the
    /// first is that of the result.
    #[inline]
    fn place(&self, chunk: u64, number: u32) -> Slice {
        let Some(waiting) = number.checked_sub(1) else { return self.result(chunk) };
        let (share, longest) = (self.share(chunk, self.rank), self.share(0, self.rank));
        let before = u64::from(self.is_result_apart()) + u64::from(waiting);
        let start = before * (longest.end - longest.start);
        Slice::scratch(start..start + (share.end - share.start))
    }

    /// Returns the bytes that this rank takes in a round, in this order.
    #[inline]
    pub fn takes(&self, round: u64) -> impl Iterator<Item = Take> + use<> {
        use Collective::{Allgather, Allreduce, Alltoall, Barrier, Broadcast, Gather, Reduce, Scatter};
        let (this, (index, step)) = (*self, self.step(round));
        let is_root = self.is_root();
        let number = match self.call.collective {
            Broadcast if is_root => 0,
            Broadcast | Scatter => 1,
            Barrier => self.call.ranks - 1,
            Gather | Reduce if is_root => self.call.ranks,
            Gather => 0,
            Reduce if !self.in_shares || step == ReductionStep::Tell => 0,
            Allgather | Alltoall | Allreduce | Reduce => self.call.ranks,
        };
        let combines = matches!(self.call.collective, Reduce | Allreduce) && step == ReductionStep::Combine;
        let operands = Operands::of(if combines { number } else { 0 });
        let others = self.around().take(if combines { 0 } else { number as usize });
        let combined = operands.filter_map(move |operand| this.combine(index, operand));
        combined.chain(others.filter_map(move |from| this.copy(index, from)))
    }

    /// Returns the take of this rank's share of an operand; `None` if nothing is taken.
    #[inline]
    fn combine(&self, chunk: u64, operand: Operand) -> Option<Take> {
        let (share, start) = (self.share(chunk, self.rank), self.chunk(chunk).start);
        let of = |from: Rank| match from == self.rank && !self.is_in_place() {
            true => CellSource::Own(self.own(share.clone())),
            false => CellSource::Cell { writer: from, at: share.start - start },
        };
        let is_there = |from: Rank, to: u32| from == self.rank && to == 0 && self.is_in_place();
        let (from, to, combines) = match operand {
            Operand::First { from, to } if is_there(from, to) => return None,
            Operand::First { from, to } => (of(from), to, false),
            Operand::Next { from, to } => (of(from), to, true),
            Operand::Waiting { to } => (CellSource::Own(self.place(chunk, to + 1)), to, true),
        };
        (!share.is_empty()).then(|| Take { from, to: self.place(chunk, to), combines })
    }

    /// Returns the take of what this rank has of `from`, another rank or itself, where nothing is
    /// combined; `None` if nothing is taken.
    #[inline]
    fn copy(&self, index: u64, from: Rank) -> Option<Take> {
        use Collective::{Allgather, Allreduce, Alltoall, Barrier, Broadcast, Gather, Reduce, Scatter};
        let Call { collective, root, .. } = self.call;
        let (me, chunk) = (self.rank, self.chunk(index));
        let (from, at, to) = match collective {
            Broadcast => (root, 0, chunk.clone()),
            Scatter => (root, u64::from(me.0) * self.chunk, chunk.clone()),
            Gather | Allgather => (from, 0, self.of_block(from, chunk.clone())),
            Alltoall => (from, u64::from(me.0) * self.chunk, self.of_block(from, chunk.clone())),
            Barrier => (from, 0, 0..0),
            // What was combined.
            Reduce | Allreduce => (from, 0, self.share(index, from)),
        };
        let to = Slice::output(to);
        let source = match collective {
            _ if from != me => CellSource::Cell { writer: from, at },
            Reduce | Allreduce => return None,
            _ if self.is_in_place() => return None,
            Scatter | Alltoall => CellSource::Own(Slice::input(self.of_block(me, chunk))),
            _ => CellSource::Own(Slice::input(chunk)),
        };
        (to.length() > 0 || collective == Barrier).then_some(Take { from: source, to, combines: false })
    }
}

#[cfg(test)]
mod tests;
