use crate::tag::Key;

/// Who and where a node is, and what all nodes of a communicator have agreed on.
#[derive(Clone, Debug)]
pub struct Membership {
    /// The job.
    pub job: u32,
    /// The communicator within the job.
    pub communicator: u32,
    /// The key of the datagrams' tags.
    pub key: Key,
    /// This node's place in the ring, below `nodes`.
    pub node: u32,
    /// Nodes in the ring, at least 2.
    pub nodes: u32,
    /// Payload of a full datagram, at most [`MAX_FRAGMENT_BYTES`](crate::message::MAX_FRAGMENT_BYTES).
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
    /// The next one in the ring.
    Successor,
    /// The one before in the ring.
    Predecessor,
    /// The root with this number: the receiver that was drawn for the broadcast sends to it. They need not be neighbours.
    Drawn(u32),
}

/// What the driver is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Multicast the datagrams in the buffer: of this size each, the last may be shorter.
    Datagrams {
        /// Bytes of each.
        datagram_bytes: usize,
    },
    /// Send the message in the buffer to this node.
    Message {
        /// The node that it goes to.
        to: Peer,
    },
}

/// What the driver can send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// A batch of datagrams.
    pub datagrams: bool,
    /// A message.
    pub message: bool,
    /// What was multicast before has left this host. Looked at only while [`Endpoint::awaits_departure`](super::Endpoint::awaits_departure).
    pub has_departed: bool,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It has been used, or it was of no use any more.
    Taken,
    /// It belongs to a later broadcast: the driver keeps it and gives it again when that has begun.
    Early,
}

/// The ranks disagree about the length of the message, or a neighbour does not speak this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "broadcast {operation}: this rank expects {expected} bytes, another one has a message of another length"
)]
pub struct Mismatch {
    /// The broadcast.
    pub operation: u64,
    /// The bytes that this rank expects.
    pub expected: u64,
}
