//! One communicator: its rules, its counters, its broadcasts.

use std::ffi::c_int;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::{Duration, Instant};

use polycast_core::algorithm::broadcast::{Algorithm, Call, Planner, Shape};
use polycast_core::executor::{Executor, Limits, drive};
use polycast_core::protocol::{Data, Multicast};
use polycast_core::schedule::Schedule;
use polycast_core::select::{BroadcastChoices, Choice};
use polycast_core::units::{Bytes, Rank};

use crate::attach::agree;
use crate::counters::{self, Counters};
use crate::door::{Door, MESSAGE_MOST_BYTES, MpiError};
use crate::idle::Idle;
use crate::multicast::{Mail, Reason, Resources, Ring, Unavailable, set_up};
use crate::nodes::Nodes;
use crate::retired;
use crate::say::warn_once;
use crate::settings;
use crate::slots::Slots;
use crate::transport::{Failure, Tags, Transport};

/// Messages outstanding: enough per lane to keep a link busy while a rank waits for its turn on an oversubscribed
/// processor, and enough sends in all that children which have not arrived do not hold up their siblings.
const LIMITS: Limits = Limits { per_lane: 16, sends: 256 };

/// How data goes from a leader to the others on its node: through MPI's shared memory, where messages are cheap and copies
/// are not.
const ON_NODE: Algorithm = Algorithm {
    shape: Shape::KNomial(NonZeroU32::new(2).unwrap()),
    segment: NonZeroU64::new(64 << 10),
    ready: false,
};

/// How long freeing a communicator waits for the last messages between its nodes. What takes longer is looked at when the
/// next communicator is attached.
const SETTLING: Duration = Duration::from_millis(1);

/// Whether the door's private communicator is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Private {
    NotYet,
    Open,
    /// MPI could not make it (on some rank); everything is left to stock.
    Refused,
}

/// Whether its nodes are connected by multicast.
enum MulticastState {
    Untried,
    /// The ring of leaders; `None` on ranks that lead no node.
    Ready(Option<Box<Ring>>),
    /// Trees serve.
    Unavailable,
    /// The program has freed the communicator, and its neighbours have not yet said goodbye.
    Leaving(Box<Mail>),
}

/// State of one communicator in one process.
pub struct Communicator {
    door: Door,
    rank: Rank,
    size: u32,
    choices: BroadcastChoices,
    choices_without_multicast: BroadcastChoices,
    planner: Planner,
    /// For the ranks on this rank's node.
    on_node: Planner,
    hosts: Vec<u64>,
    processes: Vec<u64>,
    nodes: Nodes,
    private: Private,
    multicast: MulticastState,
    counters: Counters,
    tags: Tags,
    slots: Slots,
    idle: Idle,
}

impl Communicator {
    /// Collective. `None`: leave it to the stock MPI, as all ranks do.
    pub fn attach(
        door: Door,
        rank: u32,
        size: u32,
        is_world: bool,
    ) -> Result<Option<Communicator>, MpiError> {
        retired::visit();
        if is_world && rank == 0 {
            settings::warn_of_problems();
        }
        let Some(agreement) = agree(&door, rank as usize, size as usize, is_world)? else { return Ok(None) };
        counters::attached();
        let nodes = Nodes::new(&agreement.hosts, agreement.site.ring(), Rank(rank));
        Ok(Some(Communicator {
            door,
            rank: Rank(rank),
            size,
            choices: agreement.choices,
            choices_without_multicast: agreement.choices_without_multicast,
            planner: Planner::new(agreement.site),
            on_node: Planner::flat(nodes.local().ranks()),
            nodes,
            hosts: agreement.hosts,
            processes: agreement.processes,
            private: Private::NotYet,
            multicast: MulticastState::Untried,
            counters: Counters::default(),
            tags: Tags::default(),
            slots: Slots::default(),
            idle: Idle::new(agreement.neighbours),
        }))
    }

    /// Whether [`Communicator::broadcast`] serves this many bytes; the same on all ranks. Collective the first time that a
    /// choice needs something that is not there yet.
    pub fn serves(&mut self, bytes: u64) -> bool {
        let mut choice = *self.choices.choose(Bytes(bytes));
        if choice.needs_multicast() && !self.has_multicast() {
            choice = *self.choices.choose(Bytes(bytes));
        }
        let is_served = choice != Choice::Stock && self.has_private();
        if !is_served {
            self.counters.stock.add(bytes);
        }
        is_served
    }

    /// What serves a broadcast of this many bytes, as far as it is known without trying.
    pub fn choice(&self, bytes: u64) -> Choice {
        match self.private {
            Private::Refused => Choice::Stock,
            Private::NotYet | Private::Open => *self.choices.choose(Bytes(bytes)),
        }
    }

