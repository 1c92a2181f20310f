//! Strangers that send to the group, whoever listens. Their datagrams are made when somebody looks.

use std::ops::Range;
use std::time::Duration;

use super::network::{Member, OVERHEAD_BYTES};

/// See the module.
#[derive(Clone, Debug)]
pub struct Flood {
    pub when: Range<Duration>,
    /// From one datagram to the next, at each member.
    pub every: Duration,
    /// The kernel drops them if it is asked to.
    pub is_filtered: bool,
}

impl Flood {
    /// What it takes to read one of them, and what it has.
    pub const NANOS: u64 = 1000;
    pub const DATAGRAM: [u8; 64] = [0x3c; 64];

    /// When the first comes after this one.
    fn after(&self, last: u64) -> Option<u64> {
        let next = (last + self.every.as_nanos() as u64).max(self.when.start.as_nanos() as u64);
        (next < self.when.end.as_nanos() as u64).then_some(next)
    }
}

impl Member {
    /// The next of them that it will be called for.
    pub fn next_of(&self, flood: Option<&Flood>) -> Option<u64> {
        flood.filter(|_| !self.is_filtering)?.after(self.flooded)
    }

    /// It has those that have come by now, as far as there is room.
    pub fn flood(&mut self, flood: &Flood, most_bytes: usize, now: u64, number: &mut u64) {
        let end = now.min(flood.when.end.as_nanos() as u64);
        let bytes = Flood::DATAGRAM.len() + OVERHEAD_BYTES;
        while let Some(at) = flood.after(self.flooded).filter(|at| *at <= end) {
            if self.is_filtering || self.bytes + bytes > most_bytes {
                // So are all others.
                self.dropped += (end - at) / flood.every.as_nanos() as u64 + 1;
                self.flooded = end;
                return;
            }
            *number += 1;
            self.flooded = at;
            self.bytes += bytes;
            self.inbox.insert((at, *number), Flood::DATAGRAM.as_slice().into());
        }
    }
}
