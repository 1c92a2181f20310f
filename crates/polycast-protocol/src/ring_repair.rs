//! Stage 2: the ring, in which every node makes sure that its successor gets everything.
//!
//! ```text
//!     root ──▶ 1 ──▶ 2 ──▶ … ──▶ last        the root has no predecessor, the last node no successor
//! ```
//!
//! *Push.* A node forwards each fragment when it sees it for the first time, and owes nothing after that.
//!
//! *Pull.* A node asks its predecessor for a fragment when it knows that multicast does not bring it any more; the predecessor
//! sends it at once, or when it has it itself. A node that has everything says so.
//!
//! ```text
//!     predecessor                                    successor
//!         │ ◀──────────────── request 3, 7 ────────────── │   datagrams 4 to 11 are here, 3 and 7 are not
//!         │ ─────────────── fragments 3, 7 ─────────────▶ │
//!         │ ───────────────────── end ──────────────────▶ │   if it has not said "done" for a while
//!         │ ◀───────────────────  done ────────────────── │
//! ```
//!
//! Invariants
//! 1. Each fragment is asked for at most once: what comes over MPI is not lost, and an asked predecessor sends it, even if the node
//!    says "done" meanwhile. So the node knows what is still to come.
//! 2. A node that misses something has a predecessor that is still there: it leaves only after the node's "done" (pull),
//!    or after it has handed everything to MPI (push).
//! 3. A node that misses something learns at last that multicast is over: from an end by multicast, or from that of its
//!    predecessor, which has one if it has everything itself, if it was told, or if it is the root. By induction along the
//!    ring all get it, so that no time-out decides whether a broadcast ends. A node waits a little with its own end only
//!    because mostly the successor's "done" is on its way.

use std::collections::VecDeque;

use fixedbitset::FixedBitSet;

use super::fragmentation::{Fragmentation, Run, push_to_runs};
use super::message::MAX_REQUEST_RUNS;
use super::receiver::Receiver;
use super::spec::Form;
use polycast_units::Nanos;

/// The time that a node that knows that multicast is over waits for its successor's "done" before
/// it tells the successor.
const END_PATIENCE: Nanos = Nanos::from_micros(2000);

/// The new losses that are worth another request while an answer is outstanding.
const LOSSES_WORTH_A_REQUEST: usize = 8;

/// A node's duties to its neighbours in the ring in one broadcast.
#[derive(Debug)]
pub struct RingRepair {
    form: Form,
    /// Fragments that the successor may ask for are below this one.
    fragments: u32,
    /// True while this node does not know how long the message is; what the successor asks for beyond
    /// `fragments` waits until it does.
    awaits_size: bool,
    deferred: Vec<Run>,
    has_predecessor: bool,
    has_successor: bool,
    /// Fragments for the successor that can be sent now.
    ready: VecDeque<u32>,
    /// Fragments that the successor has asked for and that are not here yet.
    owed: FixedBitSet,
    /// Lost fragments that have not been asked for yet; all fragments below `looked_below` have been looked at.
    unasked: VecDeque<u32>,
    looked_below: u32,
    /// Fragments that have been asked for; `outstanding` of them have not arrived.
    asked: FixedBitSet,
    /// The runs of the next message.
    runs: Vec<Run>,
    outstanding: u32,
    has_said_done: bool,
    successor_is_done: bool,
    /// The time at which the successor is told that multicast is over.
    end_at: Option<Nanos>,
    has_sent_end: bool,
}

impl RingRepair {
    /// The duties of a node at `position` from the root, in a ring of `nodes`. The memory of the
    /// broadcast `before` is used again.
    pub fn new(
        form: Form,
        cut: Fragmentation,
        position: u32,
        nodes: u32,
        before: Option<RingRepair>,
    ) -> RingRepair {
        let (mut owed, mut asked, mut ready, mut unasked, runs) = before
            .map_or_else(Default::default, |ring| {
                (ring.owed, ring.asked, ring.ready, ring.unasked, ring.runs)
            });
        let is_pull = form == Form::Pull;
        for set in [&mut owed, &mut asked] {
            set.clear();
            set.grow(if is_pull { cut.fragments() as usize } else { 0 });
        }
        ready.clear();
        unasked.clear();
        let has_successor = position + 1 < nodes;
        let is_root = position == 0;
        if is_root && !is_pull {
            // The root has everything from the beginning.
            ready.extend(0..cut.fragments());
        }
        RingRepair {
            form,
            fragments: if is_pull && has_successor { cut.fragments() } else { 0 },
            awaits_size: is_pull && !is_root,
            deferred: Vec::new(),
            has_predecessor: !is_root,
            has_successor,
            ready,
            owed,
            unasked,
            looked_below: 0,
            asked,
            runs,
            outstanding: 0,
            has_said_done: is_root || !is_pull,
            successor_is_done: !has_successor || !is_pull,
            end_at: None,
            has_sent_end: !is_pull,
        }
    }

