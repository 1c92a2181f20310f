//! Reduce and allreduce: the rank that stands for a node combines what those of the node contribute, piece by piece in the order in which the
//! nodes' results are combined between nodes; of an allreduce it publishes each piece of the result as it comes.
//!
//! ```text
//!   others         publish   p3  p0  p1  p2          fetch          r0  r1 …
//!   who stands     fetch, combine  p3  p0  p1  p2    between nodes: send p3, combine p2 …, receive r0, r1 …   publish  r0  r1 …
//! ```
//!
//! The sums of the pieces are put together in the output where it is this rank's to have, else in scratch memory. Pieces of others wait in a few
//! slots each, so large vectors take no more memory than themselves.

use std::ops::Range;

use super::inner::{Covered, Inner, Places, When};
use super::members::{Members, after, overlapped, parts};
use super::within::{ToAll, lane_from, lane_up};
use crate::algorithm::Algorithm;
use crate::collective::{Call, Collective, CombinationOrder, CombinationTree};
use crate::schedule::{Action, After, Buffer, Kind, LaneIndex, Listed, Nodes, Posting, Schedule, Slice};
use crate::units::Rank;

/// The number of pieces of another rank that may wait to be combined.
const SLOTS: u64 = 4;

/// The data in the order in which it goes up, and down.
struct ReductionPieces {
    up: Vec<Range<u64>>,
    /// The beginning of each of these pieces, rising, and its place among them: together they are
    /// all of the data, once.
    places: Vec<(u64, usize)>,
    /// The number of pieces that go up before anything goes between nodes.
    before: u64,
    down: Vec<(Range<u64>, When)>,
}

impl ReductionPieces {
    fn new(algorithm: &Algorithm, call: &Call, inner: &Inner, own: Buffer) -> ReductionPieces {
        let (most, element) = (algorithm.buffer_bytes(), call.element.get());
        let cut = |bytes: Range<u64>| parts(bytes, most, element);
        let mut known = Covered::default();
        let needed = inner.needs(own).into_iter().chain(std::iter::once(0..call.bytes.0));
        let needed = needed.flat_map(|bytes| known.add(&bytes)).map(|bytes| (bytes, false)).collect();
        // The mirror image of what goes down: the rest of all goes first, then of each part what is overlapped, when it is needed.
        let overlap = algorithm.overlap_bytes();
        let whole_elements = overlap.div_ceil(element).saturating_mul(element);
        let (early, rest): (Vec<_>, Vec<_>) =
            overlapped(needed, whole_elements, true).into_iter().partition(|(_, is_rest)| !is_rest);
        let mut up: Vec<Range<u64>> = rest.into_iter().flat_map(|(bytes, _)| cut(bytes)).collect();
        let before = up.len() as u64;
        up.extend(early.into_iter().flat_map(|(bytes, _)| cut(bytes)));
        let mut known = Covered::default();
        let mut come: Vec<(Range<u64>, When)> = Vec::new();
        for brought in inner.brings(Buffer::Output) {
            known.add(&brought.bytes);
            come.push((brought.bytes.clone(), When::Come(brought)));
        }
        // Between nodes nothing changes it.
        come.extend(known.add(&(0..call.bytes.0)).into_iter().map(|bytes| (bytes, When::Own)));
        let down = overlapped(come, overlap, When::AllCome);
        let down =
            down.into_iter().flat_map(|(bytes, when)| cut(bytes).map(move |part| (part, when.clone())));
        ReductionPieces { places: ReductionPieces::places(&up), up, before, down: down.collect() }
    }

    fn places(up: &[Range<u64>]) -> Vec<(u64, usize)> {
        let mut places: Vec<(u64, usize)> = up.iter().map(|piece| piece.start).zip(0..).collect();
        places.sort_unstable();
        places
    }

    /// Returns the number of pieces that go up until all of these bytes have, and what goes before.
    /// Asked for each step between nodes, of which there are as many as pieces.
    fn until(&self, bytes: &Range<u64>) -> u64 {
        let first = self.places.partition_point(|(start, _)| *start <= bytes.start).saturating_sub(1);
        let these = self.places[first..].iter().take_while(|(start, _)| *start < bytes.end);
        let with_some = these.filter(|(_, place)| bytes.start < self.up[*place].end);
        with_some.map(|(_, place)| *place as u64 + 1).max().map_or(0, |count| count.max(self.before))
    }
}

