//! All-to-all: the rank that stands for a node sends each other node, in one message, what all of its node have for all of that one.
//!
//! ```text
//!   for node N      │ from the 1st rank here: for the 1st there, the 2nd, … │ from the 2nd rank here: … │      and so it comes from N
//! ```
//!
//! All nodes' parts are as long as that between two of the largest; what is missing is filled with some block. Fewer and longer messages for blocks
//! of a few bytes; all data of a node goes through one rank's memory.

use std::ops::Range;

use super::blocks::joined;
use super::inner::{Inner, Places};
use super::members::{Members, after, common};
use super::within::{ToEach, Within, lane_down, lane_from, lane_up};
use crate::algorithm::Algorithm;
use crate::collective::Call;
use crate::schedule::{Action, After, Buffer, Kind, Listed, Nodes, Posting, Schedule, Slice};
use crate::units::Rank;

pub(super) fn schedule(algorithm: &Algorithm, call: &Call, nodes: &Nodes, rank: Rank) -> Box<dyn Schedule> {
    let mut list = Listed::default();
    if call.bytes.0 == 0 {
        return Box::new(list);
    }
    let exchange = NodeExchange::new(call, nodes, algorithm.within());
    let (members, width) = (&exchange.members, exchange.width);
    let (stand_in, own) = (members.my_stand_in(), exchange.own());
    let inner_call = Call { is_in_place: false, ..members.between(width * width * call.bytes.0) };
    let inner = Inner::new(algorithm.between(), algorithm, &inner_call, nodes.mine());
    let brought = inner.brings(Buffer::Output);
    let shown = exchange.shown(brought.into_iter().map(|brought| (brought.bytes.clone(), brought)));
    let posting = if call.is_in_place { Posting::InTurn } else { Posting::AtOnce };
    let to_itself = |list: &mut Listed| {
        if !call.is_in_place {
            let (from, to) = (Slice::input(exchange.block(rank)), Slice::output(exchange.block(rank)));
            list.single(Kind::Local, Action::Copy { from, to }, After::Start);
        }
    };
    if rank != stand_in {
        let up = lane_up(&mut list, members, Posting::AtOnce);
        let runs = exchange.around().flat_map(|node| exchange.runs(node)).map(|(bytes, _)| bytes);
        let runs = match members.within {
            Within::Shared => joined(runs),
            // A message for each that is taken.
            Within::Messages => runs.collect(),
        };
        for bytes in runs {
            list.add(up, members.within.show(Slice { buffer: own, bytes }), After::Start);
        }
        to_itself(&mut list);
        // In place, the output holds what it sends until that is taken.
        let free = if call.is_in_place { after(up, list.lanes()[up].steps) } else { After::Start };
        let (down, mut at) = (lane_down(&mut list, members, posting), 0);
        for (_, bytes) in &shown {
            for (part, to) in exchange.for_rank(bytes, rank) {
                let at = at + part.start - bytes.start;
                list.add(down, members.within.take(at, Slice::output(to)), free);
            }
            at += bytes.end - bytes.start;
        }
        return Box::new(list);
    }
    // What is sent between nodes, then what comes.
    let all = exchange.node_bytes() * u64::from(nodes.count());
    let others = members.others();
    let fetches: Vec<_> = {
        let fetch = |other: &Rank| lane_from(&mut list, members, *other, Posting::AtOnce);
        others.iter().map(fetch).collect()
    };
    let up = list.lane(Kind::Local);
    let number_of = |of: Rank| members.mine().iter().position(|rank| *rank == of).unwrap_or(0) as u64;
    // After how many steps what goes to a node is there.
    let mut ready = vec![0; nodes.count() as usize];
    let mut positions = vec![0; others.len()];
    for node in exchange.around() {
        for (bytes, at) in exchange.runs(node) {
            let length = bytes.end - bytes.start;
            for ((other, fetch), position) in others.iter().zip(&fetches).zip(&mut positions) {
                let start = exchange.row_start(node, number_of(*other)) + at;
                let to = Slice::scratch(start..start + length);
                list.add(*fetch, members.within.take(*position, to), After::Start);
                *position += length;
            }
            let start = exchange.row_start(node, number_of(rank)) + at;
            let (from, to) = (Slice { buffer: own, bytes }, Slice::scratch(start..start + length));
            list.add(up, Action::Copy { from, to }, After::Start);
        }
        let (here, there) = (members.mine().len() as u64, members.of(node).len() as u64);
        for (from, to) in (0..width).flat_map(|from| (0..width).map(move |to| (from, to))) {
            if from >= here || to >= there {
                let start = exchange.row_start(node, from) + to * call.bytes.0;
                let some = Slice { buffer: own, bytes: exchange.block(rank) };
                let to = Slice::scratch(start..start + call.bytes.0);
                list.add(up, Action::Copy { from: some, to }, After::Start);
            }
        }
        for fetch in &fetches {
            let count = list.lanes()[*fetch].steps;
            list.add(up, Action::nothing(), after(*fetch, count));
        }
        ready[node as usize] = list.lanes()[up].steps;
    }
    let everything = after(up, list.lanes()[up].steps);
    let node_bytes = exchange.node_bytes();
    let gate = |slice: &Slice| match slice.buffer {
        Buffer::Input if slice.length() > 0 => {
            let nodes = slice.bytes.start / node_bytes..slice.bytes.end.div_ceil(node_bytes);
            nodes.map(|node| ready[node as usize]).max().unwrap_or(0)
        }
        _ => 0,
    };
    let places = Places { input: (Buffer::Scratch, 0), output: (Buffer::Scratch, all), scratch: 2 * all };
    let is_there = inner.put_into(&mut list, &places, members, up, &gate);
    list.set_scratch_bytes(2 * all + inner.scratch_bytes());
    to_itself(&mut list);
    let local = list.lane(Kind::Local);
    if call.is_in_place {
        list.add(local, Action::nothing(), everything);
    }
    let down = ToEach::new(&mut list, members, posting);
    for (brought, bytes) in &shown {
        let when = is_there.after(brought);
        let shown = |bytes: &Range<u64>| all + bytes.start..all + bytes.end;
        let taken = |other| exchange.for_rank(bytes, other).iter().map(|(part, _)| shown(part)).collect();
        down.add(&mut list, &Slice::scratch(shown(bytes)), when, taken);
        for (part, to) in exchange.for_rank(bytes, rank) {
            let from = Slice::scratch(all + part.start..all + part.end);
            list.add(local, Action::Copy { from, to: Slice::output(to) }, when);
        }
    }
    Box::new(list)
}

