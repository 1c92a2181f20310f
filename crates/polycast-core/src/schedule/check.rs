//! Proves that the schedules of all ranks together fulfil a contract, or says where they do not.
//!
//! Three proofs, none of which depends on timing:
//!
//! 1. **Matching:** the lanes of any two ranks fit together, with as many steps (invariants 1, 5).
//! 2. **Possession:** a step reads only what is there, and writes only where nobody reads or writes any more, going by nothing but
//!    what the [`After`](super::After)s of its lane name up to that step, and what they name in turn. So of any two steps that
//!    touch the same bytes, one of which writes, one is always first, and all runs have the same result (2–4). One run, with
//!    values in place of bytes, shows whether that is what the contract promises.
//! 3. **Progress:** in that run every step goes as soon as it may, a send together with its receive, what is published
//!    in shared memory lasts until all its readers have it (as it does where it is read by address), and a lane has one step under
//!    way. A step that can go once can go until it does, so if this run ends, all do, whatever goes first and however many at a time (6). Sends whose receives are posted at once end by themselves, which
//!    is why their number may be limited (7).

mod clock;
mod matching;
mod member;
mod memory;
mod run;
#[cfg(test)]
mod tests;
mod value;

pub use matching::{Partners, partners};

use super::{Channel, Contract, LaneIndex, Schedule};
use crate::collective::Call;
use crate::units::{Bytes, Rank};

/// The messages, signals and bytes of correct schedules, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Messages with data.
    pub messages: u64,
    /// Messages without data.
    pub signals: u64,
    /// Bytes over all messages.
    pub bytes: Bytes,
    /// The most messages with data that one rank sends.
    pub most_messages_sent: u64,
    /// The most bytes that one rank sends.
    pub most_bytes_sent: Bytes,
}

/// The place where a schedule is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The rank whose schedule is wrong.
    pub rank: Rank,
    /// The lane of that schedule.
    pub lane: LaneIndex,
    /// The step of that lane; the first one where the lane as a whole is meant.
    pub step: u64,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {}, lane {}, step {}", self.rank, self.lane, self.step)
    }
}

/// The reason why schedules do not do what a call promises.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The peer is not another rank of the communicator.
    #[error("{at}: peer {peer} is not another rank of the communicator")]
    NoSuchPeer {
        /// The lane that names the peer.
        at: Place,
        /// The peer.
        peer: Rank,
    },
    /// The channel is not below [`super::CHANNELS`].
    #[error("{at}: channel {channel} is too large")]
    NoSuchChannel {
        /// The lane that names the channel.
        at: Place,
        /// The channel.
        channel: Channel,
    },
    /// Two lanes with the same peer, direction and channel.
    #[error("{at}: lane {other} has the same peer, direction and channel")]
    SameStream {
        /// The second of the lanes.
        at: Place,
        /// The first of them.
        other: LaneIndex,
    },
    /// No lane at the peer takes, or feeds, this one.
    #[error("{at}: the peer {peer} has no lane that matches")]
    Unmatched {
        /// The lane that has no match.
        at: Place,
        /// The peer.
        peer: Rank,
    },
    /// Sender and receiver do not agree on the number of messages.
    #[error("{at}: the sender has {sent} steps, the receiver {received}")]
    StepCount {
        /// The sender's lane.
        at: Place,
        /// Steps of the sender's lane.
        sent: u64,
        /// Steps of the receiver's lane.
        received: u64,
    },
    /// Sender and receiver do not agree on the length of a message.
    #[error("{at}: sends {sent} bytes, the receiver expects {received}")]
    OtherLength {
        /// The sender's step.
        at: Place,
        /// The number of bytes that the step sends.
        sent: u64,
        /// The number of bytes that the receiver expects.
        received: u64,
    },
    /// A step that no schedule may have.
    #[error("{at}: {reason}")]
    Malformed {
        /// The malformed step.
        at: Place,
        /// The reason: what the step does.
        reason: &'static str,
    },
    /// The bytes are not within the buffer.
    #[error("{at}: bytes {found:?} of a buffer of {bytes} bytes")]
    OutOfBounds {
        /// The step that names the bytes.
        at: Place,
        /// The bytes of the step.
        found: std::ops::Range<u64>,
        /// Bytes of the buffer.
        bytes: u64,
    },
    /// A rank receives what is there already.
    #[error("{at}: bytes {found:?} are there already, some of them")]
    Twice {
        /// The step that brings the bytes again.
        at: Place,
        /// The bytes of the step.
        found: std::ops::Range<u64>,
    },
    /// A step may start before its bytes have come.
    #[error("{at}: may read bytes {found:?} before all of them have come")]
    NotYetReceived {
        /// The step that reads.
        at: Place,
        /// The bytes of the step.
        found: std::ops::Range<u64>,
    },
    /// A step may write where another one still reads or writes.
    #[error("{at}: may write bytes {found:?} while lane {lane}, step {step} is not done with them")]
    InUse {
        /// The step that writes.
        at: Place,
        /// The bytes of the step.
        found: std::ops::Range<u64>,
        /// The other step's lane.
        lane: LaneIndex,
        /// The other step.
        step: u64,
    },
    /// Operands that cannot be combined: a contributor twice, another order than the call's, parts that do not belong together.
    #[error("{at}: combines {left} with {right}")]
    WrongOperands {
        /// The step that combines.
        at: Place,
        /// The left operand.
        left: String,
        /// The right operand.
        right: String,
    },
    /// At the end, a byte of a rank's output holds nothing.
    #[error("rank {rank} never receives byte {byte}")]
    Missing {
        /// The rank whose output lacks the byte.
        rank: Rank,
        /// The first such byte.
        byte: u64,
    },
    /// At the end, a byte of a rank's output is another one.
    #[error("byte {byte} of rank {rank} ends as {found}")]
    Wrong {
        /// The rank whose output has the byte.
        rank: Rank,
        /// The first such byte.
        byte: u64,
        /// The contents of that byte, in words.
        found: String,
    },
    /// A rank may leave a barrier before another one has come.
    #[error("rank {rank} does not wait for rank {other}")]
    NotAwaited {
        /// The rank that may leave.
        rank: Rank,
        /// The rank that may come later.
        other: Rank,
    },
    /// A step or lane waits for a lane that does not exist, or for more steps than it has.
    #[error("{at}: waits for lane {found}, which has not as many steps")]
    WaitsForNothing {
        /// The step that waits.
        at: Place,
        /// The lane that is waited for.
        found: LaneIndex,
    },
    /// A receive or a multicast fetch waits whose data comes whether it waits or not.
    #[error("{at}: waits, and its data does not")]
    WaitingReceive {
        /// The step that waits.
        at: Place,
    },
    /// Steps wait for each other; this is one of them.
    #[error("{at}: never starts, because lane {waits_for} of rank {other} waits in turn")]
    Deadlock {
        /// The step that never starts.
        at: Place,
        /// The rank whose lane the step waits for.
        other: Rank,
        /// The lane that the step waits for.
        waits_for: LaneIndex,
    },
}

/// Proves that `schedules`, one per rank, do what `call` promises: see the invariants of [`crate::schedule`].
///
/// Takes time and memory in proportion to the number of steps.
pub fn check<S: Schedule>(schedules: &[S], call: &Call) -> Result<Summary, Violation> {
    let partners = partners(schedules)?;
    run::check(schedules, Contract { call: *call }, &partners)
}
