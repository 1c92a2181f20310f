//! A sender's port, and how its messages share it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::executor::StepId;
use crate::units::Rank;

/// Of a message's time, what is nothing.
const ROUNDING: f64 = 1e-6;

/// A message that is being sent.
#[derive(Clone, Debug)]
pub struct Sending {
    pub id: StepId,
    pub bytes: u64,
    /// Its time on the port in all.
    pub whole_ns: f64,
    /// The time in which it has the port for itself, at the end; before that it shares it with others.
    pub turn_ns: f64,
    pub left_ns: f64,
    /// How many came before it; [`Port::push`] knows.
    pub place: u64,
}

/// A part of a message that goes over the port.
#[derive(Clone, Debug, PartialEq)]
pub struct Portion {
    pub id: StepId,
    pub bytes: u64,
    /// Which part of the message.
    pub share: f64,
    pub began_ns: f64,
    /// How long it takes, if the message ends with it.
    pub ends_after_ns: Option<f64>,
}

/// Messages to one rank go one after the other, as over a connection. Connections share the port, but for a last turn of each
/// message, which short ones are no more than:
///
/// ```text
///   all at the same time     │ last turns, in the order of the sends │
///   A + B + C                  A     B     C
/// ```
#[derive(Debug, Default)]
pub struct Port {
    /// The first of each is being sent.
    messages: BTreeMap<Rank, VecDeque<Sending>>,
    /// Whose last turns are to come, in the order in which their messages came.
    turns: BTreeSet<(u64, Rank)>,
    /// Before their last turns.
    sharing: Vec<Rank>,
    /// Will share from the next decision on.
    begin: Vec<Rank>,
    serves: Serves,
    since_ns: f64,
    /// What has been sent and not yet been told.
    passed: Vec<Portion>,
    pushed: u64,
    /// Counts the decisions, so that an end that was foreseen before the last one is known to be none.
    pub decisions: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Serves {
    #[default]
    Nobody,
    One(Rank),
    All,
}

impl Port {
    /// A message that may go. Call [`Port::decide`] then.
    pub fn push(&mut self, to: Rank, message: Sending) {
        self.pushed += 1;
        let queue = self.messages.entry(to).or_default();
        queue.push_back(Sending { place: self.pushed, ..message });
        if queue.len() == 1 {
            self.begin.push(to);
        }
    }

    /// How long the port does what it does from `now_ns` on, and what has gone over it since it was asked before, a last turn that
    /// begins now included. `None` if it goes on with what it does, or has nothing to do.
    pub fn decide(&mut self, now_ns: f64) -> Option<(f64, Vec<Portion>)> {
        match self.serves {
            Serves::One(_) => return None,
            Serves::All if self.begin.is_empty() => return None,
            Serves::All => self.share(now_ns - self.since_ns),
            Serves::Nobody => {}
        }
        self.sharing.append(&mut self.begin);
        self.turn_when_due();
        self.since_ns = now_ns;
        self.decisions += 1;
        if let Some((_, to)) = self.turns.pop_first() {
            self.serves = Serves::One(to);
            let message = &self.messages[&to][0];
            let left_ns = message.left_ns;
            self.passed.push(portion(message, (now_ns, left_ns), Some(left_ns)));
            return Some((left_ns, std::mem::take(&mut self.passed)));
        }
        let each_ns = self.until_next_turn()?;
        self.serves = Serves::All;
        Some((each_ns * self.sharing.len() as f64, std::mem::take(&mut self.passed)))
    }

    /// What was decided has come to its end: the message that has been sent, if one has.
    pub fn end(&mut self) -> Option<StepId> {
        match std::mem::take(&mut self.serves) {
            Serves::Nobody => None,
            Serves::All => {
                let each_ns = self.until_next_turn()?;
                self.share(each_ns * self.sharing.len() as f64);
                None
            }
            Serves::One(to) => {
                let queue = self.messages.get_mut(&to)?;
                let sent = queue.pop_front()?;
                if queue.is_empty() {
                    self.messages.remove(&to);
                } else {
                    self.begin.push(to);
                }
                Some(sent.id)
            }
        }
    }

