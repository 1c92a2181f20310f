//! Types of the C interface: what include/polycast.h declares, field by field.

use std::ffi::{c_int, c_void};

/// Version of the interface, `POLYCAST_INTERFACE_VERSION`: a door of another one is not understood.
pub const INTERFACE_VERSION: u32 = 18;
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

/// `polycast_sizes` of polycast.h, field by field.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub below: u32,
    pub above: u32,
}

/// `polycast_steady` of polycast.h, field by field.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteadyCalls {
    pub collective: u32,
    pub first: u32,
    pub last: u32,
    pub calls: u32,
}

impl SteadyCalls {
    pub const NONE: SteadyCalls = SteadyCalls { collective: 0, first: 0, last: 0, calls: 0 };
}

/// A number of bytes as a field of 32 bits has it: a larger one becomes the largest that fits.
pub fn saturated(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
