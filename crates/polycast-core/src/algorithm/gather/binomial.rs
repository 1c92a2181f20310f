//! Binomial gather: each rank collects the blocks of its subtree and sends them to its parent in one message.
//!
//! `ceil(log2 P)` hops: the least latency for small blocks. The scatter of the same tree, backwards.

use crate::algorithm::subtree::Subtree;
use crate::algorithm::{Algorithm, Entry};
use crate::collective::{Call, Collective};
use crate::schedule::{Action, After, Kind, Listed, Schedule, Slice, Stream};
use crate::units::Rank;

pub(super) static ENTRIES: [Entry; 1] = [Entry::any(
    &[Collective::Gather],
    "binomial",
    "each rank collects the blocks of its subtree of a binomial tree for its parent",
    "Thakur et al. 2005",
    schedule,
)];

fn schedule(_: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    let (tree, block, mut list) = (Subtree::new(call, rank), call.bytes.0, Listed::default());
    if block == 0 {
        return Box::new(list);
    }
    let is_root = rank == call.root;
    let own = tree.by_position(tree.position);
    let is_leaf = own.end == block;
    let mut lanes = 0;
    for (position, child) in tree.children() {
        let lane = list.lane(Kind::Messages(Stream::receive(child, 0)));
        match is_root {
            true => tree.by_rank(position).for_each(|bytes| {
                list.add(lane, Action::Receive(Slice::output(bytes)), After::Start);
            }),
            false => {
                let to = Slice::scratch(tree.by_position(position));
                list.add(lane, Action::Receive(to), After::Start);
            }
        }
        lanes = lane + 1;
    }
    let to = match is_root {
        true => Slice::output(u64::from(rank.0) * block..u64::from(rank.0 + 1) * block),
        false => Slice::scratch(0..block),
    };
    let stays = is_root && call.is_in_place || !is_root && is_leaf;
    if !stays {
        lanes = 1 + list.single(Kind::Local, Action::Copy { from: Slice::input(0..block), to }, After::Start);
    }
    if let Some(parent) = tree.parent() {
        let lane = list.lane(Kind::Messages(Stream::send(parent, 0)));
        for bytes in tree.messages_with_parent(parent) {
            let from = if is_leaf { Slice::input(bytes) } else { Slice::scratch(bytes) };
            let after = if lanes == 0 { After::Start } else { After::LanesBelow(lanes) };
            list.add(lane, Action::Send(from), after);
        }
        list.set_scratch_bytes(if is_leaf { 0 } else { own.end });
    }
    Box::new(list)
}
