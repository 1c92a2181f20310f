//! How ranks come to a call and leave it.
//!
//! ```text
//!     first call          root's call              last call        last return
//!         ├──── startup ────────┼──── intermediate ────────┼───── final ──────┤        Siebert 2006, §1.3.2
//!         ├───────────────── skew in ──────────────────────┤
//! ```
//! Where the root is the first, startup is 0, where it is the last, intermediate is.

use crate::calls::Call;
use crate::has_root;

/// The three phases of a broadcast, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phases {
    /// The time from the first call to the root's.
    pub startup_ns: u64,
    /// The time from the root's call to the last one.
    pub intermediate_ns: u64,
    /// The time from the last call to the last return.
    pub final_ns: u64,
}

/// The times between the ranks' calls and returns, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// The time from the first call to the last one.
    pub in_ns: u64,
    /// The time from the first return to the last one.
    pub out_ns: u64,
    /// The time from the last call to the last return.
    pub after_last_ns: u64,
    /// The rank of the communicator that called last.
    pub last: u32,
    /// The rank of the communicator that called first.
    pub first: u32,
}

/// Returns the skew of a call; `None` where not all ranks are known, or their times are not to be
/// held against each other.
pub fn skew(call: &Call) -> Option<Skew> {
    if !call.is_whole() || !call.has_one_clock {
        return None;
    }
    let first = call.parts.iter().min_by_key(|part| part.called_ns)?;
    let last = call.parts.iter().max_by_key(|part| part.called_ns)?;
    let returns = || call.parts.iter().filter_map(|part| part.returned_ns);
    let (first_return, last_return) = (returns().min()?, returns().max()?);
    Some(Skew {
        in_ns: last.called_ns.abs_diff(first.called_ns),
        out_ns: last_return.abs_diff(first_return),
        after_last_ns: last_return.saturating_sub(last.called_ns).max(0) as u64,
        last: last.rank,
        first: first.rank,
    })
}

/// Returns the phases of a call with a root whose ranks are all known; `None` of other calls.
pub fn phases(call: &Call) -> Option<Phases> {
    let Skew { in_ns, after_last_ns, .. } = skew(call).filter(|_| has_root(call.collective))?;
    let root = call.parts.iter().find(|part| part.rank == call.root)?.called_ns;
    let first = call.parts.iter().map(|part| part.called_ns).min()?;
    let startup_ns = root.abs_diff(first);
    Some(Phases { startup_ns, intermediate_ns: in_ns - startup_ns, final_ns: after_last_ns })
}
