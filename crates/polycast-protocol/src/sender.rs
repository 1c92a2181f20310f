//! Stage 1: the root multicasts every fragment once, without waiting for anybody.
//!
//! ```text
//!   gate ──▶ fragment 0 … fragment n-1 ──▶ parities? ──▶ end (pull only) ──▶ through
//!                    ▲
//!                    └── again: what the successor missed goes first, to all, since many may have missed it
//! ```
//!
//! Datagrams that are handed over together have one size, only the last may be shorter. Two are: the last fragment, and the
//! end, which should arrive together with what it ends. So the last fragment travels early, short or not, for it says how long
//! the message is:
//!
//! ```text
//!   one batch      n-1 │ 0 1 2 … n-2 end
//!   more           0 1 2 … 40 n-1 │ 41 42 … │ … n-2 end
//! ```

use std::collections::VecDeque;

use super::fragmentation::Fragmentation;
use super::parity::{Class, classes_for, length, parity};
use super::spec::{Form, Multicast};
use super::tag::Key;
use super::wire::{FLAG_AGAIN, FLAG_LAST, Header, Kind, LENGTH_BYTES, seal};

/// The root's multicast of one message.
#[derive(Debug)]
pub struct Sender {
    cut: Fragmentation,
    /// Fragments of the message that are there to be sent, from the beginning on.
    there: u32,
    next_fragment: u32,
    has_sent_last: bool,
    again: VecDeque<u32>,
    /// The number of parities, and of those that have been sent.
    parities: u32,
    next_parity: u32,
    end_is_due: bool,
}

impl Sender {
    /// A sender that has sent nothing, of a message that is there in full.
    pub fn new(cut: Fragmentation, spec: Multicast) -> Sender {
        Sender {
            cut,
            there: cut.fragments(),
            next_fragment: 0,
            has_sent_last: false,
            again: VecDeque::new(),
            parities: spec.parity.into(),
            next_parity: 0,
            end_is_due: spec.form == Form::Pull,
        }
    }

    /// Losses are seen: a pulled message gets as many parities as it is worth, unless the first has
    /// been sent already.
    pub fn protect(&mut self) {
        if self.end_is_due && self.next_parity == 0 {
            self.parities = self.parities.max(classes_for(self.cut));
        }
    }

    /// Only the first `bytes` bytes of the message are there: no more is sent before the next call.
    pub fn limit(&mut self, bytes: u64) {
        self.there = self.cut.whole_fragments(bytes);
    }

    /// True if all of the message is there.
    pub fn has_all(&self) -> bool {
        self.there == self.cut.fragments()
    }

    /// True if something is left to send that is there.
    pub fn can_send(&self) -> bool {
        let can_go_on =
            if self.has_sent_all() { !self.is_through() } else { self.next_fragment < self.there };
        can_go_on || self.again.front().is_some_and(|fragment| *fragment < self.there)
    }

    /// The successor missed this fragment, so it is multicast again: others may have missed it,
    /// too.
    pub fn send_again(&mut self, fragment: u32) {
        self.again.push_back(fragment);
    }

    /// True if nothing is left to send.
    pub fn is_through(&self) -> bool {
        self.has_sent_all() && self.again.is_empty() && self.next_parity == self.parities && !self.end_is_due
    }

    fn has_sent_all(&self) -> bool {
        self.next_fragment + u32::from(self.has_sent_last) == self.cut.fragments()
    }

    /// True if it is the last fragment's turn, as datagram `count` of a batch of at most `most`.
    fn is_turn_of_last(&self, count: u32, most: u32) -> bool {
        let last = self.cut.fragments() - 1;
        let is_turn = if last < most { self.next_fragment == 0 && count == 0 } else { count == most - 1 };
        !self.has_sent_last && self.has_all() && self.end_is_due && last > self.next_fragment && is_turn
    }

    /// Appends at most `most` datagrams, all of one size but for the last, and returns their
    /// number. `like` gives what is the same in all headers; `own_parity` is memory.
    pub fn batch(
        &mut self,
        most: u32,
        like: &Header,
        message: &[u8],
        key: &Key,
        own_parity: &mut Vec<u8>,
        batch: &mut Vec<u8>,
    ) -> u32 {
        let (mut count, bytes) = (0, self.cut.message_bytes().to_le_bytes());
        while count < most {
            let is_turn_of_last = self.is_turn_of_last(count, most);
            let Some((kind, flags, fragment)) = self.next(is_turn_of_last) else { break };
            let header = Header { kind, flags: like.flags | flags, fragment, ..*like };
            let payload = match kind {
                Kind::Parity => {
                    parity(self.cut, message, Class::from_flags(flags, self.cut), own_parity);
                    &own_parity[..]
                }
                Kind::Data => self.cut.range(fragment).map_or(&[][..], |range| &message[range]),
                _ => {
                    if self.cut.payload_bytes() as usize >= LENGTH_BYTES {
                        &bytes[..]
                    } else {
                        &[]
                    }
                }
            };
            seal(&header, payload, key, batch);
            count += 1;
            if payload.len() < self.cut.payload_bytes() as usize {
                break;
            }
        }
        count
    }

    fn flags(&self, fragment: u32) -> u16 {
        if self.cut.is_last(fragment) { FLAG_LAST } else { 0 }
    }

