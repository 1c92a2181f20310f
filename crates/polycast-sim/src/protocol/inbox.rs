use std::collections::VecDeque;

use polycast_protocol::Peer;

use super::store::Id;

/// A message that has arrived at a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivedMessage {
    pub from: u32,
    pub id: Id,
}

/// The messages that MPI keeps for one node and one communicator: those of one sender in the order
/// in which they were sent, lane by lane.
///
/// A message that came too early is kept back until the next broadcast begins, and no further one of its sender and
/// lane is read until then, as a job's driver does it.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    lanes: [Lane; LANES],
}

#[derive(Debug, Default)]
struct Lane {
    unread: VecDeque<ArrivedMessage>,
    early: Vec<ArrivedMessage>,
}

/// The number of lanes: to the successor, to the predecessor, to the root. A job's driver gives
/// each a tag of its own, so that one may overtake the other even between the same two nodes.
pub(super) const LANES: usize = 3;

/// The lane of a message to this node.
pub(super) fn lane(to: Peer) -> usize {
    match to {
        Peer::Successor => 0,
        Peer::Predecessor => 1,
        Peer::Drawn(_) => 2,
    }
}

/// Receives on one lane.
#[derive(Debug, Default)]
pub(super) struct Receives {
    /// The number of receives that are posted for a neighbour, or hold a message of it that has not
    /// been taken.
    pub count: usize,
    /// The senders that the free receives are for.
    free: Vec<u32>,
    /// The senders of messages that have no receive, and whether such a sender is held up.
    waiting: Vec<(u32, bool)>,
}

impl Receives {
    /// Posts a receive; true if the sender of a message had waited for it.
    pub fn post(&mut self, from: u32) -> bool {
        match self.waiting.iter().position(|(sender, _)| *sender == from) {
            Some(at) => self.waiting.remove(at).1,
            None => {
                self.free.push(from);
                false
            }
        }
    }

    /// Takes in a message; true if it lets its sender go: there is a receive for it, or it
    /// `is_short`.
    pub fn arrive(&mut self, from: u32, is_short: bool) -> bool {
        match self.free.iter().position(|sender| *sender == from) {
            Some(at) => {
                self.free.swap_remove(at);
                true
            }
            None => {
                self.waiting.push((from, !is_short));
                is_short
            }
        }
    }
}

impl Inbox {
    pub fn arrive(&mut self, lane: usize, message: ArrivedMessage) {
        self.lanes[lane].unread.push_back(message);
    }

    /// Takes the next message that may be read.
    pub fn next(&mut self, first_lane: usize) -> Option<(usize, ArrivedMessage)> {
        (0..LANES).map(|i| (first_lane + i) % LANES).find_map(|index| {
            let lane = &mut self.lanes[index];
            let may_read =
                |message: &ArrivedMessage| lane.early.iter().all(|early| early.from != message.from);
            let first = lane.unread.iter().position(may_read)?;
            let message = lane.unread.remove(first);
            message.map(|message| (index, message))
        })
    }

    /// Keeps back a message that belongs to a later broadcast.
    pub fn keep(&mut self, lane: usize, message: ArrivedMessage) {
        self.lanes[lane].early.push(message);
    }

    /// Begins a broadcast: messages that were early are tried again, first.
    pub fn begin(&mut self) {
        for lane in &mut self.lanes {
            for message in lane.early.drain(..).rev() {
                lane.unread.push_front(message);
            }
        }
    }

    /// Counts the messages that were read and kept back.
    pub fn kept(&self) -> usize {
        self.lanes.iter().map(|lane| lane.early.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_early_message_keeps_back_those_behind_it() {
        let mut inbox = Inbox::default();
        for id in 0..3 {
            inbox.arrive(1, ArrivedMessage { from: 5, id });
        }
        let (lane, early) = inbox.next(0).unwrap();
        inbox.keep(lane, early);
        assert!(inbox.next(0).is_none() && inbox.kept() == 1);
        inbox.begin();
        let order: Vec<Id> = std::iter::from_fn(|| inbox.next(0)).map(|(_, message)| message.id).collect();
        assert_eq!(order, [0, 1, 2]);
    }

    #[test]
    fn but_not_those_of_others() {
        let mut inbox = Inbox::default();
        for (id, from) in [(0, 5), (1, 5), (2, 6)] {
            inbox.arrive(2, ArrivedMessage { from, id });
        }
        let (lane, early) = inbox.next(0).unwrap();
        inbox.keep(lane, early);
        assert_eq!(inbox.next(0).unwrap().1.id, 2);
        assert!(inbox.next(0).is_none());
    }
}
