//! Questions: for a neighbour's last word that MPI does not bring in time.
//!
//! A *done*, and the *arrived* of a receiver that was drawn, are said once, by MPI, and who has said a done leaves. If a packet with one gets
//! lost twice, its receiver would wait for 200 ms. So who waits for nothing else asks by multicast after a while; who has said the word
//! says it again by multicast, in the same broadcast or in one of the next, in which it finds the question in its socket:
//!
//! ```text
//!     predecessor                                        node
//!     waits │ ◀─ ─ ─ ─ ─ ─ ─ ─ ─ ─  done of 7 (MPI) ─ ─ ─ │ stuck; it has left 7
//!           │ ══════════════ question of 7 ═════════════▶ │ lies in its socket
//!   returns │ ◀═════════════════ done of 7 ══════════════ │ is in 8
//! ```
//!
//! Invariants
//! 1. Nothing depends on it: the word comes by MPI as if there were no such datagrams. One that is too late asks in vain.
//! 2. Nobody says a word that it has not said by MPI before.
//! 3. A node asks at most [`MAX_QUESTIONS`] times for a word, and answers at most [`MAX_ANSWERS`] times in a broadcast of its own: who sends
//!    recorded questions again gets no flood out of it.

use std::collections::VecDeque;

use super::answer_time::AnswerTime;
use polycast_units::Nanos;

/// How long a node waits for a word before it asks, at least: until those have asked who miss something (`datagram_repair.rs`), for whom
/// it would be no question. And at most, where words take longer.
const PATIENCE: Nanos = Nanos::from_micros(16_000);
const MAX_PATIENCE: Nanos = Nanos::from_micros(64_000);
/// So many times what words have taken lately is not late yet.
const WORD_TIMES: u64 = 4;
/// For one word, each after twice the time of the one before: after a quarter of a second TCP helps itself.
const MAX_QUESTIONS: u32 = 5;
/// A word that was said a moment ago is on its way: the question was there before it.
const ON_ITS_WAY: Nanos = Nanos::from_micros(4_000);
/// In a broadcast.
const MAX_ANSWERS: u32 = 8;
/// Broadcasts of which a node knows that it has said "done". Whose predecessor is further behind waits for MPI.
const MAX_DONES: usize = 64;

/// What is said once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// By the receiver that was drawn, to the root that waits for it.
    Arrived,
    /// By the successor.
    Done,
}

/// When one node asks in one broadcast.
#[derive(Debug)]
pub struct Question {
    patience: Nanos,
    awaits: Option<Word>,
    since: Nanos,
    questions: u32,
}

impl Question {
    /// `words`: how long they took lately. `spread`: how much later than others a node may ask for what it misses.
    pub fn new(words: AnswerTime, spread: Nanos) -> Question {
        let patience = Nanos(WORD_TIMES * words.mean().0).clamp(PATIENCE, MAX_PATIENCE) + spread;
        Question { patience, awaits: None, since: Nanos(0), questions: 0 }
    }

    /// This node waits for this and nothing else. True if that is new.
    pub fn waits(&mut self, word: Option<Word>, now: Nanos) -> bool {
        let is_new = self.awaits != word;
        if is_new {
            (self.awaits, self.since, self.questions) = (word, now, 0);
        }
        is_new && word.is_some()
    }

    /// Somebody misses something, and others wait until it is there.
    pub fn heard_repair(&mut self, now: Nanos) {
        self.since = now;
    }

    /// When this node asks, if the word does not come.
    pub fn ask_at(&self) -> Option<Nanos> {
        let may_ask = self.awaits.is_some() && self.questions < MAX_QUESTIONS;
        may_ask.then(|| self.since + Nanos(self.patience.0 << self.questions))
    }

    /// It does.
    pub fn asks(&mut self) {
        self.questions += 1;
    }
}

/// What one node has said by MPI, and says again by multicast.
#[derive(Debug, Default)]
pub struct Said {
    /// The broadcasts of its dones, and when; the last one is the last.
    dones: VecDeque<(u64, Nanos)>,
    /// In the broadcast in progress.
    arrived_at: Option<Nanos>,
    answers: u32,
    done_is_due: Option<u64>,
    arrived_is_due: bool,
}

impl Said {
    /// A broadcast begins, in which nothing has been said.
    pub fn begin(&mut self) {
        (self.arrived_at, self.answers) = (None, 0);
        (self.done_is_due, self.arrived_is_due) = (None, false);
    }

    /// "Done" by MPI.
    pub fn done(&mut self, operation: u64, now: Nanos) {
        if self.dones.len() == MAX_DONES {
            self.dones.pop_front();
        }
        self.dones.push_back((operation, now));
    }

    /// "Arrived" by MPI.
    pub fn arrived(&mut self, now: Nanos) {
        self.arrived_at = Some(now);
    }

