//! Reduction up a tree of intervals, segment by segment: every rank combines its contribution with those of its children's subtrees.
//!
//! ```text
//!   own ─┐
//!        ∘──▶ 1st child's ─┐             the combination of a subtree is that of neighbouring ranks, in their order
//!                          ∘──▶ 2nd child's ──▶ … ──▶ parent
//! ```

use std::ops::Range;

use super::Algorithm;
use super::intervals::Intervals;
use crate::collective::Call;
use crate::schedule::{Action, After, Buffer, Channel, Kind, Lane, LaneIndex, Slice, Step, Stream};
use crate::units::Rank;

const UP: Channel = 0;

/// The part of one rank in a reduction up a tree, in segments of the data.
pub(super) struct FanIn {
    /// The rank that gets what this rank has combined; `None` at the top.
    pub parent: Option<Rank>,
    /// The ranks from which parts come: in scratch memory one after the other, the last in the
    /// output if that is free.
    pub children: Vec<Rank>,
    /// The number of segments.
    pub segments: u64,
    bytes: u64,
    segment: u64,
    /// The buffer of this rank's contribution.
    own: Buffer,
    last_in_output: bool,
    /// True if the combination has to be copied to the output.
    is_copied: bool,
}

impl FanIn {
    /// Makes the part of `rank` in a reduction towards the top of the tree, in segments of about
    /// the algorithm's size, or whole. `is_result`: what this rank has combined is to be in its
    /// output.
    pub fn new(tree: &Intervals, algorithm: &Algorithm, call: &Call, rank: Rank, is_result: bool) -> FanIn {
        let (bytes, element) = (call.bytes.0, call.element.get());
        let place = tree.place(rank);
        let segment = algorithm.segment.map_or(bytes, |segment| (segment.get() / element).max(1) * element);
        let segment = segment.clamp(1, bytes.max(1));
        let own = if call.is_in_place_at(rank) { Buffer::Output } else { Buffer::Input };
        let has_children = !place.children.is_empty();
        let last_in_output = is_result && own == Buffer::Input && has_children;
        FanIn {
            parent: place.parent.map(|parent| tree.rank_at(parent)),
            children: place.children.iter().map(|child| tree.rank_at(child.start)).collect(),
            segments: bytes.div_ceil(segment),
            bytes,
            segment,
            own,
            last_in_output,
            is_copied: is_result && !last_in_output && (own == Buffer::Input || has_children),
        }
    }

    /// Lanes for what comes from the children, one each, then the local one. None if there are no segments.
    pub fn lanes(&self) -> Vec<Lane> {
        let receives = self.children.iter().map(|child| Kind::Messages(Stream::receive(*child, UP)));
        let mut lanes: Vec<Lane> = receives.map(|kind| Lane::new(kind, self.segments)).collect();
        lanes.push(Lane::new(Kind::Local, self.segments * self.local_steps()));
        lanes.retain(|_| self.segments > 0);
        lanes
    }

    /// The index of the local lane.
    pub fn local_lane(&self) -> LaneIndex {
        self.children.len()
    }

    /// The stream to the parent, whose steps are [`FanIn::combined`].
    pub fn to_parent(&self, parent: Rank) -> Kind {
        Kind::Messages(Stream::send(parent, UP))
    }

    /// The bytes of scratch memory that the part takes.
    pub fn scratch_bytes(&self) -> u64 {
        (self.children.len() as u64 - u64::from(self.last_in_output)) * self.bytes
    }

    /// The bytes of segment `index`.
    pub fn slice(&self, index: u64) -> Range<u64> {
        let start = index * self.segment;
        start..start.saturating_add(self.segment).min(self.bytes)
    }

    /// Returns step `index` of a lane of [`FanIn::lanes`].
    pub fn step(&self, lane: LaneIndex, index: u64) -> Step {
        if lane < self.children.len() {
            return Step { action: Action::Receive(self.place(lane as u64 + 1, index)), after: After::Start };
        }
        let (segment, number) = (index / self.local_steps(), index % self.local_steps());
        if number == self.children.len() as u64 {
            let to = Slice::output(self.slice(segment));
            return Step {
                action: Action::Copy { from: self.place(number, segment), to },
                after: After::Start,
            };
        }
        let (from, into) = (self.place(number, segment), self.place(number + 1, segment));
        let after = After::Steps { lane: number as LaneIndex, count: segment + 1 };
        Step { action: Action::Combine { from, into }, after }
    }

    /// The place of segment `index` of what this rank has combined, before it is copied, and the
    /// condition that it is combined.
    pub fn combined(&self, index: u64) -> (Slice, After) {
        (self.place(self.children.len() as u64, index), self.is_combined(index))
    }

    /// The condition that segment `index` is combined, and in the output if it is to be there.
    pub fn is_combined(&self, index: u64) -> After {
        match self.local_steps() {
            0 => After::Start,
            steps => After::Steps { lane: self.local_lane(), count: (index + 1) * steps },
        }
    }

    /// Returns the place of segment `index` when the first `combined` parts are combined with this
    /// rank's.
    fn place(&self, combined: u64, index: u64) -> Slice {
        let Range { start, end } = self.slice(index);
        match combined {
            0 => Slice { buffer: self.own, bytes: start..end },
            _ if combined == self.children.len() as u64 && self.last_in_output => Slice::output(start..end),
            _ => {
                let at = (combined - 1) * self.bytes;
                Slice::scratch(at + start..at + end)
            }
        }
    }

    /// The number of local steps that a segment takes.
    fn local_steps(&self) -> u64 {
        self.children.len() as u64 + u64::from(self.is_copied)
    }
}
