//! Binomial reduction: in round k the ranks that are left pair up at distance 2^k, and the upper one hands its part to the lower.
//!
//! ```text
//!   0 ◀── 1    2 ◀── 3    4 ◀── 5    6        0∘1   2∘3   4∘5   6
//!   0 ◀──────── 2         4 ◀──────── 6       0∘1∘2∘3     4∘5∘6
//!   0 ◀────────────────── 4                   0∘…∘6
//! ```
//!
//! A part is always that of neighbouring ranks, so the order of ranks is kept: where it matters, the tree is that of the ranks
//! themselves and its top passes the result to the root; where it does not, the root is the top. `ceil(log2 P)` hops, segments
//! follow each other.

use std::ops::Range;

use crate::algorithm::rule::Rule;
use crate::algorithm::{Algorithm, Entry};
use crate::collective::{Call, Collective};
use crate::schedule::{
    Action, After, Buffer, Channel, Kind, Lane, LaneIndex, Posting, Schedule, Slice, Step, Stream,
};
use crate::units::Rank;

const UP: Channel = 0;
/// From the top of the tree to the root.
const RESULT: Channel = 2;

/// What one rank has to do with segments of the data.
struct Part {
    bytes: u64,
    segment: u64,
    /// Where this rank's contribution is.
    own: Buffer,
    /// From how many ranks parts come: in scratch memory one after the other, the last in the output if that is free.
    children: u64,
    last_in_output: bool,
    /// The combination has to be brought from scratch memory to the output.
    is_copied: bool,
}

impl Part {
    fn slice(&self, index: u64) -> Range<u64> {
        let start = index * self.segment;
        start..start.saturating_add(self.segment).min(self.bytes)
    }

    /// Where segment `index` is when the first `combined` parts are combined with this rank's.
    fn place(&self, combined: u64, index: u64) -> Slice {
        let Range { start, end } = self.slice(index);
        match combined {
            0 => Slice { buffer: self.own, bytes: start..end },
            _ if combined == self.children && self.last_in_output => Slice::output(start..end),
            _ => {
                let at = (combined - 1) * self.bytes;
                Slice::scratch(at + start..at + end)
            }
        }
    }

    /// How many local steps a segment takes.
    fn local_steps(&self) -> u64 {
        self.children + u64::from(self.is_copied)
    }

    fn local(&self, index: u64) -> Step {
        let (segment, number) = (index / self.local_steps(), index % self.local_steps());
        if number == self.children {
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
}

pub(super) static ENTRIES: [Entry; 1] = [Entry::any(
    &[Collective::Reduce],
    "binomial",
    "pairs at doubling distances combine their parts",
    "Thakur et al. 2005",
    schedule,
)
.in_segments()];

/// In segments of about `segment` bytes or whole.
fn schedule(algorithm: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    let (bytes, ranks) = (call.bytes.0, call.ranks);
    let top = if call.is_ordered { Rank(0) } else { call.root };
    let position = rank.relative_to(top, ranks);
    let at = |position: u32| Rank::from_relative(position, top, ranks);
    let is_top = position == 0;
    let element = call.element.get();
    let segment = algorithm
        .segment
        .map_or(bytes, |segment| (segment.get() / element).max(1) * element)
        .clamp(1, bytes.max(1));
    let segments = bytes.div_ceil(segment);
    let rounds = if is_top { ranks.next_power_of_two().ilog2() } else { position.trailing_zeros() };
    let children: Vec<Rank> = (0..rounds)
        .map(|round| u64::from(position) + (1 << round))
        .filter(|child| *child < u64::from(ranks))
        .map(|child| at(child as u32))
        .collect();
    let is_at_root = is_top && rank == call.root;
    let own = if call.is_in_place_at(rank) { Buffer::Output } else { Buffer::Input };
    let count = children.len() as u64;
    let last_in_output = is_at_root && own == Buffer::Input && count > 0;
    let is_copied = is_at_root && !last_in_output && (own == Buffer::Input || count > 0);
    let part = Part { bytes, segment, own, children: count, last_in_output, is_copied };
    let scratch_bytes = (count - u64::from(last_in_output)) * bytes;
    let mut lanes: Vec<Lane> = Vec::new();
    if segments > 0 {
        let receives = children.iter().map(|child| Kind::Messages(Stream::receive(*child, UP)));
        lanes.extend(receives.map(|kind| Lane::new(kind, segments)));
        lanes.push(Lane::new(Kind::Local, segments * part.local_steps()));
    }
    let local = children.len();
    let send = lanes.len();
    let passes_on = is_top && !is_at_root;
    if segments > 0 && (!is_top || passes_on) {
        // The root's output may still hold its contribution.
        let kind = match passes_on {
            true => Stream { posting: Posting::InTurn, ..Stream::send(call.root, RESULT) },
            false => Stream::send(at(position & (position - 1)), UP),
        };
        lanes.push(Lane::new(Kind::Messages(kind), segments));
    }
    if segments > 0 && rank == call.root && !is_top {
        let kind = Stream { posting: Posting::InTurn, ..Stream::receive(top, RESULT) };
        lanes.push(Lane::new(Kind::Messages(kind), segments));
    }
    let step = move |lane: LaneIndex, index: u64| {
        if lane < local {
            let to = part.place(lane as u64 + 1, index);
            Step { action: Action::Receive(to), after: After::Start }
        } else if lane == local {
            part.local(index)
        } else if lane == send {
            let after = match part.local_steps() {
                0 => After::Start,
                steps => After::Steps { lane: local, count: (index + 1) * steps },
            };
            Step { action: Action::Send(part.place(part.children, index)), after }
        } else {
            // After what this rank has sent of its own.
            let to = Slice::output(part.slice(index));
            Step { action: Action::Receive(to), after: After::Steps { lane: send, count: index + 1 } }
        }
    };
    Box::new(Rule { lanes, scratch_bytes, step })
}
