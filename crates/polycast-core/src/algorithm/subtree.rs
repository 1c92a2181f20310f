//! Blocks of the ranks below a position of a binomial tree, for scatter and gather.

use std::num::NonZeroU32;
use std::ops::Range;

use crate::collective::Call;
use crate::tree::{LocalTree, Tree, k_nomial_subtree};
use crate::units::Rank;

const TWO: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// A rank's place in the binomial tree whose root is position 0.
pub(super) struct Subtree {
    pub position: u32,
    call: Call,
    local: LocalTree,
}

impl Subtree {
    pub fn new(call: &Call, rank: Rank) -> Subtree {
        let position = rank.relative_to(call.root, call.ranks);
        let local = Tree::KNomial(TWO).local(call.ranks, Rank(0), Rank(position));
        Subtree { position, call: *call, local }
    }

    pub fn parent(&self) -> Option<Rank> {
        self.local.parent.map(|parent| self.rank_at(parent.0))
    }

    /// Positions and ranks, the largest subtree first.
    pub fn children(&self) -> impl Iterator<Item = (u32, Rank)> {
        self.local.children.iter().map(|child| (child.0, self.rank_at(child.0)))
    }

    /// The positions at and below one.
    pub fn positions(&self, position: u32) -> Range<u32> {
        k_nomial_subtree(TWO, position, self.call.ranks)
    }

    /// The blocks at and below `position` in memory that begins with those of this rank's.
    pub fn by_position(&self, position: u32) -> Range<u64> {
        let Range { start, end } = self.positions(position);
        self.blocks(start - self.position..end - self.position)
    }

    /// The blocks at and below `position` where they lie by rank, as the root has them: in two pieces if they go beyond the last
    /// rank.
    pub fn by_rank(&self, position: u32) -> impl Iterator<Item = Range<u64>> {
        let Range { start, end } = self.positions(position);
        let (root, ranks) = (self.call.root.0, self.call.ranks);
        let before_wrap = start.max(ranks - root).min(end);
        let pieces = [start + root..before_wrap + root, before_wrap..end];
        let [first, second] = pieces;
        let second = (second.start + root).saturating_sub(ranks)..(second.end + root).saturating_sub(ranks);
        [first, second].into_iter().filter(|piece| !piece.is_empty()).map(|piece| self.blocks(piece))
    }

    /// The messages between this rank and its parent, in memory that begins with this rank's blocks: one, but the root's are in
    /// pieces, as it has the blocks.
    pub fn messages_with_parent(&self, parent: Rank) -> Vec<Range<u64>> {
        let mut end = 0;
        let mut behind = |bytes: Range<u64>| {
            let start = end;
            end += bytes.end - bytes.start;
            start..end
        };
        match parent == self.call.root {
            true => self.by_rank(self.position).map(behind).collect(),
            false => vec![behind(self.by_position(self.position))],
        }
    }

    fn blocks(&self, Range { start, end }: Range<u32>) -> Range<u64> {
        let block = self.call.bytes.0;
        u64::from(start) * block..u64::from(end) * block
    }

    fn rank_at(&self, position: u32) -> Rank {
        Rank::from_relative(position, self.call.root, self.call.ranks)
    }
}
