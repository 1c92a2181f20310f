//! Reduction up a tree: each rank combines its contribution with what comes from its children, and hands it on.
//!
//! A part is always that of neighbouring ranks, so the order of ranks is kept: where it matters, the tree is that of the ranks
//! themselves and its top passes the result to the root; where it does not, the root is the top. The binomial tree is the
//! [`CombinationTree`], whatever the root, so sums have its order. In segments: with X of them over P ranks and T the
//! time of one, a chain takes `(P-1 + X-1) * T`, a binary tree twice as long a segment and `log2 P` hops, a binomial one the fewest rounds for vectors that are
//! not cut, `ceil(log2 P)`.

use crate::algorithm::fan_in::FanIn;
use crate::algorithm::formulas::doublings;
use crate::algorithm::intervals::{BINOMIAL, Intervals, Shape, by_shape};
use crate::algorithm::rule::Rule;
use crate::algorithm::{Algorithm, Entry, Stages};
use crate::collective::{Call, Collective, CombinationOrder, CombinationTree, TreeNeighbours};
use crate::schedule::{
    Action, After, Channel, Kind, Lane, LaneIndex, Posting, Schedule, Slice, Step, Stream,
};
use crate::units::Rank;

/// The channel from the top of the tree to the root.
const RESULT: Channel = 2;

pub(super) static ENTRIES: [Entry; 5] = by_shape!(
    &[Collective::Reduce],
    by_rank,
    [
        ("flat", "the root combines what all send it", "Patarasuk et al. 2008, §3"),
        ("chain", "each rank combines what the one behind it hands on", "Patarasuk et al. 2008, §3"),
        (
            "binary",
            "each rank combines the parts of two subtrees of the same size",
            "Patarasuk et al. 2008, §3"
        ),
        ("binomial", "pairs at doubling distances combine their parts", "Thakur et al. 2005"),
        ("k-nomial", "`k` ranks combine their parts in each round", "Hoefler and Moor 2014"),
    ],
    Some(|ranks| {
        let rounds = doublings(ranks);
        Some(Stages { rounds, carried: rounds, combined: rounds })
    })
);

fn by_rank(shape: Shape, algorithm: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    if shape == BINOMIAL {
        let tree = CombinationTree::new(call.ranks).neighbours(rank, call.root);
        return up(tree, call.root, algorithm, call, rank);
    }
    let top = if call.order > CombinationOrder::Any { Rank(0) } else { call.root };
    schedule(&Intervals::ByRank { shape, top, ranks: call.ranks }, algorithm, call, rank)
}

/// Returns the schedule of `rank` in a reduction up any tree.
pub(in crate::algorithm) fn schedule(
    tree: &Intervals,
    algorithm: &Algorithm,
    call: &Call,
    rank: Rank,
) -> Box<dyn Schedule> {
    up(tree.neighbours(rank), tree.rank_at(0), algorithm, call, rank)
}

fn up(tree: TreeNeighbours, top: Rank, algorithm: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    let is_at_root = rank == top && rank == call.root;
    let tree = FanIn::new(tree, algorithm, call, rank, is_at_root);
    let mut lanes = tree.lanes();
    let send = lanes.len();
    let result = match tree.parent {
        Some(parent) => Some(tree.to_parent(parent)),
        // The root's output may still hold its contribution.
        None if !is_at_root => {
            Some(Kind::Messages(Stream { posting: Posting::InTurn, ..Stream::send(call.root, RESULT) }))
        }
        None => None,
    };
    let from_top = (rank == call.root && rank != top)
        .then(|| Kind::Messages(Stream { posting: Posting::InTurn, ..Stream::receive(top, RESULT) }));
    let more = result.into_iter().chain(from_top).filter(|_| tree.segments > 0);
    lanes.extend(more.map(|kind| Lane::new(kind, tree.segments)));
    let scratch_bytes = tree.scratch_bytes();
    let step = move |lane: LaneIndex, index: u64| {
        if lane < send {
            tree.step(lane, index)
        } else if lane == send {
            let (slice, after) = tree.combined(index);
            Step { action: Action::Send(slice), after }
        } else {
            // After what this rank has sent of its own.
            let to = Slice::output(tree.slice(index));
            Step { action: Action::Receive(to), after: After::Steps { lane: send, count: index + 1 } }
        }
    };
    Box::new(Rule { lanes, scratch_bytes, step })
}