    fn next(&mut self, is_turn_of_last: bool) -> Option<(Kind, u16, u32)> {
        let all = self.cut.fragments();
        if is_turn_of_last {
            self.has_sent_last = true;
            Some((Kind::Data, FLAG_LAST, all - 1))
        } else if let Some(&fragment) = self.again.front().filter(|fragment| **fragment < self.there) {
            self.again.pop_front();
            Some((Kind::Data, FLAG_AGAIN | self.flags(fragment), fragment))
        } else if !self.has_sent_all() {
            let fragment = Some(self.next_fragment).filter(|fragment| *fragment < self.there)?;
            self.next_fragment += 1;
            Some((Kind::Data, self.flags(fragment), fragment))
        } else if self.next_parity < self.parities {
            let class = Class { index: self.next_parity, classes: self.parities };
            self.next_parity += 1;
            Some((Kind::Parity, class.flags(), length(self.cut)))
        } else if std::mem::take(&mut self.end_is_due) {
            Some((Kind::End, 0, all))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tag::KEY_BYTES;
    use super::super::wire::{FLAG_LAST, HEADER_BYTES, open};
    use super::*;

    /// Kinds, flags and fragments of the batches that a message of 20 bytes in fragments of 8 gives.
    fn batches(spec: Multicast, again_after_first: &[u32]) -> Vec<Vec<(Kind, u16, u32)>> {
        let key = Key::from_bytes([3; KEY_BYTES]);
        let like = Header { kind: Kind::Data, flags: 0, job: 1, communicator: 2, operation: 3, fragment: 0 };
        let mut sender = Sender::new(Fragmentation::new(20, 8).unwrap(), spec);
        let mut all = Vec::new();
        while !sender.is_through() {
            let mut batch = Vec::new();
            let count = sender.batch(2, &like, b"0123456789abcdefghij", &key, &mut Vec::new(), &mut batch);
            let datagrams: Vec<_> = batch
                .chunks(HEADER_BYTES + 8)
                .map(|datagram| open(datagram, 1, &key).unwrap().0)
                .map(|header| (header.kind, header.flags, header.fragment))
                .collect();
            assert_eq!(datagrams.len(), count as usize, "only the last of a batch may be shorter");
            if all.is_empty() {
                again_after_first.iter().for_each(|fragment| sender.send_again(*fragment));
            }
            all.push(datagrams);
        }
        all
    }

    #[test]
    fn everything_is_sent_once_and_what_was_missed_before_the_rest() {
        let (data, end, parity) = (Kind::Data, Kind::End, Kind::Parity);
        let last = (data, FLAG_LAST, 2);
        assert_eq!(batches(Form::Push.into(), &[]), [vec![(data, 0, 0), (data, 0, 1)], vec![last]]);
        assert_eq!(
            batches(Multicast { parity: true, ..Form::Pull.into() }, &[0]),
            [
                vec![(data, 0, 0), last],
                vec![(data, FLAG_AGAIN, 0), (data, 0, 1)],
                vec![(parity, 0, 20), (end, 0, 3)],
            ]
        );
    }

    #[test]
    fn what_is_not_there_is_not_sent() {
        let key = Key::from_bytes([3; KEY_BYTES]);
        let like = Header { kind: Kind::Data, flags: 0, job: 1, communicator: 2, operation: 3, fragment: 0 };
        let mut sender = Sender::new(Fragmentation::new(36, 8).unwrap(), Form::Pull.into());
        let count =
            |sender: &mut Sender| sender.batch(9, &like, &[0; 36], &key, &mut Vec::new(), &mut Vec::new());
        // The last one is shorter, so the end comes by itself.
        for (bytes, sent) in [(0, 0), (7, 0), (8, 1), (23, 1), (23, 0), (35, 2), (36, 1), (36, 1)] {
            sender.limit(bytes);
            assert!(!sender.is_through());
            assert_eq!((sender.can_send(), count(&mut sender)), (sent > 0, sent), "{bytes} bytes are there");
        }
        assert!(sender.is_through());
        // Nobody asks for what was not sent; if somebody did it would wait, too.
        let mut sender = Sender::new(Fragmentation::new(36, 8).unwrap(), Form::Pull.into());
        sender.limit(8);
        sender.send_again(2);
        assert_eq!((count(&mut sender), sender.can_send()), (1, false));
        sender.limit(24);
        assert_eq!(count(&mut sender), 3);
    }

    #[test]
    fn an_end_is_not_alone() {
        let kinds = |most: u32, bytes: u64| {
            let key = Key::from_bytes([3; KEY_BYTES]);
            let like =
                Header { kind: Kind::Data, flags: 0, job: 1, communicator: 2, operation: 3, fragment: 0 };
            let mut sender = Sender::new(Fragmentation::new(bytes, 8).unwrap(), Form::Pull.into());
            let mut counts = Vec::new();
            while !sender.is_through() {
                counts.push(sender.batch(most, &like, &[0; 100], &key, &mut Vec::new(), &mut Vec::new()));
            }
            counts
        };
        assert_eq!(kinds(4, 20), [1, 3], "2 | 0 1 end");
        assert_eq!(kinds(4, 32), [4, 1], "3 0 1 2 | end: there is no room");
        assert_eq!(kinds(4, 36), [4, 2], "0 1 2 4 | 3 end");
        assert_eq!(kinds(4, 3), [1, 1], "0 | end");
        assert_eq!(kinds(1, 20), [1, 1, 1, 1]);
    }
}
