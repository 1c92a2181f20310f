//! A broadcast by multicast: an exchange on the root's node, a multicast between nodes, an exchange on each other node.
//!
//! ```text
//!   by messages, in a row
//!     on the root's node     exchange ──▶ between nodes (its leader)
//!     on the other nodes                  between nodes (their leaders) ──▶ exchange
//!
//!   where the ranks of a node share memory
//!     the root leads         between nodes ║ exchange                  at once
//!     another rank leads     exchange ║ between nodes                  its leader multicasts what has come so far; a short message, and every
//!                                                                      fourth (see below), when all has
//!     on the other nodes     between nodes ║ exchange                  leaders publish what is there from the beginning on, others read it meanwhile
//! ```
//! So the ranks of a node have everything soon after its leader has, however long its neighbours still need it.
//!
//! Who always is the root and leads no node hears nothing in this, so its leader could not tell it of nodes that multicast does not reach any
//! more, and nobody else may tell the ranks to leave. So in every fourth broadcast from such a root a word of the leader's stands between
//! the two on the root's node: one byte by a second exchange, with what travels beside all exchanges on a node.
//! A node's leader may have been called with another size than the root. It goes on with the root's: what it publishes waits until it knows that
//! size, which the message's last fragment says, one of the first to come.
//! A rank that fails still takes part in what follows, with nothing to send, so that nobody waits for
//! it.

use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use polycast_core::algorithm::Algorithm;
use polycast_core::collective;
use polycast_core::executor::MessageId;
use polycast_core::protocol::{Data, Form, Multicast};
use polycast_core::units::{Bytes, Rank};

use super::exchange::Exchange;
use super::way::{Made, Way};
use super::{Call, Shared, guarded};
use crate::call::{Buffers, Failure, OperationKey, Progress};
use crate::messages::Done;
use crate::multicast::{Part, Source};

/// Stage of the broadcast, as this rank sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    OnRootNode,
    LeadersWord,
    BetweenNodes,
    /// Between nodes and on this rank's node at once.
    Together,
    OnOtherNode,
    Over,
}

/// Broadcasts of a communicator from one word of the leader of the root's node to the next, if the
/// root does not lead the node.
const BROADCASTS_PER_WORD: u64 = 4;

/// Number of times, for tests, that a part of a message was handed to the multicast while more
/// came.
#[cfg(test)]
pub static RELAYED_PARTS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// A broadcast by multicast, kept to serve one call after another of the same size and root.
pub struct MulticastBroadcast {
    spec: Multicast,
    root_node: u32,
    is_root: bool,
    is_on_root_node: bool,
    /// Exchange among the ranks on this rank's node, if there are others.
    local: Option<Exchange>,
    /// True if the ranks of this node share memory.
    through_memory: bool,
    /// The leader's word to the ranks of the root's node, if this rank is there and another rank
    /// than the leader is the root; and its byte, to which the exchange keeps a pointer while this
    /// moves.
    word: Option<Box<(Exchange, Arc<AtomicU8>)>>,
    has_word: bool,
    key: OperationKey,
    stage: Stage,
    /// True if the exchange has begun, if it is its turn.
    has_begun: bool,
    is_exchange_over: bool,
    /// True if nothing is to come from another node any more.
    has_come: bool,
    /// True if this rank leads the root's node, and multicasts the root's data as it comes.
    relays: bool,
    /// Part of this node in the broadcast between nodes, if this rank leads the node. If it goes on
    /// together with the exchange, `None` once it is over.
    part: Option<Part>,
    /// The first failure; one that is more than differing sizes replaces those.
    failure: Option<Failure>,
    /// True if all data has come, and this rank has less room than that.
    lacks_room: bool,
    /// Bytes of the root's message, on a leader of another node that knows them.
    told: Option<u64>,
    /// Memory of such a leader for a message that is longer than its buffer.
    memory: Vec<u8>,
}

/// Makes the way of an algorithm that multicasts between nodes.
pub(super) fn make(algorithm: Algorithm, call: &Call, shared: &mut Shared) -> Made {
    let spec = algorithm.multicast()?;
    Some(Ok(Box::new(MulticastBroadcast::new(spec, call, shared))))
}

