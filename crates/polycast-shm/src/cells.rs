//! One rank's part in the cells of a node: what it tells all others in a cache line or a few, and hears from them.
//!
//! Each rank has [`CELLS`] cells, and says in another place how far it is. An operation has rounds; in each a rank may fill one of its cells, and read
//! those that others have filled in the same round.
//!
//! # Invariants (proved by loom in `tests`, for the orders of memory that stand at each access)
//! 1. A reader reads a cell after the writer has filled it: the stamp is stored (release) behind the copy, and loaded (acquire) before the
//!    reader's.
//! 2. A writer fills a cell again when all others have passed the round in which it was last filled: `reached` is stored (release) behind what
//!    they have read, and loaded (acquire) before the writer's copy.
//! 3. Who has passed a round has filled its cell in it before, or never will. So a reader waits for no rank that has left an operation.
//! 4. A rank takes part in one operation at a time, in the order in which they were begun, which is the same on all ranks.
//! 5. Who sleeps has said so before it looked a last time, and who has told something looks for sleepers afterwards, each with a fence (sequentially
//!    consistent) in between: so one of them sees the other, and nobody sleeps while what it waits for is there. Where ranks have processors of their
//!    own who tells something spares the fence, and a sleeper may have to wait for the end of its sleep ([`Processors::Own`]).
//! 6. Moments are compared by their distance, so they may wrap around; and none is compared that is half of all numbers behind, for at times each
//!    rank forgets what all are past ([`Cells::pass`]).

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Deref;
use std::time::Duration;

use crate::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::sync::{AtomicU32, AtomicU64, fence};

/// The number of cells of a rank, which is the number of rounds that a writer may be ahead of its
/// readers. With 32, broadcasts of 8 bytes by 8 ranks that come late by chance take 0.55 s, with 8
/// 0.82 (the MPI 0.48), but calls of two ranks take up to a tenth longer. Under loom one, so that
/// it is used again soon.
pub const CELLS: usize = if cfg!(loom) { 1 } else { 8 };

/// The number of operations after which each rank forgets what all are past: rarely, for that looks
/// at all ranks, and far sooner than numbers are half way round.
const FORGETS_EVERY: u32 = 1 << 20;

/// The `total` of a cell whose bytes are invalid.
const SPOILED: u64 = u64::MAX;

/// The bell that a rank rings to wake those who wait for it.
#[derive(Debug)]
#[repr(C)]
pub struct Bell {
    /// The number of times that the bell was rung for somebody.
    pub rung: AtomicU32,
    /// The number of ranks that may sleep until the bell rings.
    pub sleepers: AtomicU32,
}

/// A segment, or what stands in for one in tests.
pub trait Board {
    /// Returns the number of bytes that a cell holds.
    fn room(&self) -> u64;

    /// The moment that a rank has reached: the rank is through with all before it.
    fn reached(&self, rank: u32) -> &AtomicU64;

    /// The bell of a rank.
    fn bell(&self, rank: u32) -> &Bell;

    /// Sleeps until a rank's bell is rung, if it was rung so often before; at most so long.
    fn sleep(&self, rank: u32, rung: u32, longest: Duration);

    /// Wakes all who sleep until this rank's bell is rung.
    fn wake(&self, rank: u32);

    /// The moment for which a cell was filled.
    fn stamp(&self, rank: u32, cell: usize) -> &AtomicU64;

    /// The total that the cell's writer was called with.
    fn total(&self, rank: u32, cell: usize) -> &AtomicU64;

    /// Copies into a cell of a rank.
    ///
    /// # Safety
    /// `source` is readable for `bytes`, which fit into the cell, and nobody else reads or writes there meanwhile.
    unsafe fn fill(&self, of: (u32, usize), at: u64, source: *const u8, bytes: usize);

