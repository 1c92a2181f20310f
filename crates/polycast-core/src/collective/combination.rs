//! In which order contributions are combined, and the tree that sums have.
//!
//! ```text
//!   7 ranks      0   1   2   3   4   5   6        the first 2·(7 - 4) ranks are folded in pairs, so that 4 places are left
//!                └─┬─┘   └─┬─┘   └─┬─┘   │
//!   places         0       1       2     3
//!                  └───┬───┘       └──┬──┘        neighbouring places, then neighbouring pairs of places, …
//!                      └──────┬───────┘
//!                    ((0∘1)∘(2∘3)) ∘ ((4∘5)∘6)
//! ```
//!
//! That is what recursive doubling computes in MPICH (`allreduce_intra_recursive_doubling`) and in Open MPI
//! (`allreduce_intra_recursivedoubling`), which fold alike: ranks 0 and 1, 2 and 3, … (Thakur, Rabenseifner, Gropp 2005, §3.5).

use std::ops::Range;

use crate::units::Rank;

/// What a result depends on: how contributions have to be combined so that it is the right one. What
/// a later one asks for contains what those before it ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CombinationOrder {
    /// On nothing but the contributions, as sums of integers: any order will do.
    #[default]
    Any,
    /// On the order of the ranks: the operation is associative, and does not commute.
    Ranks,
    /// On each single combination, as sums of floating-point numbers: by the [`CombinationTree`].
    Tree,
}

impl CombinationOrder {
    /// What is left to ask for where so many ranks contribute: two contributions have one tree.
    pub fn among(self, ranks: u32) -> CombinationOrder {
        if ranks <= 2 { self.min(CombinationOrder::Ranks) } else { self }
    }
}

/// The tree by which the contributions of all ranks of a communicator are combined where each
/// combination counts. Each of its subtrees is that of consecutive ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CombinationTree {
    ranks: u32,
    /// The number of the first ranks that are folded in pairs; even.
    folded: u32,
}

/// A rank's part in a reduction up the tree to some rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeNeighbours {
    /// The rank that gets what this rank has combined; `None` at the top.
    pub parent: Option<Rank>,
    /// The ranks whose parts are combined with this rank's, one after the other.
    pub children: Vec<Child>,
}

/// A rank that hands in a part, and the side on which the part stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// The rank.
    pub rank: Rank,
    /// True if the part is the left operand: it is of lower ranks than what it is combined with.
    pub is_left: bool,
}

impl CombinationTree {
    /// The tree of so many ranks, at least one.
    pub fn new(ranks: u32) -> CombinationTree {
        CombinationTree { ranks, folded: 2 * (ranks - (1 << ranks.ilog2())) }
    }

    /// The number of places, a power of two.
    pub fn places(self) -> u32 {
        self.ranks - self.folded / 2
    }

    /// The place of a rank, alone or with the other one of its pair.
    pub fn place_of(self, Rank(rank): Rank) -> u32 {
        if rank < self.folded { rank / 2 } else { rank - self.folded / 2 }
    }

    /// The ranks of consecutive places.
    pub fn ranks_at(self, places: Range<u32>) -> Range<u32> {
        let first = |place: u32| if place < self.folded / 2 { 2 * place } else { place + self.folded / 2 };
        first(places.start)..first(places.end)
    }

    /// Returns the rank with which the right half of a subtree begins; `None` for a single rank, and
    /// for ranks that are no subtree.
    pub fn split(self, ranks: &Range<u32>) -> Option<u32> {
        if ranks.end > self.ranks || ranks.end.checked_sub(ranks.start)? < 2 {
            return None;
        }
        let (first, last) = (self.place_of(Rank(ranks.start)), self.place_of(Rank(ranks.end - 1)));
        if self.ranks_at(first..last + 1) != *ranks {
            return None;
        }
        match last + 1 - first {
            1 => Some(ranks.start + 1),
            count if count.is_power_of_two() && first.is_multiple_of(count) => {
                Some(self.ranks_at(first..first + count / 2).end)
            }
            _ => None,
        }
    }

    /// True if these ranks are a subtree.
    pub fn is_subtree(self, ranks: &Range<u32>) -> bool {
        ranks.len() == 1 && ranks.end <= self.ranks || self.split(ranks).is_some()
    }

    /// Returns all combinations, each when both operands are there. An operand is named by its last
    /// rank, and so is the result: that of `(left, right)` takes the place of `right`.
    pub fn combinations(self) -> Vec<(usize, usize)> {
        let ranks: Vec<Range<u32>> = (0..self.ranks).map(|rank| rank..rank + 1).collect();
        self.combinations_of(&ranks)
    }

