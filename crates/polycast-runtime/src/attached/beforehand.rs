//! What is the MPI's whatever the rules say, on all ranks.

use super::Attached;
use crate::communicator::Wanted;
use crate::trials::Why;

impl Attached {
    /// Why it is left, if it is.
    #[inline]
    pub(super) fn leaves_beforehand(&self, call: &Wanted) -> Option<Why> {
        if self.leaves_own(call) {
            Some(Why::OwnOperation)
        } else if self.leaves_long(call) {
            Some(Why::LittleMemory)
        } else {
            None
        }
    }
}
