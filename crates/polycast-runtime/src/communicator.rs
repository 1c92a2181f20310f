//! One communicator: its rules, its log, its broadcasts.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use polycast_core::algorithm::Algorithm;
use polycast_core::algorithm::broadcast::Planner;
use polycast_core::policy::{self, CallCounts, Capabilities, Choice, Collective, Epoch, Policy};
use polycast_core::protocol::{Data, Multicast};
use polycast_core::units::{Bytes, Rank};

use crate::attach::{Agreement, gather};
use crate::call::{Call, CallOnNode, drive};
use crate::door::{Door, MpiError};
use crate::fault::{self, Point};
use crate::idle::Idle;
use crate::machine;
use crate::multicast::{Mail, Reason, Resources, Ring, Unavailable, left_group, set_up, visit_groups};
use crate::nodes::Nodes;
use crate::plan::Pool;
use crate::report::{self, Log};
use crate::retired;
use crate::say::warn_once;
use crate::scratch::Scratch;
use crate::settings;
use crate::slots::Slots;
use crate::transport::{Failure, Means, Tags};

/// How long freeing a communicator waits for the last messages between its nodes. What takes longer is looked at when the
/// next communicator is attached.
const SETTLING: Duration = Duration::from_millis(1);

/// Calls for which multicast would have been chosen, until it is tried again where it did not work. A try that all leaders hold
/// worth its time takes a second, any other one message to and from each rank.
const RETRY_AFTER_CALLS: u32 = 1024;

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
    /// Trees serve; it is tried again after so many calls for which multicast would have been chosen.
    Unavailable {
        calls_until_retry: u32,
    },
    /// The program has freed the communicator, and its neighbours have not yet said goodbye.
    Leaving(Box<Mail>),
}

/// What serves a call, and its epoch, for ranks may have been called with another size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chosen {
    pub choice: Choice,
    epoch: Epoch,
}

/// Who serves a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// The MPI.
    Left,
    /// The MPI, and [`Communicator::end_of_left`] is to be called when it has done it.
    LeftAndTimed,
    /// [`Communicator::broadcast`], in this way.
    Served(Chosen),
}

/// State of one communicator in one process.
pub struct Communicator {
    door: Door,
    rank: Rank,
    size: u32,
    policy: Policy,
    /// What this communicator has, as far as it was tried; the rest is assumed.
    capabilities: Capabilities,
    counts: CallCounts,
    planner: Planner,
    /// For the ranks on this rank's node.
    on_node: Planner,
    hosts: Vec<u64>,
    processes: Vec<u64>,
    nodes: Nodes,
    private: Private,
    multicast: MulticastState,
    log: Log,
    /// Given back, for the next calls.
    pub plans: Pool,
    tags: Tags,
    slots: Slots,
    scratch: Scratch,
    idle: Idle,
    /// MPI failed, or polycast did, while ranks agreed on something: this one does not know what the others do.
    broken: Option<Failure>,
}

impl Communicator {
    /// Collective. `None`: leave it to the stock MPI, as all ranks do. Where MPI fails on this rank, the others may serve: its
    /// broadcasts give MPI's error.
    pub fn attach(door: Door, rank: u32, size: u32, is_world: bool) -> Option<Communicator> {
        // What goes wrong with others is no matter of this one.
        let _ = catch_unwind(|| {
            retired::visit();
            if is_world && rank == 0 {
                settings::warn_of_problems();
            }
        });
        let attached = Communicator::agree(door, rank, size, is_world).unwrap_or_else(|error| {
            let mut broken = Communicator::new(door, Rank(rank), size, Agreement::unknown(size as usize));
            broken.broken = Some(Failure::Mpi(error));
            Some(broken)
        });
        if attached.is_some() {
            report::attached();
        }
        attached
    }

