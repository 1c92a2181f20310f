//! Ring allgather: every block goes around, each rank forwards to the next one what came from the one before.
//!
//! ```text
//!   rank 1   from 0:   block 0   P-1   P-2  …   2
//!            to 2:     block 1    0    P-1  …   3        step i of the sends waits for step i-1 of the receives
//! ```
//!
//! `P-1` hops, every link carries every block once: for large blocks (Chan et al. 2007, §4).

use crate::algorithm::rule::Rule;
use crate::algorithm::{Algorithm, Entry};
use crate::collective::{Call, Collective};
use crate::schedule::{Action, After, Kind, Lane, LaneIndex, Schedule, Slice, Step, Stream};
use crate::units::Rank;

pub(super) static ENTRIES: [Entry; 1] = [Entry::any(
    &[Collective::Allgather],
    "ring",
    "every block goes around, from each rank to the next one",
    "Chan et al. 2007, §4",
    schedule,
)];

fn schedule(_: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    let (ranks, bytes, in_place) = (call.ranks, call.bytes.0, call.is_in_place);
    let block = move |of: u32| {
        let start = u64::from(of) * bytes;
        Slice::output(start..start + bytes)
    };
    let own = if in_place { block(rank.0) } else { Slice::input(0..bytes) };
    // The block that comes in step `index`.
    let coming = move |index: u64| block(((u64::from(rank.0 + ranks) - 1 - index) % u64::from(ranks)) as u32);
    let mut lanes = Vec::new();
    if ranks > 1 && bytes > 0 {
        let [before, after] = [rank.0 + ranks - 1, rank.0 + 1].map(|neighbour| Rank(neighbour % ranks));
        let steps = u64::from(ranks - 1);
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
        _ => match index {
            0 => Step { action: Action::Send(own.clone()), after: After::Start },
            _ => Step {
                action: Action::Send(coming(index - 1)),
                after: After::Steps { lane: 0, count: index },
            },
        },
    };
    Box::new(Rule { lanes, scratch_bytes: 0, step })
}
