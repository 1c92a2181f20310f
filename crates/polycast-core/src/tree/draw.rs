use std::fmt::Write;

use super::Tree;
use crate::units::Rank;

impl Tree {
    /// The whole tree as text, one rank per line, children in the order in which they are sent to.
    pub fn draw(self, ranks: u32, root: Rank) -> String {
        let mut drawing = format!("{root}\n");
        // An explicit stack: a chain is as deep as it has ranks.
        let mut pending = Vec::new();
        let push_children = |pending: &mut Vec<(Rank, String, bool)>, rank, indent: &str| {
            let children = self.local(ranks, root, rank).children;
            let last = children.last().copied();
            pending.extend(children.into_iter().rev().map(|c| (c, indent.to_owned(), Some(c) == last)));
        };
        push_children(&mut pending, root, "");
        while let Some((rank, indent, is_last)) = pending.pop() {
            let (branch, below) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            // Writing to a String cannot fail.
            let _ = writeln!(drawing, "{indent}{branch}{rank}");
            push_children(&mut pending, rank, &format!("{indent}{below}"));
        }
        drawing
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn a_binomial_tree_from_rank_5() {
        let binomial = Tree::KNomial(NonZeroU32::new(2).unwrap());
        assert_eq!(binomial.draw(6, Rank(5)), "5\n├─ 3\n│  └─ 4\n├─ 1\n│  └─ 2\n└─ 0\n");
    }

    #[test]
    fn a_lonely_root() {
        assert_eq!(Tree::Flat.draw(1, Rank(0)), "0\n");
    }
}
