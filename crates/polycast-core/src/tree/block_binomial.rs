//! The block-binomial tree of IBM's MPI-F (Nupairoj 1998, §3.4.1): binomial over the first ranks of blocks, flat within a block. There
//! are as many blocks as the largest power of two that fits; ranks beyond them are served last, one by each of the first.
//! 9 ranks in blocks of 3:
//!
//! ```text
//!              0                  0 → 3 between blocks
//!      ┌───┬───┼───┐              0 → 1, 2 and 3 → 4, 5 within
//!      3   1   2   6              0 → 6, 1 → 7, 2 → 8 the rest
//!    ┌─┴─┐ │   │
//!    4   5 7   8
//! ```

use std::num::NonZeroU32;

use super::{PlannedTree, Tree};
use crate::units::Rank;

/// The tree over ranks in `order`, the root first, so blocks hold neighbours. A block of 1 makes it binomial, a block that
/// holds all makes it flat.
pub(super) fn plan(order: &[Rank], block: NonZeroU32) -> PlannedTree {
    const BINOMIAL: Tree = Tree::KNomial(NonZeroU32::new(2).unwrap());
    let ranks = order.len() as u32;
    let block = block.get().min(ranks);
    let blocks = 1 << (ranks / block).ilog2();
    let in_blocks = blocks * block;
    let mut children = vec![Vec::new(); order.len()];
    let mut send = |from: u32, to: u32| children[order[from as usize].index()].push(order[to as usize]);
    for number in 0..blocks {
        let first = number * block;
        let others = BINOMIAL.local(blocks, Rank(0), Rank(number)).children;
        others.into_iter().for_each(|other| send(first, other.0 * block));
        (first + 1..first + block).for_each(|member| send(first, member));
    }
    (in_blocks..ranks).for_each(|rest| send(rest - in_blocks, rest));
    PlannedTree::new(order[0], &children)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(ranks: u32, block: u32) -> PlannedTree {
        plan(&(0..ranks).map(Rank).collect::<Vec<_>>(), NonZeroU32::new(block).unwrap())
    }

    /// Nupairoj 1998, Figure 3.7.
    #[test]
    fn nine_ranks_in_blocks_of_three() {
        let expected: [&[u32]; 9] = [&[3, 1, 2, 6], &[7], &[8], &[4, 5], &[], &[], &[], &[], &[]];
        for (rank, children) in (0..).map(Rank).zip(expected) {
            assert_eq!(tree(9, 3).children(rank).iter().map(|child| child.0).collect::<Vec<_>>(), children);
        }
    }

    #[test]
    fn the_block_decides_between_binomial_and_flat() {
        let order: Vec<Rank> = (0..8).map(Rank).collect();
        assert_eq!(tree(8, 1), Tree::KNomial(NonZeroU32::new(2).unwrap()).plan(&order));
        assert_eq!(tree(8, 8), Tree::Flat.plan(&order));
        assert_eq!(tree(8, 100), Tree::Flat.plan(&order));
        assert_eq!(tree(1, 3).ranks(), 1);
    }
}