    fn agree(door: Door, rank: u32, size: u32, is_world: bool) -> Result<Option<Communicator>, MpiError> {
        let Some(gathered) = gather(&door, rank as usize, size as usize)? else { return Ok(None) };
        let made = catch_unwind(AssertUnwindSafe(|| {
            let agreement = gathered.agreement(rank as usize, is_world);
            Communicator::new(door, Rank(rank), size, agreement)
        }));
        let is_made = [u8::from(made.is_ok())];
        let all = door.allgather(&is_made, size as usize)?;
        Ok(made.ok().filter(|_| all.iter().all(|is_made| *is_made == [1])))
    }

    fn new(door: Door, rank: Rank, size: u32, agreement: Agreement) -> Communicator {
        let nodes = Nodes::new(&agreement.hosts, agreement.site.ring(), rank);
        Communicator {
            door,
            rank,
            size,
            policy: agreement.policy,
            capabilities: Capabilities::ALL,
            counts: CallCounts::default(),
            planner: Planner::new(agreement.site),
            on_node: Planner::flat(nodes.local().ranks()),
            nodes,
            hosts: agreement.hosts,
            processes: agreement.processes,
            private: Private::NotYet,
            multicast: MulticastState::Untried,
            log: Log::new(&agreement.settings),
            plans: Pool::default(),
            tags: Tags::default(),
            slots: Slots::default(),
            scratch: Scratch::default(),
            idle: Idle::new(agreement.neighbours),
            broken: None,
        }
    }

    /// Who serves a broadcast of this many bytes; the same on all ranks. Collective the first time that a
    /// choice needs something that is not there yet.
    ///
    /// A rank that cannot find out what the others chose must not go to the stock MPI by itself: it says yes, and the broadcast
    /// gives the error.
    pub fn plan(&mut self, bytes: u64) -> Decision {
        self.log.begin();
        if self.broken.is_none() {
            match catch_unwind(AssertUnwindSafe(|| self.decide(bytes))) {
                Ok(Ok(decision)) => return decision,
                Ok(Err(error)) => self.broken = Some(Failure::Mpi(error)),
                Err(_) => self.broken = Some(Failure::Internal),
            }
        }
        Decision::Served(Chosen { choice: Choice::Stock, epoch: Epoch::default() })
    }

    /// The MPI has done a call that was left to it, and is timed.
    pub fn end_of_left(&mut self) {
        self.log.end_of_left();
    }

    fn decide(&mut self, bytes: u64) -> Result<Decision, MpiError> {
        fault::point(Point::Choose);
        let call = broadcast_of(bytes);
        let epoch = self.counts.next(&self.policy, Collective::Broadcast);
        self.retry_multicast(&call, epoch)?;
        let mut decision = *self.policy.choose(&call, self.capabilities, epoch);
        while !self.provides(decision.choice)? {
            decision = *self.policy.choose(&call, self.capabilities, epoch);
        }
        if decision.choice != Choice::Stock {
            return Ok(Decision::Served(Chosen { choice: decision.choice, epoch }));
        }
        let is_refused = || self.policy.choose(&call, Capabilities::ALL, epoch).choice != Choice::Stock;
        Ok(match self.log.leave(bytes, decision.by, is_refused) {
            true => Decision::LeftAndTimed,
            false => Decision::Left,
        })
    }

    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// What serves a broadcast of this many bytes, as far as it is known without trying.
    pub fn choice(&self, bytes: u64) -> Choice {
        let epoch = self.counts.peek(&self.policy, Collective::Broadcast);
        self.policy.choose(&broadcast_of(bytes), self.capabilities, epoch).choice
    }

    /// Whether the communicator has what it needs, which is tried the first time. What it has not is known to
    /// `self.capabilities` then.
    fn provides(&mut self, choice: Choice) -> Result<bool, MpiError> {
        Ok(match choice {
            Choice::Stock => true,
            Choice::Algorithm(_) => self.has_private()?,
            Choice::Multicast(_) => self.has_multicast()?,
        })
    }

