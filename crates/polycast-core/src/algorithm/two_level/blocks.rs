//! Scatter, gather and allgather: between nodes goes what belongs to all ranks of a node, in one piece.
//!
//! ```text
//!   between nodes   │ node 0: ranks 0 2 – │ node 1: ranks 1 3 4 │       as much for each node as for the largest
//!   the program's   │ 0 │ 1 │ 2 │ 3 │ 4 │
//! ```
//!
//! Where ranks are numbered node after node and all nodes are as large, the two are the same and nothing is copied. Elsewhere blocks stand in scratch
//! memory by nodes; what is missing there is filled with some block of the node.

use std::ops::Range;

use super::inner::{Covered, Inner, Places, When};
use super::members::{Members, after, common, overlapped, parts};
use super::within::{ToEach, lane_down, lane_from, lane_up};
use crate::algorithm::Algorithm;
use crate::collective::Call;
use crate::schedule::{Action, After, Buffer, Kind, LaneIndex, Listed, Nodes, Posting, Schedule, Slice};
use crate::units::Rank;

/// The blocks of one call, and what the schedules of its collectives have in common.
struct CallBlocks<'a> {
    call: &'a Call,
    nodes: &'a Nodes,
    members: Members<'a>,
    rank: Rank,
    width: u64,
    /// True if blocks stand alike between nodes and in the program's buffers.
    is_same: bool,
    most: u64,
}

impl<'a> CallBlocks<'a> {
    fn new(algorithm: &Algorithm, call: &'a Call, nodes: &'a Nodes, rank: Rank) -> CallBlocks<'a> {
        let members = Members::new(call, nodes, algorithm.within());
        let (width, is_same, most) = (members.width(), members.are_in_order(), algorithm.buffer_bytes());
        CallBlocks { call, nodes, members, rank, width, is_same, most }
    }

    fn inner(&self, algorithm: &Algorithm) -> Inner {
        let between = Call { is_in_place: true, ..self.members.between(self.width * self.call.bytes.0) };
        Inner::new(algorithm.between(), algorithm, &between, self.nodes.mine())
    }

    /// Bytes of all blocks between nodes.
    fn all_bytes(&self) -> u64 {
        u64::from(self.nodes.count()) * self.width * self.call.bytes.0
    }

    /// Bytes of a node's blocks.
    fn node_bytes(&self) -> u64 {
        self.width * self.call.bytes.0
    }

    /// The block of a rank in the program's buffer.
    fn block(&self, rank: Rank) -> Range<u64> {
        let start = u64::from(rank.0) * self.call.bytes.0;
        start..start + self.call.bytes.0
    }

    /// The place of the block of that number among those of a node.
    fn place(&self, number: usize) -> Range<u64> {
        let start = number as u64 * self.call.bytes.0;
        start..start + self.call.bytes.0
    }

    /// Returns the ranks of some nodes, each with the place of its block between nodes, in this
    /// order.
    fn places(&self, nodes: Range<u32>) -> impl Iterator<Item = (Rank, Range<u64>)> {
        let of_node = move |node: u32| {
            let before = u64::from(node) * self.node_bytes();
            let ranks = self.members.of(node).iter().enumerate();
            ranks.map(move |(number, rank)| (*rank, shifted(self.place(number), before)))
        };
        nodes.flat_map(of_node)
    }

    /// Returns the owners of some bytes between nodes: the rank whose block it is, which of these
    /// bytes, and where they are in the program's buffer.
    fn owners(&self, bytes: &Range<u64>) -> impl Iterator<Item = (Rank, Range<u64>, Range<u64>)> {
        let bytes = bytes.clone();
        let nodes = bytes.start / self.node_bytes()..bytes.end.div_ceil(self.node_bytes());
        self.places(nodes.start as u32..nodes.end as u32).filter_map(move |(rank, place)| {
            let part = common(&place, &bytes);
            let start = self.block(rank).start + (part.start.max(place.start) - place.start);
            let target = start..start + (part.end - part.start);
            (!part.is_empty()).then_some((rank, part, target))
        })
    }

    fn own_number(&self) -> usize {
        self.members.mine().iter().position(|rank| *rank == self.rank).unwrap_or(0)
    }

    /// Adds lanes that bring the blocks of a node together at `at` of a buffer, and a last one that
    /// ends when the blocks are there; returns that one.
    fn collect(&self, list: &mut Listed, (buffer, at): (Buffer, u64), own: Option<Slice>) -> LaneIndex {
        let place = |number: usize| Slice { buffer, bytes: shifted(self.place(number), at) };
        for (number, other) in
            self.members.mine().iter().enumerate().filter(|(_, other)| **other != self.rank)
        {
            let fetch = lane_from(list, &self.members, *other, Posting::AtOnce);
            for part in parts(0..self.call.bytes.0, self.most, 1) {
                let to = Slice { buffer, bytes: shifted(part.clone(), place(number).bytes.start) };
                list.add(fetch, self.members.within.take(part.start, to), After::Start);
            }
        }
        let up = list.lane(Kind::Local);
        let mine = place(self.own_number());
        if let Some(from) = own {
            list.add(up, Action::Copy { from, to: mine.clone() }, After::Start);
        }
        for missing in self.members.mine().len()..self.width as usize {
            list.add(up, Action::Copy { from: mine.clone(), to: place(missing) }, After::Start);
        }
        list.add(up, Action::nothing(), After::LanesBelow(up));
        up
    }

    /// Adds a lane on which this rank has its block taken by the one that stands for the node;
    /// returns it.
    fn hand_up(&self, list: &mut Listed, own: &Slice) -> LaneIndex {
        let up = lane_up(list, &self.members, Posting::AtOnce);
        for part in parts(own.bytes.clone(), self.most, 1) {
            let part = Slice { buffer: own.buffer, bytes: part };
            list.add(up, self.members.within.show(part), After::Start);
        }
        up
    }
}

