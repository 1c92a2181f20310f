//! Calls that are the MPI's on all ranks, whatever the rules say, but for what is forced.

use super::super::{Call, CommunicatorShape};
use super::words::{Request, Why};
use crate::collective::Collective;

/// Most bytes of a reduction by the program's own operation that is served. Rules are measured with
/// operations that take next to nothing. Where one rank combines more than others would, a dear one
/// costs more than messages do: 32 KiB of doubles, 100 multiplications for each, 8 ranks on two
/// processors, two levels: 13 ms, Open MPI 7. And programs are seen that hand in records as bytes,
/// which an MPI that does not cut adds up rightly.
pub(super) const OWN_OPERATION_MOST_BYTES: u64 = 4 << 10;

/// Longest call that may be served, in bytes, by collective. Most communicators have no such limit.
///
/// A call that is served may need room for what the MPI would have needed none for: a copy of
/// elements that do not lie side by side, the blocks of a node at the rank that stands for it. Which
/// rank needs it the others do not know, and none can leave a call alone when it finds that it gets
/// none. So where the memory of some rank is limited beforehand long calls are the MPI's from the
/// beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongestCalls(Box<[u64; Collective::ALL.len()]>);

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

    /// The longest call of a collective.
    pub(super) fn of(&self, collective: Collective) -> u64 {
        self.0[collective as usize]
    }

    fn are_exceeded_by(&self, call: &Call) -> bool {
        call.bytes.0 > self.of(call.collective)
    }
}

/// The reason for which a call is the MPI's unless its way is forced, if there is one.
#[inline]
pub(super) fn reason(longest: Option<&LongestCalls>, request: &Request) -> Option<Why> {
    if request.is_own && request.call.bytes.0 > OWN_OPERATION_MOST_BYTES {
        return Some(Why::OwnOperation);
    }
    longest.is_some_and(|longest| longest.are_exceeded_by(&request.call)).then_some(Why::LittleMemory)
}
