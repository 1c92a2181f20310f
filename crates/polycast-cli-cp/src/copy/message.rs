//! The messages between the coordinator and its agents: one JSON object a line.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};

use polycast_copy::Stream;
use serde::{Deserialize, Serialize};

/// Lengths of a stream, of its manifest and of its blocks. Tuples, here and below, take half of the code that names take.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Lengths(u64, u64, u32);

impl From<Stream> for Lengths {
    fn from(stream: Stream) -> Lengths {
        Lengths(stream.bytes, stream.manifest_bytes, stream.block_bytes)
    }
}

impl From<Lengths> for Stream {
    fn from(Lengths(bytes, manifest_bytes, block_bytes): Lengths) -> Stream {
        Stream { bytes, manifest_bytes, block_bytes }
    }
}

/// A place in a ring.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "SeatWords", into = "SeatWords")]
pub struct Seat {
    /// The ring's number.
    pub number: u32,
    /// The node's place in the ring; 0 is the source.
    pub place: u32,
    pub nodes: u32,
    pub first_block: u64,
    /// The addresses of the node before this one in the ring; none for the source.
    pub addresses: Vec<SocketAddr>,
    /// The addresses of the node above this one in the tree, which is told what is over here.
    pub above: Vec<SocketAddr>,
    pub payload_bytes: u32,
    pub batch_datagrams: u32,
    /// The greatest rate to send at.
    pub bits_per_second: Option<u64>,
}

type SeatWords = ([u32; 5], u64, Vec<SocketAddr>, Vec<SocketAddr>, Option<u64>);

impl From<Seat> for SeatWords {
    fn from(seat: Seat) -> SeatWords {
        let Seat { number, place, nodes, payload_bytes, batch_datagrams, .. } = seat;
        let numbers = [number, place, nodes, payload_bytes, batch_datagrams];
        (numbers, seat.first_block, seat.addresses, seat.above, seat.bits_per_second)
    }
}

impl From<SeatWords> for Seat {
    fn from((numbers, first_block, addresses, above, bits_per_second): SeatWords) -> Seat {
        let [number, place, nodes, payload_bytes, batch_datagrams] = numbers;
        Seat {
            number,
            place,
            nodes,
            first_block,
            addresses,
            above,
            payload_bytes,
            batch_datagrams,
            bits_per_second,
        }
    }
}

type JoinedWords = (u32, u64, Option<u64>);

impl From<Joined> for JoinedWords {
    fn from(joined: Joined) -> JoinedWords {
        (joined.datagram_bytes, joined.buffer_bytes, joined.bits_per_second)
    }
}

impl From<JoinedWords> for Joined {
    fn from((datagram_bytes, buffer_bytes, bits_per_second): JoinedWords) -> Joined {
        Joined { datagram_bytes, buffer_bytes, bits_per_second }
    }
}

/// The limits of a node's socket, which the node tells when it has joined a group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "JoinedWords", into = "JoinedWords")]
pub struct Joined {
    pub datagram_bytes: u32,
    pub buffer_bytes: u64,
    /// The speed of the interface, as its driver says.
    pub bits_per_second: Option<u64>,
}

/// A message from the coordinator to an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Listen at these ports, and let datagrams pass so many routers, as the user's variables say.
    Network {
        ports: Option<String>,
        hops: Option<String>,
    },
    /// Be the source of these files.
    Send {
        key: String,
        sources: Vec<OsString>,
        recursive: bool,
        block_bytes: Option<u32>,
        bits_per_second: Option<u64>,
        compress: bool,
    },
    /// Read everything, whether somebody asks for it or not.
    ReadAll,
    /// Write what comes to this place. `manifest` names the files and their state.
    Receive {
        key: String,
        node: u32,
        destination: OsString,
        into_folder: bool,
        force: bool,
        preserve: bool,
        manifest: String,
        lengths: Lengths,
        compress: bool,
    },
    /// Take blocks from this node from now on.
    Feed {
        parent: u32,
        addresses: Vec<SocketAddr>,
    },
    /// Prepare for nodes with these addresses to connect to this node.
    Expect(Vec<SocketAddr>),
    /// Join this group, by the interface that POLYCAST_NET says.
    Join((IpAddr, u16), String),
    /// Send datagrams of this payload to the group, so that all may hear them.
    Probe(u32),
    /// Be in this ring from now on, in none.
    Sit(Seat),
    Leave,
    /// All is there: check it and put it in its place, but for the files that changed while they were read.
    Finish {
        digest: String,
        spoiled: Vec<u32>,
        /// A node is to come yet, which may have the folder in common.
        keeps_mark: bool,
    },
}

/// A file that could not be read as it was at the beginning.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spoiled {
    pub entry: u32,
    pub file: String,
    pub reason: String,
}

/// A message from an agent to the coordinator.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    Hello {
        version: String,
    },
    /// The answer to [`Command::Send`].
    Scanned {
        manifest: String,
        lengths: Lengths,
        addresses: Vec<SocketAddr>,
        files: u64,
        folders: u64,
        links: u64,
        skipped: Vec<String>,
    },
    /// The source has read everything; its blocks travel as so many bytes.
    Read {
        digest: String,
        spoiled: Vec<Spoiled>,
        sent_bytes: u64,
    },
    /// The source would have to read this file again, and cannot.
    Unreadable {
        file: String,
        reason: String,
    },
    /// The answer to [`Command::Receive`]: what an earlier run has left, and whether the files go
    /// into a folder, or to a name.
    Ready {
        have: u64,
        addresses: Vec<SocketAddr>,
        into_folder: bool,
    },
    /// The answer to [`Command::Receive`] where this node has DEST in common with that one, which
    /// writes it.
    InCommon {
        with: u32,
    },
    /// The numbers of blocks that have come, and that are written.
    Progress {
        have: u64,
        written: u64,
    },
    ParentFailed {
        parent: u32,
        reason: String,
    },
    /// The answer to [`Command::Join`]; `None` if that is not possible.
    Joined(Option<Joined>),
    /// The source's datagrams come.
    Heard,
    /// The ring of this number does not work.
    RingFailed(u32),
    /// The answer to [`Command::Finish`].
    Done,
    /// The agent can do no more.
    Failed {
        reason: String,
    },
}