pub(super) fn schedule(algorithm: &Algorithm, call: &Call, nodes: &Nodes, rank: Rank) -> Box<dyn Schedule> {
    let mut list = Listed::default();
    if call.bytes.0 == 0 {
        return Box::new(list);
    }
    // Between nodes, sums have the order of the nodes' ranks; what does not depend on that goes around the network.
    let by_rank = (call.order == CombinationOrder::Tree).then(|| nodes.by_rank());
    let nodes = by_rank.as_ref().unwrap_or(nodes);
    let members = Members::new(call, nodes, algorithm.within());
    let stand_in = members.my_stand_in();
    let is_told = call.collective == Collective::Allreduce;
    let is_result = is_told || stand_in == call.root;
    let posting = if call.is_in_place { Posting::InTurn } else { Posting::AtOnce };
    let between = Call { is_in_place: true, ..members.between(call.bytes.0) };
    let inner = Inner::new(algorithm.between(), algorithm, &between, nodes.mine());
    let pieces =
        ReductionPieces::new(algorithm, call, &inner, if is_result { Buffer::Output } else { Buffer::Input });
    if rank == stand_in {
        let sums = Sums::new(call, rank, &members, &pieces, is_result);
        let up = sums.lanes(&mut list, &members, &pieces);
        let places = Places { input: sums.place, output: sums.place, scratch: sums.scratch_bytes };
        let gate = |slice: &Slice| match slice.buffer {
            Buffer::Scratch => 0,
            _ => pieces.until(&slice.bytes) * sums.steps_per_piece,
        };
        let is_there = inner.put_into(&mut list, &places, &members, up, &gate);
        list.set_scratch_bytes(sums.scratch_bytes + inner.scratch_bytes());
        if is_told {
            let mut down = ToAll::new(&mut list, &members, rank, posting);
            for (bytes, when) in &pieces.down {
                let summed = after(up, pieces.until(bytes) * sums.steps_per_piece);
                down.add(&mut list, &Slice::output(bytes.clone()), is_there.when(when, summed));
            }
        }
        return Box::new(list);
    }
    let own = if call.is_in_place_at(rank) { Buffer::Output } else { Buffer::Input };
    let up = lane_up(&mut list, &members, Posting::InTurn);
    for bytes in &pieces.up {
        let part = Slice { buffer: own, bytes: bytes.clone() };
        list.add(up, members.within.show(part), After::Start);
    }
    if is_told {
        let mut down = ToAll::new(&mut list, &members, rank, posting);
        for (bytes, _) in &pieces.down {
            // In place, the output holds its contribution until that is taken.
            let count = if own == Buffer::Output { pieces.until(bytes) } else { 0 };
            down.add(&mut list, &Slice::output(bytes.clone()), after(up, count));
        }
    }
    Box::new(list)
}

/// The combination of a node's contributions, by the tree of as many ranks: where all of a node are a
/// subtree of the communicator's tree, by that.
struct Sums {
    /// The ranks of the node, rising, and the place among them of the one that stands for it.
    ranks: Vec<Rank>,
    mine: usize,
    /// The combinations of the node, by places: the result takes that of the right operand.
    combinations: Vec<(usize, usize)>,
    /// The buffer in which the sums are put together, and the bytes that stand before them there.
    place: (Buffer, u64),
    own: Buffer,
    /// True if what the last of the node contributes is brought to where the sum is to be, and not
    /// copied there when all is combined.
    is_last_direct: bool,
    /// True if this rank's contribution is copied before it becomes a right operand.
    is_copied: bool,
    steps_per_piece: u64,
    slots_at: u64,
    slot_bytes: u64,
    scratch_bytes: u64,
}

impl Sums {
    fn new(call: &Call, rank: Rank, members: &Members, pieces: &ReductionPieces, is_result: bool) -> Sums {
        let ranks = members.mine().to_vec();
        let is_alone = ranks.len() == 1;
        let mine = ranks.iter().position(|member| *member == rank).unwrap_or(0);
        let combinations = CombinationTree::new(ranks.len() as u32).combinations();
        let own = if call.is_in_place_at(rank) { Buffer::Output } else { Buffer::Input };
        let place = match (is_result, is_alone) {
            (true, _) => (Buffer::Output, 0),
            (false, true) => (own, 0),
            (false, false) => (Buffer::Scratch, 0),
        };
        let is_apart = place.0 != own;
        let last = ranks.len() - 1;
        let is_last_direct = is_apart || mine == last;
        // Where this rank is the last, its contribution is, or goes, where the sum is to be.
        let is_right = combinations.iter().any(|(_, right)| *right == mine);
        let is_copied = if mine == last { is_apart } else { is_right };
        let slots_at = if place.0 == Buffer::Scratch { call.bytes.0 } else { 0 };
        let slot_bytes = pieces.up.iter().map(|piece| piece.end - piece.start).max().unwrap_or(0);
        let mut sums = Sums {
            ranks,
            mine,
            combinations,
            place,
            own,
            is_last_direct,
            is_copied,
            steps_per_piece: 0,
            slots_at,
            slot_bytes,
            scratch_bytes: 0,
        };
        sums.steps_per_piece = sums.work().len() as u64;
        let slots = sums.slots_before(sums.ranks.len()) * SLOTS.min(pieces.up.len() as u64);
        sums.scratch_bytes = slots_at + slots * slot_bytes;
        sums
    }

