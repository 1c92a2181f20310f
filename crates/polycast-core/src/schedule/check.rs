//! Proves that the schedules of all ranks together are a correct broadcast, or says where they are not.
//!
//! Three proofs, none of which depends on timing:
//!
//! 1. **Matching:** the lanes of any two ranks fit together, step by step, with the same bytes (invariants 1, 2, 5).
//! 2. **Possession:** what a rank receives is every byte once, and what it sends is contained in what the [`After`](super::After)s
//!    of the lane name up to that step. So no order of arrival can make it send what it has not got (3, 4).
//! 3. **Progress:** receives wait for nothing, so the receive of a lane's next step is always posted, and any send
//!    that starts completes, even a synchronous one, whichever send of its rank goes first. Only a cycle of steps
//!    that wait for each other can stop this; a run in which every step goes as soon as it may finds it (6). The
//!    order, the number of sends at a time and the window of the executor cannot make a difference.

mod matching;
mod possession;
mod progress;
#[cfg(test)]
mod tests;

use matching::Matching;

use super::{Action, Channel, LaneIndex, Schedule};
use crate::units::{Bytes, Rank};

/// What a correct broadcast amounts to.
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

/// Where a schedule is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Whose schedule.
    pub rank: Rank,
    /// Which lane of it.
    pub lane: LaneIndex,
    /// Which step of the lane; the first one where the lane as a whole is meant.
    pub step: u64,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {}, lane {}, step {}", self.rank, self.lane, self.step)
    }
}

/// Why schedules are not a correct broadcast.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The peer is not another rank of the communicator.
    #[error("{at}: peer {peer} is not another rank of the communicator")]
    NoSuchPeer {
        /// Where.
        at: Place,
        /// The peer.
        peer: Rank,
    },
    /// A lane that is no stream of messages.
    #[error("{at}: the lane is no stream of messages")]
    NoMessages {
        /// Where.
        at: Place,
    },
    /// The channel is not below [`super::CHANNELS`].
    #[error("{at}: channel {channel} is too large")]
    NoSuchChannel {
        /// Where.
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
        /// Where.
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
    /// Sender and receiver do not agree on the bytes of a message.
    #[error("{at}: sends bytes {sent:?}, the receiver expects {received:?}")]
    OtherBytes {
        /// The sender's step.
        at: Place,
        /// What it sends.
        sent: std::ops::Range<u64>,
        /// What the peer expects.
        received: std::ops::Range<u64>,
    },
    /// The bytes are not within the message.
    #[error("{at}: bytes {found:?} of a broadcast of {bytes} bytes")]
    OutOfBounds {
        /// Where.
        at: Place,
        /// The bytes of the step.
        found: std::ops::Range<u64>,
        /// Bytes of the broadcast.
        bytes: u64,
    },
    /// A rank, or the root, receives what it has already.
    #[error("{at}: receives bytes {found:?}, of which it has some already")]
    Twice {
        /// Where.
        at: Place,
        /// The bytes of the step.
        found: std::ops::Range<u64>,
    },
    /// A rank never receives a byte.
    #[error("rank {rank} never receives byte {byte}")]
    Missing {
        /// Who.
        rank: Rank,
        /// The first such byte.
        byte: u64,
    },
    /// A step may start before its bytes have come.
    #[error("{at}: may send bytes {found:?} before all of them have come")]
    NotYetReceived {
        /// Where.
        at: Place,
        /// The bytes of the step.
        found: std::ops::Range<u64>,
    },
    /// A step or lane waits for what is not a receive lane, or for more steps than it has.
    #[error("{at}: waits for lane {found}, which is not a receive lane with as many steps")]
    WaitsForNothing {
        /// Where.
        at: Place,
        /// The lane that is waited for.
        found: LaneIndex,
    },
    /// A receive waits; receives have to be posted early.
    #[error("{at}: a receive that waits")]
    WaitingReceive {
        /// Where.
        at: Place,
    },
    /// Steps wait for each other; this is one of them.
    #[error("{at}: never starts, because lane {waits_for} waits in turn")]
    Deadlock {
        /// Where.
        at: Place,
        /// What it waits for.
        waits_for: LaneIndex,
    },
}

/// Proves that `schedules`, one per rank, broadcast `bytes` bytes from `root`: see the invariants of
/// [`crate::schedule`].
///
/// Takes time in proportion to the number of messages, and memory to that of lanes.
pub fn check<S: Schedule>(schedules: &[S], bytes: Bytes, root: Rank) -> Result<Summary, Violation> {
    let Matching { partners, summary } = matching::check(schedules)?;
    for (rank, schedule) in (0..).map(Rank).zip(schedules) {
        possession::check(schedule, rank, bytes.0, rank == root)?;
    }
    progress::check(schedules, &partners)?;
    Ok(summary)
}

/// The bytes of a message; a broadcast has them in one buffer.
fn bytes_of(action: &Action) -> std::ops::Range<u64> {
    action.source().or(action.target()).map_or(0..0, |slice| slice.bytes.clone())
}
