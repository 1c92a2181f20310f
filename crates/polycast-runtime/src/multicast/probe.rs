//! Does multicast work between these nodes? A switch that drops multicast, a filter, a smaller MTU on the way: all show as silence.
//!
//! Up to three rounds; after each, all ranks tell whether they have heard everybody, so that nobody stops sending while
//! somebody listens. When the nodes have sent, in turn, they end after 50, 150 and 500 ms at the latest: a set of nodes costs at most 0.7 s
//! and that, once. Who sends when, and who again: [`Probe`].

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use polycast_core::protocol::wire::{Header, Kind, Reject, open, seal};
use polycast_core::protocol::{Key, Probe, ProbeStep};
use polycast_core::units::Nanos;
use polycast_net::Datagrams;
use rustix::event::{PollFd, PollFlags};

use super::flood::{Drained, Filter, drain};
use crate::machine;

/// The datagrams by which one node asks whether multicast works.
pub struct Question {
    header: Header,
    payload: Box<[u8]>,
    /// Number of datagrams that are not this job's.
    strangers: u64,
    pub filter: Filter,
}

impl Question {
    /// The question of node `node`; its payloads are those of full datagrams.
    pub fn new(job: u32, communicator: u32, node: u32, payload_bytes: usize) -> Question {
        Question {
            header: Header { kind: Kind::Probe, flags: 0, job, communicator, operation: 0, fragment: node },
            payload: vec![0x55; payload_bytes].into(),
            strangers: 0,
            filter: Filter::None,
        }
    }

    /// Runs a round: sends in its turn, and listens until everybody has been heard or the time is
    /// over. True if everybody has been heard.
    pub fn ask(&mut self, probe: &mut Probe, socket: &mut Datagrams, key: &Key) -> bool {
        let epoch = machine::now();
        let now = || Nanos((machine::now() - epoch).as_nanos() as u64);
        self.header.operation = probe.round() as u64;
        probe.begin(now());
        while let Ok(Drained { is_all, .. }) = self.listen(probe, socket, key) {
            match probe.step(now()) {
                ProbeStep::Over => break,
                ProbeStep::Send(copies) => {
                    let mut datagrams = Vec::new();
                    (0..copies).for_each(|_| seal(&self.header, &self.payload, key, &mut datagrams));
                    // What cannot be sent is missed by the others, who say so.
                    let _ = socket.send(&datagrams, datagrams.len() / copies.max(1) as usize);
                    probe.sent();
                }
                ProbeStep::Listen(until) => {
                    // While datagrams keep coming, only the time ends it.
                    if !is_all || socket.arm() {
                        continue;
                    }
                    let left = Duration::from_nanos((until - now()).0);
                    machine::poll(&mut [PollFd::new(&socket.as_fd(), PollFlags::IN)], left);
                }
            }
        }
        probe.has_heard_all()
    }

    /// Takes some of the datagrams that are there; an error if the socket failed.
    fn listen(&mut self, probe: &mut Probe, socket: &mut Datagrams, key: &Key) -> io::Result<Drained> {
        let Question { header, payload, strangers, filter } = self;
        filter.look(*strangers, socket, header.job);
        drain(socket, |datagram| match open(datagram, header.job, key) {
            Ok((other, received)) => {
                let is_ours = other.kind == Kind::Probe && other.communicator == header.communicator;
                if is_ours && received.len() == payload.len() {
                    probe.hear(other.fragment);
                }
            }
            Err(Reject::Foreign | Reject::Short) => *strangers += 1,
            Err(Reject::Forged | Reject::Unknown) => {}
        })
    }
}
