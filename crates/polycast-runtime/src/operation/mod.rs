//! Collective calls in flight on one communicator.
//!
//! ```text
//!     start ──▶ running ──progress──▶ … ──▶ ended ──▶ free: its memory serves the next call of its kind
//! ```
//! An operation never blocks. It owns its messages, by its key, and its tag; what goes wrong in it ends it and no other.
//!
//! ```text
//!     mod            the operations of a communicator, and the list of the ways in which they are carried out
//!         way          what any way does
//!         exchange     after a schedule, among all ranks or those of a node: messages, local work,
//!             transport    on which these act,
//!             sharing      and what the ranks of a node share
//!         cells        short messages on one node: by hand, after the rounds of an algorithm
//!         dynamic      among all ranks, who find out on the way who sends to whom
//!         multicast    on the root's node, between nodes, on the other nodes
//! ```
//! No more is known here of any way than the trait says; CONTRIBUTING.md tells how one is added.

mod way;

way::ways! {
    mod multicast;
    mod cells;
    mod dynamic;
    #[cfg(test)]
    mod board;
    mod exchange;
}

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use polycast_core::algorithm::broadcast::Planner;
use polycast_core::collective;
use polycast_core::policy::chooser::Chosen;
use polycast_core::policy::{self, Capabilities, Choice, Policy};
use polycast_core::schedule::Nodes;
use polycast_core::tree::{Assignment, DynamicTimes};
use polycast_core::units::Rank;

use crate::abi::MpiError;
use crate::call::{Activity, Buffers, Failure, OperationKey, Progress};
use crate::machine;
use crate::messages::{Messages, Purpose};
use crate::multicast::{Deaf, Driver};
use crate::node_memory::NodeMemory;
use way::Way;

pub use cells::CellCall;
#[cfg(test)]
pub(crate) use exchange::MARK;
#[cfg(test)]
pub use exchange::MAX_KEPT_SCRATCH_BYTES;
#[cfg(test)]
pub use multicast::RELAYED_PARTS;

/// Most operations that have ended and whose memory is kept.
pub(crate) const MAX_KEPT: usize = 4;

/// State that the operations of a communicator share.
pub struct Shared {
    pub rank: Rank,
    pub nodes: Arc<Nodes>,
    pub policy: Arc<Policy>,
    pub planner: Planner,
    /// Planner for the ranks on this rank's node.
    pub on_node: Planner,
    pub messages: Messages,
    /// The memory that the ranks of this one's node share, if they do.
    pub memory: Option<Box<NodeMemory>>,
    /// Driver of the multicast, on the leaders of nodes that multicast connects.
    pub driver: Option<Box<Driver>>,
    /// Knowledge of this rank about nodes that multicast does not reach any more.
    pub deaf: Deaf,
    /// Broadcasts by multicast that have begun.
    pub by_multicast: u64,
    pub activity: Activity,
    /// Times of the network, as this rank's last message of a dynamic broadcast has shown them.
    pub dynamic: DynamicTimes,
    /// Assignments of dynamic broadcasts that have not begun here: their senders are ahead of this
    /// rank.
    pub early: Vec<Assignment>,
    /// Memory of first messages that may be used again.
    pub spare: Vec<Vec<u8>>,
    /// Size in bytes that another rank called with, in the last call in which sizes differed.
    pub told: Option<u64>,
}

/// A collective as it was called.
#[derive(Clone)]
pub struct Call {
    pub chosen: Chosen,
    pub capabilities: Capabilities,
    pub of: collective::Call,
    pub buffers: Buffers,
    /// Tag of channel 0.
    pub tag: c_int,
    /// The call's number among the communicator's calls, of which several have the same tag.
    pub number: u64,
    /// The operation's number in shared memory; 0 if the ranks share none.
    pub operation: u64,
    /// The call's number in a trace.
    pub traced: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OperationState {
    Free,
    Running,
    Ended(Result<(), Failure>),
}

struct PendingOperation {
    state: OperationState,
    /// The call that the operation is made for, and runs.
    call: Call,
    begun: Instant,
    way: Box<dyn Way>,
}

/// An operation that has ended, as it is counted and logged.
pub struct Ended {
    pub of: policy::Call,
    pub traced: u32,
    pub choice: Choice,
    pub is_ahead: bool,
    pub begun: Instant,
    pub outcome: Result<(), Failure>,
}

/// The operations of a communicator, by their keys.
#[derive(Default)]
pub struct Operations(Vec<PendingOperation>);

impl Operations {
    /// Starts an operation, and what of it can be started at once. A later failure ends the
    /// operation; after an error there is none.
    ///
    /// # Safety
    /// Until the operation has ended, input and output must be valid for as many bytes as the call's contract has on this rank, the input
    /// readable and the output writable; of a broadcast's root it is only read. The reduction must be valid, where data is combined.
    pub unsafe fn start(&mut self, call: Call, shared: &mut Shared) -> Result<OperationKey, Failure> {
        let begun = machine::now();
        let index = match self.free(&call) {
            Some(index) => {
                let operation = &mut self.0[index];
                (operation.call, operation.begun) = (call, begun);
                index
            }
            None => {
                let Choice::Algorithm(algorithm) = call.chosen.choice else { return Err(Failure::Internal) };
                let made = WAYS.iter().find_map(|make| make(algorithm, &call, shared));
                let way = made.unwrap_or(Err(Failure::Internal))?;
                self.keep(PendingOperation { state: OperationState::Free, call, begun, way })
            }
        };
        let key = OperationKey(index as u32);
        let operation = &mut self.0[index];
        operation.state = OperationState::Running;
        operation.advance(key, shared, true);
        Ok(key)
    }

