//! The messages between the doctor and its workers: one JSON object a line, a question, then its
//! answer.
//!
//! A worker speaks first, with [`Answer::Hello`]; what a login shell printed before is skipped. It ends when its standard
//! input does.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::finding::Finding;
use super::probe::tally::Heard;

/// A question to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// Look at the host.
    Examine {
        /// IPv6 in place of IPv4.
        ipv6: bool,
        /// The user's POLYCAST_NET.
        interface: Option<String>,
        /// True if the host is emulated: then the machine below it says nothing about the host.
        emulated: bool,
    },
    /// Join a group on the interface that was chosen.
    Open {
        /// The group.
        address: IpAddr,
        /// The group's UDP port.
        port: u16,
        /// Tells datagrams of this run from all others.
        run: u64,
        /// True if the host is to hear itself, because it is alone.
        loop_back: bool,
    },
    /// Check that answers to these hosts would leave by the interface that was chosen.
    Compare {
        /// Addresses of the other hosts' interfaces.
        peers: Vec<IpAddr>,
    },
    /// Send a series of datagrams.
    Send {
        /// The sender's number, as the receivers count.
        sender: u32,
        /// The round; what comes late from an earlier one is not counted.
        round: u32,
        /// The number of datagrams.
        datagrams: u32,
        /// The bytes of UDP payload of each datagram.
        datagram_bytes: usize,
    },
    /// Tell what was heard in a round.
    Count {
        /// The round.
        round: u32,
    },
    /// Take blasts of this run.
    Listen {
        /// The run.
        run: u64,
    },
    /// Send a blast.
    Blast {
        /// The address of the other host's interface.
        to: IpAddr,
        /// The TCP port on which the other host listens.
        port: u16,
        /// The run.
        run: u64,
    },
    /// Tell how fast the last blast came.
    Received,
    /// Tell which queries for group members were heard.
    Queries,
}

/// A worker's answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// The worker is there.
    Hello {
        /// The version of the worker's polycast; a worker of another version would not understand
        /// every question.
        version: String,
    },
    /// The answer to [`Question::Examine`].
    Examined {
        /// Facts for the table of hosts.
        host: HostFacts,
        /// The checks' results, good and bad.
        findings: Vec<Finding>,
    },
    /// The answer to [`Question::Open`].
    Opened {
        /// The abilities of the socket.
        socket: SocketFacts,
        /// Findings about buffers and offloads.
        findings: Vec<Finding>,
    },
    /// The answer to [`Question::Open`] if that failed.
    NotOpened {
        /// True if another program has this group and port; the next ones may be free.
        conflict: bool,
        /// The reason.
        finding: Finding,
    },
    /// The answer to [`Question::Compare`] and [`Question::Queries`].
    Findings(Vec<Finding>),
    /// The answer to [`Question::Send`].
    Sent {
        /// The number of datagrams that the kernel took.
        datagrams: u32,
        /// The kernel's error, if it did not take all datagrams.
        error: Option<String>,
    },
    /// The answer to [`Question::Listen`].
    Listens {
        /// The TCP port on which the worker listens.
        port: u16,
    },
    /// The answer to [`Question::Blast`].
    Blasted,
    /// The answer to [`Question::Received`].
    Came {
        /// The rate of the last blast; absent if none came.
        bits_per_second: Option<u64>,
    },
    /// The answer to [`Question::Listen`] and [`Question::Blast`] if those failed.
    NotMeasured(String),
    /// The answer to [`Question::Count`].
    Counted {
        /// The counts for each sender that was heard.
        heard: Vec<Heard>,
        /// Datagrams on this group and port that are not of this run.
        foreign: u64,
        /// Datagrams that the kernel dropped because the buffer was full, since the socket was opened.
        dropped: u64,
    },
    /// The question cannot be answered.
    Failed(String),
}

/// A host, for the table of hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// The kernel's release.
    pub kernel: String,
    /// The interface that was chosen.
    pub interface: Option<InterfaceFacts>,
}

/// An interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterfaceFacts {
    /// The interface's name.
    pub name: String,
    /// The interface's address of the family that was asked for.
    pub address: Option<IpAddr>,
    /// The interface's MTU.
    pub mtu_bytes: u32,
    /// The interface's speed, if its driver says one.
    pub bits_per_second: Option<u64>,
}

/// The socket of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SocketFacts {
    /// The largest UDP payload that is not cut into IP fragments.
    pub datagram_bytes: usize,
    /// The receive buffer that the kernel granted, as it counts.
    pub receive_bytes: usize,
    /// Generic segmentation offload: many datagrams leave in one system call.
    pub can_segment: bool,
    /// Generic receive offload: many arrive in one.
    pub can_coalesce: bool,
}
