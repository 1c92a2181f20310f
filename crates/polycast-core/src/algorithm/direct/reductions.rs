//! Reduce and allreduce: each rank combines its share of what all hand in, and shows the result.
//!
//! ```text
//!   rank 1 of 4   takes its share, segment by segment     ┌ from 3: to where the result goes; from 0 and 2: to scratch memory
//!                                                         │ 0∘own, 2∘3, (0∘own)∘(2∘3): each in the place of its right operand
//!                 shows the result                        └ to the root, or to all
//! ```
//! By the tree of combinations, so results are the same on all ranks, and sums have its order.

use std::num::NonZeroU64;
use std::ops::Range;

use super::{GIVEN, fetches, others, publishes};
use crate::algorithm::shares::Shares;
use crate::algorithm::{Algorithm, Entry, Raced};
use crate::collective::{Call, Collective, CombinationTree};
use crate::schedule::{Action, After, Channel, Kind, LaneIndex, Listed, Schedule, Slice};
use crate::units::Rank;

/// The channel of what ranks have combined.
const COMBINED: Channel = 1;

/// The bytes that are taken of each rank before they are combined: they should still be in the
/// processor's cache then.
const SEGMENT_BYTES: u64 = 32 << 10;

pub(super) const ENTRY: Entry = Entry::on_one_node(
    &[Collective::Reduce, Collective::Allreduce],
    "direct",
    "on one node: each rank takes its share of what all have from where it is, combines it, and shows the result",
    "Wu 2005, §2.4",
    schedule,
)
.in_segments()
.by_the_tree()
.raced(&[Raced::PLAIN]);

/// The number of places for the operands of a rank, used by turns: one operand is combined while
/// the next comes.
const PLACES: u64 = 2;

/// The condition that `count` steps of a lane are over.
fn after(lane: LaneIndex, count: u64) -> After {
    After::Steps { lane, count }
}

struct Reduction<'a> {
    call: &'a Call,
    rank: Rank,
    shares: Shares,
}

pub(super) fn schedule(algorithm: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    let segment = algorithm.segment.or(NonZeroU64::new(SEGMENT_BYTES));
    Reduction { call, rank, shares: Shares::new(call, call.ranks, segment) }.schedule()
}