    /// How much each can have until one has only its last turn left.
    fn until_next_turn(&self) -> Option<f64> {
        let before_last = |to: &Rank| self.messages[to][0].left_ns - self.messages[to][0].turn_ns;
        self.sharing.iter().map(before_last).min_by(f64::total_cmp).map(|ns| ns.max(0.0))
    }

    /// All have had the same part of this time.
    fn share(&mut self, passed_ns: f64) {
        let each_ns = passed_ns / self.sharing.len() as f64;
        for to in &self.sharing {
            if let Some(message) = self.messages.get_mut(to).and_then(|queue| queue.front_mut()) {
                message.left_ns -= each_ns;
                self.passed.push(portion(message, (self.since_ns, each_ns), None));
            }
        }
    }

    fn turn_when_due(&mut self) {
        let is_due = |message: &Sending| message.left_ns - message.turn_ns <= ROUNDING * message.whole_ns;
        let (due, sharing): (Vec<Rank>, Vec<Rank>) =
            self.sharing.iter().partition(|to| is_due(&self.messages[to][0]));
        self.sharing = sharing;
        self.turns.extend(due.into_iter().map(|to| (self.messages[&to][0].place, to)));
    }
}

fn portion(message: &Sending, (began_ns, ns): (f64, f64), ends_after_ns: Option<f64>) -> Portion {
    let share = if message.whole_ns > 0.0 { ns / message.whole_ns } else { 1.0 };
    Portion { id: message.id, bytes: message.bytes, share, began_ns, ends_after_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(lane: usize, whole_ns: f64, turn_ns: f64) -> Sending {
        Sending { id: StepId { lane, index: 0 }, bytes: 1, whole_ns, turn_ns, left_ns: whole_ns, place: 0 }
    }

    /// When each of these has been sent; they come at these times.
    fn sent(messages: &[(f64, Sending)]) -> Vec<(usize, f64)> {
        let (mut port, mut now, mut end, mut sent) = (Port::default(), 0.0, f64::INFINITY, Vec::new());
        let mut messages = messages.iter().peekable();
        loop {
            let comes = messages.peek().map_or(f64::INFINITY, |(at, _)| *at);
            if comes.min(end) == f64::INFINITY {
                return sent;
            }
            now = comes.min(end).max(now);
            if comes <= end {
                let (_, message) = messages.next().unwrap();
                port.push(Rank(message.id.lane as u32), message.clone());
            } else {
                sent.extend(port.end().map(|id| (id.lane, now)));
                end = f64::INFINITY;
            }
            end = port.decide(now).map_or(end, |(ns, _)| now + ns);
        }
    }

    #[test]
    fn equal_messages_end_a_turn_apart() {
        let three = [0, 1, 2].map(|lane| (0.0, message(lane, 100.0, 10.0)));
        assert_eq!(sent(&three), [(0, 280.0), (1, 290.0), (2, 300.0)]);
        let short = [0, 1].map(|lane| (0.0, message(lane, 15.0, 10.0)));
        assert_eq!(sent(&short), [(0, 20.0), (1, 30.0)]);
        let whole = [0, 1].map(|lane| (0.0, message(lane, 100.0, 100.0)));
        assert_eq!(sent(&whole), [(0, 100.0), (1, 200.0)]);
    }

    /// They share from 50 to 70, when the short one has its last turn.
    #[test]
    fn a_short_message_does_not_wait_for_a_long_one() {
        let both = [(0.0, message(0, 100.0, 10.0)), (50.0, message(1, 20.0, 10.0))];
        assert_eq!(sent(&both), [(1, 80.0), (0, 120.0)]);
    }

    #[test]
    fn messages_to_one_rank_go_in_order() {
        let first = message(0, 100.0, 10.0);
        let second = Sending { id: StepId { lane: 0, index: 1 }, ..first.clone() };
        assert_eq!(sent(&[(0.0, first), (0.0, second)]), [(0, 100.0), (0, 200.0)]);
    }
}
