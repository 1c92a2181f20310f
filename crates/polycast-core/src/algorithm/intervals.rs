//! Trees whose subtrees are intervals of positions, for scatter, gather and reductions: a subtree's blocks lie one after the other, and what a
//! subtree has combined is that of neighbouring ranks.
//!
//! ```text
//!   flat         0 │1│2│3│4│5│6        chain   0 │1 2 3 4 5 6        binary   0 │1 2 3│4 5 6        binomial   0 │1│2 3│4 5 6
//! ```

use std::num::NonZeroU32;
use std::ops::Range;

use super::{Entry, Parameter, Stages};
use crate::collective::{Child, TreeNeighbours};
use crate::schedule::RankOrder;
use crate::tree::{PlannedTree, Tree};
use crate::units::Rank;

/// The form of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// All are children of the root.
    Flat,
    /// Each position is the child of the one before it.
    Chain,
    /// Two children, each with half of what is left.
    Binary,
    /// The tree of [`Tree::KNomial`].
    KNomial(NonZeroU32),
}

/// A position's place in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreePlace {
    /// The position at which the subtree above begins; `None` for the root.
    pub parent: Option<u32>,
    /// The positions of the subtree that begins here.
    pub interval: Range<u32>,
    /// The subtrees below, rising: together all of the interval but its first position.
    pub children: Vec<Range<u32>>,
}

const TWO: NonZeroU32 = NonZeroU32::new(2).unwrap();
/// The parameter of a k-nomial tree.
const FACTOR: &[Parameter] = &[Parameter::number("k", "the factor", 2, 4)];

impl Shape {
    /// The place of `position` in the tree of so many positions.
    pub fn place(self, position: u32, positions: u32) -> TreePlace {
        match self {
            // The same, and found at once.
            Shape::Flat if position > 0 => {
                TreePlace { parent: Some(0), interval: position..position + 1, children: Vec::new() }
            }
            Shape::Chain => {
                let interval = position..positions;
                TreePlace {
                    parent: position.checked_sub(1),
                    children: self.below(interval.clone()),
                    interval,
                }
            }
            _ => {
                let (mut parent, mut interval) = (None, 0..positions);
                loop {
                    let mut children = self.below(interval.clone());
                    let Some(next) = children.iter().position(|child| child.contains(&position)) else {
                        return TreePlace { parent, interval, children };
                    };
                    parent = Some(interval.start);
                    interval = children.swap_remove(next);
                }
            }
        }
    }

    /// The subtrees below the first position of one.
    pub fn below(self, Range { start, end }: Range<u32>) -> Vec<Range<u32>> {
        let rest = start + 1..end;
        let starts: Vec<u32> = match self {
            _ if rest.is_empty() => return Vec::new(),
            Shape::Flat => rest.collect(),
            Shape::Chain => vec![rest.start],
            Shape::Binary if rest.len() == 1 => vec![rest.start],
            Shape::Binary => vec![rest.start, rest.start + rest.len().div_ceil(2) as u32],
            Shape::KNomial(k) => {
                let children = Tree::KNomial(k).local(end, Rank(0), Rank(start)).children;
                let mut starts: Vec<u32> = children.into_iter().map(|Rank(child)| child).collect();
                starts.sort_unstable();
                starts
            }
        };
        let ends = starts.iter().skip(1).copied().chain([end]);
        starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
    }
}

/// A tree of intervals over the ranks of a call.
pub(super) enum Intervals {
    /// Ranks stand in their order, from the top on.
    ByRank {
        /// The shape of the tree.
        shape: Shape,
        /// The rank at the first position.
        top: Rank,
        /// The number of ranks.
        ranks: u32,
    },
    /// Ranks stand in depth-first order of a tree that was planned for where they are.
    Planned {
        /// The positions.
        order: RankOrder,
        /// The end of each position's subtree.
        ends: Vec<u32>,
        /// The position at which the subtree above each position begins; the root's is its own.
        parents: Vec<u32>,
    },
}

