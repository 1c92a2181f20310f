//! Copies of short messages that this node has pushed, for a successor that misses something of one.
//!
//! In push nobody waits for anybody: who is asked by datagram for what the ring does not bring has left that broadcast, and the program's
//! memory with it. So a node keeps what it has pushed lately, and answers from there in whatever broadcast it is. Where the predecessor does
//! not, for it is stuck itself, the root does, which needs nobody.
//!
//! Invariants
//! 1. At most [`MAX_COPIES`] messages of at most [`MAX_BYTES`] each are kept.
//! 2. In a broadcast of its own a node answers at most [`MAX_ANSWERS`] fragments so, each once in [`ANSWER_ONCE_IN`].

use std::collections::VecDeque;

use super::datagram_repair::ANSWER_ONCE_IN;
use super::fragmentation::{Fragmentation, Run};
use super::message::Runs;
use polycast_units::Nanos;

/// The most messages that are kept.
const MAX_COPIES: usize = 8;
/// Bytes of the longest message that is kept: nobody pushes longer ones who can help it.
const MAX_BYTES: usize = 64 << 10;
/// Bytes of the longest message that is kept without losses; longer ones only while losses are
/// seen. To copy so much takes a hundredth of the broadcast.
const ALWAYS_BYTES: usize = 16 << 10;
/// The most fragments that are answered in a broadcast.
const MAX_ANSWERS: u32 = 64;

/// A message that this node pushes.
#[derive(Clone, Copy, Debug)]
pub struct Pushed {
    /// The number of the message's broadcast.
    pub operation: u64,
    /// The message's cut into fragments.
    pub cut: Fragmentation,
    /// True if this node is the root.
    pub is_root: bool,
    /// True if the broadcast tells the ranks to leave multicast: a node that has nothing of it but
    /// answers has to know that, too.
    pub tells_to_leave: bool,
}

#[derive(Debug)]
struct Stored {
    of: Pushed,
    bytes: Vec<u8>,
}

/// A fragment of a kept message, in answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The number of the message's broadcast.
    pub operation: u64,
    /// The index of the fragment.
    pub fragment: u32,
    /// True if the broadcast tells the ranks to leave multicast, as in [`Pushed`].
    pub tells_to_leave: bool,
    /// True if it is the last one.
    pub is_last: bool,
    /// The bytes of the fragment.
    pub bytes: &'a [u8],
}

/// The messages that a node has pushed lately.
#[derive(Debug, Default)]
pub struct Kept {
    /// The copies, the newest last.
    copies: VecDeque<Stored>,
    /// The fragments to answer with, each with its broadcast; their copies are there.
    due: VecDeque<(u64, u32)>,
    answered: Vec<(u64, u32)>,
    answered_since: Nanos,
    answers: u32,
}

impl Kept {
    /// A broadcast begins.
    pub fn begin(&mut self) {
        self.answers = 0;
        self.due.clear();
    }

    /// Keeps a copy of a message that this node has in full and pushes. `sees_losses`: the network
    /// loses something.
    pub fn keep(&mut self, of: Pushed, message: &[u8], sees_losses: bool) {
        if message.len() > if sees_losses { MAX_BYTES } else { ALWAYS_BYTES } {
            return;
        }
        let mut bytes = Vec::new();
        if self.copies.len() == MAX_COPIES
            && let Some(oldest) = self.copies.pop_front()
        {
            // Who asked for it is answered by its ring.
            self.due.retain(|(operation, _)| *operation != oldest.of.operation);
            bytes = oldest.bytes;
        }
        bytes.clear();
        bytes.extend_from_slice(message);
        self.copies.push_back(Stored { of, bytes });
    }

    /// A node misses the fragments `runs` of a broadcast that this node has left. They are answered
    /// if that node is this one's successor, or has asked before and this node was the root.
    pub fn is_asked(
        &mut self,
        operation: u64,
        runs: Runs<'_>,
        by_successor: bool,
        is_repeated: bool,
        now: Nanos,
    ) {
        let is_it = |copy: &&Stored| {
            copy.of.operation == operation && (by_successor || is_repeated && copy.of.is_root)
        };
        let Some(copy) = self.copies.iter().find(is_it) else { return };
        if now - self.answered_since >= ANSWER_ONCE_IN {
            self.answered_since = now;
            self.answered.clear();
        }
        let existing =
            runs.iter().flat_map(Run::fragments).take_while(|fragment| *fragment < copy.of.cut.fragments());
        for fragment in existing.take(MAX_ANSWERS as usize) {
            if self.answers < MAX_ANSWERS && !self.answered.contains(&(operation, fragment)) {
                self.answers += 1;
                self.answered.push((operation, fragment));
                self.due.push_back((operation, fragment));
            }
        }
    }

