//! Gather up a tree: each rank collects the blocks of its subtree for its parent. The scatter of the same tree, backwards.
//!
//! In segments a rank hands on what comes while more comes, its own block first; whole, it sends one message when it has all of its subtree's
//! blocks, which is the least latency for small ones. A chain lets one rank at a time send to each port, so a switch has nothing to queue; a flat tree has all of
//! them send to the root at once.

use crate::algorithm::blocks::Blocks;
use crate::algorithm::formulas::{doublings, others};
use crate::algorithm::intervals::{Intervals, Shape, by_shape};
use crate::algorithm::{Algorithm, Entry, Stages};
use crate::collective::{Call, Collective};
use crate::schedule::{Action, After, Kind, Listed, Schedule, Slice, Stream};
use crate::units::Rank;

pub(super) static ENTRIES: [Entry; 5] = by_shape!(
    &[Collective::Gather],
    by_rank,
    [
        ("flat", "each rank sends its block to the root", "Patarasuk et al. 2008, §3"),
        ("chain", "each rank hands on what comes, after its own block", "Patarasuk et al. 2008, §3"),
        (
            "binary",
            "each rank collects the blocks of two subtrees of the same size",
            "Patarasuk et al. 2008, §3"
        ),
        ("binomial", "each rank collects the blocks of its subtree of a binomial tree", "Thakur et al. 2005"),
        (
            "k-nomial",
            "the number of ranks with blocks falls by the factor `k` in each round",
            "Hoefler and Moor 2014"
        ),
    ],
    Some(|ranks| Some(Stages::of_blocks(doublings(ranks), others(ranks))))
);

fn by_rank(shape: Shape, algorithm: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    let tree = Intervals::ByRank { shape, top: call.root, ranks: call.ranks };
    schedule(tree, algorithm, call, rank)
}

/// Returns the schedule of `rank` in a gather up any tree.
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
    for child in &blocks.place.children {
        let lane = list.lane(Kind::Messages(Stream::receive(blocks.rank_at(child.start), 0)));
        let messages = blocks.messages(child, own.start, true);
        for bytes in &messages {
            let to = if blocks.is_root() {
                Slice::output(blocks.at_root(bytes))
            } else {
                blocks.in_scratch(bytes)
            };
            list.add(lane, Action::Receive(to), After::Start);
        }
        received.push(messages);
    }
    // Where messages are cut, none has this rank's block and others.
    let is_cut = algorithm.segment.is_some();
    let is_copied = match blocks.is_root() {
        true => !call.is_in_place,
        false => !is_cut && !blocks.is_leaf(),
    };
    if is_copied {
        let to = if blocks.is_root() {
            Slice::output(blocks.at_root(&(0..block)))
        } else {
            Slice::scratch(0..block)
        };
        list.single(Kind::Local, Action::Copy { from: Slice::input(0..block), to }, After::Start);
    }
    if let Some(parent) = blocks.place.parent {
        if !blocks.is_leaf() {
            list.set_scratch_bytes(u64::from(own.end - own.start) * block);
        }
        let all = After::LanesBelow(received.len() + usize::from(is_copied));
        let lane = list.lane(Kind::Messages(Stream::send(blocks.rank_at(parent), 0)));
        for bytes in blocks.messages(own, parent, true) {
            let is_own = bytes.end - first <= block && !is_copied;
            let after =
                match received.iter().position(|messages| bytes.end <= messages[messages.len() - 1].end) {
                    _ if is_own => After::Start,
                    Some(lane) if is_cut => {
                        let count = received[lane].partition_point(|come| come.end < bytes.end) as u64 + 1;
                        After::Steps { lane, count }
                    }
                    _ => all,
                };
            let from = match is_own {
                true => Slice::input(bytes.start - first..bytes.end - first),
                false => blocks.in_scratch(&bytes),
            };
            list.add(lane, Action::Send(from), after);
        }
    }
    Box::new(list)
}