    /// Hands out a place in a cell of a rank.
    ///
    /// # Safety
    /// Nobody writes there meanwhile, and neither does `use_it`.
    unsafe fn read<R>(
        &self,
        of: (u32, usize),
        at: u64,
        bytes: usize,
        use_it: impl FnOnce(*const u8) -> R,
    ) -> R;
}

/// A round of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The operation's number, above 0 the first time.
    pub operation: u32,
    /// The round's number, from 0.
    pub round: u32,
}

impl Moment {
    fn number(self) -> u64 {
        u64::from(self.operation) << 32 | u64::from(self.round)
    }

    fn cell(self) -> usize {
        self.operation.wrapping_add(self.round) as usize % CELLS
    }
}

/// The ranks' share of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processors {
    /// A processor for each rank, so a rank waits awake for long before it sleeps, and looks for a
    /// cell again and again. A rank that tells something does not make sure that sleepers see it:
    /// the fence takes as long as a short message, every time, and what it prevents happens to one
    /// of some thousand sleepers, who then sleeps a millisecond at most.
    Own,
    /// Processors shared with each other, so a rank sleeps soon, and has to be woken.
    Shared,
}

/// The number of times that a rank with a processor looks for a cell before it does something else;
/// no longer than a few cache lines take to come.
const LOOKS: u32 = 64;

/// The state of another rank's cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The cell was not filled yet.
    NotYet,
    /// The cell was filled, by a rank that was called with this total.
    Filled(u64),
    /// The cell stays without valid data: its writer has left the operation, or something went
    /// wrong there.
    Nothing,
}

/// The event that a rank waits for.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    Filled(u32, Moment),
    /// The rank passes the moment of this number.
    Passed(u32, u64),
}

/// A rank's part in the cells of a node; see the module.
pub struct Cells<M> {
    memory: M,
    me: u32,
    ranks: u32,
    processors: Processors,
    /// Operations of this rank, the first of which is under way, and whether this rank is through with them.
    begun: VecDeque<(u32, bool)>,
    /// The moment for which each cell was filled last, if it was.
    filled: [Option<u64>; CELLS],
    /// The moment that all others have reached, as far as this rank has looked.
    all_reached: u64,
    /// The event that this rank waited for the last time that it could not go on.
    wanted: Cell<Option<Wanted>>,
}

impl<M: Deref<Target: Board>> Cells<M> {
    /// The part of rank `me` of `ranks`, which share processors, over memory in which nothing has
    /// happened.
    pub fn new(memory: M, me: u32, ranks: u32) -> Cells<M> {
        Cells::starting_at(memory, me, ranks, 0)
    }

    /// The part of rank `me` of `ranks` over memory in which others had parts before: their last
    /// operation was this one, and the next number is the first of these ranks'.
    pub fn after(memory: M, me: u32, ranks: u32, last_operation: u32) -> Cells<M> {
        Cells::starting_at(memory, me, ranks, Moment { operation: last_operation, round: 0 }.number())
    }

    /// The part of rank `me` over memory in which all have reached the moment of the number
    /// `all_reached`.
    fn starting_at(memory: M, me: u32, ranks: u32, all_reached: u64) -> Cells<M> {
        Cells {
            memory,
            me,
            ranks,
            processors: Processors::Shared,
            begun: VecDeque::new(),
            filled: [None; CELLS],
            all_reached,
            wanted: Cell::new(None),
        }
    }

    /// Sets how this rank waits. Ranks need not say the same.
    pub fn set_processors(&mut self, processors: Processors) {
        self.processors = processors;
    }

    /// Returns the number of bytes that a cell holds.
    pub fn room(&self) -> u64 {
        self.memory.room()
    }

    /// An operation begins; on all ranks in the same order, their numbers rise.
    pub fn begin(&mut self, operation: u32) {
        self.begun.push_back((operation, false));
    }

    /// True if the operation is the first that this rank has not ended: those begun before are
    /// over.
    #[inline]
    pub fn is_under_way(&self, operation: u32) -> bool {
        self.begun.front().is_some_and(|(first, _)| *first == operation)
    }

