//! Broadcast: every rank ends with the root's bytes.
//!
//! The files name ranks by *position*: the root is 0, the others follow around the ring of ranks.

mod binary;
mod chain;
mod flat;
mod k_ary;
mod k_nomial;
mod scatter;
mod scatter_doubling;
mod scatter_ring;
mod spec;
mod split_binary;
mod tree_pipeline;

pub use spec::{Algorithm, ParseAlgorithmError, Shape};

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
    /// What `rank` does in `call`. Costs no memory per segment; a broadcast of 0 bytes has no messages at all.
    ///
    /// # Panics
    /// If `rank` or the root is not below `call.ranks`, or for [`Shape::KNomial`] with k = 1.
    pub fn schedule(&self, call: Call, rank: Rank) -> Box<dyn Schedule> {
        assert!(rank.0 < call.ranks && call.root.0 < call.ranks, "{rank} in {call:?}");
        let plan = match self.shape {
            Shape::Flat => flat::plan(self, call, rank),
            Shape::Chain => chain::plan(self, call, rank),
            Shape::Binary => binary::plan(self, call, rank),
            Shape::KAry(k) => k_ary::plan(self, call, rank, k),
            Shape::KNomial(k) => k_nomial::plan(self, call, rank, k),
            Shape::SplitBinary => split_binary::plan(self, call, rank),
            Shape::ScatterRing => scatter_ring::plan(self, call, rank),
            Shape::ScatterDoubling => scatter_doubling::plan(self, call, rank),
        };
        Box::new(plan.finish())
    }
}