    /// Goes on with a message of another length; `is_certain`: it is the root's.
    pub fn recut(&mut self, cut: Fragmentation, is_certain: bool, receiver: &Receiver) {
        if self.form == Form::Push {
            return;
        }
        for set in [&mut self.owed, &mut self.asked] {
            set.grow(cut.fragments() as usize);
        }
        self.fragments = if self.has_successor { cut.fragments() } else { 0 };
        self.awaits_size = !is_certain;
        let deferred = std::mem::take(&mut self.deferred);
        deferred.into_iter().for_each(|run| self.successor_asks(run, receiver));
    }

    /// A fragment has been seen for the first time.
    pub fn saw(&mut self, fragment: u32) {
        let index = fragment as usize;
        if self.asked.contains(index) {
            self.asked.remove(index);
            self.outstanding -= 1;
        }
        let is_owed = match self.form {
            Form::Push => self.has_successor,
            Form::Pull => self.owed.contains(index),
        };
        if is_owed {
            self.ready.push_back(fragment);
        }
    }

    /// The successor has asked for these fragments.
    pub fn successor_asks(&mut self, run: Run, receiver: &Receiver) {
        let asked = run.fragments();
        if self.awaits_size && asked.end > self.fragments {
            let first = asked.start.max(self.fragments);
            self.deferred.push(Run { first, count: asked.end - first });
        }
        for fragment in asked.start..asked.end.min(self.fragments) {
            let is_new = !self.owed.put(fragment as usize);
            if is_new && receiver.has(fragment) {
                self.ready.push_back(fragment);
            }
        }
    }

    /// The successor has everything.
    pub fn successor_is_done(&mut self) {
        self.successor_is_done = true;
    }

    /// Multicast is over; `is_told` if the predecessor said so.
    pub fn saw_end(&mut self, now: Nanos, is_told: bool) {
        let patience = if is_told { Nanos(0) } else { END_PATIENCE };
        let at = now + patience;
        self.end_at = Some(self.end_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Fragments for one message to the successor, as runs, at most `most` of them.
    pub fn forward(&mut self, most: usize) -> &[Run] {
        self.runs.clear();
        for fragment in self.ready.drain(..most.min(self.ready.len())) {
            push_to_runs(&mut self.runs, fragment);
        }
        &self.runs
    }

    /// True if [`RingRepair::forward`] has something to send.
    pub fn has_to_forward(&self) -> bool {
        !self.ready.is_empty()
    }

    /// True if there is something to ask the predecessor for now: [`RingRepair::runs`].
    pub fn requests(&mut self, receiver: &Receiver) -> bool {
        self.runs.clear();
        if self.form == Form::Push || !self.has_predecessor {
            return false;
        }
        self.unasked.extend(receiver.lost(self.looked_below));
        self.looked_below = self.looked_below.max(receiver.horizon());
        if self.is_owed() && !receiver.is_over() && self.unasked.len() < LOSSES_WORTH_A_REQUEST {
            return false;
        }
        let runs = &mut self.runs;
        while let Some(fragment) = self.unasked.pop_front() {
            // It may have come since, from a datagram that was overtaken.
            if receiver.has(fragment) {
                continue;
            }
            push_to_runs(runs, fragment);
            if runs.len() > MAX_REQUEST_RUNS {
                runs.pop();
                self.unasked.push_front(fragment);
                break;
            }
            self.asked.insert(fragment as usize);
            self.outstanding += 1;
        }
        !self.runs.is_empty()
    }

    /// True if fragments that this node has asked for have not come.
    pub fn is_owed(&self) -> bool {
        self.outstanding > 0
    }

    /// The runs of fragments of the next message.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// True if it is time to tell the predecessor that everything is here; true once.
    pub fn says_done(&mut self, receiver: &Receiver) -> bool {
        receiver.is_complete() && !std::mem::replace(&mut self.has_said_done, receiver.is_complete())
    }

    /// True if nothing but the successor's "done" keeps this node in the broadcast.
    pub fn awaits_done(&self) -> bool {
        self.has_said_done && !self.successor_is_done && self.ready.is_empty()
    }

    /// Gives up: the node will not get everything. True if it still has to send "done" to its
    /// predecessor, which waits for that.
    pub fn gives_up(&mut self) -> bool {
        !std::mem::replace(&mut self.has_said_done, true)
    }

    /// True if it is time to tell the successor that multicast is over; true once.
    pub fn says_end(&mut self, now: Nanos) -> bool {
        let is_time = !self.successor_is_done && self.end_at.is_some_and(|at| at <= now);
        is_time && !std::mem::replace(&mut self.has_sent_end, true)
    }

    /// True if the successor may have to be told that multicast is over.
    pub fn owes_end(&self) -> bool {
        !self.has_sent_end && !self.successor_is_done
    }

    /// The time at which [`RingRepair::says_end`] may become true.
    pub fn deadline(&self) -> Option<Nanos> {
        self.end_at.filter(|_| self.owes_end())
    }

    /// True if this node has sent all that its neighbours wait for.
    pub fn is_settled(&self) -> bool {
        self.has_said_done && self.successor_is_done && self.ready.is_empty()
    }
}
