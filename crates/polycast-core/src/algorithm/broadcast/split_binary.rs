//! Split binary: each half of the data runs down its own binary tree, then pairs of ranks exchange halves.
//!
//! Odd positions form the left tree and get the first half A, even ones the right tree and get the second half B;
//! neighbours 2i-1 and 2i stand at the same place `i` of the two trees and are a pair. So the two trees have equal
//! form up to one rank, and the pairs hold the same segment at about the same time:
//!
//! ```text
//!                   0
//!            A ┌────┴────┐ B
//!              1 · · · · 2          ─  tree
//!           ┌──┴──┐   ┌──┴──┐       ·  pair: 1·2, 3·4, 5·6
//!           3     5   4     6
//!         ┌─┘                       7 has no partner: the root sends it B
//!         7
//! ```
//!
//! Every rank receives the data once; an inner rank sends three halves, where a binary tree sends four.

use std::num::NonZeroU32;

use super::{Algorithm, Call, DOWN, EXCHANGE};
use crate::algorithm::pieces::Pieces;
use crate::algorithm::plan::Plan;
use crate::algorithm::{Entry, Form};
use crate::tree::{LocalTree, Tree};
use crate::units::Rank;

pub(super) static ENTRIES: [Entry; 1] = [Entry::lanes(
    "split-binary",
    "each half of the data runs down one half of a binary tree, then pairs of ranks exchange halves",
    "Pješivac-Grbović et al. 2007",
    Form::Tree { parts: 2 },
    plan,
)];

const BINARY: Tree = Tree::KAry(NonZeroU32::new(2).unwrap());

/// A side: either of the two trees.
#[derive(Clone, Copy)]
struct Side {
    /// The position of the first rank below the root, and the block of the data that runs down this side.
    first: u32,
    block: u32,
}

const LEFT: Side = Side { first: 1, block: 0 };
const RIGHT: Side = Side { first: 2, block: 1 };

impl Side {
    /// The side of a position, and the other one.
    fn of(position: u32) -> (Side, Side) {
        if position % 2 == 1 { (LEFT, RIGHT) } else { (RIGHT, LEFT) }
    }

    /// The number of positions on this side.
    fn size(self, ranks: u32) -> u32 {
        (ranks - 1 + self.block.abs_diff(1)) / 2
    }

    fn position(self, place: u32) -> u32 {
        self.first + 2 * place
    }

    /// Parent and children of a position of this side, as positions.
    fn local(self, position: u32, ranks: u32) -> (u32, impl Iterator<Item = u32>) {
        let place = (position - self.first) / 2;
        let LocalTree { parent, children } = BINARY.local(self.size(ranks), Rank(0), Rank(place));
        let parent = parent.map_or(0, |parent| self.position(parent.0));
        (parent, children.into_iter().map(move |child| self.position(child.0)))
    }
}

/// Returns the position that brings another one the half that does not run down its side: its
/// partner, or the root if it has none.
fn partner(position: u32, ranks: u32) -> u32 {
    let partner = if position % 2 == 1 { position + 1 } else { position - 1 };
    if partner < ranks { partner } else { 0 }
}

fn plan(algorithm: &Algorithm, call: Call, rank: Rank) -> Plan {
    let pieces = Pieces::new(call.bytes.0, 2, algorithm.segment);
    let half = |side: Side| pieces.of_blocks(side.block..side.block + 1);
    let position = call.position_of(rank);
    let mut plan = Plan::new(pieces, algorithm.ready);
    if position == 0 {
        for side in [LEFT, RIGHT].into_iter().filter(|side| side.first < call.ranks) {
            plan.send(call.rank_at(side.first), DOWN, 1, [half(side)]);
        }
        let last = call.ranks - 1;
        if last > 0 && partner(last, call.ranks) == 0 {
            plan.send(call.rank_at(last), EXCHANGE, 1, [half(RIGHT)]);
        }
        return plan;
    }
    let (own, other) = Side::of(position);
    let (parent, children) = own.local(position, call.ranks);
    let partner = partner(position, call.ranks);
    plan.receive(call.rank_at(parent), DOWN, 1, [half(own)]);
    plan.receive(call.rank_at(partner), EXCHANGE, 1, [half(other)]);
    for child in children {
        plan.send(call.rank_at(child), DOWN, 1, [half(own)]);
    }
    if partner != 0 {
        plan.send(call.rank_at(partner), EXCHANGE, 1, [half(own)]);
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_drawn() {
        let local = |position: u32| {
            let (parent, children) = Side::of(position).0.local(position, 8);
            (parent, children.collect::<Vec<_>>())
        };
        assert_eq!(local(1), (0, vec![3, 5]));
        assert_eq!(local(2), (0, vec![4, 6]));
        assert_eq!(local(3), (1, vec![7]));
        assert_eq!(local(4), (2, vec![]));
        assert_eq!((1..8).map(|p| partner(p, 8)).collect::<Vec<_>>(), [2, 1, 4, 3, 6, 5, 0]);
        assert_eq!((LEFT.size(8), RIGHT.size(8)), (4, 3));
        assert_eq!((LEFT.size(7), RIGHT.size(7)), (3, 3));
    }
}
