//! Reduction up a tree and broadcast down the same tree, segment by segment.
//!
//! ```text
//!   chain   0 ◀── 1 ◀── 2 ◀── 3      segments go up and are combined; what has come to the top goes down again while more comes up
//!           0 ──▶ 1 ──▶ 2 ──▶ 3
//! ```
//!
//! The top is rank 0 and parts are those of neighbouring ranks, so the order of ranks is kept and the result is the same on all ranks. The binomial
//! tree is the [`CombinationTree`], so sums have its order. On links that
//! carry both directions at once a chain takes `(2 (P-1) + X-1)` segments' times twice over each link in the middle, a binomial tree `2 ceil(log2 P)` hops.

use crate::algorithm::fan_in::FanIn;
use crate::algorithm::intervals::{BINOMIAL, Intervals, Shape, by_shape};
use crate::algorithm::rule::Rule;
use crate::algorithm::{Algorithm, Entry};
use crate::collective::{Call, Collective, CombinationTree};
use crate::schedule::{
    Action, After, Channel, Kind, Lane, LaneIndex, Posting, Schedule, Slice, Step, Stream,
};
use crate::units::Rank;

const DOWN: Channel = 2;

pub(super) static ENTRIES: [Entry; 5] = by_shape!(
    &[Collective::Allreduce],
    schedule,
    [
        ("flat", "rank 0 combines what all send it, and sends it to all", "Patarasuk et al. 2008, §3"),
        ("chain", "parts go up a chain and the result goes down it", "Patarasuk et al. 2008, §3"),
        (
            "binary",
            "parts go up a tree of two children per rank and the result goes down it",
            "Patarasuk et al. 2008, §3"
        ),
        ("binomial", "parts go up a binomial tree and the result goes down it", "Thakur et al. 2005"),
        ("k-nomial", "parts go up a k-nomial tree and the result goes down it", "Hoefler and Moor 2014"),
    ],
    None
);

fn schedule(shape: Shape, algorithm: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    let top = Rank(0);
    let tree = match shape == BINOMIAL {
        true => CombinationTree::new(call.ranks).neighbours(rank, top),
        false => Intervals::ByRank { shape, top, ranks: call.ranks }.neighbours(rank),
    };
    let tree = FanIn::new(tree, algorithm, call, rank, rank == top);
    let mut lanes = tree.lanes();
    let up = lanes.len();
    // In place, the output holds this rank's contribution until it has been sent.
    let posting = if call.is_in_place { Posting::InTurn } else { Posting::AtOnce };
    if let Some(parent) = tree.parent {
        lanes.push(Lane::new(tree.to_parent(parent), tree.segments));
        let down = Stream { posting, ..Stream::receive(parent, DOWN) };
        lanes.push(Lane::new(Kind::Messages(down), tree.segments));
    }
    // The subtree that is largest, and has the longest way to go, first.
    let children = tree.children.iter().rev();
    let sends = children.map(|child| Kind::Messages(Stream { posting, ..Stream::send(*child, DOWN) }));
    lanes.extend(sends.map(|kind| Lane::new(kind, tree.segments)));
    lanes.retain(|_| tree.segments > 0);
    let scratch_bytes = tree.scratch_bytes();
    let has_parent = tree.parent.is_some();
    let step = move |lane: LaneIndex, index: u64| {
        let segment = || Slice::output(tree.slice(index));
        if lane < up {
            tree.step(lane, index)
        } else if has_parent && lane == up {
            let (slice, after) = tree.combined(index);
            Step { action: Action::Send(slice), after }
        } else if has_parent && lane == up + 1 {
            let after = match posting {
                Posting::AtOnce => After::Start,
                Posting::InTurn => After::Steps { lane: up, count: index + 1 },
            };
            Step { action: Action::Receive(segment()), after }
        } else {
            let after = match has_parent {
                true => After::Steps { lane: up + 1, count: index + 1 },
                false => tree.is_combined(index),
            };
            Step { action: Action::Send(segment()), after }
        }
    };
    Box::new(Rule { lanes, scratch_bytes, step })
}
