//! Scatter down a tree: each rank receives the blocks of its subtree and hands on those of its children.
//!
//! The blocks of a subtree come the last one first, so that what is for others can go on at once and a rank's own block comes at the end. In segments
//! a rank sends while it receives; whole, it waits for all of its subtree's blocks, which is the least latency for small ones. On links that carry both
//! directions at once the root's sends take `(P-1)` blocks in every tree; the flat one has no other hops, but as many messages at once as ranks.

use crate::algorithm::blocks::Blocks;
use crate::algorithm::formulas::{doublings, others};
use crate::algorithm::intervals::{Intervals, Shape, by_shape};
use crate::algorithm::{Algorithm, Entry, Stages};
use crate::collective::{Call, Collective};
use crate::schedule::{Action, After, Kind, Listed, Schedule, Slice, Stream};
use crate::units::Rank;

pub(super) static ENTRIES: [Entry; 5] = by_shape!(
    &[Collective::Scatter],
    by_rank,
    [
        ("flat", "the root sends each block to its rank", "Patarasuk et al. 2008, §3"),
        ("chain", "each rank takes its block and hands on the others", "Patarasuk et al. 2008, §3"),
        ("binary", "each rank hands on half of what it has got to each of two", "Patarasuk et al. 2008, §3"),
        ("binomial", "each rank hands on the blocks of its subtree of a binomial tree", "Thakur et al. 2005"),
        (
            "k-nomial",
            "the number of ranks with blocks grows by the factor `k` in each round",
            "Hoefler and Moor 2014"
        ),
    ],
    Some(|ranks| Some(Stages::of_blocks(doublings(ranks), others(ranks))))
);

fn by_rank(shape: Shape, algorithm: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    let tree = Intervals::ByRank { shape, top: call.root, ranks: call.ranks };
    schedule(tree, algorithm, call, rank)
}

/// Returns the schedule of `rank` in a scatter down any tree.
pub(in crate::algorithm) fn schedule(
    tree: Intervals,
    algorithm: &Algorithm,
    call: &Call,
    rank: Rank,
) -> Box<dyn Schedule> {
    let (blocks, block, mut list) =
        (Blocks::new(tree, algorithm, call, rank), call.bytes.0, Listed::default());
    if block == 0 {
        return Box::new(list);
    }
    let own = &blocks.place.interval;
    let first = blocks.of(own).start;
    let mut received = Vec::new();
    if let Some(parent) = blocks.place.parent {
        received = blocks.messages(own, parent, false);
        received.reverse();
        let lane = list.lane(Kind::Messages(Stream::receive(blocks.rank_at(parent), 0)));
        for bytes in &received {
            let to = match blocks.is_leaf() {
                true => Slice::output(bytes.start - first..bytes.end - first),
                false => blocks.in_scratch(bytes),
            };
            list.add(lane, Action::Receive(to), After::Start);
        }
        if !blocks.is_leaf() {
            list.set_scratch_bytes(u64::from(own.end - own.start) * block);
        }
    }
    for child in blocks.place.children.iter().rev() {
        let lane = list.lane(Kind::Messages(Stream::send(blocks.rank_at(child.start), 0)));
        for bytes in blocks.messages(child, own.start, false).into_iter().rev() {
            let count = received.partition_point(|come| come.start > bytes.start) as u64 + 1;
            let (from, after) = match blocks.is_root() {
                true => (Slice::input(blocks.at_root(&bytes)), After::Start),
                false => (blocks.in_scratch(&bytes), After::Steps { lane: 0, count }),
            };
            list.add(lane, Action::Send(from), after);
        }
    }
    let (from, after) = match blocks.is_root() {
        true => (Slice::input(blocks.at_root(&(0..block))), After::Start),
        false => (Slice::scratch(0..block), After::Steps { lane: 0, count: received.len() as u64 }),
    };
    let stays = if blocks.is_root() { call.is_in_place } else { blocks.is_leaf() };
    if !stays {
        list.single(Kind::Local, Action::Copy { from, to: Slice::output(0..block) }, after);
    }
    Box::new(list)
}
