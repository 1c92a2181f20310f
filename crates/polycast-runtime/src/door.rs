//! The table of functions that a door gives us, made safe to call.

use std::ffi::{c_int, c_void};

use crate::plan::CollectiveCall;

/// An MPI error code, never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpiError(pub c_int);

/// `polycast_completion` of polycast.h: a message that MPI is through with.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Completion {
    pub slot: u32,
    /// 0, or MPI's.
    pub error: c_int,
    /// Of receives, those that came.
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

impl DoorTable {
    /// Adds up over all ranks of MPI_COMM_WORLD, for rank 0. Collective.
    pub fn sum_over_world(&self, values: &mut [u64]) -> Result<(), MpiError> {
        // SAFETY: the values are as many as we say.
        checked(unsafe { (self.sum_over_world)(values.as_mut_ptr(), values.len()) })
    }

    /// The last call, when all is sent. Collective.
    pub fn take_leave(&self) {
        // SAFETY: MPI is there until `polycast_finalize` has returned.
        unsafe { (self.take_leave)() }
    }
}

/// `POLYCAST_INTERFACE_VERSION`.
pub const INTERFACE_VERSION: u32 = 18;
/// `POLYCAST_CAN_PACK`.
pub const CAN_PACK: u32 = 1;
/// `POLYCAST_GIVES_WAY`.
pub const GIVES_WAY: u32 = 2;
/// `POLYCAST_MESSAGE_MOST_BYTES`.
pub const MESSAGE_MOST_BYTES: u64 = 4 << 20;

/// `POLYCAST_ANY_PEER`, as it is handed to a receive.
pub const ANY_PEER: u32 = u32::MAX;

/// One communicator's door.
#[derive(Clone, Copy)]
pub struct Door {
    table: &'static DoorTable,
    communicator: *mut c_void,
}

fn checked(code: c_int) -> Result<(), MpiError> {
    if code == 0 { Ok(()) } else { Err(MpiError(code)) }
}

impl Door {
    /// # Safety
    /// The functions of `table` must be those that polycast.h describes and accept `communicator` until the door
    /// detaches it.
    pub unsafe fn new(table: &'static DoorTable, communicator: *mut c_void) -> Self {
        Door { table, communicator }
    }

    pub fn capabilities(&self) -> u32 {
        self.table.capabilities
    }

    /// The stock MPI_Allgather on the program's communicator: `N` bytes of each of the `size` ranks.
    pub fn allgather<const N: usize>(&self, mine: &[u8; N], size: usize) -> Result<Vec<[u8; N]>, MpiError> {
        let mut all = vec![[0; N]; size];
        // SAFETY: `mine` has N bytes and `all` N per rank, as the door expects.
        checked(unsafe {
            (self.table.allgather)(self.communicator, mine.as_ptr().cast(), all.as_mut_ptr().cast(), N)
        })?;
        Ok(all)
    }

    /// The stock collective on the program's communicator, of plain bytes; words of 64 bits are added up where something is combined.
    ///
    /// # Safety
    /// The buffers are as polycast.h says of `polycast_start`.
    pub unsafe fn stock(
        &self,
        call: &CollectiveCall,
        send: *const u8,
        receive: *mut u8,
    ) -> Result<(), MpiError> {
        // SAFETY: handed on from the caller.
        checked(unsafe { (self.table.stock)(self.communicator, call, send.cast(), receive.cast()) })
    }

    /// The same with as many bytes as `mine` has, which must be as many on all ranks.
    pub fn allgather_bytes(&self, mine: &[u8], size: usize) -> Result<Vec<u8>, MpiError> {
        let mut all = vec![0; mine.len() * size];
        if !mine.is_empty() {
            // SAFETY: `all` has room for as many bytes per rank as `mine` has, as the door expects.
            checked(unsafe {
                (self.table.allgather)(
                    self.communicator,
                    mine.as_ptr().cast(),
                    all.as_mut_ptr().cast(),
                    mine.len(),
                )
            })?;
        }
        Ok(all)
    }

