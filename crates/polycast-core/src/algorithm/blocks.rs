//! The blocks of scatter and gather on their way through a tree of intervals: who sends which bytes to whom, in which order.

use std::ops::Range;

use super::Algorithm;
use super::intervals::{Intervals, TreePlace};
use crate::collective::Call;
use crate::schedule::Slice;
use crate::units::Rank;

/// A rank's place in the tree, and where the blocks are. Bytes are counted from the root's block on, by position; the root has them by
/// rank.
pub(super) struct Blocks {
    pub place: TreePlace,
    tree: Intervals,
    call: Call,
    /// The bytes of the largest message; `None` if nothing is to be cut, so that all that goes the
    /// same way goes together.
    segment: Option<u64>,
}

impl Blocks {
    pub fn new(tree: Intervals, algorithm: &Algorithm, call: &Call, rank: Rank) -> Blocks {
        Blocks { place: tree.place(rank), tree, call: *call, segment: algorithm.segment.map(u64::from) }
    }

    pub fn rank_at(&self, position: u32) -> Rank {
        self.tree.rank_at(position)
    }

    pub fn is_root(&self) -> bool {
        self.place.parent.is_none()
    }

    pub fn is_leaf(&self) -> bool {
        self.place.children.is_empty()
    }

    /// The bytes of the blocks of some positions.
    pub fn of(&self, positions: &Range<u32>) -> Range<u64> {
        let block = self.call.bytes.0;
        u64::from(positions.start) * block..u64::from(positions.end) * block
    }

    /// Returns the place of these bytes in this rank's scratch memory, which begins with the rank's
    /// own block.
    pub fn in_scratch(&self, bytes: &Range<u64>) -> Slice {
        let first = u64::from(self.place.interval.start) * self.call.bytes.0;
        Slice::scratch(bytes.start - first..bytes.end - first)
    }

    /// Returns the place of these bytes in the root's buffer, where they must be in one piece.
    pub fn at_root(&self, bytes: &Range<u64>) -> Range<u64> {
        let (first, within) = (bytes.start / self.call.bytes.0, bytes.start % self.call.bytes.0);
        let start = u64::from(self.rank_at(first as u32).0) * self.call.bytes.0 + within;
        start..start + (bytes.end - bytes.start)
    }

    /// The messages between the first position of `subtree` and its parent, rising; each is in one piece in the root's buffer, too, if
    /// that is the parent. `own_first`: none has bytes of two of the subtrees below, or of these and of its own block, if any is cut.
    pub fn messages(&self, subtree: &Range<u32>, parent: u32, own_first: bool) -> Vec<Range<u64>> {
        let all = self.of(subtree);
        let mut cuts = vec![all.start];
        if parent == 0 {
            let breaks = self.tree.breaks(subtree.clone()).into_iter();
            cuts.extend(breaks.map(|position| u64::from(position) * self.call.bytes.0));
        }
        if own_first && self.segment.is_some() {
            let below = self.tree.below(subtree.clone());
            cuts.extend(below.into_iter().map(|child| self.of(&child).start));
        }
        cuts.sort_unstable();
        cuts.dedup();
        let ends = cuts.iter().skip(1).copied().chain([all.end]).collect::<Vec<_>>();
        let segment = self.segment.unwrap_or(u64::MAX);
        let mut messages = Vec::new();
        for (mut start, end) in cuts.into_iter().zip(ends) {
            while start < end {
                let next = start.saturating_add(segment).min(end);
                messages.push(start..next);
                start = next;
            }
        }
        messages
    }
}
