use std::collections::VecDeque;

use super::wire::Header;

/// The most bytes of datagrams that may wait for their broadcast, per communicator: as many as wait
/// in the kernel on a node that does not look. A node that waits for a late successor goes on
/// reading, while the root is a broadcast ahead.
const MAX_BYTES: usize = 4 << 20;
/// Bytes that each datagram costs beside its payload.
const OVERHEAD_BYTES: usize = 64;
/// The most buffers that are kept for reuse.
const MAX_SPARE: usize = 256;

/// Datagrams of broadcasts that this node has not begun: their root was faster. A datagram that
/// finds no room is dropped as if it had been lost on the way, and comes around the ring.
#[derive(Debug, Default)]
pub struct Early {
    datagrams: VecDeque<(Header, Vec<u8>)>,
    bytes: usize,
    /// Memory to be used again.
    spare: Vec<Vec<u8>>,
}

impl Early {
    /// Keeps a datagram; false if there is no room.
    pub fn keep(&mut self, header: Header, payload: &[u8]) -> bool {
        let bytes = payload.len() + OVERHEAD_BYTES;
        let has_room = self.bytes + bytes <= MAX_BYTES;
        if has_room {
            self.bytes += bytes;
            let mut memory = self.spare.pop().unwrap_or_default();
            memory.extend_from_slice(payload);
            self.datagrams.push_back((header, memory));
        }
        has_room
    }

    /// Removes the oldest datagram that `is_wanted` accepts.
    pub fn take(&mut self, is_wanted: impl Fn(&Header) -> bool) -> Option<(Header, Vec<u8>)> {
        let position = self.datagrams.iter().position(|(header, _)| is_wanted(header))?;
        let (header, payload) = self.datagrams.remove(position)?;
        self.bytes -= payload.len() + OVERHEAD_BYTES;
        Some((header, payload))
    }

    /// Takes back the memory of a payload from [`Early::take`].
    pub fn give_back(&mut self, mut payload: Vec<u8>) {
        payload.clear();
        if self.spare.len() < MAX_SPARE {
            self.spare.push(payload);
        }
    }

    /// Bytes of the datagrams that are kept; never more than the limit.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::Kind;
    use super::*;

    fn header(operation: u64) -> Header {
        Header { kind: Kind::Data, flags: 0, job: 0, communicator: 0, operation, fragment: 0 }
    }

    #[test]
    fn there_is_a_limit_and_what_is_taken_makes_room() {
        let mut early = Early::default();
        let payload = vec![0; 1440];
        let kept = (0..).take_while(|operation| early.keep(header(*operation), &payload)).count();
        assert_eq!(kept, MAX_BYTES / (1440 + OVERHEAD_BYTES));
        assert!(early.bytes() <= MAX_BYTES);
        assert!(early.take(|header| header.operation == 5).is_some());
        assert!(early.take(|header| header.operation == 5).is_none());
        assert!(early.keep(header(1000), &payload) && !early.keep(header(1001), &payload));
    }
}
