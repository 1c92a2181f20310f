//! Jobs in which the memory of some rank is limited beforehand. A call that is served may need room for what the MPI would have needed none for: a
//! copy of elements that do not lie side by side, the blocks of a node at the rank that stands for it. Which rank needs it the others do not know,
//! and none can leave a call alone when it finds that it gets none. So long calls are the MPI's from the beginning.

use crate::abi::{SteadyCalls, saturated};
use polycast_core::collective::Collective;
use polycast_core::policy::{Call, CommunicatorShape};

/// Longest call that may be served, in bytes, by collective. Most communicators have no such limit.
pub(super) struct LongestCalls(Box<[u64; Collective::ALL.len()]>);

impl LongestCalls {
    /// Limits for calls that need no more than `room` bytes on any rank.
    pub fn new(room: u64, shape: CommunicatorShape) -> LongestCalls {
        let (ranks, on_node) = (u64::from(shape.ranks), u64::from(shape.ranks_per_node));
        LongestCalls(Box::new(Collective::ALL.map(|collective| {
            room / match collective {
                Collective::Scatter | Collective::Gather | Collective::Allgather => ranks,
                // One rank holds what all of its node send and get.
                Collective::Alltoall => 2 * ranks * on_node,
                Collective::Broadcast | Collective::Barrier | Collective::Reduce | Collective::Allreduce => 1,
            }
        })))
    }

    /// True if the call is longer than its collective's limit.
    #[inline]
    pub fn are_below(&self, call: &Call) -> bool {
        call.bytes.0 > self.0[call.collective as usize]
    }

    /// Takes the calls that are longer than the limit out of `steady`, for nobody counts them.
    pub fn cut(&self, steady: &mut SteadyCalls) {
        let longest = self.0.get(steady.collective as usize).copied().map_or(u32::MAX, saturated);
        steady.last = steady.last.min(longest);
    }
}
