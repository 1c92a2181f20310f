use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::ops::Range;

use super::RankOrder;
use crate::collective::CombinationTree;
use crate::units::Rank;

/// The nodes of a communicator, and the ranks on each. Nodes are in the order in which data visits
/// their ranks; rank 0's is the first. The first rank on a node leads it: that rank alone has a
/// socket.
#[derive(Clone, Debug)]
pub struct Nodes {
    node_of: Vec<u32>,
    leaders: Vec<Rank>,
    /// The index of this rank's node.
    mine: u32,
    /// The ranks on this rank's node, rising.
    local: RankOrder,
    are_parts_of_the_tree: bool,
}

impl Nodes {
    /// Groups the ranks by host, as `rank` sees them. `host_of` has an entry per rank. `ring` has
    /// all ranks in the order in which data visits them, and begins with rank 0.
    pub fn new(host_of: &[u64], ring: &[Rank], rank: Rank) -> Nodes {
        let mut known = HashMap::new();
        let mut leaders = Vec::new();
        let mut node_of = vec![0; host_of.len()];
        for &other in ring {
            node_of[other.index()] = *known.entry(host_of[other.index()]).or_insert_with(|| {
                leaders.push(other);
                leaders.len() as u32 - 1
            });
        }
        leaders.shrink_to_fit();
        let mine = node_of[rank.index()];
        let local = (0..).map(Rank).zip(&node_of).filter(|(_, node)| **node == mine);
        let local = RankOrder::of(local.map(|(rank, _)| rank).collect());
        let are_parts_of_the_tree = are_parts_of_the_tree(&node_of);
        Nodes { node_of, leaders, mine, local, are_parts_of_the_tree }
    }

    /// The nodes that `rank`, whose nodes these are, would see if there were no node but its own:
    /// the ranks there are named by their positions in [`Nodes::local`].
    pub fn alone(&self, rank: Rank) -> Nodes {
        let all: Vec<Rank> = (0..self.local.ranks()).map(Rank).collect();
        Nodes::new(&vec![0; all.len()], &all, self.local.position(rank))
    }

    /// The same nodes in the order of their first ranks.
    pub fn by_rank(&self) -> Nodes {
        let mut order: Vec<u32> = Vec::with_capacity(self.leaders.len());
        let mut number = vec![None; self.leaders.len()];
        for node in &self.node_of {
            number[*node as usize].get_or_insert_with(|| {
                order.push(*node);
                order.len() as u32 - 1
            });
        }
        let number = |node: u32| number[node as usize].unwrap_or(node);
        Nodes {
            node_of: self.node_of.iter().map(|node| number(*node)).collect(),
            leaders: order.iter().map(|node| self.leaders[*node as usize]).collect(),
            mine: number(self.mine),
            local: self.local.clone(),
            are_parts_of_the_tree: self.are_parts_of_the_tree,
        }
    }

    /// True if each node has a part of the tree of combinations, and these parts are combined as by
    /// the tree of as many ranks.
    pub fn are_parts_of_the_tree(&self) -> bool {
        self.are_parts_of_the_tree
    }

    /// The number of nodes.
    pub fn count(&self) -> u32 {
        self.leaders.len() as u32
    }

    /// The index of a rank's node.
    pub fn of(&self, rank: Rank) -> u32 {
        self.node_of[rank.index()]
    }

    /// The leader of each node.
    pub fn leaders(&self) -> &[Rank] {
        &self.leaders
    }

    /// The index of this rank's node.
    pub fn mine(&self) -> u32 {
        self.mine
    }

    /// The leader of this rank's node.
    pub fn my_leader(&self) -> Rank {
        self.leaders[self.mine as usize]
    }

    /// The ranks on this rank's node.
    pub fn local(&self) -> &RankOrder {
        &self.local
    }
}

/// See [`Nodes::are_parts_of_the_tree`]; of ranks on these nodes.
pub fn are_parts_of_the_tree<T: Copy + Eq + Hash>(node_of: &[T]) -> bool {
    let (mut parts, mut met): (Vec<Range<u32>>, _) = (Vec::new(), HashSet::new());
    let mut last = None;
    for (rank, node) in (0..).zip(node_of) {
        if last == Some(node) {
            parts.last_mut().into_iter().for_each(|part| part.end = rank + 1);
        } else if met.insert(*node) {
            parts.push(rank..rank + 1);
        } else {
            // The ranks of this node do not follow one another.
            return false;
        }
        last = Some(node);
    }
    !parts.is_empty() && CombinationTree::new(node_of.len() as u32).is_of_parts(&parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rank_on_a_node_leads_it() {
        let nodes = Nodes::new(&[7, 5, 7, 9, 5], &[0, 2, 1, 4, 3].map(Rank), Rank(4));
        assert_eq!(nodes.count(), 3);
        assert_eq!(nodes.leaders(), [0, 1, 3].map(Rank));
        assert_eq!([0, 1, 2, 3, 4].map(|rank| nodes.of(Rank(rank))), [0, 1, 0, 2, 1]);
        assert_eq!((nodes.mine(), nodes.my_leader()), (1, Rank(1)));
        assert_eq!((nodes.local().ranks(), nodes.local().position(Rank(4))), (2, Rank(1)));
    }

    /// On two switches, with hosts 7 and 9 on the first: a ring in the order of ranks would cross between them four times.
    #[test]
    fn nodes_follow_the_order_of_the_network() {
        let nodes = Nodes::new(&[7, 5, 9, 9, 4], &[0, 2, 3, 1, 4].map(Rank), Rank(3));
        assert_eq!(nodes.leaders(), [0, 2, 1, 4].map(Rank));
        assert_eq!([0, 1, 2, 3, 4].map(|rank| nodes.of(Rank(rank))), [0, 2, 1, 1, 3]);
        assert_eq!((nodes.mine(), nodes.my_leader()), (1, Rank(2)));
    }
}
