use polycast_core::units::Nanos;

use super::check::Violation;
use super::totals::Totals;

/// A run in which everything held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolOutcome {
    /// The counts of what happened.
    pub totals: Totals,
    /// Each broadcast, communicator by communicator.
    pub broadcasts: Vec<Timing>,
    /// The run's length in virtual time.
    pub took: Nanos,
}

/// The times at which a broadcast began and ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// The earliest call.
    pub first_call: Nanos,
    /// The latest call.
    pub last_call: Nanos,
    /// The call of the root.
    pub root_call: Nanos,
    /// The earliest return.
    pub first_return: Nanos,
    /// The latest return.
    pub last_return: Nanos,
    /// The return of each node.
    pub returned: Vec<Nanos>,
    /// Fragments that multicast did not bring, over all nodes.
    pub repaired: u64,
    /// True if the nodes have been told to leave multicast, in this broadcast or before; the same
    /// on all.
    pub is_told_to_leave: Option<bool>,
    calls: u32,
    returns: u32,
}

impl Timing {
    /// The time from the first call to the last return.
    pub fn completion(&self) -> Nanos {
        self.last_return - self.first_call
    }

    pub(super) fn has_ended(&self, nodes: u32) -> bool {
        self.returns == nodes
    }

    pub(super) fn called(&mut self, now: Nanos, is_root: bool) {
        if self.calls == 0 {
            self.first_call = now;
        }
        if is_root {
            self.root_call = now;
        }
        self.calls += 1;
        self.last_call = now;
    }

    pub(super) fn returned(&mut self, now: Nanos, node: u32, repaired: u64) {
        if self.returned.is_empty() {
            self.first_return = now;
        }
        self.returns += 1;
        let nodes = self.returned.len().max(node as usize + 1);
        self.returned.resize(nodes, Nanos(0));
        self.returned[node as usize] = now;
        self.last_return = now;
        self.repaired += repaired;
    }
}

/// A rule that did not hold, with time and place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {at}, node {node}: {violation}")]
pub struct Failure {
    /// The time, in virtual time.
    pub at: Nanos,
    /// The node at which it did not hold.
    pub node: u32,
    /// The rule.
    pub violation: Violation,
}
