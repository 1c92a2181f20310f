//! A leader's measurement of the way to the next leader in the ring, and its answers to the one
//! before.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use polycast_core::network::{Estimate, Exchange, MAX_MESSAGE_BYTES, Next};
use polycast_core::units::{Nanos, Rank};

use crate::abi::{GIVES_WAY, MpiError};
use crate::attach::Layout;
use crate::door::Door;
use crate::idle::Idle;
use crate::machine;
use crate::messages::{Address, Messages, ProbeMessage, Purpose, Route};

/// Tags of the measurement, of the communicator's own, beyond those of multicast.
const PROBE_TAG: c_int = 5;
const ANSWER_TAG: c_int = 6;

/// Longest time of a measurement, which takes milliseconds: then it is given up, so that no rank
/// waits for one whose MPI has failed.
const PATIENCE: Duration = Duration::from_secs(2);

/// State of both parts of a leader: asking and answering.
pub struct NetworkInquiry {
    messages: Messages,
    idle: Idle,
    next: Rank,
    previous: Rank,
    began: Instant,
    exchange: Exchange,
    /// The first message to be sent.
    first: Next,
    has_told: bool,
    has_heard: bool,
    has_failed: bool,
}

impl NetworkInquiry {
    /// The way between leaders; there are two at least.
    pub fn new(door: Door, layout: &Layout, first_tag: c_int) -> NetworkInquiry {
        let leaders = layout.nodes.leaders();
        let (mine, count) = (layout.nodes.mine() as usize, leaders.len());
        let (exchange, first) = Exchange::new(Nanos(0));
        let address = Address { world_ranks: layout.world_ranks.clone(), first_tag };
        NetworkInquiry {
            messages: Messages::new(door, address),
            idle: Idle::new(layout.neighbours, door.capabilities() & GIVES_WAY != 0),
            next: leaders[(mine + 1) % count],
            previous: leaders[(mine + count - 1) % count],
            began: machine::now(),
            exchange,
            first,
            has_told: false,
            has_heard: false,
            has_failed: false,
        }
    }

    /// Measures, until both parts are through. `None`: something went wrong, or took too long.
    pub fn measure(&mut self) -> Option<Estimate> {
        let outcome = self.run();
        self.has_failed |= outcome.is_err() || !self.is_over();
        if self.has_failed {
            self.messages.cancel(|_| true);
            return None;
        }
        self.exchange.estimate()
    }

    /// True if MPI has no message of the measurement any more.
    pub fn is_clean(&self) -> bool {
        self.is_over() && !self.has_failed
    }

    fn is_over(&self) -> bool {
        self.has_told && self.has_heard && !self.messages.is_sending()
    }

    fn run(&mut self) -> Result<(), MpiError> {
        self.receive(ProbeMessage::Question, vec![0; MAX_MESSAGE_BYTES as usize])?;
        self.follow(self.first)?;
        while !self.is_over() {
            self.messages.poll(|_, _| {})?;
            if self.messages.probes_done.is_empty() {
                if machine::now() - self.began > PATIENCE {
                    return Ok(());
                }
                self.idle.wait(None, self.messages.is_sending(), false);
                continue;
            }
            self.idle.progress();
            for done in std::mem::take(&mut self.messages.probes_done) {
                let bytes = done.outcome?;
                match (done.purpose, done.is_receive) {
                    (_, false) => {}
                    (ProbeMessage::Question, true) if bytes == 0 => self.has_heard = true,
                    (ProbeMessage::Question, true) => {
                        self.receive(ProbeMessage::Question, done.memory)?;
                        self.send(ProbeMessage::Answer, 1)?;
                    }
                    (ProbeMessage::Answer, true) => {
                        let passed = machine::now() - self.began;
                        let next = self.exchange.answered(Nanos(passed.as_nanos() as u64));
                        self.follow(next)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn follow(&mut self, next: Next) -> Result<(), MpiError> {
        match next {
            Next::Send(bytes) => {
                self.receive(ProbeMessage::Answer, vec![0])?;
                self.send(ProbeMessage::Question, bytes as usize)
            }
            Next::Over => {
                self.has_told = true;
                self.send(ProbeMessage::Question, 0)
            }
        }
    }

    fn send(&mut self, message: ProbeMessage, bytes: usize) -> Result<(), MpiError> {
        let to = match message {
            ProbeMessage::Question => Route { peer: self.next, tag: PROBE_TAG },
            ProbeMessage::Answer => Route { peer: self.previous, tag: ANSWER_TAG },
        };
        self.messages.send(Purpose::Probe(message), to, vec![0; bytes], bytes)
    }

    fn receive(&mut self, message: ProbeMessage, memory: Vec<u8>) -> Result<(), MpiError> {
        let from = match message {
            ProbeMessage::Question => Route { peer: self.previous, tag: PROBE_TAG },
            ProbeMessage::Answer => Route { peer: self.next, tag: ANSWER_TAG },
        };
        let bytes = memory.len();
        self.messages.receive(Purpose::Probe(message), from, memory, bytes)
    }
}
