//! Ring allgather: every block goes around, each rank forwards to the next one what came from the one before.
//!
//! ```text
//!   rank 1   from 0:   block 0   P-1   P-2  …   2
//!            to 2:     block 1    0    P-1  …   3        a block is sent when it has come
//! ```
//!
//! `P-1` hops, every link carries every block once: for large blocks (Chan et al. 2007, §4). In segments the first of a block is on its way while the last comes, so
//! that a link is not idle while a rank turns around.

use std::num::NonZeroU64;

use crate::algorithm::formulas::others;
use crate::algorithm::rule::Rule;
use crate::algorithm::{Algorithm, Entry, Stages};
use crate::collective::{Call, Collective};
use crate::schedule::{Action, After, Kind, Lane, LaneIndex, Schedule, Slice, Step, Stream};
use crate::units::Rank;

pub(super) static ENTRIES: [Entry; 1] = [Entry::any(
    &[Collective::Allgather],
    "ring",
    "every block goes around, from each rank to the next one",
    "Chan et al. 2007, §4",
    schedule,
)
.in_segments()
.around_ring()
.in_stages(|ranks| Some(Stages::of_blocks(others(ranks), others(ranks))))];

fn schedule(algorithm: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    let (ranks, bytes, in_place) = (call.ranks, call.bytes.0, call.is_in_place);
    let block = move |of: u32| {
        let start = u64::from(of) * bytes;
        Slice::output(start..start + bytes)
    };
    let own = if in_place { block(rank.0) } else { Slice::input(0..bytes) };
    let segment_bytes = algorithm.segment.map_or(bytes, NonZeroU64::get).min(bytes).max(1);
    let segments = bytes.div_ceil(segment_bytes).max(1);
    let part = move |of: &Slice, segment: u64| {
        let start = of.bytes.start + segment * segment_bytes;
        Slice { buffer: of.buffer, bytes: start..(start + segment_bytes).min(of.bytes.end) }
    };
    // The segment that comes in step `index`: those of the blocks of the ranks before, one block after the other.
    let coming = move |index: u64| {
        let of = (u64::from(rank.0 + ranks) - 1 - index / segments) % u64::from(ranks);
        part(&block(of as u32), index % segments)
    };
    let mut lanes = Vec::new();
    if ranks > 1 && bytes > 0 {
        let [before, after] = [rank.0 + ranks - 1, rank.0 + 1].map(|neighbour| Rank(neighbour % ranks));
        let steps = u64::from(ranks - 1) * segments;
        lanes.push(Lane::new(Kind::Messages(Stream::receive(before, 0)), steps));
        lanes.push(Lane::new(Kind::Messages(Stream::send(after, 0)), steps));
    }
    let local = lanes.len();
    if !in_place && bytes > 0 {
        lanes.push(Lane::new(Kind::Local, 1));
    }
    let step = move |lane: LaneIndex, index: u64| match lane {
        _ if lane == local => {
            let action = Action::Copy { from: own.clone(), to: block(rank.0) };
            Step { action, after: After::Start }
        }
        0 => Step { action: Action::Receive(coming(index)), after: After::Start },
        _ => match index.checked_sub(segments) {
            None => Step { action: Action::Send(part(&own, index)), after: After::Start },
            Some(came) => {
                Step { action: Action::Send(coming(came)), after: After::Steps { lane: 0, count: came + 1 } }
            }
        },
    };
    Box::new(Rule { lanes, scratch_bytes: 0, step })
}
