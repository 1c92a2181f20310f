//! The ways in which operations are carried out: each is a file or a folder of its own, and a line here.

use polycast_core::algorithm::Algorithm;
use polycast_core::executor::MessageId;

use super::{Call, Shared, cells, dynamic, exchange, multicast};
use crate::call::{Failure, OperationKey, Progress};
use crate::messages::Done;

/// A way that serves one call after another that is the same.
pub(super) trait Way {
    /// Begins a call.
    fn begin(&mut self, key: OperationKey, call: &Call, shared: &mut Shared) -> Result<(), Failure>;

    /// Takes what has come, and starts what can be started. Before anything is returned but `Pending`, the way has nothing under way.
    fn progress(&mut self, call: &Call, shared: &mut Shared) -> Result<Progress, Failure>;

    /// Gives back memory that the next call does not need. The call has ended well or with sizes
    /// that differ.
    fn rest(&mut self) {}

    /// Leaves the call's memory for ever: its messages were cancelled, and the MPI may not be
    /// through with what it sends.
    fn leave_to_mpi(&mut self) {}

    /// The place for messages that have completed; `None`: the way sends none.
    fn inbox(&mut self) -> Option<&mut Vec<Done<MessageId>>> {
        None
    }

    /// True if the call waits for nothing but what other ranks of the node do in memory that they share.
    fn waits_for_memory(&self) -> bool {
        false
    }

    /// True if the call may wait for such memory, too.
    fn has_memory(&self) -> bool {
        false
    }

    /// True if the call waits for nothing but the multicast between nodes.
    fn is_between_nodes(&self) -> bool {
        false
    }

    /// Bytes of memory that are kept for the next call.
    #[cfg(test)]
    fn scratch_bytes(&self) -> usize {
        0
    }
}

/// The way of an algorithm, or why there is none; `None`: the algorithm goes another way.
pub(super) type Made = Option<Result<Box<dyn Way>, Failure>>;

/// Makes the way of an algorithm.
type Make = fn(Algorithm, &Call, &mut Shared) -> Made;

/// Each way, and last the one that runs any schedule.
const WAYS: [Make; 4] = [multicast::make, cells::make, dynamic::make, exchange::make];

/// The way of `algorithm` for calls like this one.
///
/// # Errors
/// The communicator has not what the algorithm needs.
pub(super) fn make(algorithm: Algorithm, call: &Call, shared: &mut Shared) -> Result<Box<dyn Way>, Failure> {
    WAYS.iter().find_map(|make| make(algorithm, call, shared)).unwrap_or(Err(Failure::Internal))
}
