//! Optimal and binomial trees over an order of the ranks that keeps messages apart (Nupairoj 1998, ch. 5).
//!
//! The sender divides its interval of the order so that it stays in its own part. It sends to the rank nearest to its part in
//! the other one, and that rank is answerable for the whole other part:
//!
//! ```text
//!   lowest ◀── the order ──▶ highest
//!   ┌─────────────────┬──────────┐          source below: to the lowest of the upper part
//!   │  . . source . . │ child .  │
//!   └─────────────────┴──────────┘
//!   ┌──────────┬─────────────────┐          source above: to the highest of the lower part
//!   │  . child │ . . source . .  │
//!   └──────────┴─────────────────┘
//! ```
//!
//! Over the ranks sorted by their places in a mesh, the coordinate that messages are routed along first before the other
//! (Nupairoj 1998, §5.2), this is OPT-mesh with [`Splits::optimal`] and U-mesh with [`Splits::halves`]; sorted by their addresses
//! in a multistage network (§5.3) OPT-min and U-min; over a depth-first order from the root it is OPT-tree for a tree of switches.

use super::{PlannedTree, Splits};
use crate::units::Rank;

/// An interval of the order, and the one in it who has the message and is answerable for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// The first place.
    pub begin: u32,
    /// The place behind the last one.
    pub end: u32,
    /// The place of the one who has the message.
    pub source: u32,
}

impl Part {
    /// The number of places that the source is answerable for besides its own.
    pub fn others(&self) -> u32 {
        self.end - self.begin - 1
    }

    /// Takes away the part that the source gives to the next receiver, of `led` places where a side of the source has as
    /// many: where `t_hold` is above `t_end` the part to give may be larger than either side.
    ///
    /// # Panics
    /// In debug builds, if `led` is 0 or the source is alone.
    pub fn give(&mut self, led: u32) -> Part {
        debug_assert!(led > 0 && self.others() > 0, "{self:?} cannot give {led}");
        let (below, above) = (self.source - self.begin, self.end - 1 - self.source);
        let led = led.min(below.max(above));
        if led <= above {
            let first = self.end - led;
            let given = Part { begin: first, end: self.end, source: first };
            self.end = first;
            given
        } else {
            let behind = self.begin + led;
            let given = Part { begin: self.begin, end: behind, source: behind - 1 };
            self.begin = behind;
            given
        }
    }
}

