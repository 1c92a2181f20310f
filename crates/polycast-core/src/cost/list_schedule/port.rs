//! A sender's port, and how its messages share it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::executor::StepId;
use crate::units::Rank;

/// The part of a message's time that counts as nothing, for errors of rounding.
const ROUNDING: f64 = 1e-6;

/// A message that is being sent.
#[derive(Clone, Debug)]
pub struct Sending {
    pub id: StepId,
    pub bytes: u64,
    /// The time of the message on the port in all.
    pub whole_ns: f64,
    /// The time, at the end, in which the message has the port for itself; before that it shares
    /// the port with others.
    pub turn_ns: f64,
    pub left_ns: f64,
    /// The number of messages that came to the port up to this one; [`Port::push`] sets it.
    pub place: u64,
}

/// A part of a message that goes over the port.
#[derive(Clone, Debug, PartialEq)]
pub struct Portion {
    pub id: StepId,
    pub bytes: u64,
    /// The part of the whole message that this portion is, 0 to 1.
    pub share: f64,
    pub began_ns: f64,
    /// The time that the portion takes, if the message ends with it.
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
    /// The messages to each rank; the first of each queue is being sent.
    messages: BTreeMap<Rank, VecDeque<Sending>>,
    /// The receivers of messages whose last turn is to come, in the order in which the messages
    /// came.
    turns: BTreeSet<(u64, Rank)>,
    /// The receivers of messages that share the port, before their last turns.
    sharing: Vec<Rank>,
    /// The receivers of messages that will share the port from the next decision on.
    begin: Vec<Rank>,
    serves: Serves,
    since_ns: f64,
    /// The portions that have been sent and not yet been returned by [`Port::decide`].
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
    /// Adds a message that may go. Call [`Port::decide`] then.
    pub fn push(&mut self, to: Rank, message: Sending) {
        self.pushed += 1;
        let queue = self.messages.entry(to).or_default();
        queue.push_back(Sending { place: self.pushed, ..message });
        if queue.len() == 1 {
            self.begin.push(to);
        }
    }

    /// Decides what the port does from `now_ns` on. Returns how many nanoseconds that lasts and the
    /// portions that have gone over the port since the last call, a last turn that begins now
    /// included. `None` if the port goes on as decided, or has nothing to do.
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

    /// Ends what was decided; returns the message that has been sent, if one has.
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

    /// The time that each of the sharing messages can have until one has only its last turn left.
    fn until_next_turn(&self) -> Option<f64> {
        let before_last = |to: &Rank| self.messages[to][0].left_ns - self.messages[to][0].turn_ns;
        self.sharing.iter().map(before_last).min_by(f64::total_cmp).map(|ns| ns.max(0.0))
    }

    /// Gives each sharing message the same part of the time that has passed.
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
