use super::LocalTree;
use crate::units::Rank;

/// A tree whose parents and children are listed for every rank: made once per communicator and root.
///
/// Takes 12 bytes per rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedTree {
    root: Rank,
    /// The parent of each rank; the root's entry is the root itself.
    parent: Vec<Rank>,
    /// For each rank the index in `children` where its children begin, then the index where the
    /// last rank's end.
    first_child: Vec<u32>,
    children: Vec<Rank>,
}

impl PlannedTree {
    /// The tree in which `children[rank]` are sent to by `rank` in this order.
    ///
    /// # Panics
    /// Unless every rank but the root is the child of exactly one.
    pub fn new<C: AsRef<[Rank]>>(root: Rank, children: &[C]) -> PlannedTree {
        let mut parent = vec![None; children.len()];
        parent[root.index()] = Some(root);
        let mut first_child = vec![0];
        let mut all = Vec::with_capacity(children.len().saturating_sub(1));
        for (rank, children) in (0..).map(Rank).zip(children) {
            for &child in children.as_ref() {
                let before = parent[child.index()].replace(rank);
                assert_eq!(before, None, "rank {child} is reached twice");
            }
            all.extend_from_slice(children.as_ref());
            first_child.push(all.len() as u32);
        }
        let parent = parent.into_iter().map(|parent| parent.expect("every rank is reached")).collect();
        PlannedTree { root, parent, first_child, children: all }
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.parent.len() as u32
    }

    /// The rank that has the data in the beginning.
    pub fn root(&self) -> Rank {
        self.root
    }

    /// The rank that a rank receives from; `None` at the root.
    pub fn parent(&self, rank: Rank) -> Option<Rank> {
        (rank != self.root).then(|| self.parent[rank.index()])
    }

    /// The ranks that a rank sends to, in this order.
    pub fn children(&self, rank: Rank) -> &[Rank] {
        let end = self.first_child[rank.index() + 1] as usize;
        &self.children[self.first_child[rank.index()] as usize..end]
    }

    /// The tree as one of its ranks sees it.
    pub fn local(&self, rank: Rank) -> LocalTree {
        LocalTree { parent: self.parent(rank), children: self.children(rank).to_vec() }
    }

    /// All ranks, each after its parent.
    pub fn downwards(&self) -> Vec<Rank> {
        let mut found = vec![self.root];
        let mut next = 0;
        while next < found.len() {
            found.extend_from_slice(self.children(found[next]));
            next += 1;
        }
        found
    }

    /// The most messages one after the other on the way from the root to a rank.
    pub fn height(&self) -> u32 {
        let mut depth = vec![0; self.parent.len()];
        for rank in self.downwards().into_iter().skip(1) {
            depth[rank.index()] = depth[self.parent[rank.index()].index()] + 1;
        }
        depth.into_iter().max().unwrap_or(0)
    }

    /// The most children of a rank.
    pub fn degree(&self) -> u32 {
        self.first_child.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0)
    }

    /// All messages of the tree: from whom to whom.
    pub fn edges(&self) -> impl Iterator<Item = (Rank, Rank)> {
        (0..self.ranks())
            .map(Rank)
            .flat_map(|rank| self.children(rank).iter().map(move |child| (rank, *child)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> PlannedTree {
        let children: [&[u32]; 4] = [&[], &[3, 0], &[], &[2]];
        PlannedTree::new(Rank(1), &children.map(|list| list.iter().copied().map(Rank).collect::<Vec<_>>()))
    }

    #[test]
    fn a_tree_of_four() {
        let tree = tree();
        assert_eq!((tree.ranks(), tree.height(), tree.degree()), (4, 2, 2));
        assert_eq!(tree.local(Rank(1)), LocalTree { parent: None, children: vec![Rank(3), Rank(0)] });
        assert_eq!(tree.local(Rank(2)), LocalTree { parent: Some(Rank(3)), children: vec![] });
        assert_eq!(tree.downwards(), [1, 3, 0, 2].map(Rank));
        assert_eq!(tree.edges().count(), 3);
    }

    #[test]
    #[should_panic(expected = "rank 0 is reached twice")]
    fn no_rank_has_two_parents() {
        PlannedTree::new(Rank(1), &[vec![], vec![Rank(0), Rank(0)]]);
    }

    #[test]
    #[should_panic(expected = "every rank is reached")]
    fn every_rank_has_a_parent() {
        PlannedTree::new(Rank(1), &[vec![], vec![]]);
    }
}
