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

/// The least and the most time for which a node waits for a word before it asks. The least lets
/// those ask first who miss something (`datagram_repair.rs`), for whom it would be no question;
/// more where words take longer.
const PATIENCE: Nanos = Nanos::from_micros(16_000);
const MAX_PATIENCE: Nanos = Nanos::from_micros(64_000);
/// A word is late after this many times what words have taken lately.
const WORD_TIMES: u64 = 4;
/// The most questions for one word, each after twice the time of the one before: after a quarter of
/// a second TCP helps itself.
const MAX_QUESTIONS: u32 = 5;
/// The time for which a word that was said is on its way: a question before that was there before
/// the word.
const ON_ITS_WAY: Nanos = Nanos::from_micros(4_000);
/// The most answers in a broadcast.
const MAX_ANSWERS: u32 = 8;
/// The most broadcasts of which a node knows that it has said "done". A predecessor that is further
/// behind waits for MPI.
const MAX_DONES: usize = 64;

/// The words, which are said once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// "Arrived", of the receiver that was drawn, to the root that waits for it.
    Arrived,
    /// "Done", of the successor.
    Done,
}

/// The questions of one node in one broadcast.
#[derive(Debug)]
pub struct Question {
    patience: Nanos,
    awaits: Option<Word>,
    since: Nanos,
    questions: u32,
}

impl Question {
    /// The questions of a broadcast, of which none has been asked. `words`: how long words took
    /// lately. `spread`: how much later than others a node may ask for what it misses.
    pub fn new(words: AnswerTime, spread: Nanos) -> Question {
        let patience = Nanos(WORD_TIMES * words.mean().0).clamp(PATIENCE, MAX_PATIENCE) + spread;
        Question { patience, awaits: None, since: Nanos(0), questions: 0 }
    }

    /// Notes the word that this node waits for, and for nothing else. True if it waits for a new
    /// one.
    pub fn waits(&mut self, word: Option<Word>, now: Nanos) -> bool {
        let is_new = self.awaits != word;
        if is_new {
            (self.awaits, self.since, self.questions) = (word, now, 0);
        }
        is_new && word.is_some()
    }

    /// Begins to wait anew: a node misses something, and others wait until that is there.
    pub fn heard_repair(&mut self, now: Nanos) {
        self.since = now;
    }

    /// The time at which the node asks, if the word does not come; `None` if it does not ask.
    pub fn ask_at(&self) -> Option<Nanos> {
        let may_ask = self.awaits.is_some() && self.questions < MAX_QUESTIONS;
        may_ask.then(|| self.since + Nanos(self.patience.0 << self.questions))
    }

    /// The node asks.
    pub fn asks(&mut self) {
        self.questions += 1;
    }
}

/// The words that a node has said by MPI, to be said again by multicast if asked for.
#[derive(Debug, Default)]
pub struct Said {
    /// The broadcasts of the node's dones, each with the time; the newest last.
    dones: VecDeque<(u64, Nanos)>,
    /// The time of the node's "arrived" in the broadcast in progress.
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

    /// The node says "done" by MPI.
    pub fn done(&mut self, operation: u64, now: Nanos) {
        if self.dones.len() == MAX_DONES {
            self.dones.pop_front();
        }
        self.dones.push_back((operation, now));
    }

    /// The node says "arrived" by MPI.
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

    /// True if a word is to be said again.
    pub fn is_due(&self) -> bool {
        self.arrived_is_due || self.done_is_due.is_some()
    }

    /// Takes an "arrived" that is due; true once.
    pub fn take_arrived(&mut self) -> bool {
        std::mem::take(&mut self.arrived_is_due)
    }

    /// Takes the broadcast of a "done" that is due.
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
