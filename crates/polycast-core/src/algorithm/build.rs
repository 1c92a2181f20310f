//! How an algorithm's schedules are made.

use super::broadcast::{Planner, tree_pipeline};
use super::intervals::Intervals;
use super::plan::Plan;
use super::{Algorithm, Form, gather, reduce, scatter};
use crate::collective::{Call, Collective, CombinationOrder};
use crate::schedule::{Nodes, Schedule};
use crate::tree::{PlannedShape, Tree};
use crate::units::Rank;
use polycast_protocol as protocol;

/// Makes one rank's schedule of a call.
pub type Builder = fn(&Algorithm, &Call, Rank) -> Box<dyn Schedule>;

/// Makes one rank's schedule of a call that also goes through the memory of nodes, which are as
/// that rank sees them.
pub type OnNodes = fn(&Algorithm, &Call, &Nodes, Rank) -> Box<dyn Schedule>;

#[derive(Clone, Copy)]
pub(super) enum Build {
    /// Broadcast: segments run down a tree that needs no knowledge of the network: the root is position 0, the others follow
    /// around the site's ring.
    Tree(fn(&Algorithm) -> Tree),
    /// Broadcast, scatter, gather, reduce: down, or up, a tree that is planned for the ranks where they are.
    Planned(fn(&Algorithm, Call, &Planner) -> PlannedShape),
    /// Broadcast: lanes by position, and what they cost.
    Lanes(fn(&Algorithm, Call, Rank) -> Plan, Form),
    /// Any collective.
    Any(Builder),
    /// Any collective, with shared memory on nodes.
    OnNodes(OnNodes),
    /// Any collective, through the shared memory of the only node.
    OnOneNode(Builder),
    /// Broadcast: by the state machine of the protocol.
    Multicast(protocol::Form),
}

impl Algorithm {
    /// Returns the schedule of `rank` in `call` on the communicator that `planner` was made for. It
    /// costs no memory per segment; a call of 0 bytes has no messages at all, but for a barrier.
    ///
    /// # Panics
    /// If the communicator has another number of ranks than the call, `rank` or the root is not among them, or the algorithm
    /// is for other collectives, does not [keep](Algorithm::keeps_on) the call's order, or is a multicast.
    pub fn schedule(&self, call: Call, rank: Rank, planner: &mut Planner) -> Box<dyn Schedule> {
        assert!(rank.0 < call.ranks && call.root.0 < call.ranks, "{rank} in {call:?}");
        assert_eq!(call.ranks, planner.site().ranks(), "{call:?}");
        let keeps = || match self.entry.build {
            Build::OnNodes(_) => self.keeps_on(&planner.nodes(rank)),
            _ => self.entry.keeps,
        };
        assert!(self.entry.serves(call.collective), "{self} in {call:?}");
        assert!(
            call.order == CombinationOrder::Any || call.order.among(call.ranks) <= keeps(),
            "{self} in {call:?}"
        );
        match self.entry.build {
            Build::Tree(tree) => planner.in_order(call, rank, |call, rank| {
                let local = tree(self).local(call.ranks, call.root, rank);
                tree_pipeline::plan(self, call, local).finish()
            }),
            Build::Planned(shape) => {
                let shape = shape(self, call, planner);
                let tree = planner.planned(shape, call.root);
                match call.collective {
                    Collective::Scatter => scatter::trees::schedule(Intervals::of(&tree), self, &call, rank),
                    Collective::Gather => gather::trees::schedule(Intervals::of(&tree), self, &call, rank),
                    Collective::Reduce => reduce::trees::schedule(&Intervals::of(&tree), self, &call, rank),
                    _ => Box::new(tree_pipeline::plan(self, call, tree.local(rank)).finish()),
                }
            }
            Build::Lanes(plan, _) => {
                planner.in_order(call, rank, |call, rank| plan(self, call, rank).finish())
            }
            Build::Any(schedule) | Build::OnOneNode(schedule) => schedule(self, &call, rank),
            Build::OnNodes(schedule) => schedule(self, &call, &planner.nodes(rank), rank),
            Build::Multicast(_) => panic!("{self} has no schedules"),
        }
    }
}
