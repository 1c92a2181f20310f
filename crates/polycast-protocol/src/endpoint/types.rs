use crate::tag::Key;

/// A node's identity and place, and what all nodes of a communicator have agreed on.
#[derive(Clone, Debug)]
pub struct Membership {
    /// The job.
    pub job: u32,
    /// The communicator within the job.
    pub communicator: u32,
    /// The key of the datagrams' tags.
    pub key: Key,
    /// The place of the node in the ring, below `nodes`.
    pub node: u32,
    /// Nodes in the ring, at least 2.
    pub nodes: u32,
    /// Bytes of payload in a full datagram, at most
    /// [`MAX_FRAGMENT_BYTES`](crate::message::MAX_FRAGMENT_BYTES).
    pub payload_bytes: u32,
    /// Datagrams that one [`Action::Datagrams`] has at most; at least 1.
    pub batch_datagrams: u32,
    /// Bits per second that the root must not exceed: the rate of the slowest link, if the root's own link is faster.
    pub bits_per_second: Option<u64>,
    /// The number of the first broadcast.
    pub first_operation: u64,
}

/// Another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// The next node in the ring.
    Successor,
    /// The node before in the ring.
    Predecessor,
    /// The root with this number, to which the receiver that was drawn for the broadcast sends; the
    /// two need not be neighbours.
    Drawn(u32),
}

/// An order to the driver of the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Multicast the datagrams in the buffer: of this size each, the last may be shorter.
    Datagrams {
        /// Bytes of each datagram.
        datagram_bytes: usize,
    },
    /// Send the message in the buffer to this node.
    Message {
        /// The node that the message goes to.
        to: Peer,
    },
}

/// The driver's room for sending now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// True if there is room for a batch of datagrams.
    pub datagrams: bool,
    /// True if there is room for a message.
    pub message: bool,
    /// True if all datagrams that were multicast before have left this host. Looked at only while
    /// [`Endpoint::awaits_departure`](super::Endpoint::awaits_departure).
    pub has_departed: bool,
}

/// The outcome of handing a message to the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The message has been used, or was of no use any more.
    Taken,
    /// The message belongs to a later broadcast: the driver keeps it and gives it again when that
    /// has begun.
    Early,
}

/// There is no room for the message that comes, what says how long it is contradicts itself, or a neighbour does not speak
/// this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "broadcast {operation}: this rank expects {expected} bytes, and has no room for another message that comes"
)]
pub struct Mismatch {
    /// The broadcast.
    pub operation: u64,
    /// The bytes that this rank expects.
    pub expected: u64,
}
