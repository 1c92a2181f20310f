//! Trees: who sends to whom, in which order.
//!
//! A [`Tree`] has a form that needs no knowledge of the network, and is never built as a whole: every rank computes its own
//! parent and children. Its files number the tree's places by *position*, with the root at 0; [`Tree::local`] turns
//! positions into ranks by a rotation, so that every rank can be the root.
//!
//! A [`PlannedTree`] is made for the ranks of one communicator where they are, its [`Site`], by a [`PlannedShape`].

mod block_binomial;
mod chain;
mod contention;
mod contention_free;
mod draw;
mod dynamic;
mod flat;
mod k_ary;
mod k_nomial;
mod link_aware;
mod lists;
mod optimal;
mod ordered;
mod pipeline;
mod planned;
#[cfg(test)]
mod planned_tests;
mod shape;
mod site;
mod traversal;

pub use contention::{contending_pairs, contending_pairs_upwards};
pub use contention_free::MAX_CONTENTION_FREE_CHILDREN;
pub use dynamic::{Assignment, DynamicTimes, IdleTimes};
pub use k_nomial::subtree as k_nomial_subtree;
pub use optimal::Splits;
pub use ordered::{Part, split_tree};
pub use pipeline::Pipelined;
pub use planned::PlannedTree;
pub use shape::{PlannedShape, SendTimes};
pub use site::Site;
pub use traversal::Traversal;

use std::num::NonZeroU32;

use crate::units::Rank;

/// The form of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tree {
    /// Every other rank is a child of the root.
    Flat,
    /// Each rank is the child of the one before it.
    Chain,
    /// `k` children per rank, in breadth-first order; 2 is the complete binary tree.
    KAry(NonZeroU32),
    /// `k - 1` children per rank and round, `k` at least 2; 2 is the binomial tree.
    KNomial(NonZeroU32),
}

/// A tree as one of its ranks sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalTree {
    /// The rank that this rank receives from; `None` at the root.
    pub parent: Option<Rank>,
    /// The ranks that this rank sends to, in this order.
    pub children: Vec<Rank>,
}

impl Tree {
    /// The place of `rank` in the tree over `ranks` ranks that grows from `root`: its parent and
    /// children.
    ///
    /// # Panics
    /// If the tree is [`Tree::KNomial`] with `k` = 1, which would never reach a second rank.
    pub fn local(self, ranks: u32, root: Rank, rank: Rank) -> LocalTree {
        let position = rank.relative_to(root, ranks);
        let at = |position| Rank::from_relative(position, root, ranks);
        let (parent, children): (_, Vec<Rank>) = match self {
            Tree::Flat => (flat::parent(position), flat::children(position, ranks).map(at).collect()),
            Tree::Chain => (chain::parent(position), chain::children(position, ranks).map(at).collect()),
            Tree::KAry(k) => {
                (k_ary::parent(k, position), k_ary::children(k, position, ranks).map(at).collect())
            }
            Tree::KNomial(k) => {
                (k_nomial::parent(k, position), k_nomial::children(k, position, ranks).map(at).collect())
            }
        };
        LocalTree { parent: parent.map(at), children }
    }

    /// The whole tree, over ranks in the order of a list that begins with the root.
    ///
    /// # Panics
    /// As [`Tree::local`]; if the list is empty, or a rank is missing or listed twice.
    pub fn plan(self, order: &[Rank]) -> PlannedTree {
        let ranks = order.len() as u32;
        let mut children = vec![Vec::new(); order.len()];
        for position in 0..ranks {
            let below = self.local(ranks, Rank(0), Rank(position)).children;
            children[order[position as usize].index()] =
                below.into_iter().map(|c| order[c.index()]).collect();
        }
        PlannedTree::new(order[0], &children)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_tree() -> impl Strategy<Value = Tree> {
        prop_oneof![
            Just(Tree::Flat),
            Just(Tree::Chain),
            (1u32..9).prop_map(|k| Tree::KAry(NonZeroU32::new(k).unwrap())),
            (2u32..9).prop_map(|k| Tree::KNomial(NonZeroU32::new(k).unwrap())),
        ]
    }

    proptest! {
        #[test]
        fn parents_and_children_agree_and_everybody_is_reached_once(
            tree in any_tree(),
            (ranks, root) in (1u32..700).prop_flat_map(|ranks| (Just(ranks), 0..ranks)),
        ) {
            let root = Rank(root);
            prop_assert_eq!(tree.local(ranks, root, root).parent, None);
            let mut reached = vec![false; ranks as usize];
            let mut frontier = vec![root];
            while let Some(rank) = frontier.pop() {
                prop_assert!(!std::mem::replace(&mut reached[rank.index()], true), "{} twice", rank);
                for child in tree.local(ranks, root, rank).children {
                    prop_assert_eq!(tree.local(ranks, root, child).parent, Some(rank));
                    frontier.push(child);
                }
            }
            prop_assert!(reached.into_iter().all(|reached| reached));
        }

        #[test]
        fn the_largest_communicators_do_not_overflow(tree in any_tree(), below_end in 0u32..100) {
            prop_assume!(!matches!(tree, Tree::Flat));
            let ranks = u32::MAX;
            let rank = Rank(ranks - 1 - below_end);
            let local = tree.local(ranks, Rank(0), rank);
            prop_assert!(tree.local(ranks, Rank(0), local.parent.unwrap()).children.contains(&rank));
        }
    }

    #[test]
    fn a_root_in_the_middle_rotates_the_tree() {
        let binary = Tree::KAry(NonZeroU32::new(2).unwrap());
        let local = |rank| binary.local(5, Rank(3), Rank(rank));
        assert_eq!(local(3), LocalTree { parent: None, children: vec![Rank(4), Rank(0)] });
        assert_eq!(local(4), LocalTree { parent: Some(Rank(3)), children: vec![Rank(1), Rank(2)] });
        assert_eq!(local(2), LocalTree { parent: Some(Rank(4)), children: vec![] });
    }
}