fn shifted(bytes: Range<u64>, by: u64) -> Range<u64> {
    bytes.start + by..bytes.end + by
}

/// The condition that all steps which a lane has are complete.
fn after_all(list: &Listed, lane: LaneIndex) -> After {
    after(lane, list.lanes()[lane].steps)
}

pub(super) fn allgather(algorithm: &Algorithm, call: &Call, nodes: &Nodes, rank: Rank) -> Box<dyn Schedule> {
    let mut list = Listed::default();
    if call.bytes.0 == 0 {
        return Box::new(list);
    }
    let blocks = CallBlocks::new(algorithm, call, nodes, rank);
    let own = match call.is_in_place {
        true => Slice::output(blocks.block(rank)),
        false => Slice::input(0..call.bytes.0),
    };
    let inner = blocks.inner(algorithm);
    // What the others of a node see: its own blocks, then what comes.
    let mine = shifted(0..blocks.node_bytes(), u64::from(nodes.mine()) * blocks.node_bytes());
    let brought = inner.brings(Buffer::Output);
    let mut known = Covered::default();
    brought.iter().for_each(|brought| drop(known.add(&brought.bytes)));
    let come = known.add(&mine).into_iter().map(|bytes| (bytes, When::Own));
    let come = come.chain(brought.into_iter().map(|brought| (brought.bytes.clone(), When::Come(brought))));
    let all = overlapped(come.collect(), algorithm.overlap_bytes(), When::AllCome).into_iter();
    let all: Vec<(Range<u64>, When)> = all
        .flat_map(|(bytes, when)| {
            // Nobody sees what only fills a place.
            let real = blocks.owners(&bytes).map(|(_, part, _)| part);
            let real = joined(real).into_iter().flat_map(|bytes| parts(bytes, blocks.most, 1));
            real.map(|bytes| (bytes, when.clone())).collect::<Vec<_>>()
        })
        .collect();
    let to_output = |bytes: &Range<u64>, rank: Rank| -> Vec<(Range<u64>, Range<u64>)> {
        let parts = blocks.owners(bytes).filter(|(of, _, _)| *of != rank);
        joined_pairs(parts.map(|(_, part, target)| (part, target)))
    };
    let stand_in = blocks.members.my_stand_in();
    if rank != stand_in {
        blocks.hand_up(&mut list, &own);
        if !call.is_in_place {
            let to = Slice::output(blocks.block(rank));
            list.single(Kind::Local, Action::Copy { from: own, to }, After::Start);
        }
        let (down, mut at) = (lane_down(&mut list, &blocks.members, Posting::AtOnce), 0);
        for (bytes, _) in &all {
            for (part, target) in to_output(bytes, rank) {
                let at = at + part.start - bytes.start;
                list.add(down, blocks.members.within.take(at, Slice::output(target)), After::Start);
            }
            at += bytes.end - bytes.start;
        }
        return Box::new(list);
    }
    let full = if blocks.is_same { Buffer::Output } else { Buffer::Scratch };
    let is_there_already = blocks.is_same && call.is_in_place;
    let up = blocks.collect(&mut list, (full, mine.start), (!is_there_already).then_some(own.clone()));
    let all_up = after_all(&list, up);
    let full_bytes = if blocks.is_same { 0 } else { blocks.all_bytes() };
    let places = Places { input: (Buffer::Input, 0), output: (full, 0), scratch: full_bytes };
    let up_steps = list.lanes()[up].steps;
    let gate = |slice: &Slice| match slice.buffer {
        Buffer::Output if !common(&slice.bytes, &mine).is_empty() => up_steps,
        _ => 0,
    };
    let is_there = inner.put_into(&mut list, &places, &blocks.members, up, &gate);
    list.set_scratch_bytes(full_bytes + inner.scratch_bytes());
    let down = ToEach::new(&mut list, &blocks.members, Posting::AtOnce);
    let local = (!blocks.is_same).then(|| list.lane(Kind::Local));
    for (bytes, when) in &all {
        let when = is_there.when(when, all_up);
        let taken = |other| to_output(bytes, other).into_iter().map(|(part, _)| part).collect();
        down.add(&mut list, &Slice { buffer: full, bytes: bytes.clone() }, when, taken);
        for (part, target) in local.map_or_else(Vec::new, |_| to_output(bytes, rank)) {
            let (from, to) = (Slice::scratch(part), Slice::output(target));
            local.into_iter().for_each(|local| {
                list.add(local, Action::Copy { from: from.clone(), to: to.clone() }, when);
            });
        }
    }
    if let Some(local) = local.filter(|_| !call.is_in_place) {
        let to = Slice::output(blocks.block(rank));
        list.add(local, Action::Copy { from: own, to }, After::Start);
    }
    Box::new(list)
}

