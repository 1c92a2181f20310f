//! What one rank does in a collective: a handful of *lanes*, each an ordered stream of messages to or from one peer.
//!
//! A lane is a queue. Its steps are started in order, a bounded number of them at a time, and lanes do not wait
//! for each other except where a step says so with [`After`]. This is a rank in the middle of a pipelined binary
//! tree; segment `i` may go to the children as soon as it has come from the parent:
//!
//! ```text
//!  lane 0  receive from parent    s0   s1   s2   s3  …
//!                                  │    │    │
//!  lane 1  send to left child     s0   s1   s2        step i: After::Steps { lane: 0, count: i + 1 }
//!  lane 2  send to right child    s0   s1   s2        step i: After::Steps { lane: 0, count: i + 1 }
//! ```
//!
//! Steps are computed when they are needed, so a schedule of a 4 GiB message in 1 KiB segments costs no memory.
//! Lanes are the reason why a slow child delays neither its siblings nor what this rank receives.
//!
//! # Invariants (proved by [`check()`] for any communicator)
//! 1. At most one lane per (peer, direction, channel): messages between two ranks never overtake each other there.
//! 2. [`After`] names receive lanes only; what it names is complete when the named steps have completed.
//! 3. Every rank receives every byte exactly once; the root receives none.
//! 4. Nothing is sent before it was received (or was the root's).
//! 5. Step `i` of a send lane matches step `i` of the peer's receive lane: same channel, same bytes.
//! 6. No deadlock even if every send waits for its receive, one send and one step per receive lane at a time.
//! 7. Receives wait for nothing: they may all be posted as soon as the rank has arrived.

mod byte_set;
mod check;
mod draw;
mod order;

pub use check::{Place, Summary, Violation, check};
pub use draw::draw;
pub use order::{Ordered, RankOrder};

use std::ops::Range;

use crate::units::Rank;

/// Index into [`Schedule::lanes`].
pub type LaneIndex = usize;

/// Which way a lane's messages go, seen from the rank whose schedule it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From this rank to the peer.
    Send,
    /// From the peer to this rank.
    Receive,
}

/// Keeps two streams between the same pair of ranks apart; becomes part of the message tag. Below [`CHANNELS`].
pub type Channel = u8;

/// How many channels a schedule may use.
pub const CHANNELS: Channel = 8;

/// An ordered stream of messages to or from one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The other end.
    pub peer: Rank,
    /// Which way the messages go.
    pub direction: Direction,
    /// Tells this stream from others between the same two ranks.
    pub channel: Channel,
    /// How many messages.
    pub steps: u64,
    /// Of the sends that could start, those of the lowest phase go first.
    pub phase: u8,
    /// A receive lane that must be complete before the first step of this one starts (a child's "I am ready").
    pub opens_after: Option<LaneIndex>,
}

/// What must be complete before a step may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Nothing: the data is there from the beginning.
    Start,
    /// The first `count` steps of receive lane `lane`.
    Steps {
        /// The lane that is waited for.
        lane: LaneIndex,
        /// How many of its steps.
        count: u64,
    },
    /// All steps of all receive lanes with an index below this one.
    LanesBelow(LaneIndex),
}

/// One message: which bytes of the collective's buffer, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The bytes of the buffer that travel; may be empty (a signal).
    pub bytes: Range<u64>,
    /// What must be complete first.
    pub after: After,
}

/// One rank's part in one collective call.
pub trait Schedule {
    /// The lanes. Of the sends that could start, the lowest (phase, step index, lane index) goes first.
    fn lanes(&self) -> &[Lane];

    /// Step `index` (below the lane's `steps`) of lane `lane`.
    fn step(&self, lane: LaneIndex, index: u64) -> Step;
}

impl<S: Schedule + ?Sized> Schedule for Box<S> {
    fn lanes(&self) -> &[Lane] {
        (**self).lanes()
    }

    fn step(&self, lane: LaneIndex, index: u64) -> Step {
        (**self).step(lane, index)
    }
}
