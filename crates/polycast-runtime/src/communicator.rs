//! One communicator: its rules, its counters, its broadcasts.

use std::ffi::c_int;
use std::num::NonZeroU64;

use polycast_core::algorithm::broadcast::{Algorithm, Call};
use polycast_core::executor::{Executor, Limits, drive};
use polycast_core::schedule::{RankOrder, Schedule};
use polycast_core::select::{BroadcastChoices, Choice};
use polycast_core::units::{Bytes, Rank};

use crate::attach::agree;
use crate::counters::{self, Counters};
use crate::door::{Door, MESSAGE_MOST_BYTES, MpiError};
use crate::idle::Idle;
use crate::transport::{Failure, Slots, Tags, Transport};

/// Messages outstanding: enough per lane to keep a link busy while a rank waits for its turn on an oversubscribed
/// processor, and enough sends in all that children which have not arrived do not hold up their siblings.
const LIMITS: Limits = Limits { per_lane: 16, sends: 256 };

/// Whether the door's private communicator is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Private {
    NotYet,
    Open,
    /// MPI could not make it (on some rank); everything is left to stock.
    Refused,
}

/// State of one communicator in one process.
pub struct Communicator {
    door: Door,
    rank: u32,
    size: u32,
    choices: BroadcastChoices,
    order: Option<RankOrder>,
    private: Private,
    counters: Counters,
    tags: Tags,
    slots: Slots,
    idle: Idle,
}

impl Communicator {
    /// Collective. `None`: leave it to the stock MPI, as all ranks do.
    pub fn attach(door: Door, rank: u32, size: u32) -> Result<Option<Communicator>, MpiError> {
        let Some(agreement) = agree(&door, rank as usize, size as usize)? else { return Ok(None) };
        counters::attached();
        Ok(Some(Communicator {
            door,
            rank,
            size,
            choices: agreement.choices,
            order: agreement.order,
            private: Private::NotYet,
            counters: Counters::default(),
            tags: Tags::default(),
            slots: Slots::default(),
            idle: Idle::new(agreement.neighbours),
        }))
    }

    /// Whether [`Communicator::broadcast`] serves this many bytes; the same on all ranks.
    pub fn serves(&mut self, bytes: u64) -> bool {
        let is_served = *self.choices.choose(Bytes(bytes)) != Choice::Stock && self.has_private();
        if !is_served {
            self.counters.stock.add(bytes);
        }
        is_served
    }

    fn has_private(&mut self) -> bool {
        if self.private == Private::NotYet {
            let is_open = self.door.open_private().unwrap_or(false);
            self.private = if is_open { Private::Open } else { Private::Refused };
        }
        self.private == Private::Open
    }

    /// # Safety
    /// `buffer` must be valid for `bytes` bytes: readable on the root, writable elsewhere.
    pub unsafe fn broadcast(&mut self, buffer: *mut u8, bytes: u64, root: c_int) -> Result<(), Failure> {
        let choice = *self.choices.choose(Bytes(bytes));
        let Choice::Algorithm(algorithm) = choice else { return Err(Failure::Internal) };
        self.counters.served(choice, bytes);
        let schedule = self.schedule(with_possible_messages(algorithm, bytes), Rank(root as u32), bytes);
        // SAFETY: handed on from the caller; the schedule stays within 0..bytes.
        let mut transport =
            unsafe { Transport::new(&self.door, buffer, self.tags.next(), &mut self.slots, &mut self.idle) };
        drive(Executor::new(schedule, LIMITS), &mut transport)
    }

    /// What this rank does.
    fn schedule(&self, algorithm: Algorithm, root: Rank, bytes: u64) -> Box<dyn Schedule> {
        let (ranks, me, bytes) = (self.size, Rank(self.rank), Bytes(bytes));
        match &self.order {
            None => algorithm.schedule(Call { ranks, root, bytes }, me),
            Some(order) => {
                let call = Call { ranks, root: order.position(root), bytes };
                Box::new(order.apply(algorithm.schedule(call, order.position(me))))
            }
        }
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        counters::released(&self.counters);
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
