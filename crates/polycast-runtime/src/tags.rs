//! The tags of successive operations.

use std::ffi::c_int;

use polycast_core::schedule::CHANNELS;

use crate::door::TAG_MOST;

/// The number of the operation above, the channel below, so that messages of operations in flight are told apart, and those which an
/// erroneous program left over. Number 0 is left to [`crate::multicast`].
#[derive(Default)]
pub struct Tags {
    operation: c_int,
}

const OPERATIONS_TOLD_APART: c_int = (TAG_MOST + 1) / CHANNELS as c_int;

impl Tags {
    /// The tag of channel 0 of the next operation.
    pub fn next(&mut self) -> c_int {
        self.operation = self.operation % (OPERATIONS_TOLD_APART - 1) + 1;
        self.operation * c_int::from(CHANNELS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_stay_within_what_every_mpi_has() {
        let mut tags = Tags::default();
        let all: Vec<c_int> = (0..=OPERATIONS_TOLD_APART).map(|_| tags.next()).collect();
        assert!(all.iter().all(|tag| (0..=TAG_MOST - c_int::from(CHANNELS) + 1).contains(tag)));
        assert_ne!(all[0], all[1]);
        assert_eq!(all[0], all[OPERATIONS_TOLD_APART as usize - 1], "they come round");
        assert!(all.iter().all(|tag| *tag >= c_int::from(CHANNELS)), "the first are not ours");
    }
}
