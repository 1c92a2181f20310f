//! The datagrams that a host hears in a round, counted.

use serde::{Deserialize, Serialize};

use super::datagram::{self, Header};

/// The most senders and datagrams of each that are counted: what is beyond has no memory to be counted in.
pub const MAX_SENDERS: u32 = 1_024;
/// The most datagrams of a sender that are counted.
pub const MAX_DATAGRAMS: u32 = 100_000;

/// The counts of the datagrams that were heard of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// The sender.
    pub sender: u32,
    /// Different datagrams.
    pub datagrams: u32,
    /// Datagrams that had been heard before.
    pub duplicates: u32,
    /// Datagrams that came after one with a greater number.
    pub late: u32,
}

/// Counts the datagrams of one round.
#[derive(Debug)]
pub struct Tally {
    run: u64,
    round: u32,
    senders: Vec<Sender>,
    foreign: u64,
}

#[derive(Debug)]
struct Sender {
    heard: Heard,
    seen: Vec<bool>,
    greatest: u32,
}

impl Tally {
    /// A tally of a round in which nothing has been heard yet.
    pub fn new(run: u64, round: u32) -> Tally {
        Tally { run, round, senders: Vec::new(), foreign: 0 }
    }

    /// Forgets what was heard in rounds before this one.
    pub fn begin(&mut self, round: u32) {
        if round > self.round {
            self.round = round;
            self.senders.clear();
        }
    }

    /// Takes a datagram from the network: anybody may have sent it, so it may be anything.
    pub fn take(&mut self, datagram: &[u8]) {
        let ours = |header: &Header| {
            header.run == self.run && header.sender < MAX_SENDERS && header.sequence < MAX_DATAGRAMS
        };
        let Some(header) = datagram::decode(datagram).filter(ours) else {
            self.foreign += 1;
            return;
        };
        // The first datagram of a round begins it; the rest of an earlier one comes too late.
        self.begin(header.round);
        if header.round == self.round {
            self.count(header);
        }
    }

    fn count(&mut self, header: Header) {
        let known = self.senders.iter().position(|sender| sender.heard.sender == header.sender);
        let index = known.unwrap_or_else(|| {
            let heard = Heard { sender: header.sender, ..Heard::default() };
            self.senders.push(Sender { heard, seen: Vec::new(), greatest: 0 });
            self.senders.len() - 1
        });
        let sender = &mut self.senders[index];
        let sequence = header.sequence as usize;
        if sender.seen.len() <= sequence {
            sender.seen.resize(sequence + 1, false);
        }
        if std::mem::replace(&mut sender.seen[sequence], true) {
            sender.heard.duplicates += 1;
            return;
        }
        sender.heard.datagrams += 1;
        sender.heard.late += u32::from(header.sequence < sender.greatest);
        sender.greatest = sender.greatest.max(header.sequence);
    }

    /// The counts of all senders that were heard, in the order of their numbers.
    pub fn heard(&self) -> Vec<Heard> {
        let mut heard: Vec<Heard> = self.senders.iter().map(|sender| sender.heard).collect();
        heard.sort_by_key(|heard| heard.sender);
        heard
    }

    /// Datagrams that are not of this run, or damaged.
    pub fn foreign(&self) -> u64 {
        self.foreign
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(headers: &[(u64, u32, u32, u32)]) -> Tally {
        let mut tally = Tally::new(7, 1);
        for &(run, round, sender, sequence) in headers {
            let mut datagram = [0; 40];
            datagram::encode(Header { run, round, sender, sequence }, &mut datagram);
            tally.take(&datagram);
        }
        tally
    }

    #[test]
    fn duplicates_and_late_ones_are_counted_apart() {
        let tally = tally(&[(7, 1, 5, 0), (7, 1, 5, 3), (7, 1, 5, 1), (7, 1, 5, 3), (7, 1, 2, 9)]);
        let of_five = Heard { sender: 5, datagrams: 3, duplicates: 1, late: 1 };
        let of_two = Heard { sender: 2, datagrams: 1, duplicates: 0, late: 0 };
        assert_eq!(tally.heard(), [of_two, of_five]);
        assert_eq!(tally.foreign(), 0);
    }

    #[test]
    fn other_runs_and_other_bytes_are_foreign_and_other_rounds_nothing() {
        let mut tally =
            tally(&[(8, 1, 0, 0), (7, 0, 0, 0), (7, 1, MAX_SENDERS, 0), (7, 1, 0, MAX_DATAGRAMS)]);
        tally.take(b"hello");
        assert_eq!((tally.heard().len(), tally.foreign()), (0, 4));
    }

    #[test]
    fn a_later_round_begins_with_its_first_datagram() {
        let mut tally = tally(&[(7, 1, 0, 0), (7, 1, 0, 1), (7, 2, 0, 5), (7, 1, 0, 2)]);
        assert_eq!(tally.heard(), [Heard { sender: 0, datagrams: 1, ..Heard::default() }]);
        tally.begin(2);
        assert_eq!(tally.heard().len(), 1);
        tally.begin(3);
        assert!(tally.heard().is_empty());
    }

    #[test]
    fn the_limits_are_counted() {
        let tally = tally(&[(7, 1, MAX_SENDERS - 1, MAX_DATAGRAMS - 1)]);
        assert_eq!(tally.heard()[0].datagrams, 1);
    }
}
