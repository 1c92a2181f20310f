//! What a door leaves to the MPI by itself, without asking who serves it.

use super::ToStock;

/// Calls of one collective that a door leaves to the MPI by itself. All ranks have the same of them
/// uncounted; those that are counted a chooser is told of before it is asked about anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passing {
    /// Sizes of calls that nobody counts.
    pub uncounted: ToStock,
    /// The first and the last size, in bytes, of calls that the door counts.
    pub counted: (u64, u64),
    /// The number of counted calls from which on such calls are asked about.
    pub until: u64,
}

impl Passing {
    /// No call.
    pub const NOTHING: Passing = Passing { uncounted: ToStock::NOTHING, counted: (0, 0), until: 0 };

    /// True if the door leaves a call of `bytes` bytes, when it has counted `counted_calls`: one
    /// more if this one is counted. This is what `polycast_passes` of polycast.h does.
    pub fn passes(&self, bytes: u64, counted_calls: &mut u64) -> bool {
        if self.uncounted.has(bytes) {
            return true;
        }
        let (first, last) = self.counted;
        let is_counted = *counted_calls < self.until && first <= bytes && bytes <= last;
        *counted_calls += u64::from(is_counted);
        is_counted
    }
}