    /// True if this rank may fill its cell for a round.
    #[inline]
    pub fn may_fill(&mut self, at: Moment) -> bool {
        let Some(filled) = self.filled[at.cell()] else { return true };
        if !is_behind(self.all_reached, filled) {
            let (least, rank) = self.least_far(filled).unwrap_or((filled.wrapping_add(1), self.me));
            self.all_reached = least;
            if !is_behind(least, filled) {
                self.wanted.set(Some(Wanted::Passed(rank, filled)));
            }
        }
        is_behind(self.all_reached, filled)
    }

    /// Returns the least moment that another rank has reached, as seen from `moment`, and that
    /// rank; `None` if there is no other.
    fn least_far(&self, moment: u64) -> Option<(u64, u32)> {
        let others = (0..self.ranks).filter(|rank| *rank != self.me);
        // Acquire: with the release in `reach`.
        let reached = others.map(|rank| (self.memory.reached(rank).load(Acquire), rank));
        reached.min_by_key(|(reached, _)| reached.wrapping_sub(moment) as i64)
    }

    /// The communicator has come to an operation, whether that goes through cells or not; on all ranks in the same order.
    ///
    /// Most need nothing done. But a rank may fill a cell, and again when operations have the same number once more; and calls that go another
    /// way may be so many that those who have reached the last one through cells seem to be ahead of the next one.
    #[inline]
    pub fn pass(&mut self, operation: u32) {
        if operation.is_multiple_of(FORGETS_EVERY) {
            self.forget(Moment { operation, round: 0 });
        }
    }

    #[cold]
    fn forget(&mut self, now: Moment) {
        if self.begun.is_empty() {
            self.reach(now);
        }
        self.all_reached = self.least_far(now.number()).map_or(now.number(), |(least, _)| least);
        for (cell, filled) in self.filled.iter_mut().enumerate() {
            if filled.is_none_or(|filled| is_behind(self.all_reached, filled)) {
                *filled = None;
                // A number that no round has. Relaxed: nobody needs this cell, or waits for that.
                self.memory.stamp(self.me, cell).store(now.number().wrapping_sub(1), Relaxed);
            }
        }
    }

    /// Fills a part of this rank's cell.
    ///
    /// # Safety
    /// [`Cells::may_fill`] has allowed it, [`Cells::tell`] was not called since; `source` is readable for `bytes`, which fit into the cell.
    #[inline]
    pub unsafe fn fill(&self, moment: Moment, at: u64, source: *const u8, bytes: usize) {
        // SAFETY: the caller's promise; nobody needs what stands there (invariant 2), or reads it before it is told (1).
        unsafe { self.memory.fill((self.me, moment.cell()), at, source, bytes) };
    }

    /// Announces that this rank's cell is filled. `None`: with invalid bytes.
    #[inline]
    pub fn tell(&mut self, at: Moment, total: Option<u64>) {
        self.filled[at.cell()] = Some(at.number());
        // Relaxed: before the release of the stamp.
        self.memory.total(self.me, at.cell()).store(total.unwrap_or(SPOILED), Relaxed);
        // Release: with the acquire in `look`.
        self.memory.stamp(self.me, at.cell()).store(at.number(), Release);
        self.ring();
    }

    /// Looks whether another rank has filled its cell for a round.
    #[inline]
    pub fn look(&self, writer: u32, at: Moment) -> Look {
        let stamp = self.memory.stamp(writer, at.cell());
        // Acquire: with the release in `tell`.
        let is_filled = || stamp.load(Acquire) == at.number();
        if !is_filled() && !self.wait_awhile(is_filled) {
            // Acquire: with the release in `reach`, behind which the stamp stands if it ever does (invariant 3).
            let has_passed = is_behind(self.memory.reached(writer).load(Acquire), at.number());
            if !has_passed {
                self.wanted.set(Some(Wanted::Filled(writer, at)));
                return Look::NotYet;
            }
            if !is_filled() {
                return Look::Nothing;
            }
        }
        // Relaxed: it was there before the stamp, and stays until this rank has passed.
        match self.memory.total(writer, at.cell()).load(Relaxed) {
            SPOILED => Look::Nothing,
            total => Look::Filled(total),
        }
    }