impl Way for MulticastBroadcast {
    /// Begins the broadcast. Turns between the nodes come in the order in which broadcasts begin.
    fn begin(&mut self, key: OperationKey, _: &Call, shared: &mut Shared) -> Result<(), Failure> {
        (self.key, self.failure, self.lacks_room) = (key, None, false);
        (self.has_begun, self.is_exchange_over, self.has_come) = (false, false, false);
        self.told = None;
        if let Some(driver) = &shared.driver {
            driver.inform(&mut shared.deaf);
        }
        if self.is_root {
            shared.deaf.tell();
        }
        // All ranks begin them in the same order, whoever is the root of which.
        shared.by_multicast += 1;
        self.has_word = self.word.is_some() && shared.by_multicast.is_multiple_of(BROADCASTS_PER_WORD);
        self.part = shared.driver.as_mut().map(|driver| driver.enqueue(self.spec, self.root_node));
        // A leader that is not the root may have been told nothing yet of the call, or that the ranks are to leave.
        let has_source = self.is_root || !self.is_on_root_node;
        let goes_together = self.through_memory && self.part.is_some();
        // What is pushed goes along the ring at once.
        self.relays = goes_together && !has_source && !self.has_word && self.spec.form == Form::Pull;
        self.has_come = self.relays;
        self.stage = if goes_together && (has_source || self.relays) {
            Stage::Together
        } else if self.is_on_root_node {
            Stage::OnRootNode
        } else {
            Stage::BetweenNodes
        };
        Ok(())
    }

    fn progress(&mut self, call: &Call, shared: &mut Shared) -> Result<Progress, Failure> {
        loop {
            let progress = match self.stage {
                Stage::OnRootNode | Stage::OnOtherNode => self.on_node(call, shared, u64::MAX),
                Stage::LeadersWord => self.leaders_word(call, shared),
                Stage::BetweenNodes => self.between_nodes(call, shared),
                Stage::Together => self.together(call, shared),
                Stage::Over => {
                    self.keep(call, shared);
                    let failure = self.failure.or(self.lacks_room.then_some(Failure::Size));
                    return Ok(failure.map_or(Progress::Done, Progress::Failed));
                }
            };
            if !self.has_ended(progress) {
                return Ok(Progress::Pending);
            }
            self.has_begun = false;
            self.stage = match self.stage {
                Stage::OnRootNode if self.has_word => Stage::LeadersWord,
                Stage::OnRootNode | Stage::LeadersWord => Stage::BetweenNodes,
                Stage::BetweenNodes if !self.is_on_root_node => Stage::OnOtherNode,
                _ => Stage::Over,
            };
        }
    }

    fn rest(&mut self) {
        self.local().into_iter().for_each(Way::rest);
    }

    fn leave(&mut self, call: &Call, shared: &mut Shared) {
        if let Some(exchange) = self.local() {
            exchange.leave(call, shared);
        }
        std::mem::forget(std::mem::take(&mut self.memory));
    }

    fn inbox(&mut self) -> Option<&mut Vec<Done<MessageId>>> {
        self.local()?.inbox()
    }

    fn waits_for_memory(&self) -> bool {
        let of_local = || self.local.as_ref().is_some_and(Way::waits_for_memory);
        match self.stage {
            Stage::OnRootNode | Stage::OnOtherNode => of_local(),
            Stage::Together => !self.is_exchange_over && (self.part.is_none() || self.has_come) && of_local(),
            Stage::LeadersWord | Stage::BetweenNodes | Stage::Over => false,
        }
    }

    fn is_between_nodes(&self, shared: &Shared) -> bool {
        if !shared.driver.as_ref().is_some_and(|driver| driver.is_active()) {
            return false;
        }
        match self.stage {
            Stage::BetweenNodes => true,
            Stage::Together => self.part.is_some() && (self.is_exchange_over || !self.has_come),
            _ => false,
        }
    }

    #[cfg(test)]
    fn scratch_bytes(&self) -> usize {
        self.local.as_ref().map_or(0, Way::scratch_bytes)
    }
}