    fn has_private(&mut self) -> bool {
        if self.private == Private::NotYet {
            let is_open = self.door.open_private().unwrap_or(false);
            self.private = if is_open { Private::Open } else { Private::Refused };
        }
        self.private == Private::Open
    }

    /// Tries it the first time; without it, choices are made anew.
    fn has_multicast(&mut self) -> bool {
        if let MulticastState::Untried = self.multicast {
            let is_possible = self.nodes.count() > 1 && self.has_private();
            let outcome = match is_possible {
                true => set_up(&self.door, self.rank, &self.nodes, &self.hosts, &self.processes),
                false => Ok(Err(Unavailable::nowhere())),
            };
            self.multicast = match outcome {
                Ok(Ok(ring)) => MulticastState::Ready(ring.map(Box::new)),
                Ok(Err(unavailable)) => {
                    self.fall_back(unavailable);
                    MulticastState::Unavailable
                }
                Err(_) => MulticastState::Unavailable,
            };
            if let MulticastState::Unavailable = self.multicast {
                self.choices = self.choices_without_multicast.clone();
            }
        }
        matches!(self.multicast, MulticastState::Ready(_))
    }

    fn fall_back(&mut self, unavailable: Unavailable) {
        counters::fell_back();
        let is_said = unavailable.reason == Reason::Setting && settings::is_warned_of();
        if let (Rank(0), false, Some(warning)) = (self.rank, is_said, unavailable.warning()) {
            warn_once(&warning);
        }
    }

    /// # Safety
    /// `buffer` must be valid for `bytes` bytes: readable on the root, writable elsewhere.
    pub unsafe fn broadcast(&mut self, buffer: *mut u8, bytes: u64, root: c_int) -> Result<(), Failure> {
        let choice = *self.choices.choose(Bytes(bytes));
        self.counters.served(choice, bytes);
        let root = Rank(root as u32);
        // SAFETY: handed on from the caller.
        let outcome = unsafe {
            match choice {
                Choice::Stock => Err(Failure::Internal),
                Choice::Algorithm(algorithm) => self.broadcast_by_schedule(algorithm, buffer, bytes, root),
                Choice::Multicast(multicast) => self.broadcast_by_multicast(multicast, buffer, bytes, root),
            }
        };
        if outcome.is_err() {
            if let MulticastState::Ready(Some(ring)) = &mut self.multicast {
                let Communicator { door, slots, idle, .. } = self;
                ring.give_up(&mut Resources { door, slots, idle });
            }
            self.abandon();
        }
        outcome
    }

    /// # Safety
    /// As for [`Communicator::broadcast`].
    unsafe fn broadcast_by_schedule(
        &mut self,
        algorithm: Algorithm,
        buffer: *mut u8,
        bytes: u64,
        root: Rank,
    ) -> Result<(), Failure> {
        let call = Call { ranks: self.size, root, bytes: Bytes(bytes) };
        let algorithm = with_possible_messages(algorithm, bytes);
        let schedule = algorithm.schedule(call, self.rank, &mut self.planner);
        let tag = self.tags.next();
        // SAFETY: handed on from the caller; the schedule stays within 0..bytes.
        unsafe { self.drive(schedule, buffer, tag) }
    }

    /// # Safety
    /// `buffer` must be valid for all that the schedule reads and writes.
    unsafe fn drive(
        &mut self,
        schedule: Box<dyn Schedule>,
        buffer: *mut u8,
        tag: c_int,
    ) -> Result<(), Failure> {
        // SAFETY: handed on from the caller.
        let mut transport =
            unsafe { Transport::new(&self.door, buffer, tag, &mut self.slots, &mut self.idle) };
        drive(Executor::new(schedule, LIMITS), &mut transport)
    }

    /// From the root to its node, from node to node, on each node from its leader to the others.
    ///
    /// # Safety
    /// As for [`Communicator::broadcast`].
    unsafe fn broadcast_by_multicast(
        &mut self,
        multicast: Multicast,
        buffer: *mut u8,
        bytes: u64,
        root: Rank,
    ) -> Result<(), Failure> {
        let tag = self.tags.next();
        let root_node = self.nodes.of(root);
        let is_on_root_node = self.nodes.mine() == root_node;
        if is_on_root_node {
            // SAFETY: handed on from the caller.
            unsafe { self.broadcast_on_node(buffer, bytes, root, tag)? };
        }
        if let MulticastState::Ready(Some(ring)) = &mut self.multicast {
            // SAFETY: the caller's promise; a root only reads, and its node's leader has the data by now.
            let mut data = unsafe {
                match is_on_root_node {
                    true => Data::Source(std::slice::from_raw_parts(buffer, bytes as usize)),
                    false => Data::Sink(std::slice::from_raw_parts_mut(buffer, bytes as usize)),
                }
            };
            let Communicator { door, slots, idle, .. } = self;
            ring.run(multicast, root_node, &mut data, &mut Resources { door, slots, idle })?;
        }
        if !is_on_root_node {
            // SAFETY: handed on from the caller.
            unsafe { self.broadcast_on_node(buffer, bytes, self.nodes.my_leader(), tag)? };
        }
        Ok(())
    }

