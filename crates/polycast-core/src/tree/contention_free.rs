//! Contention-free trees on a tree of switches (Patarasuk et al. 2008, §4.1): no two messages of different senders share a directed edge of
//! the network, so all of them can be under way at the same time, as they are in a pipelined broadcast.
//!
//! Ranks stand in depth-first order, and every message goes to a later one. The chain goes from each to the next:
//!
//! ```text
//!   leaf switch    │ s0         │ s1         │ s2    │
//!   position       │ 0 ─▶ 1 ─▶ 2 ─▶ 3 ─▶ 4 ─▶ 5 ─▶ 6 │      Patarasuk et al. 2008, Algorithm 1
//! ```
//!
//! In a k-ary tree over an interval of positions, the first sends to the second and to others that divide the rest into
//! intervals, one for each child:
//!
//! ```text
//!         0
//!     ┌───┴───┐
//!     1       4                Algorithm 2: the height is the least that any choice of k gives, where
//!   ┌─┴─┐   ┌─┴─┐              m_i → m_k must not contend with the left tree, [i+1..k-1]
//!   2   3   5   6
//! ```
//!
//! The paper fills a table over all intervals `[i..j]` in O(P⁴). Here a table has `reach(i, h)`, the last `j` such that
//! `[i..j]` has a tree of height `h`: P entries for each height, and contention is a comparison of positions
//! ([`Traversal`]). 10,000 ranks take milliseconds.

use super::{PlannedTree, Site, Traversal};
use crate::units::Rank;

/// The greatest height of a tree; beyond it a second child is not worth the time, and the chain is
/// taken. Only where hundreds of switches form one line is there no lower tree.
const MAX_HEIGHT: usize = 512;

/// The most children of a rank, whatever is asked for: the time to find their places grows with
/// their number.
pub const MAX_CONTENTION_FREE_CHILDREN: u32 = 64;

/// The number of possible places that are tried for each child but the last two, the last places
/// first. The last two children are placed exactly, so binary trees are exact.
const PLACES_TRIED: usize = 4;

/// The contention-free chain: the ring of the site from `root` on.
pub(super) fn chain(site: &Site, root: Rank) -> PlannedTree {
    let from = site.ring_position(root) as usize;
    chain_along(&[&site.ring()[from..], &site.ring()[..from]].concat())
}

/// The chain in which each rank of the list sends to the next.
pub(super) fn chain_along(ranks: &[Rank]) -> PlannedTree {
    let mut children: Vec<&[Rank]> = vec![&[]; ranks.len()];
    for (place, rank) in ranks.iter().enumerate() {
        children[rank.index()] = &ranks[place + 1..ranks.len().min(place + 2)];
    }
    PlannedTree::new(ranks[0], &children)
}

/// The contention-free tree in which each rank has at most `k` children, of the least height that dividing the depth-first
/// order gives (for `k` = 2 exactly that of Algorithm 2; for more, of the places that are tried).
pub(super) fn k_ary(site: &Site, root: Rank, k: u32) -> PlannedTree {
    along(&site.from_root(root), |_| k)
}

/// The contention-free tree along an order in which each rank has at most as many children as `degree_of` says, at least 1.
pub(super) fn along(order: &Traversal, degree_of: impl Fn(Rank) -> u32) -> PlannedTree {
    let degrees =
        order.ranks().iter().map(|rank| degree_of(*rank).clamp(1, MAX_CONTENTION_FREE_CHILDREN)).collect();
    match Heights::of(order, degrees) {
        Some(heights) => heights.tree(),
        None => chain_along(order.ranks()),
    }
}

/// The reach of trees, for each height and each first position.
struct Heights<'a> {
    order: &'a Traversal,
    degrees: Vec<u32>,
    /// `reach[h][i]`: the last position of a tree of height `h` that begins at position `i`. Rises with `h`.
    reach: Vec<Vec<u32>>,
}

/// A child placed: its position, and the child before it among the places tried.
#[derive(Clone, Copy)]
struct ChildPlace {
    start: u32,
    before: Option<usize>,
}

/// A division of the ranks after one position among its children.
struct Division {
    reach: u32,
    /// The place of the last child, an index into the list of places.
    last: usize,
}

