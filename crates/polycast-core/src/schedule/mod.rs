//! What one rank does in a collective: a handful of *lanes*, each an ordered stream of steps.
//!
//! A lane is a queue of one [`Kind`]: messages to or from one peer, local work, or memory that the ranks of a node share. Its
//! steps are started in order, a bounded number of them at a time, and lanes do not wait for each other except where a step says
//! so with [`After`]. This is a rank in the middle of a pipelined binary tree; segment `i` may go to the children as soon as it
//! has come from the parent:
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
//! 1. At most one lane per stream: messages between two ranks never overtake each other there.
//! 2. [`After`] names lanes that exist; what it names is complete when the named steps have completed.
//! 3. Every rank ends with what the [`Contract`] of the call promises, and receives nothing that it has already. In reductions
//!    everybody contributes once, in the call's order: that of ranks, or by the tree of combinations, where that matters.
//! 4. Nothing is read before it is there, and nothing overwritten while a step may still read or write it.
//! 5. Step `i` of a send lane matches step `i` of the peer's receive lane: same channel, same length.
//! 6. No deadlock even if every send waits for its receive, one send and one step per receive lane at a time.
//! 7. Receives that are posted [`Posting::AtOnce`] wait for nothing: they may all be posted as soon as the rank has arrived.

mod check;
mod contract;
mod cut;
mod draw;
mod listed;
mod nodes;
mod order;

pub use check::{Partners, Place, Summary, Violation, check, partners};
pub use contract::{Contract, Holding};
pub use cut::cut;
pub use draw::draw;
pub use listed::Listed;
pub use nodes::{Nodes, are_parts_of_the_tree};
pub use order::{Ordered, RankOrder};

use std::ops::Range;
use std::sync::Arc;

use crate::units::Rank;

/// Index into [`Schedule::lanes`].
pub type LaneIndex = usize;

/// The direction of a stream's messages, seen from the rank whose schedule it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Messages go from this rank to the peer.
    Send,
    /// Messages go from the peer to this rank.
    Receive,
}

/// Keeps two streams between the same pair of ranks apart; becomes part of the message tag. Below [`CHANNELS`].
pub type Channel = u8;

/// The number of channels that a schedule may use.
pub const CHANNELS: Channel = 8;

/// The time at which the receives of a stream are posted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Posting {
    /// Receives are posted as soon as the receiver has arrived: their steps wait for nothing, so a
    /// send of this stream always ends by itself.
    #[default]
    AtOnce,
    /// Receives are posted when their steps say so. A send may be outstanding for long, and holds
    /// up no other send.
    InTurn,
}

/// Messages to or from one peer. Both ends must name the stream alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stream {
    /// The other end.
    pub peer: Rank,
    /// The direction of the messages.
    pub direction: Direction,
    /// Tells this stream from others between the same two ranks.
    pub channel: Channel,
    /// The time at which the receives of the stream are posted.
    pub posting: Posting,
}

impl Stream {
    /// A stream to `peer`, whose receives are posted at once.
    pub fn send(peer: Rank, channel: Channel) -> Stream {
        Stream { peer, direction: Direction::Send, channel, posting: Posting::AtOnce }
    }

    /// A stream from `peer`, whose receives are posted at once.
    pub fn receive(peer: Rank, channel: Channel) -> Stream {
        Stream { direction: Direction::Receive, ..Stream::send(peer, channel) }
    }
}

/// The path on which published bytes reach the ranks that fetch them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fabric {
    /// Memory that the ranks of a node share, or that of the writer, which the others read: the writer may have to wait until what it
    /// publishes is fetched. A fetch lies within one published step.
    Shared,
    /// A cell of each rank that holds a step: the writer has to wait until what it has published before is fetched.
    Cell,
    /// A single multicast message of all steps together. It arrives where it belongs, so fetches
    /// wait for nothing, and a fetch completes when the prefix up to its end has arrived.
    Multicast,
}

/// The kind of a lane: the actions that its steps may take, and the ranks at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Action::Send`] or [`Action::Receive`].
    Messages(Stream),
    /// [`Action::Copy`] and [`Action::Combine`], one after the other.
    Local,
    /// [`Action::Publish`], one after the other.
    Publish {
        /// The way of the data.
        fabric: Fabric,
        /// Tells this stream from others of the same writer.
        channel: Channel,
        /// The ranks that fetch, rising.
        readers: Arc<[Rank]>,
    },
    /// [`Action::Fetch`] of what one rank publishes, one after the other.
    Fetch {
        /// The way of the data.
        fabric: Fabric,
        /// The channel of the writer's stream.
        channel: Channel,
        /// The rank that publishes the data.
        writer: Rank,
    },
}

/// An ordered stream of steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The kind of the steps, with the ranks at the other end.
    pub kind: Kind,
    /// The number of steps.
    pub steps: u64,
    /// The precedence of the lane: of the receives, of the sends and of the other steps that could
    /// start, those of the lowest phase go first.
    pub phase: u8,
    /// A lane that must be complete before the first step of this one starts (a child's "I am ready").
    pub opens_after: Option<LaneIndex>,
}

impl Lane {
    /// A lane of `steps` steps in the first phase, open from the beginning.
    pub fn new(kind: Kind, steps: u64) -> Lane {
        Lane { kind, steps, phase: 0, opens_after: None }
    }

    /// Returns the stream if the lane carries messages.
    pub fn stream(&self) -> Option<Stream> {
        if let Kind::Messages(stream) = self.kind { Some(stream) } else { None }
    }

    /// True if the lane sends messages.
    pub fn is_send(&self) -> bool {
        self.stream().is_some_and(|stream| stream.direction == Direction::Send)
    }

