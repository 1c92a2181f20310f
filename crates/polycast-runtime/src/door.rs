//! The table of functions that a door hands over, made safe to call.

use std::ffi::{c_int, c_void};

use crate::abi::{CollectiveCall, Completion, DoorTable, MpiError};
use crate::floating_point::as_programs;

impl DoorTable {
    /// Adds values up over all ranks of MPI_COMM_WORLD, for rank 0. Collective.
    pub fn sum_over_world(&self, values: &mut [u64]) -> Result<(), MpiError> {
        // SAFETY: the values are as many as we say.
        checked(|| unsafe { (self.sum_over_world)(values.as_mut_ptr(), values.len()) })
    }

    /// Tells the door that all is reported: the last call. Collective.
    pub fn take_leave(&self) {
        // SAFETY: MPI is there until `polycast_finalize` has returned.
        as_programs(|| unsafe { (self.take_leave)() });
    }
}

/// The door of one communicator.
#[derive(Clone, Copy)]
pub struct Door {
    table: &'static DoorTable,
    communicator: *mut c_void,
}

/// Calls the MPI, which may call the program: as if the program called it.
fn checked(call: impl FnOnce() -> c_int) -> Result<(), MpiError> {
    match as_programs(call) {
        0 => Ok(()),
        code => Err(MpiError(code)),
    }
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
        checked(|| unsafe {
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
        checked(|| unsafe { (self.table.stock)(self.communicator, call, send.cast(), receive.cast()) })
    }

    /// The stock MPI_Allgather on the program's communicator, of as many bytes as `mine` has: as
    /// many on all ranks.
    pub fn allgather_bytes(&self, mine: &[u8], size: usize) -> Result<Vec<u8>, MpiError> {
        let mut all = vec![0; mine.len() * size];
        if !mine.is_empty() {
            // SAFETY: `all` has room for as many bytes per rank as `mine` has, as the door expects.
            checked(|| unsafe {
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
        checked(|| unsafe {
            (self.table.broadcast)(self.communicator, buffer.as_mut_ptr().cast(), buffer.len(), root as c_int)
        })
    }

    /// Hands all ranks the text of rank 0, by two broadcasts.
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

    /// The stock MPI_Allreduce on the program's communicator: adds the values up.
    pub fn sum(&self, values: &mut [u64]) -> Result<(), MpiError> {
        // SAFETY: the values are as many as we say.
        checked(|| unsafe { (self.table.sum)(self.communicator, values.as_mut_ptr(), values.len()) })
    }

    /// The stock MPI_Allreduce on the program's communicator: leaves the bits that are set on all
    /// ranks.
    pub fn intersect(&self, words: &mut [u64]) -> Result<(), MpiError> {
        // SAFETY: the words are as many as we say.
        checked(|| unsafe { (self.table.intersect)(self.communicator, words.as_mut_ptr(), words.len()) })
    }

    /// The rank in MPI_COMM_WORLD of each of the `size` ranks of the program's communicator. Local.
    pub fn world_ranks(&self, size: usize) -> Result<Vec<u32>, MpiError> {
        let mut ranks: Vec<c_int> = vec![0; size];
        // SAFETY: there is room for all ranks.
        checked(|| unsafe { (self.table.world_ranks)(self.communicator, ranks.as_mut_ptr()) })?;
        Ok(ranks.into_iter().map(|rank| rank as u32).collect())
    }

    /// Sends to a rank of MPI_COMM_WORLD.
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
        checked(|| unsafe {
            (self.table.isend)(self.communicator, data.cast(), bytes, peer as c_int, tag, slot)
        })
    }

    /// Receives from a rank of MPI_COMM_WORLD, or from [`ANY_PEER`].
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
        checked(|| unsafe {
            (self.table.irecv)(self.communicator, data.cast(), bytes, peer as c_int, tag, slot)
        })
    }

    /// Fills the beginning of `completions`, which must have room for all slots in use; returns the
    /// number of completions.
    pub fn poll(&self, completions: &mut [Completion]) -> Result<usize, MpiError> {
        let mut completed = 0u32;
        // SAFETY: the caller of this function gives room for all slots in use.
        checked(|| unsafe {
            (self.table.poll)(self.communicator, completions.as_mut_ptr(), &mut completed)
        })?;
        Ok(completed as usize)
    }

    /// Cancels messages that were not reported.
    pub fn cancel(&self, slots: &[u32]) {
        // SAFETY: the slots are as many as we say.
        as_programs(|| unsafe { (self.table.cancel)(self.communicator, slots.as_ptr(), slots.len() as u32) });
    }

    /// Closes the door: the communicator is not used any more.
    pub fn close(&self) {
        // SAFETY: called once, as the last function.
        as_programs(|| unsafe { (self.table.close)(self.communicator) });
    }
}