impl Intervals {
    /// The tree with its ranks in depth-first order, in which every subtree is an interval. Its
    /// lists are as long as there are ranks.
    pub fn of(tree: &PlannedTree) -> Intervals {
        let ranks = tree.ranks() as usize;
        let (mut order, mut parents) = (Vec::with_capacity(ranks), Vec::with_capacity(ranks));
        let mut pending = vec![(tree.root(), 0)];
        while let Some((rank, parent)) = pending.pop() {
            let position = order.len() as u32;
            pending.extend(tree.children(rank).iter().rev().map(|child| (*child, position)));
            order.push(rank);
            parents.push(parent);
        }
        let mut ends: Vec<u32> = (1..=tree.ranks()).collect();
        for position in (1..ranks).rev() {
            let parent = parents[position] as usize;
            ends[parent] = ends[parent].max(ends[position]);
        }
        Intervals::Planned { order: RankOrder::of(order), ends, parents }
    }

    /// The place of a rank.
    pub fn place(&self, rank: Rank) -> TreePlace {
        match self {
            Intervals::ByRank { shape, top, ranks } => shape.place(rank.relative_to(*top, *ranks), *ranks),
            Intervals::Planned { order, ends, parents } => {
                let Rank(position) = order.position(rank);
                let at = position as usize;
                let interval = position..ends[at];
                let parent = (position > 0).then_some(parents[at]);
                TreePlace { parent, children: self.below(interval.clone()), interval }
            }
        }
    }

    /// The part of a rank in a reduction up the tree, in which what comes from below is that of
    /// higher positions.
    pub fn neighbours(&self, rank: Rank) -> TreeNeighbours {
        let TreePlace { parent, children, .. } = self.place(rank);
        let child = |subtree: &Range<u32>| Child { rank: self.rank_at(subtree.start), is_left: false };
        let parent = parent.map(|parent| self.rank_at(parent));
        TreeNeighbours { parent, children: children.iter().map(child).collect() }
    }

    /// Returns the rank at a position.
    pub fn rank_at(&self, position: u32) -> Rank {
        match self {
            Intervals::ByRank { top, ranks, .. } => Rank::from_relative(position, *top, *ranks),
            Intervals::Planned { order, .. } => order.in_order()[position as usize],
        }
    }

    /// The subtrees below the first position of one.
    pub fn below(&self, subtree: Range<u32>) -> Vec<Range<u32>> {
        match self {
            Intervals::ByRank { shape, .. } => shape.below(subtree),
            Intervals::Planned { ends, .. } => {
                let next = |start: u32| (start < subtree.end).then(|| start..ends[start as usize]);
                std::iter::successors(next(subtree.start + 1), |child| next(child.end)).collect()
            }
        }
    }

    /// The positions in an interval whose rank does not follow the one before it, its first one among them: from one to the next, data by position
    /// is in one piece by rank, too.
    pub fn breaks(&self, within: Range<u32>) -> Vec<u32> {
        match self {
            Intervals::ByRank { top, ranks, .. } => {
                let wrap = ranks - top.0;
                let is_inside = wrap > within.start && wrap < within.end;
                [within.start].into_iter().chain(is_inside.then_some(wrap)).collect()
            }
            Intervals::Planned { .. } => {
                let follows =
                    |at: &u32| *at > within.start && self.rank_at(*at).0 == self.rank_at(at - 1).0 + 1;
                within.clone().filter(|at| !follows(at)).collect()
            }
        }
    }
}

