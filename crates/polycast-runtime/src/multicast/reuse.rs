//! A group that all leaders of a communicator's nodes have already serves the communicator, too.
//! They find that out when its ranks agree on a number (`attach/number.rs`): programs make a
//! communicator, broadcast, and free it, thousands of times.

use std::sync::Arc;

use polycast_core::schedule::Nodes;
use polycast_core::units::Rank;

use super::group::{Group, next_communicator};
use super::registry::{self, Standing};
use super::setup::{Seat, seat, set_of};
use crate::settings;

/// A group that this rank could use again, and its words about it.
#[derive(Clone)]
pub struct Reuse {
    group: Option<Arc<Group>>,
    set: u64,
    words: [u64; 2],
}

impl Reuse {
    /// No reuse: no rank wants multicast now.
    pub const NOTHING: Reuse = Reuse { group: None, set: 0, words: [0; 2] };

    /// The group that this rank has for a communicator over these nodes.
    pub fn of(rank: Rank, nodes: &Nodes, hosts: &[u64], processes: &[u64]) -> Reuse {
        let set = set_of(nodes, hosts, processes);
        if nodes.my_leader() != rank {
            return Reuse { group: None, set, words: [u64::MAX; 2] };
        }
        let is_wanted = settings::Multicast::current().is_ok_and(|wanted| wanted.family.is_some());
        let group = match registry::standing(set) {
            Standing::Open(group) if is_wanted => Some(group),
            _ => None,
        };
        let job = group.as_ref().map_or(0, |group| group.job());
        let communicator = match (&group, rank) {
            (_, Rank(1..)) => u64::MAX,
            (Some(_), _) => next_communicator().into(),
            (None, _) => 0,
        };
        Reuse { group, set, words: [u64::from(job) | u64::from(!job) << 32, communicator] }
    }

    /// Words for the intersection over all ranks: the job number of the group of each leader, and
    /// its complement; rank 0's number for the communicator in the group.
    pub fn words(&self) -> [u64; 2] {
        self.words
    }

    /// The seat in the common group, alike on all ranks: `None` if the leaders do not all have the
    /// same group; `Some(None)` on ranks that lead no node.
    pub fn take(self, common: [u64; 2], nodes: &Nodes) -> Option<Option<Seat>> {
        let (job, complement) = (common[0] as u32, (common[0] >> 32) as u32);
        (job != 0 && job == !complement)
            .then(|| self.group.map(|group| seat(nodes, self.set, common[1] as u32, group)))
    }
}
