//! Types of the C interface: what include/polycast.h declares, field by field.

use std::ffi::{c_int, c_void};

use polycast_core::collective::Collective;
use polycast_core::policy;

/// Version of the interface, `POLYCAST_INTERFACE_VERSION`: a door of another one is not understood.
pub const INTERFACE_VERSION: u32 = 19;
/// Capability of a door, `POLYCAST_CAN_PACK`.
pub const CAN_PACK: u32 = 1;
/// Capability of a door, `POLYCAST_GIVES_WAY`.
pub const GIVES_WAY: u32 = 2;
/// Most bytes of a message, `POLYCAST_MESSAGE_MOST_BYTES`.
pub const MESSAGE_MOST_BYTES: u64 = 4 << 20;

/// Any sender, `POLYCAST_ANY_PEER`, as it is handed to a receive.
pub const ANY_PEER: u32 = u32::MAX;

/// `polycast_call` of polycast.h, field by field.
#[repr(C)]
pub struct CollectiveCall {
    pub collective: u32,
    pub root: i32,
    pub bytes: usize,
    pub reduction: *const Reduction,
}

/// `polycast_reduction` of polycast.h, field by field.
#[repr(C)]
pub struct Reduction {
    pub element_bytes: usize,
    pub is_commutative: u32,
    pub is_exact: u32,
    pub is_own: u32,
    pub combine: unsafe extern "C" fn(*const Reduction, *const c_void, *mut c_void, usize) -> c_int,
}

/// An MPI error code, never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpiError(pub c_int);

/// `polycast_completion` of polycast.h: a message that MPI is through with.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Completion {
    pub slot: u32,
    /// MPI's error; 0: none.
    pub error: c_int,
    /// Bytes that came, of a receive.
    pub bytes: usize,
}

/// `polycast_door` of polycast.h, field by field.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DoorTable {
    pub interface_version: u32,
    pub capabilities: u32,
    pub allgather: unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_void, usize) -> c_int,
    pub broadcast: unsafe extern "C" fn(*mut c_void, *mut c_void, usize, c_int) -> c_int,
    pub sum: unsafe extern "C" fn(*mut c_void, *mut u64, usize) -> c_int,
    pub intersect: unsafe extern "C" fn(*mut c_void, *mut u64, usize) -> c_int,
    pub stock: unsafe extern "C" fn(*mut c_void, *const CollectiveCall, *const c_void, *mut c_void) -> c_int,
    pub world_ranks: unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int,
    pub isend: unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_int, c_int, u32) -> c_int,
    pub irecv: unsafe extern "C" fn(*mut c_void, *mut c_void, usize, c_int, c_int, u32) -> c_int,
    pub poll: unsafe extern "C" fn(*mut c_void, *mut Completion, *mut u32) -> c_int,
    pub cancel: unsafe extern "C" fn(*mut c_void, *const u32, u32),
    pub close: unsafe extern "C" fn(*mut c_void),
    pub sum_over_world: unsafe extern "C" fn(*mut u64, usize) -> c_int,
    pub take_leave: unsafe extern "C" fn(),
}

/// Counts of calls by collective, which the door has for `polycast_passes`.
pub type PassedCounts = [u32; Collective::ALL.len()];

/// `polycast_passing` of polycast.h, field by field.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passing {
    pub below: u32,
    pub above: u32,
    pub first: u32,
    pub last: u32,
    pub until: u32,
}

impl Passing {
    /// No call.
    pub const NOTHING: Passing = Passing { below: 0, above: u32::MAX, first: 0, last: 0, until: 0 };

    /// Lets calls of `first` to `last` bytes pass until the door has counted `calls`.
    #[inline]
    pub fn count(&mut self, (first, last): (u64, u64), calls: u64) {
        if let Ok(first) = u32::try_from(first) {
            (self.first, self.last, self.until) = (first, saturated(last), saturated(calls));
        }
    }

    /// `polycast_passes` of polycast.h, for doors without C.
    #[cfg(test)]
    pub fn passes(&self, bytes: usize, count: &mut u32) -> bool {
        let Ok(bytes) = u32::try_from(bytes) else { return false };
        if bytes < self.below || bytes > self.above {
            return true;
        }
        let is_counted = *count < self.until && (self.first..=self.last).contains(&bytes);
        *count += u32::from(is_counted);
        is_counted
    }
}

impl From<policy::Passing> for Passing {
    fn from(policy::Passing { uncounted, counted, until }: policy::Passing) -> Passing {
        let (below, above) = (saturated(uncounted.below), saturated(uncounted.above));
        let mut passing = Passing { below, above, ..Passing::NOTHING };
        passing.count(counted, until);
        passing
    }
}

/// A number of bytes as a field of 32 bits has it: a larger one becomes the largest that fits.
pub fn saturated(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
