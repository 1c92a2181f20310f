use crate::tag::Key;

/// Who and where a node is, and what all nodes of a communicator have agreed on.
#[derive(Clone, Debug)]
pub struct Membership {
    /// The job.
    pub job: u32,
    /// The communicator within the job.
    pub communicator: u32,
    /// For the tags.
    pub key: Key,
    /// This node's place in the ring, below `nodes`.
    pub node: u32,
    /// Nodes in the ring, at least 2.
    pub nodes: u32,
    /// Payload of a full datagram, at most [`FRAGMENT_BYTES_MOST`](crate::message::FRAGMENT_BYTES_MOST).
    pub payload_bytes: u32,
    /// Datagrams that are handed over at once, at least 1.
    pub batch_datagrams: u32,
    /// The slowest link, if the root's own does not hold it up by itself.
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
    /// The root, and the receiver drawn for it: they are in general no neighbours.
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
        /// To whom.
        to: Peer,
    },
}

/// What the driver can take now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// A batch of datagrams.
    pub datagrams: bool,
    /// A message.
    pub message: bool,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It has been used, or it was of no use any more.
    Taken,
    /// It belongs to a later broadcast: give it again when that has begun.
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
    /// How long it is for this rank.
    pub expected: u64,
}
