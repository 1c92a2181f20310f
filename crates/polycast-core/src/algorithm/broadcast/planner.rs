use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::{Algorithm, Build, Call};
use crate::schedule::{RankOrder, Schedule};
use crate::tree::{PlannedShape, PlannedTree, Site};
use crate::units::Rank;

/// Planned trees are kept until those kept together have more ranks than this; then the oldest go. 12 MiB; all roots of a
/// communicator with 1024 ranks.
const RANKS_KEPT_MOST: u64 = 1 << 20;

/// What the algorithms know of a communicator: where its ranks are, and the trees that were planned for it. Made once for each
/// communicator.
#[derive(Clone, Debug)]
pub struct Planner {
    site: Site,
    /// For algorithms that go by positions; `None` if ranks are in the site's order already.
    order: Option<RankOrder>,
    trees: HashMap<(PlannedShape, Rank), Arc<PlannedTree>>,
    /// The oldest first.
    kept: VecDeque<(PlannedShape, Rank)>,
}

impl Planner {
    /// For the ranks of a site.
    pub fn new(site: Site) -> Planner {
        let order = RankOrder::unless_sorted(site.ring());
        Planner { site, order, trees: HashMap::new(), kept: VecDeque::new() }
    }

    /// Where nothing is known of the ranks: each on a host of its own, all on one switch.
    ///
    /// # Panics
    /// If there is no rank.
    pub fn flat(ranks: u32) -> Planner {
        Planner::new(Site::flat(ranks))
    }

    /// Where the ranks are.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// A tree for these ranks; planned when it is asked for, and kept for a while.
    pub fn planned(&mut self, shape: PlannedShape, root: Rank) -> Arc<PlannedTree> {
        if let Some(tree) = self.trees.get(&(shape, root)) {
            return Arc::clone(tree);
        }
        while (self.kept.len() as u64 + 1) * u64::from(self.site.ranks()) > RANKS_KEPT_MOST {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.trees.remove(&oldest);
        }
        let tree = Arc::new(shape.plan(&self.site, root));
        self.kept.push_back((shape, root));
        self.trees.insert((shape, root), Arc::clone(&tree));
        tree
    }

    /// The whole tree that `algorithm` sends the data of `call` down; `None` if it is not one tree.
    pub fn tree(&mut self, algorithm: &Algorithm, call: Call) -> Option<Arc<PlannedTree>> {
        let tree = match algorithm.entry.build {
            Build::Planned(shape) => {
                let shape = shape(algorithm, call, self);
                return Some(self.planned(shape, call.root));
            }
            Build::Tree(tree) => tree(algorithm),
            Build::Lanes(..) => return None,
        };
        let from = self.site.ring_position(call.root) as usize;
        let ring = self.site.ring();
        Some(Arc::new(tree.plan(&[&ring[from..], &ring[..from]].concat())))
    }

    /// A schedule that was made for positions on the site's ring, for the ranks that stand there.
    pub(super) fn in_order<S: Schedule + 'static>(
        &self,
        call: Call,
        rank: Rank,
        make: impl Fn(Call, Rank) -> S,
    ) -> Box<dyn Schedule> {
        match &self.order {
            None => Box::new(make(call, rank)),
            Some(order) => {
                let by_position = Call { root: order.position(call.root), ..call };
                Box::new(order.apply(make(by_position, order.position(rank))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_kept_within_the_limit() {
        let ranks = 1 << 18;
        let mut planner = Planner::flat(ranks);
        let chain =
            |planner: &mut Planner, root| planner.planned(PlannedShape::ContentionFreeChain, Rank(root));
        let first = chain(&mut planner, 0);
        for root in 1..4 {
            chain(&mut planner, root);
        }
        assert!(Arc::ptr_eq(&first, &chain(&mut planner, 0)), "four are within the limit");
        chain(&mut planner, 4);
        assert_eq!(planner.trees.len(), 4);
        assert!(!Arc::ptr_eq(&first, &chain(&mut planner, 0)), "the fifth took the place of the first");
    }

    #[test]
    fn trees_by_position_follow_the_ring() {
        let mut planner = Planner::new(Site::by_host(&[7, 5, 7, 5]));
        let call = Call { ranks: 4, root: Rank(2), bytes: crate::units::Bytes(1) };
        let tree = planner.tree(&"chain".parse().unwrap(), call).unwrap();
        assert_eq!(tree.downwards(), [2, 1, 3, 0].map(Rank));
        assert!(planner.tree(&"scatter-ring".parse().unwrap(), call).is_none());
    }
}
