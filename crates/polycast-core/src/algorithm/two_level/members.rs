//! Who is on which node, and who stands for it.

use std::ops::Range;

use crate::collective::{Call, CombinationOrder};
use crate::schedule::{After, LaneIndex, Nodes};
use crate::units::Rank;

use super::within::Within;

/// The nodes of a call.
pub(super) struct Members<'a> {
    nodes: &'a Nodes,
    call: &'a Call,
    /// The way of data on a node: shared memory or messages.
    pub within: Within,
    /// The ranks of each node, rising.
    of: Vec<Vec<Rank>>,
}

impl<'a> Members<'a> {
    pub fn new(call: &'a Call, nodes: &'a Nodes, within: Within) -> Members<'a> {
        let mut of = vec![Vec::new(); nodes.count() as usize];
        for rank in (0..call.ranks).map(Rank) {
            of[nodes.of(rank) as usize].push(rank);
        }
        Members { nodes, call, within, of }
    }

    pub fn of(&self, node: u32) -> &[Rank] {
        &self.of[node as usize]
    }

    pub fn mine(&self) -> &[Rank] {
        self.of(self.nodes.mine())
    }

    /// The number of ranks on the largest node.
    pub fn width(&self) -> u64 {
        self.of.iter().map(Vec::len).max().unwrap_or(1) as u64
    }

    /// True if all nodes have as many ranks, which stand one behind the other, node after node.
    pub fn are_in_order(&self) -> bool {
        let width = self.width();
        let is_there = |(rank, at): (u64, &Rank)| rank == u64::from(at.0);
        self.of.iter().all(|ranks| ranks.len() as u64 == width)
            && (0..).zip(self.of.iter().flatten()).all(is_there)
    }

    /// The rank of a node that takes part between nodes.
    pub fn stands_for(&self, node: u32) -> Rank {
        let Call { collective, root, .. } = self.call;
        let is_roots = collective.has_root() && self.nodes.of(*root) == node;
        if is_roots { *root } else { self.nodes.leaders()[node as usize] }
    }

    /// The rank of this rank's node that takes part between nodes.
    pub fn my_stand_in(&self) -> Rank {
        self.stands_for(self.nodes.mine())
    }

    /// The ranks of this rank's node but the one that stands for it.
    pub fn others(&self) -> Vec<Rank> {
        let stand_in = self.my_stand_in();
        self.mine().iter().copied().filter(|rank| *rank != stand_in).collect()
    }

    /// The call with nodes in place of ranks, of blocks of so many bytes.
    pub fn between(&self, bytes: u64) -> Call {
        let (ranks, root) = (
            self.nodes.count(),
            if self.call.collective.has_root() { self.nodes.of(self.call.root) } else { 0 },
        );
        Call {
            ranks,
            root: Rank(root),
            bytes: crate::units::Bytes(bytes),
            order: CombinationOrder::Any,
            ..*self.call
        }
    }
}

/// The condition that `count` steps of a lane are complete.
pub(super) fn after(lane: LaneIndex, count: u64) -> After {
    if count == 0 { After::Start } else { After::Steps { lane, count } }
}

/// Cuts bytes into parts of at most `most`, a multiple of `unit` each but for the last.
pub(super) fn parts(bytes: Range<u64>, most: u64, unit: u64) -> impl Iterator<Item = Range<u64>> {
    let most = (most / unit).max(1).saturating_mul(unit);
    let count = (bytes.end - bytes.start).div_ceil(most);
    (0..count).map(move |part| {
        let start = bytes.start + part * most;
        start..start.saturating_add(most).min(bytes.end)
    })
}

/// Splits parts that come: the first `overlap` bytes of each are shared when it has come, and the
/// rest of all when all has come.
pub(super) fn overlapped<T: Clone>(
    come: Vec<(Range<u64>, T)>,
    overlap: u64,
    all_come: T,
) -> Vec<(Range<u64>, T)> {
    let split = |bytes: &Range<u64>| bytes.start.saturating_add(overlap).min(bytes.end);
    let early = come.iter().map(|(bytes, when)| (bytes.start..split(bytes), when.clone()));
    let late = come.iter().map(|(bytes, _)| (split(bytes)..bytes.end, all_come.clone()));
    early.chain(late).filter(|(bytes, _)| !bytes.is_empty()).collect()
}

/// The bytes that two ranges have in common; an empty range if there are none.
pub(super) fn common(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}
