//! Does multicast work between these nodes? Every node sends a few datagrams of full size and listens for those of all
//! others. A switch that drops multicast, a filter, a smaller MTU on the way: all show as silence.
//!
//! Up to three rounds; after each, all ranks tell whether they have heard everybody, so that nobody stops sending while
//! somebody listens. They end after 50, 150 and 500 ms at the latest: a set of nodes costs at most 0.7 s, once.

use std::os::fd::AsFd;
use std::time::Duration;

use polycast_core::protocol::Key;
use polycast_core::protocol::wire::{Header, Kind, open, seal};
use rustix::event::{PollFd, PollFlags};

use super::datagrams::Datagrams;
use crate::machine;

/// How long each round listens.
pub const ROUNDS: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(150), Duration::from_millis(500)];

/// Datagrams of a node in a round.
const COPIES: usize = 3;

/// What one node has heard so far.
pub struct Probe {
    header: Header,
    payload: Box<[u8]>,
    heard: Vec<bool>,
    unheard: usize,
}

/// No node was heard.
pub fn all_missed(nodes: usize) -> Vec<u64> {
    vec![u64::MAX; nodes.div_ceil(64)]
}

impl Probe {
    /// For node `node` of `nodes`; payloads of full datagrams.
    pub fn new(job: u32, communicator: u32, node: u32, nodes: u32, payload_bytes: usize) -> Probe {
        let mut heard = vec![false; nodes as usize];
        heard[node as usize] = true;
        Probe {
            header: Header { kind: Kind::Probe, flags: 0, job, communicator, operation: 0, fragment: node },
            payload: vec![0x55; payload_bytes].into(),
            unheard: heard.len() - 1,
            heard,
        }
    }

    /// Sends, and listens until everybody has been heard or `longest` is over. True if everybody has been heard.
    pub fn round(&mut self, socket: &mut Datagrams, key: &Key, longest: Duration) -> bool {
        let end = machine::now() + longest;
        let mut datagrams = Vec::new();
        for _ in 0..COPIES {
            seal(&self.header, &self.payload, key, &mut datagrams);
        }
        // What cannot be sent is missed by the others, who say so.
        let _ = socket.send(&datagrams, datagrams.len() / COPIES);
        self.header.operation += 1;
        while self.listen(socket, key) && self.unheard > 0 {
            let Some(left) = end.checked_duration_since(machine::now()) else { break };
            machine::poll(&mut [PollFd::new(&socket.as_fd(), PollFlags::IN)], left);
        }
        self.unheard == 0
    }

    /// The nodes that have not been heard, this one among them: a bit for each, all others are set.
    pub fn missed(&self) -> Vec<u64> {
        let mut words = all_missed(self.heard.len());
        let me = self.header.fragment as usize;
        for (node, _) in self.heard.iter().enumerate().filter(|(node, heard)| **heard && *node != me) {
            words[node / 64] &= !(1 << (node % 64));
        }
        words
    }

    /// Whether it is this node that multicast does not reach, or does not come from; `by_all` is what all nodes have missed. Between two
    /// nodes nobody can tell whose fault it is.
    pub fn is_outside(&self, by_all: &[u64]) -> bool {
        let me = self.header.fragment as usize;
        let (hears_nobody, is_heard) =
            (self.missed() == all_missed(self.heard.len()), by_all[me / 64] & 1 << (me % 64) == 0);
        let works_elsewhere = by_all != all_missed(self.heard.len());
        self.heard.len() > 2 && works_elsewhere && (hears_nobody || !is_heard)
    }

    /// Takes what is there; false if the socket failed.
    fn listen(&mut self, socket: &mut Datagrams, key: &Key) -> bool {
        let Probe { header, heard, unheard, payload } = self;
        loop {
            let read = socket.receive(&mut |datagram: &[u8]| {
                let Ok((other, received)) = open(datagram, header.job, key) else { return };
                let is_ours = other.kind == Kind::Probe && other.communicator == header.communicator;
                let node = heard.get_mut(other.fragment as usize);
                if let Some(node) = node.filter(|node| is_ours && !**node && received.len() == payload.len())
                {
                    *node = true;
                    *unheard -= 1;
                }
            });
            match read {
                Ok(0) => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }
}
