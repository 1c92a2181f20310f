//! Broadcast: every rank ends with the root's bytes.
//!
//! Algorithms that need no knowledge of the network name ranks by *position*: the root is 0, the others follow around the
//! site's ring. The others send down a tree that the [`Planner`] has made for the ranks where they are.

mod alpha_port;
mod binary;
mod block_binomial;
mod chain;
mod contention_free_binary;
mod contention_free_chain;
mod contention_free_k_ary;
mod flat;
mod k_ary;
mod k_nomial;
mod link_aware;
mod opt_tree;
mod parse;
mod planner;
mod scatter;
mod scatter_doubling;
mod scatter_ring;
mod spec;
mod split_binary;
mod tree_pipeline;

pub use parse::ParseAlgorithmError;
pub use planner::Planner;
pub use spec::{Algorithm, Shape};

use super::plan::Plan;
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
    /// If the communicator has another number of ranks than the call, `rank` or the root is not among them, or for
    /// [`Shape::KNomial`] with k = 1.
    pub fn schedule(&self, call: Call, rank: Rank, planner: &mut Planner) -> Box<dyn Schedule> {
        assert!(rank.0 < call.ranks && call.root.0 < call.ranks, "{rank} in {call:?}");
        assert_eq!(call.ranks, planner.site().ranks(), "{call:?}");
        if self.shape == Shape::ContentionFreeChain {
            return Box::new(contention_free_chain::plan(self, call, rank, planner).finish());
        }
        if let Some(shape) = self.planned_shape(call) {
            let local = planner.planned(shape, call.root).local(rank);
            return Box::new(tree_pipeline::plan_local(self, call, local).finish());
        }
        planner.in_order(call, rank, |call, rank| self.plan_by_position(call, rank).finish())
    }

    fn plan_by_position(&self, call: Call, rank: Rank) -> Plan {
        match self.shape {
            Shape::Flat => flat::plan(self, call, rank),
            Shape::Chain => chain::plan(self, call, rank),
            Shape::Binary => binary::plan(self, call, rank),
            Shape::KAry(k) => k_ary::plan(self, call, rank, k),
            Shape::KNomial(k) => k_nomial::plan(self, call, rank, k),
            Shape::SplitBinary => split_binary::plan(self, call, rank),
            Shape::ScatterRing => scatter_ring::plan(self, call, rank),
            Shape::ScatterDoubling => scatter_doubling::plan(self, call, rank),
            Shape::ContentionFreeChain
            | Shape::ContentionFreeBinary
            | Shape::ContentionFreeKAry(_)
            | Shape::LinkAware
            | Shape::OptTree(_)
            | Shape::AlphaPort { .. }
            | Shape::BlockBinomial(_) => unreachable!("planned for the site"),
        }
    }
}
