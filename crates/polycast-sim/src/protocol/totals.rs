use std::ops::AddAssign;

/// Counts of what happened, over all nodes, and over all runs if there are several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Runs.
    pub runs: u64,
    /// Broadcasts, each of all its nodes.
    pub broadcasts: u64,
    /// Datagrams multicast.
    pub datagrams: u64,
    /// The bytes of these datagrams.
    pub datagram_bytes: u64,
    /// Copies of datagrams that did not get through: lost, damaged, or without room in a receive buffer.
    pub lost: u64,
    /// Datagrams of strangers, and old ones again.
    pub hostile: u64,
    /// Copies that were dropped for what stood in them.
    pub rejected: u64,
    /// Fragments that the ring brought first.
    pub repaired: u64,
    /// Fragments restored from a parity.
    pub restored: u64,
    /// Requests.
    pub requests: u64,
    /// Requests by multicast.
    pub urgent_requests: u64,
    /// Fragments multicast in answer to such requests.
    pub answers: u64,
    /// Messages between nodes.
    pub messages: u64,
    /// The bytes of these messages.
    pub message_bytes: u64,
}

impl Totals {
    /// The name and the value of each count, for reports.
    pub fn named(&self) -> [(&'static str, u64); 14] {
        [
            ("runs", self.runs),
            ("broadcasts", self.broadcasts),
            ("datagrams", self.datagrams),
            ("datagram_bytes", self.datagram_bytes),
            ("lost", self.lost),
            ("hostile", self.hostile),
            ("rejected", self.rejected),
            ("repaired", self.repaired),
            ("restored", self.restored),
            ("requests", self.requests),
            ("urgent_requests", self.urgent_requests),
            ("answers", self.answers),
            ("messages", self.messages),
            ("message_bytes", self.message_bytes),
        ]
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Totals) {
        self.runs += other.runs;
        self.broadcasts += other.broadcasts;
        self.datagrams += other.datagrams;
        self.datagram_bytes += other.datagram_bytes;
        self.lost += other.lost;
        self.hostile += other.hostile;
        self.rejected += other.rejected;
        self.repaired += other.repaired;
        self.restored += other.restored;
        self.requests += other.requests;
        self.urgent_requests += other.urgent_requests;
        self.answers += other.answers;
        self.messages += other.messages;
        self.message_bytes += other.message_bytes;
    }
}