    /// True if what a member contributes is put into slots.
    fn is_in_slots(&self, of: usize) -> bool {
        match of + 1 == self.ranks.len() {
            true => !self.is_last_direct,
            false => of != self.mine || self.is_copied,
        }
    }

    /// The number of members before this one that have slots.
    fn slots_before(&self, of: usize) -> u64 {
        (0..of).filter(|of| self.is_in_slots(*of)).count() as u64
    }

    /// The local steps of a piece.
    fn work(&self) -> Vec<SumStep> {
        let last = self.ranks.len() - 1;
        let mut is_awaited: Vec<bool> = (0..=last).map(|of| of != self.mine).collect();
        let mut work = Vec::new();
        if self.is_copied {
            work.push(SumStep::Copy);
        }
        for &(left, right) in &self.combinations {
            let [first, second] = [left, right].map(|of| std::mem::take(&mut is_awaited[of]).then_some(of));
            work.extend(second.filter(|_| first.is_some()).map(SumStep::Wait));
            work.push(SumStep::Combine { left, right, awaits: first.or(second) });
        }
        if !self.is_last_direct {
            work.push(SumStep::Result);
        }
        work
    }

    /// Adds lanes that put together the sum of each piece; returns the one that ends with it.
    fn lanes(&self, list: &mut Listed, members: &Members, pieces: &ReductionPieces) -> LaneIndex {
        let last = self.ranks.len() - 1;
        let mut fetch = |(place, of): (usize, &Rank)| {
            (place != self.mine).then(|| lane_from(list, members, *of, Posting::InTurn))
        };
        let fetches: Vec<Option<LaneIndex>> = (0..).zip(&self.ranks).map(&mut fetch).collect();
        let local = list.lane(Kind::Local);
        let (slots, work) = (SLOTS.min(pieces.up.len() as u64), self.work());
        let mut at = 0;
        for (number, bytes) in (0..).zip(&pieces.up) {
            let sum = || {
                let (buffer, before) = self.place;
                Slice { buffer, bytes: bytes.start + before..bytes.end + before }
            };
            let own = || Slice { buffer: self.own, bytes: bytes.clone() };
            let slot = |of: usize| {
                let start =
                    self.slots_at + (self.slots_before(of) * slots + number % slots) * self.slot_bytes;
                Slice::scratch(start..start + (bytes.end - bytes.start))
            };
            let place = |of: usize| match of {
                of if of == last && self.is_last_direct => sum(),
                of if of == self.mine && !self.is_copied => own(),
                of => slot(of),
            };
            let mut comes = vec![After::Start; self.ranks.len()];
            for (of, lane) in fetches.iter().enumerate() {
                let Some(lane) = *lane else { continue };
                let is_direct = of == last && self.is_last_direct;
                let combined = (number + 1).saturating_sub(slots) * self.steps_per_piece;
                let free = if is_direct { After::Start } else { after(local, combined) };
                comes[of] = after(lane, list.add(lane, members.within.take(at, place(of)), free));
            }
            for step in &work {
                let (action, when) = match *step {
                    SumStep::Copy => (Action::Copy { from: own(), to: place(self.mine) }, After::Start),
                    SumStep::Wait(of) => (Action::nothing(), comes[of]),
                    SumStep::Combine { left, right, awaits } => {
                        let when = awaits.map_or(After::Start, |of| comes[of]);
                        (Action::Combine { from: place(left), into: place(right) }, when)
                    }
                    SumStep::Result => (Action::Copy { from: slot(last), to: sum() }, After::Start),
                };
                list.add(local, action, when);
            }
            at += bytes.end - bytes.start;
        }
        // Nothing waits for an empty lane.
        if self.steps_per_piece == 0 {
            list.add(local, Action::nothing(), After::Start);
        }
        local
    }
}

/// A local step of each piece.
enum SumStep {
    /// This rank's contribution is copied to where it is combined.
    Copy,
    /// Waits for the contribution of a member.
    Wait(usize),
    Combine {
        left: usize,
        right: usize,
        awaits: Option<usize>,
    },
    /// What is combined is copied to where the sum is to be.
    Result,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_gone_up_with_the_last_piece_that_has_some_of_them() {
        let up = vec![8..12, 0..3, 3..8, 12..20];
        let pieces =
            ReductionPieces { places: ReductionPieces::places(&up), up, before: 0, down: Vec::new() };
        for (start, end) in (0..=20).flat_map(|start| (start..=20).map(move |end| (start, end))) {
            let has_some = |piece: &Range<u64>| piece.start < end && start < piece.end;
            let expected = pieces.up.iter().rposition(has_some).map_or(0, |last| last as u64 + 1);
            assert_eq!(pieces.until(&(start..end)), expected, "{start}..{end}");
        }
    }
}
