//! A call on its way: what is asked for, who serves it, how far it is and how it ended.

use std::ptr::null;
use std::time::Instant;

use polycast_core::policy::chooser::Chosen;
use polycast_core::policy::{self, Choice, Collective, Epoch};
use polycast_core::protocol::{Counters, Mismatch};
use polycast_core::schedule::{Buffer, Slice};
use polycast_core::units::Bytes;

use crate::abi::{MpiError, Reduction};

/// The server of a call: the stock MPI, or polycast by what is planned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer<Planned> {
    /// The stock MPI.
    ToStock,
    /// The stock MPI; `Communicator::end_of_stock` is to be called when the MPI has done the call.
    ToStockAndTimed,
    /// Polycast.
    Served(Planned),
}

impl Answer<Chosen> {
    /// The answer of a rank that does not know what the other ranks do: its call gives the error.
    pub const UNKNOWN: Answer<Chosen> =
        Answer::Served(Chosen { choice: Choice::Stock, epoch: Epoch::FIRST, is_ahead: false });
}

/// The buffers that a rank hands in for a call.
#[derive(Clone, Copy)]
pub struct Buffers {
    /// Bytes that this rank contributes; NULL if it contributes none.
    pub input: *const u8,
    pub output: *mut u8,
    /// Operation that combines contributions; NULL if nothing is combined.
    pub reduction: *const Reduction,
}

impl Buffers {
    /// The buffers of a broadcast, which has a single one.
    pub fn broadcast(output: *mut u8) -> Buffers {
        Buffers { input: null(), output, reduction: null() }
    }

    /// The address of a slice's bytes, where scratch memory begins at `scratch`. Of the input they are
    /// only read.
    #[inline]
    pub fn address(&self, slice: &Slice, scratch: *mut u8) -> *mut u8 {
        let first = match slice.buffer {
            Buffer::Input => self.input.cast_mut(),
            Buffer::Output => self.output,
            Buffer::Scratch => scratch,
        };
        // wrapping_add: nothing at the end of a buffer is behind it.
        first.wrapping_add(slice.bytes.start as usize)
    }
}

/// Names an operation of its communicator until the operation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationKey(pub u32);

/// The reason why an operation did not finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// An error of the MPI.
    Mpi(MpiError),
    /// The ranks called with different sizes. No message of the operation is on its way any more.
    Size,
    /// An error of polycast itself.
    Internal,
}

impl From<MpiError> for Failure {
    fn from(error: MpiError) -> Failure {
        Failure::Mpi(error)
    }
}

impl From<Mismatch> for Failure {
    fn from(_: Mismatch) -> Failure {
        Failure::Size
    }
}

/// The state of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Pending,
    Done,
    Failed(Failure),
}

/// The kind of event that operations have found when they were asked for progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Activity {
    Nothing,
    /// Datagrams, which MPI does not know of, or work done in shared memory.
    Datagrams,
    Messages,
}

/// Record of the datagrams that a node has seen of one broadcast.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// Arrival of the first datagram and of the last one; at the root, the times at which they were
    /// sent.
    pub first: Option<Instant>,
    pub last: Option<Instant>,
    pub is_root: bool,
    /// The multicast counters' growth since the broadcast began.
    pub counters: Counters,
}

/// A broadcast of `bytes` bytes, as the policy sees it.
pub(crate) fn broadcast_of(bytes: u64) -> policy::Call {
    policy::Call::new(Collective::Broadcast, Bytes(bytes))
}
