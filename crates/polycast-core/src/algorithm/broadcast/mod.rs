//! Broadcast: every rank ends with the root's bytes.
//!
//! Algorithms that need no knowledge of the network name ranks by *position*: the root is 0, the others follow around the
//! site's ring. The others send down a tree that the [`Planner`] has made for the ranks where they are.

mod planner;
mod scatter;
mod tree_pipeline;
mod two_level;

super::registry::files! {
    mod by_position;
    mod split_binary;
    mod scatter_ring;
    mod scatter_doubling;
    mod double_tree;
    mod planned;
}

pub use by_position::BINOMIAL;
pub use planner::{Origin, Planner, Sent};
pub use two_level::{Between, TwoLevel};

use super::{Algorithm, Build};
use crate::schedule::{Channel, Schedule};
use crate::units::{Bytes, Rank};

/// The channel of what runs down a tree.
const DOWN: Channel = 0;
/// The channel of what ranks exchange after a scatter; [`super::plan::READY`] stands between the two.
const EXCHANGE: Channel = 2;

/// One broadcast call as every rank of the communicator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Ranks in the communicator, at least 1.
    pub ranks: u32,
    /// Who has the data.
    pub root: Rank,
    /// How much data.
    pub bytes: Bytes,
}

impl Call {
    fn position_of(&self, rank: Rank) -> u32 {
        rank.relative_to(self.root, self.ranks)
    }

    fn rank_at(&self, position: u32) -> Rank {
        Rank::from_relative(position, self.root, self.ranks)
    }
}

impl Algorithm {
    /// What `rank` does in `call` on the communicator that `planner` was made for. Costs no memory per segment; a broadcast of
    /// 0 bytes has no messages at all.
    ///
    /// # Panics
    /// If the communicator has another number of ranks than the call, `rank` or the root is not among them.
    pub fn schedule(&self, call: Call, rank: Rank, planner: &mut Planner) -> Box<dyn Schedule> {
        assert!(rank.0 < call.ranks && call.root.0 < call.ranks, "{rank} in {call:?}");
        assert_eq!(call.ranks, planner.site().ranks(), "{call:?}");
        match self.entry.build {
            Build::Tree(tree) => planner.in_order(call, rank, |call, rank| {
                let local = tree(self).local(call.ranks, call.root, rank);
                tree_pipeline::plan(self, call, local).finish()
            }),
            Build::Planned(shape) => {
                let shape = shape(self, call, planner);
                let local = planner.planned(shape, call.root).local(rank);
                Box::new(tree_pipeline::plan(self, call, local).finish())
            }
            Build::Lanes(plan, _) => {
                planner.in_order(call, rank, |call, rank| plan(self, call, rank).finish())
            }
        }
    }
}
