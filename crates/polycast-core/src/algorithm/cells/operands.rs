//! The order in which a rank takes operands so that they are combined by the tree, with as few places for them as there can be.

use std::ops::Range;

use crate::collective::CombinationTree;
use crate::units::Rank;

/// An operand that is to be taken. Places are numbered from that of the result, 0, on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    /// A rank's contribution becomes what is at a place.
    First { from: Rank, to: u32 },
    /// A rank's contribution is combined with what is there, as the left operand.
    Next { from: Rank, to: u32 },
    /// What waits at the next place is.
    Waiting { to: u32 },
}

/// What is left to be done; the last of it comes next.
#[derive(Clone, Copy)]
enum PendingOperands {
    /// The operands of these ranks, first to one behind the last.
    Subtree((u32, u32), u32),
    Operand(Operand),
}

/// No tree is deeper: two things are left of each level, and one more.
const MOST_LEFT: usize = 2 * 33 + 1;

/// The operands of a combination of all ranks, as an iterator without memory of its own.
pub(super) struct Operands {
    tree: CombinationTree,
    left: [PendingOperands; MOST_LEFT],
    count: usize,
}

impl Operands {
    /// The operands of so many ranks, perhaps none.
    #[inline]
    pub fn of(ranks: u32) -> Operands {
        let all = PendingOperands::Subtree((0, ranks), 0);
        let count = usize::from(ranks > 0);
        Operands { tree: CombinationTree::new(ranks.max(1)), left: [all; MOST_LEFT], count }
    }

    /// The number of places beside that of the result: a level of the tree takes one, but for the
    /// first, which is of two contributions, and the last, which is combined into the result.
    #[inline]
    pub fn waiting(ranks: u32) -> u32 {
        ranks.next_power_of_two().ilog2().saturating_sub(1)
    }

    fn push(&mut self, left: PendingOperands) {
        self.left[self.count] = left;
        self.count += 1;
    }

    fn divide(&mut self, ranks: Range<u32>, to: u32) -> Option<Operand> {
        let Some(split) = self.tree.split(&ranks) else {
            return Some(Operand::First { from: Rank(ranks.start), to });
        };
        if split - ranks.start == 1 {
            self.push(PendingOperands::Operand(Operand::Next { from: Rank(ranks.start), to }));
        } else {
            self.push(PendingOperands::Operand(Operand::Waiting { to }));
            self.push(PendingOperands::Subtree((ranks.start, split), to + 1));
        }
        self.push(PendingOperands::Subtree((split, ranks.end), to));
        None
    }
}

impl Iterator for Operands {
    type Item = Operand;

    #[inline]
    fn next(&mut self) -> Option<Operand> {
        while let Some(next) = self.count.checked_sub(1) {
            self.count = next;
            match self.left[next] {
                PendingOperands::Operand(operand) => return Some(operand),
                PendingOperands::Subtree((start, end), to) => {
                    if let Some(operand) = self.divide(start..end, to) {
                        return Some(operand);
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_combined_by_the_tree_in_few_places() {
        for ranks in (0..70).chain([1 << 20]) {
            let mut places = vec![String::new(); 1 + Operands::waiting(ranks) as usize];
            for operand in Operands::of(ranks).take(200) {
                match operand {
                    Operand::First { from, to } => places[to as usize] = from.0.to_string(),
                    Operand::Next { from, to } => {
                        places[to as usize] = format!("({}{})", from.0, places[to as usize]);
                    }
                    Operand::Waiting { to } => {
                        let both = format!("({}{})", places[to as usize + 1], places[to as usize]);
                        places[to as usize] = both;
                    }
                }
            }
            if (1..70).contains(&ranks) {
                let tree = CombinationTree::new(ranks);
                let all = tree.evaluate(|rank| rank.0.to_string(), |left, right| format!("({left}{right})"));
                assert_eq!(places[0], all, "{ranks}");
                assert!(places.iter().all(|place| !place.is_empty()), "{ranks}");
            }
        }
        assert_eq!(Operands::of(u32::MAX).take(1 << 16).count(), 1 << 16);
    }
}