    /// True if the lane receives messages.
    pub fn is_receive(&self) -> bool {
        self.stream().is_some_and(|stream| stream.direction == Direction::Receive)
    }

    /// True if the steps bring data from other ranks.
    pub fn brings_data(&self) -> bool {
        self.is_receive() || matches!(self.kind, Kind::Fetch { .. })
    }
}

/// A buffer of the calling rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Buffer {
    /// The bytes that the program hands in; never written.
    Input,
    /// The place where the program wants its result. A broadcast has no other buffer: the root's
    /// data is there from the beginning, and so is a rank's contribution under `MPI_IN_PLACE`.
    Output,
    /// [`Schedule::scratch_bytes`] bytes that hold nothing at the beginning and are worth nothing at the end.
    Scratch,
}

/// Bytes of a buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// The buffer that the bytes lie in.
    pub buffer: Buffer,
    /// The range of bytes in the buffer; may be empty.
    pub bytes: Range<u64>,
}

impl Slice {
    /// A slice of the input.
    pub fn input(bytes: Range<u64>) -> Slice {
        Slice { buffer: Buffer::Input, bytes }
    }

    /// A slice of the output.
    pub fn output(bytes: Range<u64>) -> Slice {
        Slice { buffer: Buffer::Output, bytes }
    }

    /// A slice of the scratch memory.
    pub fn scratch(bytes: Range<u64>) -> Slice {
        Slice { buffer: Buffer::Scratch, bytes }
    }

    /// The number of bytes.
    #[inline]
    pub fn length(&self) -> u64 {
        self.bytes.end.saturating_sub(self.bytes.start)
    }

    /// Cuts off the first bytes, up to `most`, and returns them.
    pub fn take_head(&mut self, most: u64) -> Slice {
        let cut = self.bytes.start + self.length().min(most);
        let head = Slice { buffer: self.buffer, bytes: self.bytes.start..cut };
        self.bytes.start = cut;
        head
    }
}

/// The action of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends a message with these bytes; a message without bytes is a signal.
    Send(Slice),
    /// Receives a message of the slice's length, and puts it there.
    Receive(Slice),
    /// Copies bytes; the slices are of the same length and do not overlap.
    Copy {
        /// The bytes that are copied.
        from: Slice,
        /// The bytes that are overwritten.
        to: Slice,
    },
    /// Reduces element by element: `into = from ∘ into`, as `MPI_Reduce_local` does. So `from` has the lower ranks' contributions
    /// where the operation does not commute. The slices are of the same length and do not overlap.
    Combine {
        /// The left operand.
        from: Slice,
        /// The right operand, and the result.
        into: Slice,
    },
    /// Shows these bytes to the lane's readers.
    Publish(Slice),
    /// Takes part of what the lane's writer has published: all of its steps together are one stream of bytes.
    Fetch {
        /// The offset in that stream at which the part begins; not before the end of the part that
        /// the lane's step before this one took.
        at: u64,
        /// The place where the part goes.
        to: Slice,
    },
}

impl Action {
    /// A local step that only waits.
    pub fn nothing() -> Action {
        Action::Copy { from: Slice::scratch(0..0), to: Slice::scratch(0..0) }
    }

    /// Returns the bytes of this rank that the action reads, if there are any; of a combination,
    /// the left operand.
    pub fn source(&self) -> Option<&Slice> {
        match self {
            Action::Send(from) | Action::Publish(from) => Some(from),
            Action::Copy { from, .. } | Action::Combine { from, .. } => Some(from),
            Action::Receive(_) | Action::Fetch { .. } => None,
        }
    }

    /// Returns the bytes of this rank that the action writes, if there are any.
    pub fn target(&self) -> Option<&Slice> {
        match self {
            Action::Receive(to) | Action::Copy { to, .. } | Action::Fetch { to, .. } => Some(to),
            Action::Combine { into, .. } => Some(into),
            Action::Send(_) | Action::Publish(_) => None,
        }
    }

    /// The number of bytes that are sent, received, copied, combined, published or fetched.
    pub fn length(&self) -> u64 {
        self.target().or(self.source()).map_or(0, Slice::length)
    }
}

/// The condition for the start of a step: what must be complete before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// No condition: the data is there from the beginning.
    Start,
    /// The first `count` steps of lane `lane`.
    Steps {
        /// The lane that is waited for.
        lane: LaneIndex,
        /// The number of that lane's steps that must be complete.
        count: u64,
    },
    /// All steps of all lanes with an index below this one.
    LanesBelow(LaneIndex),
}

/// A step of a lane, with the condition for its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The action of the step.
    pub action: Action,
    /// The steps that must be complete first.
    pub after: After,
}

/// The part of one rank in a collective call.
pub trait Schedule {
    /// The lanes. Of the steps that could start, receives go before sends and those before local work, and of equals the lowest
    /// (phase, step index, lane index).
    fn lanes(&self) -> &[Lane];

    /// Step `index` (below the lane's `steps`) of lane `lane`.
    fn step(&self, lane: LaneIndex, index: u64) -> Step;

    /// The bytes of scratch memory that the schedule's slices may name.
    fn scratch_bytes(&self) -> u64 {
        0
    }
}

impl<S: Schedule + ?Sized> Schedule for Box<S> {
    fn lanes(&self) -> &[Lane] {
        (**self).lanes()
    }

    fn step(&self, lane: LaneIndex, index: u64) -> Step {
        (**self).step(lane, index)
    }

    fn scratch_bytes(&self) -> u64 {
        (**self).scratch_bytes()
    }
}