    /// True if there is an answer to send.
    pub fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// The next answer.
    pub fn take_answer(&mut self) -> Option<Answer<'_>> {
        let (operation, fragment) = self.due.pop_front()?;
        let Stored { of, bytes } = self.copies.iter().find(|copy| copy.of.operation == operation)?;
        let (bytes, is_last) = (&bytes[of.cut.range(fragment)?], of.cut.is_last(fragment));
        Some(Answer { operation, fragment, tells_to_leave: of.tells_to_leave, is_last, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::super::datagram_repair::read_request;
    use super::*;

    const MILLI: u64 = 1_000_000;

    fn pushed(operation: u64, cut: Fragmentation) -> Pushed {
        Pushed { operation, cut, is_root: false, tells_to_leave: false }
    }

    fn ask(kept: &mut Kept, operation: u64, run: Run, now: u64) -> Vec<(u64, u32, Vec<u8>)> {
        let mut payload = Vec::new();
        run.write(&mut payload);
        kept.is_asked(operation, read_request(&payload).unwrap(), true, false, Nanos(now));
        std::iter::from_fn(|| {
            kept.take_answer().map(|answer| (answer.operation, answer.fragment, answer.bytes.to_vec()))
        })
        .collect()
    }

    #[test]
    fn what_is_forgotten_is_not_due_any_more() {
        let cut = Fragmentation::new(10, 4).unwrap();
        let (mut kept, mut payload) = (Kept::default(), Vec::new());
        kept.keep(pushed(0, cut), &[0; 10], false);
        Run { first: 0, count: 3 }.write(&mut payload);
        kept.is_asked(0, read_request(&payload).unwrap(), true, false, Nanos(MILLI));
        assert!(kept.take_answer().is_some() && kept.is_due());
        (1..=MAX_COPIES as u64).for_each(|operation| kept.keep(pushed(operation, cut), &[0; 10], false));
        assert!(!kept.is_due());
    }

    #[test]
    fn the_last_messages_are_answered_from_and_no_others() {
        let cut = Fragmentation::new(10, 4).unwrap();
        let mut kept = Kept::default();
        for operation in 0..=MAX_COPIES as u64 {
            kept.keep(pushed(operation, cut), &[operation as u8; 10], false);
        }
        for (operation, bytes, sees_losses) in [(100, ALWAYS_BYTES + 1, false), (101, MAX_BYTES + 1, true)] {
            let cut = Fragmentation::new(bytes as u64, 4).unwrap();
            kept.keep(pushed(operation, cut), &vec![0; bytes], sees_losses);
        }
        let all = Run { first: 0, count: u32::MAX };
        assert_eq!(ask(&mut kept, 0, all, 5 * MILLI), [], "too old");
        assert_eq!(
            [100, 101].map(|operation| ask(&mut kept, operation, all, 5 * MILLI).len()),
            [0; 2],
            "too long"
        );
        let last = Run { first: 2, count: 1 };
        assert_eq!(ask(&mut kept, 1, last, 5 * MILLI), [(1, 2, vec![1, 1])]);
        assert_eq!(ask(&mut kept, 1, last, 8 * MILLI), [], "a moment ago");
        assert_eq!(ask(&mut kept, 1, all, 9 * MILLI).len(), 3);
        assert_eq!(ask(&mut kept, 1, Run { first: u32::MAX, count: u32::MAX }, 9 * MILLI), []);
    }

    #[test]
    fn the_root_answers_who_asks_again() {
        let cut = Fragmentation::new(10, 4).unwrap();
        for (is_root, by_successor, is_repeated, is_answered) in [
            (false, true, false, true),
            (false, false, true, false),
            (true, false, false, false),
            (true, false, true, true),
        ] {
            let mut kept = Kept::default();
            kept.keep(Pushed { is_root, ..pushed(7, cut) }, &[1; 10], false);
            let mut payload = Vec::new();
            Run { first: 0, count: 1 }.write(&mut payload);
            let runs = read_request(&payload).unwrap();
            kept.is_asked(7, runs, by_successor, is_repeated, Nanos(5 * MILLI));
            assert_eq!(kept.is_due(), is_answered, "{is_root} {by_successor} {is_repeated}");
        }
    }

    #[test]
    fn answers_tell_what_their_broadcast_told() {
        let cut = Fragmentation::new(10, 4).unwrap();
        let mut kept = Kept::default();
        for (operation, tells_to_leave) in [(7, false), (8, true)] {
            kept.keep(Pushed { tells_to_leave, ..pushed(operation, cut) }, &[1; 10], false);
            let mut payload = Vec::new();
            Run { first: 0, count: 1 }.write(&mut payload);
            kept.is_asked(operation, read_request(&payload).unwrap(), true, false, Nanos(5 * MILLI));
        }
        let told = [
            kept.take_answer().map(|answer| answer.tells_to_leave),
            kept.take_answer().map(|answer| answer.tells_to_leave),
        ];
        assert_eq!(told, [Some(false), Some(true)]);
    }

    #[test]
    fn recorded_requests_are_answered_within_a_limit() {
        let mut kept = Kept::default();
        kept.keep(pushed(7, Fragmentation::new(1000, 10).unwrap()), &[1; 1000], false);
        let all = Run { first: 0, count: 100 };
        assert_eq!(ask(&mut kept, 7, all, 5 * MILLI).len(), MAX_ANSWERS as usize);
        assert_eq!(ask(&mut kept, 7, all, 50 * MILLI), []);
        kept.begin();
        assert_eq!(ask(&mut kept, 7, all, 90 * MILLI).len(), MAX_ANSWERS as usize);
    }
}
