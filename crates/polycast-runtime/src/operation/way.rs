//! What any way of carrying an operation out does. Each way is a file or a folder of its own, and a line in `operation/mod.rs`.

use polycast_core::algorithm::Algorithm;
use polycast_core::executor::MessageId;

use super::{Call, Shared};
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

    /// Leaves a call that has failed: takes it out of what ranks share, and leaves for ever the memory
    /// that somebody may not be through with. The call's messages were cancelled.
    fn leave(&mut self, _call: &Call, _shared: &mut Shared) {}

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

    /// True if the call waits for nothing but the multicast between nodes, which is under way.
    fn is_between_nodes(&self, _shared: &Shared) -> bool {
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

/// Makes the way of an algorithm for calls like this one. It fails if the communicator has not what
/// the algorithm needs.
pub(super) type Make = fn(Algorithm, &Call, &mut Shared) -> Made;

/// Declares the ways, in the order in which they are asked for that of an algorithm. `cargo fmt` does
/// not see these files; scripts/lint.sh checks them.
macro_rules! ways {
    ($($(#[$only:meta])* mod $way:ident;)*) => {
        $($(#[$only])* mod $way;)*
        const WAYS: &[way::Make] = &[$($(#[$only])* $way::make),*];
    };
}
pub(super) use ways;