impl MulticastBroadcast {
    pub fn new(spec: Multicast, call: &Call, shared: &mut Shared) -> MulticastBroadcast {
        let root_node = shared.nodes.of(call.of.root);
        let is_on_root_node = shared.nodes.mine() == root_node;
        let root: Rank = if is_on_root_node { call.of.root } else { shared.nodes.my_leader() };
        let has_others = shared.nodes.local().ranks() > 1;
        let local = has_others.then(|| Exchange::on_node(root, call, shared));
        let leader = shared.nodes.my_leader();
        let word = (is_on_root_node && leader != root).then(|| {
            let of = collective::Call { bytes: Bytes(1), ..call.of };
            Box::new((
                Exchange::on_node_by_messages(leader, &Call { of, ..call.clone() }, shared),
                Arc::default(),
            ))
        });
        MulticastBroadcast {
            spec,
            root_node,
            is_root: call.of.root == shared.rank,
            is_on_root_node,
            local,
            through_memory: has_others && shared.memory.is_some(),
            word,
            has_word: false,
            key: OperationKey(0),
            stage: Stage::Over,
            has_begun: false,
            is_exchange_over: false,
            has_come: false,
            relays: false,
            part: None,
            failure: None,
            lacks_room: false,
            told: None,
            memory: Vec::new(),
        }
    }

    /// The exchange that goes on now, if there is one.
    fn local(&mut self) -> Option<&mut Exchange> {
        match (&mut self.word, self.stage) {
            (Some(word), Stage::LeadersWord) => Some(&mut word.0),
            _ => self.local.as_mut(),
        }
    }

    /// True if a part of the broadcast has ended; its failure is noted.
    fn has_ended(&mut self, progress: Progress) -> bool {
        if let Progress::Failed(failure) = progress {
            // That sizes differ may only be what comes of it.
            let is_worse = self.failure.is_none_or(|first| first == Failure::Size);
            self.failure = if is_worse { Some(failure) } else { self.failure };
        }
        progress != Progress::Pending
    }

    /// Goes on with the multicast, and with the exchange as far as the multicast's data has come.
    /// Either goes on if the other has failed.
    fn together(&mut self, call: &Call, shared: &mut Shared) -> Progress {
        if self.relays {
            return self.relay(call, shared);
        }
        let mut available = u64::MAX;
        if let Some(part) = self.part {
            let progress = self.between_nodes(call, shared);
            if self.has_ended(progress) {
                self.part = None;
            } else if !self.is_on_root_node {
                let driver = shared.driver.as_ref().filter(|_| self.told.is_some());
                available = driver.map_or(0, |driver| driver.prefix_bytes(part));
                self.has_come = self.told == Some(available);
            }
        }
        if !self.is_exchange_over {
            let progress = self.on_node(call, shared, available);
            self.is_exchange_over = self.has_ended(progress);
        }
        if self.part.is_none() && self.is_exchange_over { Progress::Done } else { Progress::Pending }
    }

    /// Goes on with the exchange, and multicasts the data that has come by it. Nothing is multicast
    /// before anything has come: the leader then knows what the root tells the ranks.
    fn relay(&mut self, call: &Call, shared: &mut Shared) -> Progress {
        if !self.is_exchange_over {
            let progress = self.on_node(call, shared, u64::MAX);
            self.is_exchange_over = self.has_ended(progress);
        }
        if self.part.is_some() && (self.is_exchange_over || self.came_bytes() > 0) {
            #[cfg(test)]
            RELAYED_PARTS
                .fetch_add(usize::from(!self.is_exchange_over), std::sync::atomic::Ordering::Relaxed);
            let progress = self.between_nodes(call, shared);
            if self.has_ended(progress) {
                self.part = None;
            }
        }
        if self.part.is_none() && self.is_exchange_over { Progress::Done } else { Progress::Pending }
    }

    fn came_bytes(&self) -> u64 {
        self.local.as_ref().map_or(0, Exchange::came_bytes)
    }