    /// The stock MPI_Bcast on the program's communicator.
    pub fn broadcast(&self, buffer: &mut [u8], root: u32) -> Result<(), MpiError> {
        // SAFETY: the buffer is as long as we say.
        checked(unsafe {
            (self.table.broadcast)(self.communicator, buffer.as_mut_ptr().cast(), buffer.len(), root as c_int)
        })
    }

    /// What rank 0 says, by two of them.
    pub fn say_to_all(&self, mine: String) -> Result<String, MpiError> {
        let mut length = (mine.len() as u64).to_le_bytes();
        self.broadcast(&mut length, 0)?;
        let length = u64::from_le_bytes(length) as usize;
        let mut bytes = mine.into_bytes();
        bytes.resize(length, 0);
        if length > 0 {
            self.broadcast(&mut bytes, 0)?;
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The stock MPI_Allreduce on the program's communicator.
    pub fn sum(&self, values: &mut [u64]) -> Result<(), MpiError> {
        // SAFETY: the values are as many as we say.
        checked(unsafe { (self.table.sum)(self.communicator, values.as_mut_ptr(), values.len()) })
    }

    /// The same, and leaves the bits that are set on all ranks.
    pub fn intersect(&self, words: &mut [u64]) -> Result<(), MpiError> {
        // SAFETY: the words are as many as we say.
        checked(unsafe { (self.table.intersect)(self.communicator, words.as_mut_ptr(), words.len()) })
    }

    /// The rank in MPI_COMM_WORLD of each of the `size` ranks of the program's communicator. Local.
    pub fn world_ranks(&self, size: usize) -> Result<Vec<u32>, MpiError> {
        let mut ranks: Vec<c_int> = vec![0; size];
        // SAFETY: there is room for all ranks.
        checked(unsafe { (self.table.world_ranks)(self.communicator, ranks.as_mut_ptr()) })?;
        Ok(ranks.into_iter().map(|rank| rank as u32).collect())
    }

    /// To a rank of MPI_COMM_WORLD.
    ///
    /// # Safety
    /// `data` must be readable for `bytes` until poll reports `slot`, or cancel.
    pub unsafe fn isend(
        &self,
        data: *const u8,
        bytes: usize,
        peer: u32,
        tag: c_int,
        slot: u32,
    ) -> Result<(), MpiError> {
        // SAFETY: passed on to the caller.
        checked(unsafe {
            (self.table.isend)(self.communicator, data.cast(), bytes, peer as c_int, tag, slot)
        })
    }

    /// From a rank of MPI_COMM_WORLD, or from [`ANY_PEER`].
    ///
    /// # Safety
    /// `data` must be writable for `bytes` and used by nobody else until poll reports `slot`, or cancel.
    pub unsafe fn irecv(
        &self,
        data: *mut u8,
        bytes: usize,
        peer: u32,
        tag: c_int,
        slot: u32,
    ) -> Result<(), MpiError> {
        // SAFETY: passed on to the caller.
        checked(unsafe {
            (self.table.irecv)(self.communicator, data.cast(), bytes, peer as c_int, tag, slot)
        })
    }

    /// Fills the beginning of `completions`, which must have room for all slots in use, and says how much.
    pub fn poll(&self, completions: &mut [Completion]) -> Result<usize, MpiError> {
        let mut completed = 0u32;
        // SAFETY: the caller of this function gives room for all slots in use.
        checked(unsafe { (self.table.poll)(self.communicator, completions.as_mut_ptr(), &mut completed) })?;
        Ok(completed as usize)
    }

    /// Of messages that were not reported.
    pub fn cancel(&self, slots: &[u32]) {
        // SAFETY: the slots are as many as we say.
        unsafe { (self.table.cancel)(self.communicator, slots.as_ptr(), slots.len() as u32) }
    }

    /// The communicator is not used any more.
    pub fn close(&self) {
        // SAFETY: called once, as the last function.
        unsafe { (self.table.close)(self.communicator) }
    }
}
