//! Reduction up a tree, segment by segment: every rank combines its contribution with those of its children's subtrees.
//!
//! ```text
//!   own ─┐
//!        ∘──▶ 1st child's ─┐             the combination of a subtree is that of neighbouring ranks, in their order
//!                          ∘──▶ 2nd child's ──▶ … ──▶ parent
//! ```
//!
//! A part of higher ranks becomes the combination, one of lower ranks is combined into what is there: operands stay on their sides.

use std::ops::Range;

use super::Algorithm;
use crate::collective::{Call, TreeNeighbours};
use crate::schedule::{Action, After, Buffer, Channel, Kind, Lane, LaneIndex, Slice, Step, Stream};
use crate::units::Rank;

const UP: Channel = 0;

/// The part of one rank in a reduction up a tree, in segments of the data.
pub(super) struct FanIn {
    /// The rank that gets what this rank has combined; `None` at the top.
    pub parent: Option<Rank>,
    /// The ranks from which parts come.
    pub children: Vec<Rank>,
    /// The number of segments.
    pub segments: u64,
    bytes: u64,
    segment: u64,
    /// The places where the children's parts come.
    comes_to: Vec<PartPlace>,
    /// The local steps of a segment.
    work: Vec<FanInStep>,
    /// The place of what this rank has combined, before it is copied.
    combined: PartPlace,
    scratch_parts: u64,
}

/// Where all of the data has room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartPlace {
    /// In a buffer of the program's.
    Buffer(Buffer),
    /// In the scratch memory, behind so many others.
    Part(u64),
}

/// A local step of each segment.
struct FanInStep {
    from: PartPlace,
    to: PartPlace,
    /// The child whose part is combined; `None` if the step copies.
    child: Option<LaneIndex>,
}

/// The places that a rank has for parts, of which the last to be taken may be its output.
struct FreeParts {
    is_output_free: bool,
    parts: u64,
}

impl FreeParts {
    fn take(&mut self, is_result: bool) -> PartPlace {
        if is_result && self.is_output_free {
            return PartPlace::Buffer(Buffer::Output);
        }
        self.parts += 1;
        PartPlace::Part(self.parts - 1)
    }
}

impl FanIn {
    /// Makes the part of `rank`, with these neighbours in the tree, in segments of about the
    /// algorithm's size, or whole. `is_result`: what this rank has combined is to be in its output.
    pub fn new(
        tree: TreeNeighbours,
        algorithm: &Algorithm,
        call: &Call,
        rank: Rank,
        is_result: bool,
    ) -> FanIn {
        let (bytes, element) = (call.bytes.0, call.element.get());
        let segment = algorithm.segment.map_or(bytes, |segment| (segment.get() / element).max(1) * element);
        let segment = segment.clamp(1, bytes.max(1));
        let own = if call.is_in_place_at(rank) { Buffer::Output } else { Buffer::Input };
        let mut places = FreeParts { is_output_free: is_result && own == Buffer::Input, parts: 0 };
        // Where the combination is when the last part of higher ranks has come; after that it stays there.
        let last_right = tree.children.iter().rposition(|child| !child.is_left);
        let mut combined = PartPlace::Buffer(own);
        let (mut comes_to, mut work) = (Vec::new(), Vec::new());
        for (child, of) in tree.children.iter().enumerate() {
            if of.is_left && combined == PartPlace::Buffer(Buffer::Input) {
                // The input is not written.
                let to = places.take(last_right.is_none_or(|last| last < child));
                work.push(FanInStep { from: combined, to, child: None });
                combined = to;
            }
            let to = places.take(last_right == Some(child));
            comes_to.push(to);
            let (from, into) = if of.is_left { (to, combined) } else { (combined, to) };
            work.push(FanInStep { from, to: into, child: Some(child) });
            combined = into;
        }
        let output = PartPlace::Buffer(Buffer::Output);
        if is_result && combined != output {
            work.push(FanInStep { from: combined, to: output, child: None });
        }
        FanIn {
            parent: tree.parent,
            children: tree.children.iter().map(|child| child.rank).collect(),
            segments: bytes.div_ceil(segment),
            bytes,
            segment,
            comes_to,
            work,
            combined,
            scratch_parts: places.parts,
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
        self.scratch_parts * self.bytes
    }

    /// The bytes of segment `index`.
    pub fn slice(&self, index: u64) -> Range<u64> {
        let start = index * self.segment;
        start..start.saturating_add(self.segment).min(self.bytes)
    }

    /// Returns step `index` of a lane of [`FanIn::lanes`].
    pub fn step(&self, lane: LaneIndex, index: u64) -> Step {
        if let Some(place) = self.comes_to.get(lane) {
            return Step { action: Action::Receive(self.place(*place, index)), after: After::Start };
        }
        let segment = index / self.local_steps();
        let FanInStep { from, to, child } = &self.work[(index % self.local_steps()) as usize];
        let (from, to) = (self.place(*from, segment), self.place(*to, segment));
        match *child {
            Some(lane) => {
                let after = After::Steps { lane, count: segment + 1 };
                Step { action: Action::Combine { from, into: to }, after }
            }
            None => Step { action: Action::Copy { from, to }, after: After::Start },
        }
    }

    /// The place of segment `index` of what this rank has combined, before it is copied, and the
    /// condition that it is combined.
    pub fn combined(&self, index: u64) -> (Slice, After) {
        (self.place(self.combined, index), self.is_combined(index))
    }

    /// The condition that segment `index` is combined, and in the output if it is to be there.
    pub fn is_combined(&self, index: u64) -> After {
        match self.local_steps() {
            0 => After::Start,
            steps => After::Steps { lane: self.local_lane(), count: (index + 1) * steps },
        }
    }

    fn place(&self, place: PartPlace, index: u64) -> Slice {
        let Range { start, end } = self.slice(index);
        match place {
            PartPlace::Buffer(buffer) => Slice { buffer, bytes: start..end },
            PartPlace::Part(number) => Slice::scratch(number * self.bytes + start..number * self.bytes + end),
        }
    }

    /// The number of local steps that a segment takes.
    fn local_steps(&self) -> u64 {
        self.work.len() as u64
    }
}
