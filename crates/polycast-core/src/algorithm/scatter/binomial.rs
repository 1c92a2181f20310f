//! Binomial scatter: each rank receives the blocks of its whole subtree and hands on those of its children, larger ones first.
//!
//! `ceil(log2 P)` hops, and the root sends each block once: the least latency for small blocks. Inner ranks copy their own
//! block out of what they receive.

use crate::algorithm::subtree::Subtree;
use crate::algorithm::{Algorithm, Entry};
use crate::collective::{Call, Collective};
use crate::schedule::{Action, After, Kind, Listed, Schedule, Slice, Stream};
use crate::units::Rank;

pub(super) static ENTRIES: [Entry; 1] = [Entry::any(
    &[Collective::Scatter],
    "binomial",
    "each rank receives the blocks of its subtree of a binomial tree and hands on those of its children",
    "Thakur et al. 2005",
    schedule,
)];

fn schedule(_: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    let (tree, block, mut list) = (Subtree::new(call, rank), call.bytes.0, Listed::default());
    if block == 0 {
        return Box::new(list);
    }
    let own = tree.by_position(tree.position);
    let is_leaf = own.end == block;
    let mut after = After::Start;
    if let Some(parent) = tree.parent() {
        let lane = list.lane(Kind::Messages(Stream::receive(parent, 0)));
        for bytes in tree.messages_with_parent(parent) {
            let to = if is_leaf { Slice::output(bytes) } else { Slice::scratch(bytes) };
            after = After::Steps { lane, count: list.add(lane, Action::Receive(to), After::Start) };
        }
        list.set_scratch_bytes(if is_leaf { 0 } else { own.end });
    }
    for (position, child) in tree.children() {
        let lane = list.lane(Kind::Messages(Stream::send(child, 0)));
        match rank == call.root {
            true => tree.by_rank(position).for_each(|bytes| {
                list.add(lane, Action::Send(Slice::input(bytes)), After::Start);
            }),
            false => {
                let from = Slice::scratch(tree.by_position(position));
                list.add(lane, Action::Send(from), after);
            }
        }
    }
    let from = match rank == call.root {
        true => Slice::input(u64::from(rank.0) * block..u64::from(rank.0 + 1) * block),
        false => Slice::scratch(0..block),
    };
    let stays = rank == call.root && call.is_in_place || rank != call.root && is_leaf;
    if !stays {
        list.single(Kind::Local, Action::Copy { from, to: Slice::output(0..block) }, after);
    }
    Box::new(list)
}