    fn has_private(&mut self) -> Result<bool, MpiError> {
        if self.private == Private::NotYet {
            self.private = if self.door.open_private()? { Private::Open } else { Private::Refused };
            if self.private == Private::Refused {
                self.capabilities = Capabilities::NONE;
            }
        }
        Ok(self.private == Private::Open)
    }

    /// Tries it the first time.
    fn has_multicast(&mut self) -> Result<bool, MpiError> {
        if let MulticastState::Untried = self.multicast {
            self.try_multicast()?;
        }
        Ok(matches!(self.multicast, MulticastState::Ready(_)))
    }

    /// Where it did not work, it is tried again after a number of calls, which all ranks count alike. Whether a try is worth its time by
    /// then is for each leader to say in it.
    fn retry_multicast(&mut self, call: &policy::Call, epoch: Epoch) -> Result<(), MpiError> {
        let MulticastState::Unavailable { calls_until_retry } = &mut self.multicast else { return Ok(()) };
        if matches!(self.policy.choose(call, Capabilities::ALL, epoch).choice, Choice::Multicast(_)) {
            *calls_until_retry = calls_until_retry.saturating_sub(1);
            if *calls_until_retry == 0 {
                self.try_multicast()?;
            }
        }
        Ok(())
    }

    fn try_multicast(&mut self) -> Result<(), MpiError> {
        let is_possible = self.nodes.count() > 1 && self.has_private()?;
        let outcome = match is_possible {
            true => set_up(&self.door, self.rank, &self.nodes, &self.hosts, &self.processes)?,
            false => Err(Unavailable::nowhere()),
        };
        self.multicast = match outcome {
            Ok(ring) => MulticastState::Ready(ring.map(Box::new)),
            Err(unavailable) => {
                if let MulticastState::Untried = self.multicast {
                    report::fell_back(unavailable);
                }
                let is_said = unavailable.reason == Reason::Setting && settings::is_warned_of();
                if let (Rank(0), false, Some(warning)) = (self.rank, is_said, unavailable.warning()) {
                    warn_once(&warning);
                }
                let calls_until_retry = if unavailable.may_pass() { RETRY_AFTER_CALLS } else { u32::MAX };
                MulticastState::Unavailable { calls_until_retry }
            }
        };
        self.capabilities = match self.multicast {
            MulticastState::Ready(_) => self.capabilities | Capabilities::MULTICAST,
            _ => self.capabilities.without(Capabilities::MULTICAST),
        };
        Ok(())
    }

    /// Whatever goes wrong, MPI touches `buffer` no more when this returns. `chosen` is what [`Communicator::plan`] gave for these
    /// bytes.
    ///
    /// # Safety
    /// `buffer` must be valid for `bytes` bytes: readable on the root, writable elsewhere.
    pub unsafe fn broadcast(
        &mut self,
        chosen: Chosen,
        buffer: *mut u8,
        bytes: u64,
        root: Rank,
    ) -> Result<(), Failure> {
        if let Some(failure) = self.broken {
            return Err(failure);
        }
        visit_groups();
        // SAFETY: handed on from the caller.
        let attempt = AssertUnwindSafe(|| unsafe {
            match chosen.choice {
                Choice::Stock => Err(Failure::Internal),
                Choice::Algorithm(algorithm) => {
                    self.broadcast_by_schedule(algorithm, chosen.epoch, buffer, bytes, root)
                }
                Choice::Multicast(multicast) => self.broadcast_by_multicast(multicast, buffer, bytes, root),
            }
        });
        let outcome = catch_unwind(attempt).unwrap_or(Err(Failure::Internal));
        if matches!(outcome, Err(Failure::Mpi(_) | Failure::Internal)) {
            self.abandon();
        }
        self.log.served(chosen.choice, bytes);
        outcome
    }

