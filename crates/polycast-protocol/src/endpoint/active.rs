use crate::datagram_repair::DatagramRepair;
use crate::fragmentation::Fragmentation;
use crate::question::{Question, Word};
use crate::receiver::Receiver;
use crate::ring_repair::RingRepair;
use crate::sender::Sender;
use crate::spec::{Form, Multicast};
use crate::wire::{FLAG_LEAVE, FLAG_WAITED};
use polycast_units::Nanos;

/// The condition under which the root may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    At(Nanos),
    /// The root begins when the drawn receiver has said that it is there.
    Arrival,
}

/// The neighbours that wait for a node that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    pub successor_is_to_know: bool,
    pub predecessor_is_to_know: bool,
}

/// The broadcast in progress.
#[derive(Debug)]
pub(super) struct Active {
    pub spec: Multicast,
    /// The cut of the message, as far as this node knows; see `size.rs`.
    pub cut: Fragmentation,
    /// True if the node knows that it is the root's.
    pub knows_size: bool,
    /// The node's place in the ring, counted from the root, which is 0.
    pub position: u32,
    pub receiver: Receiver,
    pub ring: RingRepair,
    pub repair: DatagramRepair,
    pub question: Question,
    /// The multicast of the message, on the root only.
    pub sender: Option<Sender>,
    pub gate: Gate,
    pub root_waited: bool,
    /// True if the root has sent everything, and something may still be in its host.
    pub awaits_departure: bool,
    /// True if the node has been drawn and has not yet told the root that it is there.
    pub arrival_is_due: bool,
    /// True if the node has kept a copy of what it pushes, or keeps none.
    pub is_kept: bool,
    /// The neighbours to tell that the node will not have the message; `None` unless it has failed.
    pub failed: Option<Failed>,
    /// Datagrams that the root sends, each once.
    pub datagrams: u64,
    pub repaired: u32,
    pub sent_again: u64,
}

impl Active {
    /// The flags of all datagrams about this broadcast. `is_told`: the ranks are to leave
    /// multicast.
    pub fn flags(&self, is_told: bool) -> u16 {
        (if self.root_waited { FLAG_WAITED } else { 0 }) | if is_told { FLAG_LEAVE } else { 0 }
    }

    /// True if all that the node may be asked for is there: on a root all of the message. Until
    /// then the root answers nobody, as no node can miss anything yet.
    pub fn has_source(&self) -> bool {
        self.sender.as_ref().is_none_or(Sender::has_all)
    }

    /// The word that the node waits for, if it waits for nothing else.
    pub fn awaited(&self) -> Option<Word> {
        if self.failed.is_some() {
            return None;
        }
        if self.gate == Gate::Arrival {
            return Some(Word::Arrived);
        }
        let is_pull = self.spec.form == Form::Pull;
        let has_sent = self.sender.as_ref().is_none_or(Sender::is_through) && !self.awaits_departure;
        (is_pull && has_sent && self.receiver.is_complete() && self.ring.awaits_done()).then_some(Word::Done)
    }

    /// Notes that everything has been sent: what is missing is lost.
    pub fn saw_end(&mut self, now: Nanos) {
        if !self.receiver.is_over() {
            self.receiver.saw_end();
            self.repair.multicast_is_over(&self.receiver, now);
        }
    }
}

impl Gate {
    pub fn is_open(self, now: Nanos) -> bool {
        match self {
            Gate::Open => true,
            Gate::At(at) => at <= now,
            Gate::Arrival => false,
        }
    }
}