pub(super) fn gather(algorithm: &Algorithm, call: &Call, nodes: &Nodes, rank: Rank) -> Box<dyn Schedule> {
    let mut list = Listed::default();
    if call.bytes.0 == 0 {
        return Box::new(list);
    }
    let blocks = CallBlocks::new(algorithm, call, nodes, rank);
    let own = Slice::input(0..call.bytes.0);
    if rank != blocks.members.my_stand_in() {
        blocks.hand_up(&mut list, &own);
        return Box::new(list);
    }
    let inner = blocks.inner(algorithm);
    let is_root = rank == call.root;
    if !is_root {
        // A block that is the node's only one is sent from where it is.
        let is_alone = blocks.width == 1;
        let up = match is_alone {
            true => list.single(Kind::Local, Action::nothing(), After::Start),
            false => blocks.collect(&mut list, (Buffer::Scratch, 0), Some(own)),
        };
        let node_bytes = if is_alone { 0 } else { blocks.node_bytes() };
        let input = if is_alone { Buffer::Input } else { Buffer::Scratch };
        let places = Places { input: (input, 0), output: (Buffer::Output, 0), scratch: node_bytes };
        let up_steps = list.lanes()[up].steps;
        let gate = |slice: &Slice| if slice.buffer == Buffer::Input { up_steps } else { 0 };
        inner.put_into(&mut list, &places, &blocks.members, up, &gate);
        list.set_scratch_bytes(node_bytes + inner.scratch_bytes());
        return Box::new(list);
    }
    for other in blocks.members.others() {
        let fetch = lane_from(&mut list, &blocks.members, other, Posting::AtOnce);
        for part in parts(0..call.bytes.0, blocks.most, 1) {
            let to = Slice::output(shifted(part.clone(), blocks.block(other).start));
            list.add(fetch, blocks.members.within.take(part.start, to), After::Start);
        }
    }
    let local = list.single(Kind::Local, Action::nothing(), After::Start);
    if !call.is_in_place {
        list.add(local, Action::Copy { from: own, to: Slice::output(blocks.block(rank)) }, After::Start);
    }
    let (full, full_bytes) =
        if blocks.is_same { (Buffer::Output, 0) } else { (Buffer::Scratch, blocks.all_bytes()) };
    let places = Places { input: (Buffer::Input, 0), output: (full, 0), scratch: full_bytes };
    let is_there = inner.put_into(&mut list, &places, &blocks.members, local, &|_| 0);
    list.set_scratch_bytes(full_bytes + inner.scratch_bytes());
    if !blocks.is_same {
        let local = list.lane(Kind::Local);
        for brought in inner.brings(Buffer::Output) {
            let when = is_there.after(&brought);
            let parts = blocks.owners(&brought.bytes).map(|(_, part, target)| (part, target));
            for (part, target) in joined_pairs(parts) {
                let action = Action::Copy { from: Slice::scratch(part), to: Slice::output(target) };
                list.add(local, action, when);
            }
        }
    }
    Box::new(list)
}