    /// Index of an operation that has ended, and ran a call like `call`.
    fn free(&self, call: &Call) -> Option<usize> {
        self.0.iter().position(|operation| {
            let Call { chosen, capabilities, of, .. } = operation.call;
            operation.state == OperationState::Free
                && (chosen, capabilities, of) == (call.chosen, call.capabilities, call.of)
        })
    }

    fn keep(&mut self, operation: PendingOperation) -> usize {
        let is_free = |(_, kept): &(usize, &PendingOperation)| kept.state == OperationState::Free;
        let (free, oldest) = (
            self.0.iter().enumerate().filter(is_free).count(),
            self.0.iter().enumerate().filter(is_free).min_by_key(|(_, kept)| kept.begun),
        );
        match oldest.filter(|_| free >= MAX_KEPT) {
            Some((index, _)) => {
                self.0[index] = operation;
                index
            }
            None => {
                self.0.push(operation);
                self.0.len() - 1
            }
        }
    }

    /// Lets MPI work if `asks_mpi`, and then all operations.
    ///
    /// # Errors
    /// MPI's error, if no message can be blamed for it. The caller then decides what becomes of the
    /// operations.
    pub fn progress(&mut self, shared: &mut Shared, asks_mpi: bool) -> Result<(), MpiError> {
        shared.activity = Activity::Nothing;
        if asks_mpi {
            shared.messages.poll(|key, done| {
                if let Some(inbox) =
                    self.0.get_mut(key.0 as usize).and_then(|operation| operation.way.inbox())
                {
                    inbox.push(done);
                }
            })?;
        }
        for (index, operation) in (0..).zip(&mut self.0) {
            operation.advance(OperationKey(index), shared, false);
        }
        Ok(())
    }

    /// The end of an operation, if it has ended; its key is free then.
    pub fn take(&mut self, key: OperationKey) -> Option<Ended> {
        let operation = self.0.get_mut(key.0 as usize)?;
        let OperationState::Ended(outcome) = operation.state else { return None };
        operation.state = OperationState::Free;
        operation.way.rest();
        let Call { chosen, of, traced, .. } = operation.call;
        let of = policy::Call::from(&of);
        let Chosen { choice, is_ahead, .. } = chosen;
        Some(Ended { of, traced, choice, is_ahead, begun: operation.begun, outcome })
    }

    /// Ends all running operations with `failure`, and cancels all their messages.
    pub fn end_all(&mut self, failure: Failure, shared: &mut Shared) {
        shared.messages.cancel(|purpose| matches!(purpose, Purpose::Step { .. }));
        for operation in self.0.iter_mut().filter(|operation| operation.state == OperationState::Running) {
            operation.state = OperationState::Ended(Err(failure));
            operation.way.leave(&operation.call, shared);
        }
    }

    /// Bytes of memory that ended operations keep.
    #[cfg(test)]
    pub fn scratch_bytes(&self) -> usize {
        self.0.iter().map(|operation| operation.way.scratch_bytes()).sum()
    }

    /// The running call that began first, and its way.
    pub fn first_running(&self) -> Option<(policy::Call, Choice)> {
        let first = self.running().min_by_key(|operation| operation.begun)?;
        let Call { chosen, of, .. } = &first.call;
        Some((policy::Call::from(of), chosen.choice))
    }

    /// True if some operation is running.
    pub fn are_running(&self) -> bool {
        self.0.iter().any(|operation| operation.state == OperationState::Running)
    }

    /// True if all running operations wait for what other ranks of the node do in memory that they
    /// share.
    pub fn wait_for_memory(&self) -> bool {
        self.running().all(|operation| operation.way.waits_for_memory())
    }

    /// True if some running operation may wait for memory, too.
    pub fn have_memory(&self) -> bool {
        self.running().any(|operation| operation.way.has_memory())
    }

    /// True if all running operations wait for the multicast between nodes, so MPI need be asked
    /// only when its sockets have something.
    pub fn are_between_nodes(&self, shared: &Shared) -> bool {
        self.are_running() && self.running().all(|operation| operation.way.is_between_nodes(shared))
    }

    fn running(&self) -> impl Iterator<Item = &PendingOperation> {
        self.0.iter().filter(|operation| operation.state == OperationState::Running)
    }
}

impl PendingOperation {
    fn advance(&mut self, key: OperationKey, shared: &mut Shared, begins: bool) {
        if self.state != OperationState::Running {
            return;
        }
        let PendingOperation { call, way, .. } = self;
        let progress = guarded(key, shared, |shared| {
            if begins {
                way.begin(key, call, shared)?;
            }
            way.progress(call, shared)
        });
        self.state = match progress {
            Progress::Pending => return,
            Progress::Done => OperationState::Ended(Ok(())),
            Progress::Failed(failure) => {
                // Sizes that differ are known when all messages are done.
                if failure != Failure::Size {
                    way.leave(call, shared);
                }
                OperationState::Ended(Err(failure))
            }
        };
    }
}

/// Runs a part of an operation. If it fails or panics, its messages are cancelled.
fn guarded(
    key: OperationKey,
    shared: &mut Shared,
    part: impl FnOnce(&mut Shared) -> Result<Progress, Failure>,
) -> Progress {
    let outcome = catch_unwind(AssertUnwindSafe(|| part(shared))).unwrap_or(Err(Failure::Internal));
    outcome.unwrap_or_else(|failure| {
        let is_its =
            |purpose: &Purpose| matches!(purpose, Purpose::Step { operation, .. } if *operation == key);
        shared.messages.cancel(is_its);
        Progress::Failed(failure)
    })
}