    /// Goes on with the exchange, in which this rank can publish `available` bytes.
    fn on_node(&mut self, call: &Call, shared: &mut Shared, available: u64) -> Progress {
        let MulticastBroadcast {
            local: Some(local),
            key,
            failure,
            has_begun,
            is_on_root_node,
            lacks_room,
            told,
            memory,
            ..
        } = self
        else {
            return Progress::Done;
        };
        let progress = guarded(*key, shared, |shared| {
            if !std::mem::replace(has_begun, true) {
                local.begin_call(*key, call, failure.is_some(), shared)?;
            }
            if let (Some(bytes), None) = (*told, *failure) {
                let place = if memory.is_empty() { call.buffers.output } else { memory.as_mut_ptr() };
                local.go_on_with(place, bytes, shared)?;
            }
            local.limit(available);
            if failure.is_some() && !*is_on_root_node {
                local.spoil();
            }
            local.go_on(shared)
        });
        if progress == Progress::Failed(Failure::Size) && local.is_whole() {
            *lacks_room = true;
            return Progress::Done;
        }
        progress
    }

    /// Puts what has come into the program's buffer, if all of it stands in memory for a longer message.
    fn keep(&mut self, call: &Call, shared: &mut Shared) {
        let memory = std::mem::take(&mut self.memory);
        if memory.is_empty() || self.failure.is_some() {
            return;
        }
        (shared.told, self.lacks_room) = (self.told, true);
        let own = call.of.bytes.0 as usize;
        // SAFETY: the buffer has as many bytes (see `Operations::start`), and the memory more.
        unsafe { call.buffers.output.copy_from_nonoverlapping(memory.as_ptr(), own) };
    }

    /// The root's data, on its node's leader: it may be of another size than this rank was called with.
    fn source(&self, call: &Call) -> (*mut u8, u64) {
        let is_told = self.is_on_root_node && !self.is_root;
        let own = (call.buffers.output, call.of.bytes.0);
        self.local.as_ref().filter(|_| is_told).map_or(own, Exchange::data)
    }

    fn leaders_word(&mut self, call: &Call, shared: &mut Shared) -> Progress {
        let MulticastBroadcast { word: Some(word), key, has_begun, .. } = self else {
            return Progress::Done;
        };
        let (word, byte) = &mut **word;
        guarded(*key, shared, |shared| {
            if !std::mem::replace(has_begun, true) {
                let call = Call { buffers: Buffers::broadcast(byte.as_ptr()), ..call.clone() };
                word.begin_call(*key, &call, false, shared)?;
            }
            word.go_on(shared)
        })
    }

    fn between_nodes(&mut self, call: &Call, shared: &mut Shared) -> Progress {
        let Some(part) = self.part else { return Progress::Done };
        let (buffer, bytes) = self.source(call);
        let source = Source {
            is_spoiled: self.is_on_root_node && self.failure.is_some(),
            // The end of the exchange says whether the root has as many, so the last of them waits for that.
            there_bytes: match self.relays && !self.is_exchange_over {
                true => self.came_bytes().min(bytes - 1),
                false => u64::MAX,
            },
        };
        let bytes = bytes as usize;
        // SAFETY: see `Operations::start`, or memory of the exchange; a root only reads, and its node's leader has the data by now, or reads what has come.
        let mut data = unsafe {
            match self.is_on_root_node {
                true => Data::Source(std::slice::from_raw_parts(buffer, bytes)),
                false => Data::Growing(std::slice::from_raw_parts_mut(buffer, bytes), &mut self.memory),
            }
        };
        let progress = guarded(self.key, shared, |shared| {
            let Shared { driver, messages, activity, deaf, .. } = shared;
            let driver = driver.as_mut().ok_or(Failure::Internal)?;
            let progress = driver.progress(part, source, *deaf, &mut data, messages, activity);
            driver.inform(deaf);
            progress
        });
        if let (Progress::Failed(_), Some(driver)) = (progress, &mut shared.driver) {
            driver.give_up(part, &mut shared.messages);
        } else if !self.is_on_root_node {
            self.told = self.told.or(shared.driver.as_ref().and_then(|driver| driver.told(part)));
        }
        progress
    }
}