/// The tree in which every sender divides its interval of `order` as `splits` says; see [`crate::tree`].
///
/// # Panics
/// If `splits` was made for fewer ranks, or `order` does not list every rank once.
pub fn split_tree(order: &[Rank], root: Rank, splits: &Splits) -> PlannedTree {
    let source = order.iter().position(|rank| *rank == root).expect("the root is in the order");
    let mut children = vec![Vec::new(); order.len()];
    let mut pending = vec![Part { begin: 0, end: order.len() as u32, source: source as u32 }];
    while let Some(mut part) = pending.pop() {
        while part.others() > 0 {
            for led in splits.led(part.others() + 1) {
                let child = part.give(led);
                children[order[part.source as usize].index()].push(order[child.source as usize]);
                pending.push(child);
            }
        }
    }
    PlannedTree::new(root, &children)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::Hash;

    use proptest::prelude::*;

    use super::*;
    use crate::tree::SendTimes;
    use crate::units::Nanos;

    /// Ranks by their places or addresses.
    fn sorted<K: Ord>(keys: &[K]) -> Vec<Rank> {
        let mut ranks: Vec<Rank> = (0..keys.len() as u32).map(Rank).collect();
        ranks.sort_by_key(|rank| &keys[rank.index()]);
        ranks
    }

    const TIMES: SendTimes = SendTimes { hold: Nanos(20), end: Nanos(55) };

    /// Nupairoj 1998, Figure 5.4 and 5.5(a): a 6 × 6 mesh, from (3,2) to seven others.
    #[test]
    fn the_papers_tree_on_a_mesh() {
        let places = [(3, 2), (1, 5), (2, 1), (3, 4), (4, 3), (4, 4), (5, 1), (5, 4)];
        let tree = split_tree(&sorted(&places), Rank(0), &Splits::optimal(TIMES, 8));
        let children = |rank| tree.children(Rank(rank)).iter().map(|c| places[c.index()]).collect::<Vec<_>>();
        assert_eq!(children(0), [(4, 4), (3, 4), (1, 5), (2, 1)]);
        assert_eq!(children(5), [(5, 4), (5, 1)]);
        assert_eq!(children(3), [(4, 3)]);
    }

    /// From when to when each message is under way.
    fn messages(tree: &PlannedTree, times: SendTimes) -> Vec<(Rank, Rank, u64, u64)> {
        let mut at = vec![0; tree.ranks() as usize];
        let mut messages = Vec::new();
        for rank in tree.downwards() {
            for (number, &child) in (0..).zip(tree.children(rank)) {
                let start = at[rank.index()] + number * times.hold.0;
                at[child.index()] = start + times.end.0;
                messages.push((rank, child, start, start + times.end.0));
            }
        }
        messages
    }

    fn collide<C: Eq + Hash>(
        tree: &PlannedTree,
        times: SendTimes,
        channels: impl Fn(Rank, Rank) -> HashSet<C>,
    ) -> bool {
        let messages = messages(tree, times);
        messages.iter().enumerate().any(|(index, (from, to, start, end))| {
            let mine = channels(*from, *to);
            messages[..index].iter().any(|(other, other_to, other_start, other_end)| {
                from != other
                    && start < other_end
                    && other_start < end
                    && !mine.is_disjoint(&channels(*other, *other_to))
            })
        })
    }

    /// Along the first coordinate, then along the second.
    fn mesh_channels(from: (i32, i32), to: (i32, i32)) -> HashSet<((i32, i32), (i32, i32))> {
        let mut used = HashSet::new();
        let mut at = from;
        while at != to {
            let next = if at.0 != to.0 {
                (at.0 + (to.0 - at.0).signum(), at.1)
            } else {
                (at.0, at.1 + (to.1 - at.1).signum())
            };
            used.insert((at, next));
            at = next;
        }
        used
    }

    /// Straight up to the stage of the highest bit that differs, and down, where each stage sets one bit: (is up, stage, line).
    fn min_channels(from: u64, to: u64) -> HashSet<(bool, u32, u64)> {
        let turn = (from ^ to).ilog2();
        let up = (0..=turn).map(|stage| (true, stage, from));
        let low = |stage: u32| (1 << stage) - 1;
        let down = (0..=turn).map(|stage| (false, stage, to & !low(stage) | from & low(stage)));
        up.chain(down).collect()
    }

    fn group(places: u64) -> impl Strategy<Value = (Vec<u64>, Rank)> {
        prop::collection::hash_set(0..places, 1..60).prop_flat_map(|places| {
            let places: Vec<u64> = places.into_iter().collect();
            let roots = 0..places.len() as u32;
            (Just(places), roots.prop_map(Rank))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn messages_in_flight_together_share_no_channel(
            (places, root) in group(256),
            (end, hold) in (1u64..200).prop_flat_map(|end| (Just(end), 1..=end)),
        ) {
            let times = SendTimes { hold: Nanos(hold), end: Nanos(end) };
            let ranks = places.len() as u32;
            let mesh = |rank: Rank| ((places[rank.index()] / 16) as i32, (places[rank.index()] % 16) as i32);
            let in_mesh: Vec<_> = (0..ranks).map(|rank| mesh(Rank(rank))).collect();
            for splits in [Splits::optimal(times, ranks), Splits::halves(ranks)] {
                let tree = split_tree(&sorted(&in_mesh), root, &splits);
                prop_assert!(!collide(&tree, times, |from, to| mesh_channels(mesh(from), mesh(to))));
                let tree = split_tree(&sorted(&places), root, &splits);
                let at = |rank: Rank| places[rank.index()];
                prop_assert!(!collide(&tree, times, |from, to| min_channels(at(from), at(to))));
            }
        }

        #[test]
        fn the_tree_takes_as_long_as_the_splits_say(
            (end, hold) in (1u64..200).prop_flat_map(|end| (Just(end), 1..=end)),
            ranks in 1u32..100,
            root in any::<prop::sample::Index>(),
        ) {
            let times = SendTimes { hold: Nanos(hold), end: Nanos(end) };
            let splits = Splits::optimal(times, ranks);
            let order: Vec<Rank> = (0..ranks).map(Rank).collect();
            let tree = split_tree(&order, Rank(root.index(ranks as usize) as u32), &splits);
            let last = messages(&tree, times).into_iter().map(|message| message.3).max().unwrap_or(0);
            prop_assert_eq!(last, splits.latency(ranks).0);
        }
    }

    /// The same places in another order collide, so the property above says something.
    #[test]
    fn a_mesh_in_the_order_of_the_other_dimension_collides() {
        let places: Vec<(i32, i32)> = (0..36).map(|n| (n % 6, n / 6)).collect();
        let tree = split_tree(&(0..36).map(Rank).collect::<Vec<_>>(), Rank(7), &Splits::optimal(TIMES, 36));
        assert!(collide(&tree, TIMES, |from, to| mesh_channels(places[from.index()], places[to.index()])));
    }
}