/// The description of a shape for [`entries`]: name, what it is good for, who described it.
pub(super) type Told = (&'static str, &'static str, &'static str);

/// An entry for each shape, all in segments, by a builder that takes the shape.
macro_rules! by_shape {
    ($collective:expr, $schedule:path, [$($told:expr),* $(,)?], $stages_of_binomial:expr) => {
        $crate::algorithm::intervals::entries($collective, [$($told),*], $stages_of_binomial, [
            |algorithm, call, rank| $schedule($crate::algorithm::intervals::Shape::Flat, algorithm, call, rank),
            |algorithm, call, rank| $schedule($crate::algorithm::intervals::Shape::Chain, algorithm, call, rank),
            |algorithm, call, rank| $schedule($crate::algorithm::intervals::Shape::Binary, algorithm, call, rank),
            |algorithm, call, rank| $schedule($crate::algorithm::intervals::BINOMIAL, algorithm, call, rank),
            |algorithm, call, rank| {
                let k = algorithm.number("k");
                $schedule($crate::algorithm::intervals::Shape::KNomial(k), algorithm, call, rank)
            },
        ])
    };
}
pub(super) use by_shape;

/// The binomial tree.
pub(super) const BINOMIAL: Shape = Shape::KNomial(TWO);

/// Makes the entries of the five shapes: flat, chain, binary, binomial and k-nomial; the binomial
/// one with the formula that papers have for it. What combines does so by the tree of combinations
/// where the shape is binomial.
pub(super) const fn entries(
    collective: &'static [crate::collective::Collective],
    [flat, chain, binary, binomial, k_nomial]: [Told; 5],
    stages_of_binomial: Option<fn(u32) -> Option<Stages>>,
    [by_flat, by_chain, by_binary, by_binomial, by_k_nomial]: [super::Builder; 5],
) -> [Entry; 5] {
    let in_binomial =
        Entry::any(collective, binomial.0, binomial.1, binomial.2, by_binomial).in_segments().by_the_tree();
    [
        Entry::any(collective, flat.0, flat.1, flat.2, by_flat).in_segments(),
        Entry::any(collective, chain.0, chain.1, chain.2, by_chain).in_segments(),
        Entry::any(collective, binary.0, binary.1, binary.2, by_binary).in_segments(),
        match stages_of_binomial {
            Some(stages) => in_binomial.in_stages(stages),
            None => in_binomial,
        },
        Entry {
            same_as: Some((2, "binomial")),
            ..Entry::any(collective, k_nomial.0, k_nomial.1, k_nomial.2, by_k_nomial)
                .with(FACTOR)
                .in_segments()
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [Shape; 5] =
        [Shape::Flat, Shape::Chain, Shape::Binary, BINOMIAL, Shape::KNomial(NonZeroU32::new(4).unwrap())];

    #[test]
    fn as_drawn() {
        let below = |shape: Shape| shape.below(0..7);
        assert_eq!(below(Shape::Binary), [1..4, 4..7]);
        assert_eq!(below(BINOMIAL), [1..2, 2..4, 4..7]);
        assert_eq!(below(Shape::Chain)[0], 1..7);
        assert_eq!(below(Shape::Flat).len(), 6);
    }

    /// As a tree by position says, and each rank that follows the one before it.
    #[test]
    fn a_planned_tree_in_depth_first_order() {
        for shape in SHAPES {
            for ranks in 1..20 {
                let top = Rank(ranks / 3);
                let by_rank = Intervals::ByRank { shape, top, ranks };
                let children = |rank| by_rank.place(Rank(rank)).children.into_iter();
                let children = |rank| children(rank).map(|child| by_rank.rank_at(child.start)).collect();
                let tree = PlannedTree::new(top, &(0..ranks).map(children).collect::<Vec<Vec<_>>>());
                let planned = Intervals::of(&tree);
                for rank in (0..ranks).map(Rank) {
                    assert_eq!(planned.place(rank), by_rank.place(rank), "{shape:?} {ranks} {rank}");
                    let interval = by_rank.place(rank).interval;
                    assert_eq!(planned.rank_at(interval.start), rank);
                    assert_eq!(planned.breaks(interval.clone()), by_rank.breaks(interval));
                }
            }
        }
    }

    /// Every position is once in the tree, where its parent says.
    #[test]
    fn parents_and_children_agree() {
        for shape in SHAPES {
            for positions in 1..40 {
                for position in 0..positions {
                    let place = shape.place(position, positions);
                    assert_eq!(place.interval.start, position, "{shape:?} {positions}");
                    assert_eq!(place.children, shape.below(place.interval.clone()));
                    let covered: u32 = place.children.iter().map(|child| child.end - child.start).sum();
                    assert_eq!(covered + 1, place.interval.end - position);
                    let above = place.parent.map(|parent| shape.place(parent, positions).children);
                    assert_eq!(above.is_none(), position == 0);
                    assert!(above.is_none_or(|children| children.contains(&place.interval)));
                }
            }
        }
    }
}
