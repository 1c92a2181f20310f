//! The blocks of scatter and gather on their way through a tree of intervals: who sends which bytes to whom, in which order.

use std::ops::Range;

use super::Algorithm;
use super::intervals::{Place, Shape};
use crate::collective::Call;
use crate::schedule::Slice;
use crate::units::Rank;

/// A rank's place in the tree, and where the blocks are. Bytes are counted from the root's block on, by position; the root has them by
/// rank.
pub(super) struct Blocks {
    pub place: Place,
    shape: Shape,
    call: Call,
    /// The largest message; all that goes the same way if nothing is to be cut.
    segment: Option<u64>,
}

impl Blocks {
    pub fn new(shape: Shape, algorithm: &Algorithm, call: &Call, rank: Rank) -> Blocks {
        let place = shape.place(call.position_of(rank), call.ranks);
        Blocks { place, shape, call: *call, segment: algorithm.segment.map(u64::from) }
    }

    pub fn rank_at(&self, position: u32) -> Rank {
        self.call.rank_at(position)
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

    /// Where they are in this rank's scratch memory, which begins with its own block.
    pub fn in_scratch(&self, bytes: &Range<u64>) -> Slice {
        let first = u64::from(self.place.interval.start) * self.call.bytes.0;
        Slice::scratch(bytes.start - first..bytes.end - first)
    }

    /// Where they are in the root's buffer.
    pub fn at_root(&self, bytes: &Range<u64>) -> Range<u64> {
        let (root, all) = (u64::from(self.call.root.0), u64::from(self.call.ranks) * self.call.bytes.0);
        let start = (bytes.start + root * self.call.bytes.0) % all;
        start..start + (bytes.end - bytes.start)
    }

    /// The messages between the first position of `subtree` and its parent, rising; each is in one piece in the root's buffer, too, if
    /// that is the parent. `own_first`: none has bytes of two of the subtrees below, or of these and of its own block, if any is cut.
    pub fn messages(&self, subtree: &Range<u32>, parent: u32, own_first: bool) -> Vec<Range<u64>> {
        let all = self.of(subtree);
        let mut cuts = vec![all.start];
        let wrap = u64::from(self.call.ranks - self.call.root.0) * self.call.bytes.0;
        if parent == 0 && all.contains(&wrap) && wrap > all.start {
            cuts.push(wrap);
        }
        if own_first && self.segment.is_some() {
            let below = self.shape.below(subtree.clone());
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
