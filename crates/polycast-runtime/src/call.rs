//! A call on its way: what is asked for, who serves it, how far it is and how it ended.

use std::ptr::null;
use std::time::Instant;

use polycast_core::policy::{self, Choice, Collective, Epoch};
use polycast_core::protocol::{Counters, Mismatch};
use polycast_core::units::{Bytes, Rank};

use crate::abi::{MpiError, Reduction};

/// A call that is to be served.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub of: policy::Call,
    /// Without meaning where there is none.
    pub root: Rank,
    /// It may be served now in one way and then in another: the result is the same to the last bit.
    pub may_be_compared: bool,
    /// Contributions are to be combined in the order of ranks.
    pub is_ordered: bool,
    /// They are combined by the program's own operation.
    pub is_own: bool,
}

/// What serves a call, and its epoch, for ranks may have been called with another size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chosen {
    pub choice: Choice,
    pub(crate) epoch: Epoch,
    /// It is not waited for, so how long it takes says nothing.
    pub(crate) is_ahead: bool,
}

/// Who serves a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// The MPI.
    Left,
    /// The MPI, and [`Communicator::end_of_left`] is to be called when it has done it.
    LeftAndTimed,
    /// [`Communicator::start`], in this way.
    Served(Chosen),
}

impl Decision {
    /// Of a rank that does not know what the others do: its call gives the error.
    pub const UNKNOWN: Decision = {
        let chosen = Chosen { choice: Choice::Stock, epoch: Epoch::FIRST, is_ahead: false };
        Decision::Served(chosen)
    };
}

/// What serves a call, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The rules alone.
    Rules(policy::By),
    /// It is the turn of this way.
    Compared,
    /// It was faster when they were compared.
    Faster,
    /// It combines long contributions by the program's own operation.
    OwnOperation,
    /// It may need more memory than some rank gets.
    LittleMemory,
}

/// Where such a call is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// When it begins.
    Local,
    /// Before: all ranks come, and may wait for each other.
    MayWait,
}

/// What a rank hands in.
#[derive(Clone, Copy)]
pub struct Buffers {
    /// NULL where there is nothing.
    pub input: *const u8,
    pub output: *mut u8,
    /// NULL where nothing is combined.
    pub reduction: *const Reduction,
}

impl Buffers {
    /// A broadcast has one.
    pub fn broadcast(output: *mut u8) -> Buffers {
        Buffers { input: null(), output, reduction: null() }
    }
}

/// Names an operation of its communicator until it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationKey(pub u32);

/// Why an operation did not finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// MPI's own error.
    Mpi(MpiError),
    /// The ranks called with different sizes. Nothing is on its way any more.
    Size,
    /// Ours.
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

/// How far an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Pending,
    Done,
    Failed(Failure),
}

/// What operations have found when they were asked for progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Activity {
    Nothing,
    /// Something that MPI does not know of, or something was done in shared memory.
    Datagrams,
    Messages,
}

/// What a node has seen of the datagrams of a broadcast.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// When the first and the last one came; at the root, when they went.
    pub first: Option<Instant>,
    pub last: Option<Instant>,
    pub is_root: bool,
    /// Since the broadcast began.
    pub counters: Counters,
}

/// A broadcast, as the policy sees it.
pub(crate) fn broadcast_of(bytes: u64) -> policy::Call {
    policy::Call { collective: Collective::Broadcast, bytes: Bytes(bytes) }
}
