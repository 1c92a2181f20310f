//! What may happen to a job.

use std::ffi::c_int;
use std::sync::Arc;
use std::time::Duration;

use polycast_core::topology::Locality;
use polycast_core::units::Rate;

use super::board::Board;
use super::network::Weather;
use super::stage::{Delays, Turns};

/// What may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// allgather, broadcast, sum, intersect, the vote, the private communicator.
    Collective,
    Isend,
    Irecv,
    Poll,
    /// Of a reduction.
    Combine,
}

/// A call that fails.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub rank: u32,
    pub function: Function,
    /// Which call of this function on this rank, counted from 0.
    pub nth: u32,
    /// Of collectives: this rank still takes part for the others. Else they wait for it.
    pub is_late: bool,
}

/// Changes the record (src/attach/record.rs) that the others get from a rank.
pub type Tamper = fn(rank: u32, record: &mut [u8]);

/// What the kernel may refuse to a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Memory for its node.
    Create,
    /// To open what the leader of its node has.
    Open,
    /// Memory of it for a communicator that this rank leads.
    Take,
    /// To read what other ranks have.
    Read,
}

/// Messages that stand still, and all behind them from the same rank to the same: TCP, when a packet got lost twice.
#[derive(Clone, Copy, Debug)]
pub struct Stalled {
    /// One in so many.
    pub one_in: u64,
    pub time: Duration,
    /// None before that.
    pub since: Duration,
    /// Only what this rank sends.
    pub of: Option<u32>,
}

/// What may happen to a job.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// MPI can make a private communicator.
    pub has_private: bool,
    /// MPI_TAG_UB.
    pub tag_most: c_int,
    /// Communicators that can be told apart at a time; `None`: as many as there are tags for.
    pub numbers: Option<usize>,
    /// Several threads of a rank may be in MPI at a time.
    pub has_threads: bool,
    pub fault: Option<Fault>,
    pub tamper: Option<Tamper>,
    pub delays: Delays,
    pub turns: Turns,
    pub weather: Weather,
    /// The host of each rank.
    pub hosts: Vec<u32>,
    /// Where on it each rank runs; none: nobody knows.
    pub localities: Vec<Locality>,
    /// How many bytes of memory each rank may have; none: nobody has limited it.
    pub memory_left: Vec<Option<u64>>,
    /// How many bytes the kernel grants a socket of each rank; none: nobody knows.
    pub receive_buffers: Vec<u64>,
    pub processors: usize,
    /// A message of so many bytes needs no receive to be done; of a longer one chance decides.
    pub eager_bytes: usize,
    /// What messages go at; `None`: they are there at once.
    pub message_rate: Option<Rate>,
    pub stalled: Option<Stalled>,
    /// A message of this number is lost: what MPI never does.
    pub loses_message: Option<u32>,
    /// The most bytes of a host's arena; `None`: as many as there may be.
    pub arena_bytes: Option<usize>,
    /// To these ranks.
    pub refused: Vec<(u32, Refused)>,
    /// This rank may read what others have so often, and then not any more.
    pub reads_until: Option<(u32, u32)>,
    /// Schedules of messages go over this board (`operation/board.rs`).
    pub board: Option<Arc<Board>>,
}
