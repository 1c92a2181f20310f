//! Double tree: each half of the data runs down a binary tree of its own, and who has children in one tree has none in the other.
//!
//! So every rank sends the data once at most and receives it once, as in a chain, after `log2 P` hops in place of `P`; an inner
//! rank of a binary tree sends it twice, one of split-binary one and a half times. With X segments `(X + 2 log2 P) * T`.
//!
//! The first tree stands in order: position 0 is the root, and of the others those with more trailing zero bits stand higher, so
//! that odd positions are leaves. The second is its mirror image or, for an odd number of positions below the root, the first
//! one shifted; both make leaves of the even positions.
//!
//! ```text
//!            0                           0
//!            4                           3              positions 1…6: the mirror image
//!        ┌───┴───┐                   ┌───┴───┐
//!        2       6                   1       5
//!      ┌─┴─┐   ┌─┘                   └─┐   ┌─┴─┐
//!      1   3   5                       2   4   6
//! ```

use super::{Algorithm, Call, DOWN, EXCHANGE};
use crate::algorithm::pieces::Pieces;
use crate::algorithm::plan::Plan;
use crate::algorithm::{Entry, Form};
use crate::schedule::Channel;
use crate::units::Rank;

pub(super) static ENTRIES: [Entry; 1] = [Entry::lanes(
    "double-tree",
    "each half of the data runs down a binary tree; who has children in one has none in the other",
    "Sanders et al. 2009",
    Form::Tree { parts: 2 },
    plan,
)
.not_compared()];

/// Returns the place from which `place` of the first tree receives. `last` is the last place.
fn parent(place: u32, last: u32) -> u32 {
    let bit = place & place.wrapping_neg();
    let above = u64::from(place ^ bit) | u64::from(bit) << 1;
    if above > u64::from(last) { place ^ bit } else { above as u32 }
}

/// Returns the places to which `place` of the first tree sends: the middles of what lies before and
/// behind it.
fn children(place: u32, last: u32) -> impl Iterator<Item = u32> {
    let half = if place == 0 { 1 << 31 } else { (place & place.wrapping_neg()) >> 1 };
    let before = (place > 0 && half > 0).then(|| place - half);
    let distances = std::iter::successors(Some(half), |distance| Some(distance >> 1))
        .take_while(|distance| *distance > 0);
    let behind =
        distances.filter_map(move |distance| place.checked_add(distance)).find(|place| *place <= last);
    before.into_iter().chain(behind)
}

/// Returns the place of a position in the second tree or, if `is_place`, the position of a place
/// there.
fn second(position: u32, last: u32, is_place: bool) -> u32 {
    match (position, is_place) {
        (0, _) => 0,
        _ if last.is_multiple_of(2) => last + 1 - position,
        (_, false) => position % last + 1,
        (1, true) => last,
        (_, true) => position - 1,
    }
}

fn plan(algorithm: &Algorithm, call: Call, rank: Rank) -> Plan {
    let pieces = Pieces::new(call.bytes.0, 2, algorithm.segment);
    let mut plan = Plan::new(pieces, algorithm.ready);
    let (position, last) = (call.position_of(rank), call.ranks - 1);
    let place = second(position, last.max(1), false);
    let trees: [(u32, Channel, u32); 2] = [(0, DOWN, position), (1, EXCHANGE, place)];
    let rank_at = |tree, place| call.rank_at(if tree == 0 { place } else { second(place, last, true) });
    for (tree, channel, place) in trees.into_iter().filter(|_| position > 0) {
        plan.receive(rank_at(tree, parent(place, last)), channel, 1, [pieces.of_blocks(tree..tree + 1)]);
    }
    for (tree, channel, place) in trees {
        for child in children(place, last) {
            plan.send(rank_at(tree, child), channel, 1, [pieces.of_blocks(tree..tree + 1)]);
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_drawn() {
        let below = |place| children(place, 6).collect::<Vec<_>>();
        assert_eq!([0, 4, 2, 6, 5].map(below), [vec![4], vec![2, 6], vec![1, 3], vec![5], vec![]]);
        let mirrored = |position| {
            let places = children(second(position, 6, false), 6);
            places.map(|place| second(place, 6, true)).collect::<Vec<_>>()
        };
        assert_eq!([0, 3, 1, 5, 4].map(mirrored), [vec![3], vec![5, 1], vec![2], vec![6, 4], vec![]]);
    }

    #[test]
    fn who_has_children_in_one_tree_has_none_in_the_other() {
        for last in 1..100 {
            for position in 1..=last {
                let place = second(position, last, false);
                assert_eq!(second(place, last, true), position);
                assert!(
                    children(position, last).count() == 0 || children(place, last).count() == 0,
                    "{position} of {last}"
                );
                assert!(children(parent(position, last), last).any(|child| child == position));
            }
        }
    }
}
