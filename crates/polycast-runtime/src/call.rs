//! One broadcast by messages: what this rank does in it, for whatever size.

use std::ffi::c_int;
use std::num::NonZeroU64;

use polycast_core::algorithm::Algorithm;
use polycast_core::algorithm::broadcast::{self, Planner};
use polycast_core::executor::{self, Conversation, Limits, Outcome};
use polycast_core::policy::Choice;
use polycast_core::schedule::{RankOrder, Schedule};
use polycast_core::units::{Bytes, Rank};

use crate::door::MESSAGE_MOST_BYTES;
use crate::transport::{Failure, Means, Transport};

/// Messages outstanding: enough per lane to keep a link busy while a rank waits for its turn on an oversubscribed
/// processor, and enough sends in all that children which have not arrived do not hold up their siblings.
const LIMITS: Limits = Limits { per_lane: 16, sends: 256 };

/// How data goes from a leader to the others on its node: through MPI's shared memory, where messages are cheap and copies
/// are not.
const ON_NODE: Algorithm = Algorithm { segment: NonZeroU64::new(64 << 10), ..broadcast::BINOMIAL };

/// A broadcast of a communicator.
pub struct Call<'a, F> {
    pub bytes: u64,
    /// What was chosen for them.
    pub algorithm: Algorithm,
    /// What would serve another size, for senders may have been called with one.
    pub of_other_size: F,
    pub planner: &'a mut Planner,
    pub ranks: u32,
    pub rank: Rank,
    pub root: Rank,
}

impl<F: Fn(u64) -> Choice> executor::Call for Call<'_, F> {
    /// `None` if this size is not served by messages.
    fn schedule(&mut self, bytes: u64) -> Option<Box<dyn Schedule>> {
        let algorithm = if bytes == self.bytes {
            self.algorithm
        } else {
            let Choice::Algorithm(algorithm) = (self.of_other_size)(bytes) else { return None };
            algorithm
        };
        let call = broadcast::Call { ranks: self.ranks, root: self.root, bytes: Bytes(bytes) };
        Some(with_possible_messages(algorithm, bytes).schedule(call, self.rank, self.planner))
    }

    fn bytes_for_all_lanes(&self) -> u64 {
        self.ranks.into()
    }
}

/// A broadcast among the ranks of a node.
pub struct CallOnNode<'a> {
    pub local: &'a RankOrder,
    pub planner: &'a mut Planner,
    pub rank: Rank,
    pub root: Rank,
}

impl executor::Call for CallOnNode<'_> {
    fn schedule(&mut self, bytes: u64) -> Option<Box<dyn Schedule>> {
        let CallOnNode { local, planner, rank, root } = self;
        let call = broadcast::Call { ranks: local.ranks(), root: local.position(*root), bytes: Bytes(bytes) };
        let schedule = ON_NODE.schedule(call, local.position(*rank), planner);
        Some(Box::new(local.apply(schedule)))
    }

    fn bytes_for_all_lanes(&self) -> u64 {
        self.local.ranks().into()
    }
}

/// Runs it. `is_spoiled`: this rank has nothing to send.
///
/// # Safety
/// `buffer` must be valid for all that the schedule of `bytes` reads and writes.
pub unsafe fn drive(
    call: &mut impl executor::Call,
    buffer: *mut u8,
    bytes: u64,
    is_spoiled: bool,
    tag: c_int,
    means: Means<'_>,
) -> Result<(), Failure> {
    // SAFETY: handed on from the caller.
    let mut transport = unsafe { Transport::new(buffer, tag, means) };
    let mut conversation = Conversation::new(call, bytes, LIMITS).ok_or(Failure::Internal)?;
    conversation.begin(is_spoiled, &mut transport)?;
    let (mut completed, mut fruitless_polls) = (Vec::new(), 0u32);
    loop {
        match conversation.advance(&mut transport)? {
            Some(Outcome::Complete) => return Ok(()),
            Some(Outcome::SizesDiffer) => return Err(Failure::Size),
            None => {}
        }
        transport.poll(&mut completed)?;
        fruitless_polls = if completed.is_empty() { fruitless_polls.saturating_add(1) } else { 0 };
        if completed.is_empty() {
            transport.wait(fruitless_polls);
        }
        for done in completed.drain(..) {
            conversation.complete(done, call, &mut transport)?;
        }
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
