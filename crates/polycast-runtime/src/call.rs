//! A call on its way: what is asked for, who serves it, how far it is and how it ended.

use std::ptr::null;
use std::time::Instant;

use polycast_core::policy::{self, Choice, Collective, Epoch};
use polycast_core::protocol::{Counters, Mismatch};
use polycast_core::units::{Bytes, Rank};

use crate::abi::{MpiError, Reduction};

/// A call that asks to be planned.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub of: policy::Call,
    /// Rank of the root; without meaning for collectives that have none.
    pub root: Rank,
    /// True if the call may be served in different ways from one call to the next: the result is
    /// the same to the last bit.
    pub may_be_compared: bool,
    /// True if contributions must be combined in the order of ranks.
    pub is_ordered: bool,
    /// True if contributions are combined by an operation that the program defined itself.
    pub is_own: bool,
}

/// A chosen way to serve a call, with the call's epoch. The epoch is kept because other ranks may
/// have been called with another size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chosen {
    pub choice: Choice,
    pub(crate) epoch: Epoch,
    /// True if the program does not wait for the call, so its duration says nothing about the way.
    pub(crate) is_ahead: bool,
}

/// The server of a call: the stock MPI or polycast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// The stock MPI.
    Left,
    /// The stock MPI; `Communicator::end_of_left` is to be called when the MPI has done the call.
    LeftAndTimed,
    /// Polycast: `Communicator::start` in the chosen way.
    Served(Chosen),
}

impl Decision {
    /// The decision of a rank that does not know what the other ranks do: its call gives the error.
    pub const UNKNOWN: Decision = {
        let chosen = Chosen { choice: Choice::Stock, epoch: Epoch::FIRST, is_ahead: false };
        Decision::Served(chosen)
    };
}

/// The reason why a call is served as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The rules alone decided.
    Rules(policy::By),
    /// Ways are being compared, and it is this one's turn.
    Compared,
    /// The way was faster when ways were compared.
    Faster,
    /// The call combines long contributions by the program's own operation.
    OwnOperation,
    /// The call may need more memory than some rank gets.
    LittleMemory,
}

/// The moment at which a call that the program does not wait for is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// At the call's beginning, on this rank alone.
    Local,
    /// Before the call begins: all ranks come, and may wait for each other.
    MayWait,
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
    policy::Call { collective: Collective::Broadcast, bytes: Bytes(bytes) }
}