struct NodeExchange<'a> {
    call: &'a Call,
    nodes: &'a Nodes,
    members: Members<'a>,
    width: u64,
}

impl<'a> NodeExchange<'a> {
    fn new(call: &'a Call, nodes: &'a Nodes, within: Within) -> NodeExchange<'a> {
        let members = Members::new(call, nodes, within);
        let width = members.width();
        NodeExchange { call, nodes, members, width }
    }

    fn own(&self) -> Buffer {
        if self.call.is_in_place { Buffer::Output } else { Buffer::Input }
    }

    /// The bytes that go from a node to another.
    fn node_bytes(&self) -> u64 {
        self.width * self.width * self.call.bytes.0
    }

    /// The block for, or from, a rank.
    fn block(&self, rank: Rank) -> Range<u64> {
        let start = u64::from(rank.0) * self.call.bytes.0;
        start..start + self.call.bytes.0
    }

    /// Returns the nodes from the next one on, in the order in which exchanges get to them; this
    /// one last.
    fn around(&self) -> impl Iterator<Item = u32> + use<> {
        let (mine, count) = (self.nodes.mine(), self.nodes.count());
        (1..=count).map(move |by| (mine + by) % count)
    }

    /// The offset of a row: of what one rank of a node has for, or from, the ranks of another node.
    fn row_start(&self, node: u32, number: u64) -> u64 {
        u64::from(node) * self.node_bytes() + number * self.width * self.call.bytes.0
    }

    /// Returns the runs of blocks for the ranks of a node that stand one behind the other in the
    /// program's buffer: each run's bytes there, and its offset in a row.
    fn runs(&self, node: u32) -> Vec<(Range<u64>, u64)> {
        let mut runs: Vec<(Range<u64>, u64)> = Vec::new();
        for (number, rank) in (0..).zip(self.members.of(node)) {
            let block = self.block(*rank);
            match runs.last_mut() {
                Some((run, _)) if run.end == block.start => run.end = block.end,
                _ => runs.push((block, number * self.call.bytes.0)),
            }
        }
        runs
    }

    /// Returns what comes, without what only fills: it is shown to all of the node, so in as few
    /// parts as that leaves.
    fn shown<T: Clone>(&self, brought: impl Iterator<Item = (Range<u64>, T)>) -> Vec<(T, Range<u64>)> {
        let here = self.members.mine().len() as u64 * self.call.bytes.0;
        let mut shown = Vec::new();
        for (bytes, when) in brought {
            let rows = self.rows(&bytes).map(|(_, start)| common(&(start..start + here), &bytes));
            let parts = joined(rows.filter(|part| !part.is_empty()));
            shown.extend(parts.into_iter().map(|part| (when.clone(), part)));
        }
        shown
    }

    /// Returns the ranks whose rows may have a part of some bytes, each with the offset of its row.
    fn rows(&self, bytes: &Range<u64>) -> impl Iterator<Item = (Rank, u64)> {
        let nodes = bytes.start / self.node_bytes()..bytes.end.div_ceil(self.node_bytes());
        nodes.flat_map(move |node| {
            let ranks = (0..).zip(self.members.of(node as u32));
            ranks.map(move |(number, from)| (*from, self.row_start(node as u32, number)))
        })
    }

    /// Returns the parts of what comes that are for a rank of this node from others, each with the
    /// place where it goes.
    fn for_rank(&self, bytes: &Range<u64>, rank: Rank) -> Vec<(Range<u64>, Range<u64>)> {
        let block = self.call.bytes.0;
        let place = self.members.mine().iter().position(|of| *of == rank).unwrap_or(0) as u64;
        let of_row = |(from, row): (Rank, u64)| {
            let start = row + place * block;
            let part = common(&(start..start + block), bytes);
            let to = self.block(from).start + (part.start.max(start) - start);
            let to = to..to + (part.end - part.start);
            (from != rank && !part.is_empty()).then_some((part, to))
        };
        self.rows(bytes).filter_map(of_row).collect()
    }
}
