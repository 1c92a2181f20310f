use std::collections::HashMap;

use super::PlannedTree;
use crate::topology::{Paths, Placed};
use crate::units::Rank;

/// Counts the pairs of messages of the tree that share a directed edge of the network if all
/// messages are under way at the same time, as in a pipeline. Messages of the same sender are no
/// pair, because a sender sends them one after the other (one-port model, Patarasuk et al. 2008,
/// §4.1).
///
/// Follows every message through the network, so it depends on nothing that the trees are made with.
///
/// Edges that two paths in a tree share form one path; counting shared edges and taking away neighbouring shared edges counts
/// such a pair once, without looking at pairs.
pub fn contending_pairs(tree: &PlannedTree, placed: &Placed) -> u64 {
    pairs(tree, placed, |parent, child| (parent, child))
}

/// Counts the pairs of messages that share a directed edge when data flows to the root, from
/// children to parents. Messages to the same receiver are no pair, because a receiver takes them
/// one after the other.
pub fn contending_pairs_upwards(tree: &PlannedTree, placed: &Placed) -> u64 {
    pairs(tree, placed, |parent, child| (child, parent))
}

fn pairs(tree: &PlannedTree, placed: &Placed, way: impl Fn(Rank, Rank) -> (Rank, Rank)) -> u64 {
    let paths = Paths::new(placed);
    let mut on_edge = HashMap::<_, Parents>::new();
    let mut on_two = HashMap::<_, Parents>::new();
    for (parent, child) in tree.edges() {
        let (from, to) = way(parent, child);
        let path = paths.between(from, to);
        path.windows(2).for_each(|two| on_two.entry((two[0], two[1])).or_default().add(parent));
        path.into_iter().for_each(|edge| on_edge.entry(edge).or_default().add(parent));
    }
    let shared: u64 = on_edge.values().map(Parents::pairs).sum();
    shared - on_two.values().map(Parents::pairs).sum::<u64>()
}

/// Messages over one edge, counted by parent. Parents are added one after the other.
#[derive(Default)]
struct Parents {
    current: Option<Rank>,
    of_current: u64,
    of_others: u64,
    pairs: u64,
}

impl Parents {
    fn add(&mut self, parent: Rank) {
        if self.current != Some(parent) {
            self.current = Some(parent);
            self.of_others += std::mem::take(&mut self.of_current);
        }
        self.of_current += 1;
        self.pairs += self.of_others;
    }

    fn pairs(&self) -> u64 {
        self.pairs
    }
}