impl Reduction<'_> {
    fn share(&self, of: Rank) -> Range<u64> {
        self.shares.bytes(of.0..of.0 + 1)
    }

    /// True if a rank has a share: of fewer elements than ranks not all have.
    fn combines(&self, rank: Rank) -> bool {
        !self.share(rank).is_empty()
    }

    fn is_in_place(&self) -> bool {
        self.call.is_in_place_at(self.rank)
    }

    /// Returns bytes of what this rank hands in.
    fn own(&self, bytes: Range<u64>) -> Slice {
        if self.is_in_place() { Slice::output(bytes) } else { Slice::input(bytes) }
    }

    /// True if a rank ends with the result.
    fn gets(&self, rank: Rank) -> bool {
        self.call.collective == Collective::Allreduce || rank == self.call.root
    }

    fn schedule(&self) -> Box<dyn Schedule> {
        let Reduction { call, rank, .. } = *self;
        let mut list = Listed::default();
        if call.bytes.0 == 0 || call.ranks == 1 && self.is_in_place() {
            return Box::new(list);
        }
        // In place, what this rank has handed in stands where the results go until all have taken their shares.
        let mut is_free = After::Start;
        if others(call, rank).any(|other| self.combines(other)) {
            let readers = others(call, rank).filter(|other| self.combines(*other));
            let given = publishes(&mut list, GIVEN, readers);
            let count = list.add(given, Action::Publish(self.own(0..call.bytes.0)), After::Start);
            if self.is_in_place() {
                is_free = after(given, count);
            }
        }
        let local = list.lane(Kind::Local);
        let is_combined = self.combine(&mut list, local);
        let readers: Vec<Rank> = others(call, rank).filter(|reader| self.gets(*reader)).collect();
        if self.combines(rank) && !readers.is_empty() {
            let lane = publishes(&mut list, COMBINED, readers.into_iter());
            list.add(lane, Action::Publish(self.result(self.share(rank))), is_combined);
        }
        if self.gets(rank) {
            for writer in others(call, rank).filter(|writer| self.combines(*writer)) {
                let lane = fetches(&mut list, COMBINED, writer);
                let to = Slice::output(self.share(writer));
                list.add(lane, Action::Fetch { at: 0, to }, is_free);
            }
        }
        if self.is_in_place() {
            let (from, to) = (self.result(self.share(rank)), Slice::output(self.share(rank)));
            list.add(local, Action::Copy { from, to }, is_free);
        }
        Box::new(list)
    }

    /// True if this rank's result is combined where it stays.
    fn is_combined_in_output(&self) -> bool {
        self.gets(self.rank) && !self.is_in_place()
    }

    /// Returns the place where some bytes of this rank's result are combined: at their place, or at
    /// the beginning of the scratch memory.
    fn result(&self, segment: Range<u64>) -> Slice {
        let start = self.share(self.rank).start;
        match self.is_combined_in_output() {
            true => Slice::output(segment),
            false => Slice::scratch(segment.start - start..segment.end - start),
        }
    }

    /// Takes and combines this rank's share; returns the condition that this is over.
    fn combine(&self, list: &mut Listed, local: LaneIndex) -> After {
        let Reduction { call, rank, ref shares } = *self;
        let segments = shares.segments(rank.0);
        let longest = segments.first().map_or(0, |segment| segment.end - segment.start);
        let share = self.share(rank);
        let result_bytes = if self.is_combined_in_output() { 0 } else { share.end - share.start };
        // Behind the result the operands: of each rank as many as there are places.
        let operand = |of: Rank, index: usize, length: u64| {
            let place = u64::from(of.0) * PLACES + index as u64 % PLACES;
            let start = result_bytes + place * longest;
            Slice::scratch(start..start + length)
        };
        list.set_scratch_bytes(result_bytes + u64::from(call.ranks) * PLACES * longest);
        let takes: Vec<Option<LaneIndex>> = (0..call.ranks)
            .map(Rank)
            .map(|of| (of != rank && self.combines(rank)).then(|| fetches(list, GIVEN, of)))
            .collect();
        let last = Rank(call.ranks - 1);
        let combinations = CombinationTree::new(call.ranks).combinations();
        // What is handed in is not written: where it is a right operand, it is copied first.
        let is_copied = rank == last || combinations.iter().any(|(_, right)| *right == rank.index());
        let mut are_combined: Vec<After> = Vec::new();
        for (index, segment) in segments.into_iter().enumerate() {
            let length = segment.end - segment.start;
            let result = self.result(segment.clone());
            let is_free = match index.checked_sub(PLACES as usize) {
                Some(before) => are_combined[before],
                None => After::Start,
            };
            let place = |of: Rank| match of {
                // The last one comes where the result goes.
                _ if of == last => result.clone(),
                _ if of == rank && !is_copied => self.own(segment.clone()),
                _ => operand(of, index, length),
            };
            let mut comes: Vec<After> = Vec::new();
            for of in (0..call.ranks).map(Rank) {
                let fetch = || Action::Fetch { at: segment.start, to: place(of) };
                comes.push(match takes[of.index()] {
                    Some(take) => after(take, list.add(take, fetch(), is_free)),
                    None => After::Start,
                });
            }
            let own = self.own(segment.clone());
            if is_copied && own != place(rank) {
                list.add(local, Action::Copy { from: own, to: place(rank) }, After::Start);
            }
            for (left, right) in &combinations {
                let mut when = [*left, *right].map(|of| std::mem::replace(&mut comes[of], After::Start));
                when.sort_unstable_by_key(|when| *when == After::Start);
                if when[1] != After::Start {
                    list.add(local, Action::nothing(), when[1]);
                }
                let [from, into] = [*left, *right].map(|of| place(Rank(of as u32)));
                list.add(local, Action::Combine { from, into }, when[0]);
            }
            // Nothing waits for an empty lane.
            if list.lanes()[local].steps == 0 || call.ranks == 1 {
                list.add(local, Action::nothing(), After::Start);
            }
            are_combined.push(after(local, list.lanes()[local].steps));
        }
        are_combined.pop().unwrap_or(After::Start)
    }
}