    /// The predecessor asks. True if the done of this broadcast seems to be stuck, and is said again.
    pub fn is_asked_for_done(&mut self, operation: u64, now: Nanos) -> bool {
        let said = self.dones.iter().rev().find(|(of, _)| *of == operation);
        let is_late = said.is_some_and(|(_, at)| now - *at >= ON_ITS_WAY);
        let answers = is_late && self.may_answer();
        if answers {
            self.done_is_due = Some(operation);
        }
        answers
    }

    /// The root of the broadcast in progress asks. True if the arrived seems to be stuck, and is said again.
    pub fn is_asked_for_arrived(&mut self, now: Nanos) -> bool {
        let is_late = self.arrived_at.is_some_and(|at| now - at >= ON_ITS_WAY);
        self.arrived_is_due |= is_late && self.may_answer();
        self.arrived_is_due
    }

    fn may_answer(&mut self) -> bool {
        let may = self.answers < MAX_ANSWERS;
        self.answers += u32::from(may);
        may
    }

    /// Something is to be said again.
    pub fn is_due(&self) -> bool {
        self.arrived_is_due || self.done_is_due.is_some()
    }

    /// "Arrived" goes out, once.
    pub fn take_arrived(&mut self) -> bool {
        std::mem::take(&mut self.arrived_is_due)
    }

    /// "Done" of this broadcast goes out.
    pub fn take_done(&mut self) -> Option<u64> {
        self.done_is_due.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    fn times(question: &mut Question) -> Vec<u64> {
        std::iter::from_fn(|| {
            let at = question.ask_at()?;
            question.asks();
            Some(at.0 / MILLI)
        })
        .collect()
    }

    #[test]
    fn a_node_asks_a_few_times_and_only_while_it_waits() {
        let mut question = Question::new(AnswerTime::default(), Nanos(0));
        assert_eq!(question.ask_at(), None);
        assert!(question.waits(Some(Word::Arrived), Nanos(0)));
        assert!(!question.waits(Some(Word::Arrived), Nanos(MILLI)));
        assert_eq!(times(&mut question), [16, 32, 64, 128, 256]);
        assert!(question.waits(Some(Word::Done), Nanos(300 * MILLI)), "another word");
        assert_eq!(question.ask_at(), Some(Nanos(316 * MILLI)));
        question.heard_repair(Nanos(310 * MILLI));
        assert_eq!(question.ask_at(), Some(Nanos(326 * MILLI)), "the successor may miss something");
        assert!(!question.waits(None, Nanos(320 * MILLI)));
        assert_eq!(question.ask_at(), None);
    }

    #[test]
    fn where_words_take_long_they_are_waited_for() {
        let mut words = AnswerTime::default();
        for _ in 0..40 {
            words.begin();
            words.asked(Nanos(0));
            words.answered(Nanos(10 * MILLI));
        }
        let mut question = Question::new(words, Nanos(2 * MILLI));
        question.waits(Some(Word::Done), Nanos(0));
        assert!((40..=42).contains(&times(&mut question)[0]), "four times 10 ms, and the spread");
    }

    #[test]
    fn only_what_was_said_is_said_again() {
        let mut said = Said::default();
        said.begin();
        assert!(!said.is_asked_for_done(7, Nanos(9 * MILLI)));
        assert!(!said.is_asked_for_arrived(Nanos(9 * MILLI)));
        said.done(7, Nanos(10 * MILLI));
        said.arrived(Nanos(10 * MILLI));
        assert!(!said.is_asked_for_done(7, Nanos(13 * MILLI)), "it is on its way");
        assert!(!said.is_asked_for_arrived(Nanos(13 * MILLI)));
        assert!(!said.is_asked_for_done(8, Nanos(14 * MILLI)) && !said.is_due());
        assert!(said.is_asked_for_done(7, Nanos(14 * MILLI)));
        assert!(said.is_asked_for_arrived(Nanos(14 * MILLI)));
        assert_eq!((said.take_done(), said.take_done()), (Some(7), None));
        assert_eq!((said.take_arrived(), said.take_arrived()), (true, false));
        said.begin();
        assert!(!said.is_asked_for_arrived(Nanos(30 * MILLI)), "that was another broadcast");
        assert!(said.is_asked_for_done(7, Nanos(30 * MILLI)), "that the predecessor may be in still");
    }

    #[test]
    fn recorded_questions_are_answered_a_few_times_and_old_dones_are_forgotten() {
        let mut said = Said::default();
        (0..=MAX_DONES as u64).for_each(|operation| said.done(operation, Nanos(operation)));
        let mut answers =
            |operation| (0..100).filter(|_| said.is_asked_for_done(operation, Nanos(99 * MILLI))).count();
        assert_eq!(answers(0), 0);
        assert_eq!(answers(1), MAX_ANSWERS as usize);
        assert_eq!(answers(2), 0, "in one broadcast");
    }
}