    /// # Safety
    /// As for [`Communicator::broadcast`].
    unsafe fn broadcast_on_node(
        &mut self,
        buffer: *mut u8,
        bytes: u64,
        root: Rank,
        tag: c_int,
    ) -> Result<(), Failure> {
        let local = self.nodes.local();
        if local.ranks() < 2 {
            return Ok(());
        }
        let call = Call { ranks: local.ranks(), root: local.position(root), bytes: Bytes(bytes) };
        let schedule = ON_NODE.schedule(call, local.position(self.rank), &mut self.on_node);
        let schedule = local.apply(schedule);
        // SAFETY: handed on from the caller; the schedule stays within 0..bytes.
        unsafe { self.drive(Box::new(schedule), buffer, tag) }
    }

    /// After an error, and at the end: MPI touches no buffer of ours any more.
    fn abandon(&mut self) {
        if self.private == Private::Open {
            self.door.abandon();
        }
        self.slots.clear();
        match &mut self.multicast {
            MulticastState::Ready(Some(ring)) => ring.forget(),
            MulticastState::Leaving(mail) => mail.forget(),
            _ => {}
        }
    }
}

impl Communicator {
    /// The program frees the communicator: it is counted, and goes when MPI has nothing more for it. `is_over`: MPI ends, and
    /// nobody will ask again.
    pub fn detach(mut self: Box<Communicator>, is_over: bool) {
        if let MulticastState::Ready(Some(ring)) = &self.multicast {
            self.counters.multicast(ring);
        }
        counters::released(&self.counters);
        if let MulticastState::Ready(Some(ring)) =
            std::mem::replace(&mut self.multicast, MulticastState::Unavailable)
        {
            let Communicator { door, slots, idle, .. } = &mut *self;
            if let Ok(mail) = ring.say_bye(&mut Resources { door, slots, idle }) {
                self.multicast = MulticastState::Leaving(Box::new(mail));
            }
        }
        let mut is_settled = self.is_settled();
        let patience = if is_over { Duration::ZERO } else { SETTLING };
        let end = Instant::now() + patience;
        while !is_settled && Instant::now() < end {
            is_settled = self.is_settled();
            std::thread::yield_now();
        }
        if is_settled {
            self.close();
        } else {
            retired::add(self);
        }
    }

    /// Nothing is on its way between its nodes. Does not wait.
    pub fn is_settled(&mut self) -> bool {
        match &mut self.multicast {
            MulticastState::Leaving(mail) => mail.is_settled(&self.door, &mut self.slots).unwrap_or(true),
            _ => true,
        }
    }

    /// The door may free what it has.
    pub fn close(mut self: Box<Communicator>) {
        self.abandon();
        self.door.close();
    }

    /// MPI ends: it frees what the door has.
    pub fn leave_to_mpi(mut self: Box<Communicator>) {
        self.abandon();
    }
}

/// What is to be sent whole is still cut here: MPI's counts are ints, and a message that takes long shows no progress
/// by which the idle strategy could tell a working transfer from a late rank.
fn with_possible_messages(algorithm: Algorithm, bytes: u64) -> Algorithm {
    let most = NonZeroU64::new(MESSAGE_MOST_BYTES);
    match algorithm.segment {
        Some(segment) if segment.get() <= MESSAGE_MOST_BYTES => algorithm,
        None if bytes <= MESSAGE_MOST_BYTES => algorithm,
        _ => Algorithm { segment: most, ..algorithm },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_message_is_larger_than_the_interface_allows() {
        let whole: Algorithm = "chain".parse().unwrap();
        let huge: Algorithm = "chain:segment=2GiB".parse().unwrap();
        let capped = Algorithm { segment: NonZeroU64::new(MESSAGE_MOST_BYTES), ..whole };
        assert_eq!(with_possible_messages(whole, MESSAGE_MOST_BYTES), whole);
        assert_eq!(with_possible_messages(whole, MESSAGE_MOST_BYTES + 1), capped);
        assert_eq!(with_possible_messages(huge, 5 << 30), capped);
        assert_eq!(with_possible_messages(capped, 5 << 30), capped);
    }
}