pub(super) fn scatter(algorithm: &Algorithm, call: &Call, nodes: &Nodes, rank: Rank) -> Box<dyn Schedule> {
    let mut list = Listed::default();
    if call.bytes.0 == 0 {
        return Box::new(list);
    }
    let blocks = CallBlocks::new(algorithm, call, nodes, rank);
    let stand_in = blocks.members.my_stand_in();
    let inner = blocks.inner(algorithm);
    // The parts of its ranks' blocks in the order in which they are handed out on a node.
    let order: Vec<(Rank, Range<u64>, When)> = if stand_in == call.root {
        let others = blocks.members.others().into_iter();
        others
            .flat_map(|other| {
                parts(0..call.bytes.0, blocks.most, 1).map(move |part| (other, part, When::Own))
            })
            .collect()
    } else {
        let cut = |(bytes, when): (Range<u64>, When)| {
            let of_ranks = blocks.members.mine().iter().enumerate().flat_map(|(number, of)| {
                let place = blocks.place(number);
                let part = common(&place, &bytes);
                let within = part.start.max(place.start) - place.start;
                let part = within..within + (part.end - part.start);
                let when = when.clone();
                parts(part, blocks.most, 1).map(move |part| (*of, part, when.clone()))
            });
            of_ranks.collect::<Vec<_>>()
        };
        let come = inner.brings(Buffer::Output).into_iter();
        let come = come.map(|brought| (brought.bytes.clone(), When::Come(brought))).collect();
        overlapped(come, algorithm.overlap_bytes(), When::AllCome).into_iter().flat_map(cut).collect()
    };
    if rank != stand_in {
        let (down, mut at) = (lane_down(&mut list, &blocks.members, Posting::AtOnce), 0);
        for (of, part, _) in order.into_iter().filter(|(of, _, _)| *of != stand_in) {
            let length = part.end - part.start;
            if of == rank {
                list.add(down, blocks.members.within.take(at, Slice::output(part)), After::Start);
            }
            at += length;
        }
        return Box::new(list);
    }
    let is_root = rank == call.root;
    let (full_bytes, input) = match is_root && !blocks.is_same {
        true => (blocks.all_bytes(), Buffer::Scratch),
        false => (0, Buffer::Input),
    };
    let up = list.single(Kind::Local, Action::nothing(), After::Start);
    if full_bytes > 0 {
        let (mine, block) = (nodes.mine(), call.bytes.0);
        for node in (0..nodes.count()).filter(|node| *node != mine) {
            let ranks = blocks.members.of(node);
            for number in 0..blocks.width {
                let at = (u64::from(node) * blocks.width + number) * block;
                let of = ranks.get(number as usize).unwrap_or(&ranks[0]);
                let from = Slice::input(blocks.block(*of));
                list.add(up, Action::Copy { from, to: Slice::scratch(at..at + block) }, After::Start);
            }
        }
    }
    let up_steps = list.lanes()[up].steps;
    // A block that is the node's only one comes where it belongs.
    let is_direct = is_root || blocks.width == 1;
    let (output, node_bytes) =
        if is_direct { (Buffer::Output, 0) } else { (Buffer::Scratch, blocks.node_bytes()) };
    let places = Places { input: (input, 0), output: (output, 0), scratch: full_bytes.max(node_bytes) };
    let gate = |slice: &Slice| if slice.buffer == Buffer::Input { up_steps } else { 0 };
    let is_there = inner.put_into(&mut list, &places, &blocks.members, up, &gate);
    list.set_scratch_bytes(full_bytes.max(node_bytes) + inner.scratch_bytes());
    let down = ToEach::new(&mut list, &blocks.members, Posting::AtOnce);
    let local = list.lane(Kind::Local);
    if is_root && !call.is_in_place {
        let (from, to) = (Slice::input(blocks.block(rank)), Slice::output(0..call.bytes.0));
        list.add(local, Action::Copy { from, to }, After::Start);
    }
    for (of, part, when) in order {
        let when = is_there.when(&when, After::Start);
        let from = match is_root {
            true => Slice::input(shifted(part.clone(), blocks.block(of).start)),
            false => {
                let number = blocks.members.mine().iter().position(|rank| *rank == of).unwrap_or(0);
                Slice { buffer: output, bytes: shifted(part.clone(), blocks.place(number).start) }
            }
        };
        if of == rank {
            if !is_direct {
                list.add(local, Action::Copy { from, to: Slice::output(part) }, when);
            }
        } else {
            down.add(
                &mut list,
                &from,
                when,
                |other| {
                    if other == of { vec![from.bytes.clone()] } else { Vec::new() }
                },
            );
        }
    }
    Box::new(list)
}

/// Joins ranges that touch.
pub(super) fn joined(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    joined_pairs(ranges.map(|bytes| (bytes.clone(), bytes))).into_iter().map(|(bytes, _)| bytes).collect()
}

/// Joins pairs of ranges, here and there, where both touch.
fn joined_pairs(pairs: impl Iterator<Item = (Range<u64>, Range<u64>)>) -> Vec<(Range<u64>, Range<u64>)> {
    let mut joined: Vec<(Range<u64>, Range<u64>)> = Vec::new();
    for (here, there) in pairs {
        match joined.last_mut() {
            Some((h, t)) if h.end == here.start && t.end == there.start => {
                (h.end, t.end) = (here.end, there.end)
            }
            _ => joined.push((here, there)),
        }
    }
    joined
}