    /// # Safety
    /// As for [`Communicator::broadcast`].
    unsafe fn broadcast_by_schedule(
        &mut self,
        algorithm: Algorithm,
        epoch: Epoch,
        buffer: *mut u8,
        bytes: u64,
        root: Rank,
    ) -> Result<(), Failure> {
        let tag = self.tags.next();
        let Communicator { rank, size, policy, capabilities, planner, door, slots, scratch, idle, .. } = self;
        let (rank, ranks, there) = (*rank, *size, *capabilities);
        let of_other_size = |bytes| policy.choose(&broadcast_of(bytes), there, epoch).choice;
        let mut call = Call { bytes, algorithm, of_other_size, planner, ranks, rank, root };
        // SAFETY: handed on from the caller; the schedule stays within 0..bytes.
        unsafe { drive(&mut call, buffer, bytes, false, tag, Means { door, slots, scratch, idle }) }
    }

    /// From the root to its node, from node to node, on each node from its leader to the others. A rank that finds out that sizes
    /// differ still takes part in what follows, so that nobody waits for it.
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
        let mut is_spoiled = false;
        if is_on_root_node {
            // SAFETY: handed on from the caller.
            is_spoiled = sizes_differ(unsafe { self.broadcast_on_node(buffer, bytes, root, false, tag) })?;
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
            let resources = &mut Resources { door, slots, idle };
            is_spoiled |= sizes_differ(ring.run(multicast, root_node, is_spoiled, &mut data, resources))?;
        }
        if !is_on_root_node {
            let leader = self.nodes.my_leader();
            // SAFETY: handed on from the caller.
            let local = unsafe { self.broadcast_on_node(buffer, bytes, leader, is_spoiled, tag) };
            is_spoiled |= sizes_differ(local)?;
        }
        if is_spoiled { Err(Failure::Size) } else { Ok(()) }
    }

    /// # Safety
    /// As for [`Communicator::broadcast`].
    unsafe fn broadcast_on_node(
        &mut self,
        buffer: *mut u8,
        bytes: u64,
        root: Rank,
        is_spoiled: bool,
        tag: c_int,
    ) -> Result<(), Failure> {
        let Communicator { rank, nodes, on_node, door, slots, scratch, idle, .. } = self;
        if nodes.local().ranks() < 2 {
            return Ok(());
        }
        let mut call = CallOnNode { local: nodes.local(), planner: on_node, rank: *rank, root };
        // SAFETY: handed on from the caller; the schedule stays within 0..bytes.
        unsafe { drive(&mut call, buffer, bytes, is_spoiled, tag, Means { door, slots, scratch, idle }) }
    }

    /// After an error, and at the end: MPI touches no buffer of ours any more.
    fn abandon(&mut self) {
        if self.private == Private::Open {
            self.door.abandon();
        }
        self.slots.clear();
        self.scratch.forget();
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
        report::released(match &self.multicast {
            MulticastState::Ready(Some(ring)) => Some(ring),
            _ => None,
        });
        if let MulticastState::Ready(Some(ring)) =
            std::mem::replace(&mut self.multicast, MulticastState::Untried)
        {
            let Communicator { door, slots, idle, .. } = &mut *self;
            if let Ok(mail) = ring.say_bye(&mut Resources { door, slots, idle }) {
                self.multicast = MulticastState::Leaving(Box::new(mail));
            }
            left_group();
        }
        let mut is_settled = self.is_settled();
        let patience = if is_over { Duration::ZERO } else { SETTLING };
        let end = machine::now() + patience;
        while !is_settled && machine::now() < end {
            is_settled = self.is_settled();
            machine::give_way();
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

fn broadcast_of(bytes: u64) -> policy::Call {
    policy::Call { collective: Collective::Broadcast, bytes: Bytes(bytes) }
}

/// Whether that is what went wrong; other errors are handed on.
fn sizes_differ(outcome: Result<(), Failure>) -> Result<bool, Failure> {
    match outcome {
        Ok(()) => Ok(false),
        Err(Failure::Size) => Ok(true),
        Err(error) => Err(error),
    }
}