    /// True if `is_there` comes true while a rank that has a processor looks again.
    #[inline]
    fn wait_awhile(&self, is_there: impl Fn() -> bool) -> bool {
        let looks = if self.processors == Processors::Own { LOOKS } else { 0 };
        (0..looks).any(|_| {
            std::hint::spin_loop();
            is_there()
        })
    }

    /// Hands out a part of a cell.
    ///
    /// # Safety
    /// The writer is this rank and has filled it, or [`Cells::look`] has found it filled; this rank has not passed that round. `use_it` only reads.
    #[inline]
    pub unsafe fn read<R>(
        &self,
        writer: u32,
        moment: Moment,
        (at, bytes): (u64, usize),
        use_it: impl FnOnce(*const u8) -> R,
    ) -> R {
        // SAFETY: it was filled (invariant 1), and is left alone until this rank has passed (2).
        unsafe { self.memory.read((writer, moment.cell()), at, bytes, use_it) }
    }

    /// Announces that this rank has read and filled all that it wants to before this moment.
    #[inline]
    pub fn reach(&self, moment: Moment) {
        // Release: with the acquire in `may_fill` and `look`.
        self.memory.reached(self.me).store(moment.number(), Release);
        self.ring();
    }

    /// Wakes those who sleep until this rank tells something.
    #[inline]
    fn ring(&self) {
        if self.processors == Processors::Shared {
            fence(SeqCst);
        }
        let bell = self.memory.bell(self.me);
        // Relaxed: the fence before, and the one in `sleep`.
        if bell.sleepers.load(Relaxed) > 0 {
            // Relaxed: the kernel looks at it when it is asked to sleep.
            bell.rung.fetch_add(1, Relaxed);
            self.memory.wake(self.me);
        }
    }

    /// Sleeps until the event may have come without which this rank could not go on; no longer than
    /// `longest`.
    pub fn sleep(&self, longest: Duration) {
        let Some(wanted) = self.wanted.take() else { return };
        let whom = match wanted {
            Wanted::Filled(rank, _) | Wanted::Passed(rank, _) => rank,
        };
        let bell = self.memory.bell(whom);
        // Relaxed: the fence, and the one in `ring`.
        bell.sleepers.fetch_add(1, Relaxed);
        let rung = bell.rung.load(Relaxed);
        fence(SeqCst);
        let is_there = match wanted {
            Wanted::Filled(writer, at) => self.look(writer, at) != Look::NotYet,
            // Relaxed: looked at again when it counts.
            Wanted::Passed(rank, filled) => is_behind(self.memory.reached(rank).load(Relaxed), filled),
        };
        if !is_there {
            self.memory.sleep(whom, rung, longest);
        }
        bell.sleepers.fetch_sub(1, Relaxed);
    }

    /// Ends this rank's part in an operation: the rank has done its part, or leaves it.
    pub fn end(&mut self, operation: u32) {
        self.begun.iter_mut().filter(|(of, _)| *of == operation).for_each(|(_, is_over)| *is_over = true);
        while let Some((first, true)) = self.begun.front().copied() {
            self.begun.pop_front();
            self.reach(Moment { operation: first.wrapping_add(1), round: 0 });
        }
    }

    /// True if this rank takes part in no operation.
    pub fn is_quiet(&self) -> bool {
        self.begun.is_empty()
    }
}

/// True if the moment `filled` is behind a rank that has reached the moment `reached`.
fn is_behind(reached: u64, filled: u64) -> bool {
    reached.wrapping_sub(filled) as i64 > 0
}

#[cfg(test)]
mod tests;