impl Heights<'_> {
    /// The reach of trees of every height up to the first that covers the whole order; `None` if
    /// that height is above [`MAX_HEIGHT`].
    fn of(order: &Traversal, degrees: Vec<u32>) -> Option<Heights<'_>> {
        let last = degrees.len() as u32 - 1;
        let mut heights = Heights { order, degrees, reach: vec![(0..=last).collect()] };
        let mut places = Vec::new();
        while let Some(lower) = heights.reach.last().filter(|reach| reach[0] < last) {
            if heights.reach.len() > MAX_HEIGHT {
                return None;
            }
            // No subtree that begins at a position or before reaches further than this.
            let furthest: Vec<u32> = lower
                .iter()
                .scan(0, |furthest, reach| {
                    *furthest = *reach.max(furthest);
                    Some(*furthest)
                })
                .collect();
            let enough = |start: u32| furthest[start as usize];
            let reach = (0..last)
                .map(|i| heights.divide(i, lower, enough, &mut places).reach.max(lower[i as usize]))
                .chain([last])
                .collect();
            heights.reach.push(reach);
        }
        Some(heights)
    }

    /// The best division of the positions after `i` among its children, whose subtrees reach as
    /// `lower` says. `enough(k)` is a reach that children at `k` or before need not exceed, so the
    /// search ends there.
    fn divide(
        &self,
        i: u32,
        lower: &[u32],
        enough: impl Fn(u32) -> u32,
        places: &mut Vec<ChildPlace>,
    ) -> Division {
        places.clear();
        places.push(ChildPlace { start: i + 1, before: None });
        let mut best = Division { reach: lower[i as usize + 1], last: 0 };
        let mut newest = vec![0];
        for children_left in (1..self.degrees[i as usize]).rev() {
            let is_last = children_left == 1;
            let first_new = places.len();
            for before in newest {
                let start = places[before].start;
                let possible = ChildPlaces::after(self.order, i, start, lower[start as usize]);
                for k in possible.take(if is_last { usize::MAX } else { PLACES_TRIED }) {
                    if is_last && best.reach >= enough(k) {
                        break;
                    }
                    places.push(ChildPlace { start: k, before: Some(before) });
                    if lower[k as usize] > best.reach {
                        best = Division { reach: lower[k as usize], last: places.len() - 1 };
                    }
                }
            }
            newest = (first_new..places.len()).collect();
            newest.sort_by_key(|place| std::cmp::Reverse(places[*place].start));
            newest.truncate(PLACES_TRIED);
        }
        best
    }

    fn tree(&self) -> PlannedTree {
        let ranks = self.order.ranks();
        let mut children = vec![Vec::new(); ranks.len()];
        let mut places = Vec::new();
        let mut pending = vec![(0, ranks.len() as u32 - 1)];
        while let Some((i, last)) = pending.pop() {
            for (start, end) in self.children(i, last, &mut places) {
                children[ranks[i as usize].index()].push(ranks[start as usize]);
                pending.push((start, end));
            }
        }
        PlannedTree::new(ranks[0], &children)
    }

    /// The intervals of the children in the lowest tree over `i..=last`.
    fn children(&self, i: u32, last: u32, places: &mut Vec<ChildPlace>) -> Vec<(u32, u32)> {
        let Some(height) = self.reach.iter().position(|reach| reach[i as usize] >= last).filter(|h| *h > 0)
        else {
            return Vec::new();
        };
        let reach = self.reach[height][i as usize];
        let division = self.divide(i, &self.reach[height - 1], |_| reach, places);
        let mut found = Vec::new();
        let (mut end, mut at) = (last, Some(division.last));
        while let Some(place) = at.map(|at| places[at]) {
            // Children that begin beyond the interval are not needed.
            if place.start <= end {
                found.push((place.start, end));
                end = place.start - 1;
            }
            at = place.before;
        }
        found.reverse();
        found
    }
}

/// An iterator over the positions at which the next child of `from` may begin, the last first. The
/// child before it begins at `start`, and its subtree reaches `reach`.
struct ChildPlaces<'a> {
    order: &'a Traversal,
    start: u32,
    next: u32,
}

impl ChildPlaces<'_> {
    fn after(order: &Traversal, from: u32, start: u32, reach: u32) -> ChildPlaces<'_> {
        let last = order.ranks().len() as u32 - 1;
        let next = reach.min(order.last_before_leaving(from, start)).saturating_add(1).min(last);
        ChildPlaces { order, start, next }
    }
}

impl Iterator for ChildPlaces<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while self.next > self.start {
            let entered_at = self.order.entered_at(self.next);
            if entered_at <= self.start {
                self.next -= 1;
                return Some(self.next + 1);
            }
            // All places up to here lie in the same interval, which was entered after the start.
            self.next = entered_at;
        }
        None
    }
}