    /// The same where the ranks of some subtrees are combined already. `parts`: those subtrees, and
    /// ranks that stand alone, rising, all ranks together; operands are named by their last part.
    pub fn combinations_of(self, parts: &[Range<u32>]) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        self.visit(0..self.ranks, parts, &mut 0, &mut found);
        found
    }

    /// Returns the last part of a subtree, whose first one is `next`.
    fn visit(
        self,
        subtree: Range<u32>,
        parts: &[Range<u32>],
        next: &mut usize,
        found: &mut Vec<(usize, usize)>,
    ) -> usize {
        let split = self.split(&subtree).filter(|_| parts[*next] != subtree);
        let Some(split) = split else {
            *next += 1;
            return *next - 1;
        };
        let left = self.visit(subtree.start..split, parts, next, found);
        let right = self.visit(split..subtree.end, parts, next, found);
        found.push((left, right));
        right
    }

    /// True if parts, rising and all ranks together, are subtrees that are combined as by the tree
    /// of as many ranks.
    pub fn is_of_parts(self, parts: &[Range<u32>]) -> bool {
        let Ok(count) = u32::try_from(parts.len()) else { return false };
        count > 0 && self.is_alike(0..self.ranks, CombinationTree::new(count), 0..count, parts)
    }

    fn is_alike(
        self,
        subtree: Range<u32>,
        other: CombinationTree,
        of: Range<u32>,
        parts: &[Range<u32>],
    ) -> bool {
        let Some(middle) = other.split(&of) else {
            return parts[of.start as usize] == subtree && self.is_subtree(&subtree);
        };
        self.split(&subtree).is_some_and(|split| {
            self.is_alike(subtree.start..split, other, of.start..middle, parts)
                && self.is_alike(split..subtree.end, other, middle..of.end, parts)
        })
    }

    /// Returns the largest subtrees that have all of their ranks among `members`, which rise.
    pub fn subtrees_of(self, members: &[Rank]) -> Vec<Range<u32>> {
        let mut found = Vec::new();
        self.collect(0..self.ranks, members, &mut found);
        found
    }

    fn collect(self, subtree: Range<u32>, members: &[Rank], found: &mut Vec<Range<u32>>) {
        let before = |rank: u32| members.partition_point(|member| member.0 < rank);
        let here = before(subtree.end) - before(subtree.start);
        if here == subtree.len() {
            found.push(subtree);
        } else if let Some(split) = self.split(&subtree).filter(|_| here > 0) {
            self.collect(subtree.start..split, members, found);
            self.collect(split..subtree.end, members, found);
        }
    }

    /// The result of all contributions.
    pub fn evaluate<T>(
        self,
        mut contribution: impl FnMut(Rank) -> T,
        mut combine: impl FnMut(T, T) -> T,
    ) -> T {
        self.value(0..self.ranks, &mut contribution, &mut combine)
    }

    fn value<T>(
        self,
        subtree: Range<u32>,
        contribution: &mut impl FnMut(Rank) -> T,
        combine: &mut impl FnMut(T, T) -> T,
    ) -> T {
        let Some(split) = self.split(&subtree) else { return contribution(Rank(subtree.start)) };
        let left = self.value(subtree.start..split, contribution, combine);
        let right = self.value(split..subtree.end, contribution, combine);
        combine(left, right)
    }

    /// The part of a rank in a reduction to `root`, of as few rounds as there can be: a place is
    /// spoken for by its first rank, the root's by the root, and in round k every second place of
    /// those that are left hands what it has to the one 2^k beside it, towards the root's.
    pub fn neighbours(self, rank: Rank, root: Rank) -> TreeNeighbours {
        let (place, root_place) = (self.place_of(rank), self.place_of(root));
        let speaker = |place: u32| match place == root_place {
            true => root,
            false => Rank(self.ranks_at(place..place + 1).start),
        };
        if speaker(place) != rank {
            return TreeNeighbours { parent: Some(speaker(place)), children: Vec::new() };
        }
        let pair = self.ranks_at(place..place + 1).map(Rank).filter(|other| *other != rank);
        let distance = place ^ root_place;
        let rounds = if distance == 0 { self.places().ilog2() } else { distance.trailing_zeros() };
        let others = (0..rounds).map(|round| speaker(place ^ 1 << round));
        let child = |other: Rank| Child { rank: other, is_left: other < rank };
        let parent = (distance > 0).then(|| speaker(place ^ 1 << rounds));
        TreeNeighbours { parent, children: pair.chain(others).map(child).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(ranks: u32) -> String {
        let of = |rank: Rank| rank.0.to_string();
        CombinationTree::new(ranks).evaluate(of, |left, right| format!("({left}{right})"))
    }

    #[test]
    fn as_drawn() {
        assert_eq!(written(1), "0");
        assert_eq!(written(2), "(01)");
        assert_eq!(written(3), "((01)2)");
        assert_eq!(written(4), "((01)(23))");
        assert_eq!(written(5), "(((01)2)(34))");
        assert_eq!(written(6), "(((01)(23))(45))");
        assert_eq!(written(7), "(((01)(23))((45)6))");
        assert_eq!(written(8), "(((01)(23))((45)(67)))");
        assert_eq!(written(9), "((((01)2)(34))((56)(78)))");
    }

    /// The MPIs' recursive doubling, written down as they do it: every rank ends with what the tree says.
    #[test]
    fn recursive_doubling_computes_it() {
        for ranks in 2u32..70 {
            let places = 1 << ranks.ilog2();
            let extra = ranks - places;
            let mut of: Vec<String> = Vec::new();
            for rank in 0..ranks {
                match rank {
                    _ if rank >= 2 * extra => of.push(rank.to_string()),
                    _ if rank % 2 == 1 => of.push(format!("({}{rank})", rank - 1)),
                    _ => {}
                }
            }
            for distance in (0..ranks.ilog2()).map(|round| 1usize << round) {
                let partners =
                    (0..of.len()).map(|place| (place.min(place ^ distance), place.max(place ^ distance)));
                of = partners.map(|(left, right)| format!("({}{})", of[left], of[right])).collect();
            }
            assert!(of.iter().all(|of| *of == written(ranks)), "{ranks}");
        }
    }

    #[test]
    fn subtrees_are_what_is_combined() {
        for ranks in 1u32..40 {
            let tree = CombinationTree::new(ranks);
            let mut subtrees: Vec<Range<u32>> = (0..ranks).map(|rank| rank..rank + 1).collect();
            let mut end_at: Vec<Range<u32>> = subtrees.clone();
            for (left, right) in tree.combinations() {
                let (left, right) = (end_at[left].clone(), end_at[right].clone());
                let both = left.start..right.end;
                assert_eq!((left.end, tree.split(&both)), (right.start, Some(right.start)));
                end_at[both.end as usize - 1] = both.clone();
                subtrees.push(both);
            }
            assert_eq!(end_at[ranks as usize - 1], 0..ranks);
            for (start, end) in (0..ranks).flat_map(|start| (start..ranks + 2).map(move |end| (start, end))) {
                let is_one = subtrees.contains(&(start..end));
                assert_eq!(tree.is_subtree(&(start..end)), is_one, "{start}..{end} of {ranks}");
            }
        }
    }

    /// Nodes of as many ranks, a power of two, are subtrees, and their tree is that of as many ranks.
    #[test]
    fn nodes_are_subtrees() {
        for (nodes, width) in (1u32..20).flat_map(|nodes| [1, 2, 4, 8, 16].map(|width| (nodes, width))) {
            let (tree, of_nodes) = (CombinationTree::new(nodes * width), CombinationTree::new(nodes));
            let parts: Vec<Range<u32>> = (0..nodes).map(|node| node * width..(node + 1) * width).collect();
            for part in &parts {
                let members: Vec<Rank> = part.clone().map(Rank).collect();
                assert_eq!(tree.subtrees_of(&members), std::slice::from_ref(part));
            }
            assert!(tree.is_of_parts(&parts));
            assert_eq!(tree.combinations_of(&parts), of_nodes.combinations());
        }
        // Of 24 ranks the first 16 are in pairs.
        let tree = CombinationTree::new(24);
        let of = |ranks: Range<u32>| tree.subtrees_of(&ranks.map(Rank).collect::<Vec<_>>());
        assert_eq!(of(0..6), [0..4, 4..6]);
        assert_eq!(of(6..12), [6..8, 8..12]);
        assert_eq!(of(18..24), [18..20, 20..24]);
        assert_eq!(tree.subtrees_of(&[1, 2, 3, 7].map(Rank)), [1..2, 2..4, 7..8]);
    }

    #[test]
    fn other_parts_are_combined_otherwise() {
        let tree = CombinationTree::new(8);
        assert!(tree.is_of_parts(&[0..2, 2..4, 4..8]));
        assert!(!tree.is_of_parts(&[0..4, 4..6, 6..8]));
        assert_eq!(tree.combinations_of(&[0..4, 4..6, 6..8]), [(1, 2), (0, 2)]);
        assert!(!tree.is_of_parts(&[0..3, 3..6, 6..8]));
    }

    /// A reduction up the tree to any rank combines what the tree does, in as many rounds as the tree is deep.
    #[test]
    fn any_rank_can_be_the_top() {
        fn value(tree: CombinationTree, rank: Rank, root: Rank) -> String {
            let TreeNeighbours { children, parent } = tree.neighbours(rank, root);
            assert_eq!(parent.is_none(), rank == root);
            children.into_iter().fold(rank.0.to_string(), |own, child| {
                assert_eq!(tree.neighbours(child.rank, root).parent, Some(rank));
                let part = value(tree, child.rank, root);
                if child.is_left { format!("({part}{own})") } else { format!("({own}{part})") }
            })
        }
        for (ranks, root) in (1u32..24).flat_map(|ranks| (0..ranks).map(move |root| (ranks, root))) {
            let tree = CombinationTree::new(ranks);
            assert_eq!(value(tree, Rank(root), Rank(root)), written(ranks), "{root} of {ranks}");
        }
    }
}
