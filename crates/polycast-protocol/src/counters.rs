/// Counts of a communicator's multicast broadcasts, as one node has seen them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Broadcasts begun.
    pub broadcasts: u64,
    /// Datagrams multicast.
    pub sent: u64,
    /// Datagrams of this communicator that arrived.
    pub received: u64,
    /// Datagrams that brought a fragment which was not there yet.
    pub useful: u64,
    /// Datagrams that brought a fragment which was there already.
    pub duplicate: u64,
    /// Datagrams of broadcasts that were over.
    pub late: u64,
    /// Datagrams of later broadcasts for which there was no room.
    pub no_room: u64,
    /// Fragments that the ring brought first, or a node that was asked by datagram.
    pub repaired: u64,
    /// Fragments restored from the parity.
    pub restored: u64,
    /// Broadcasts that needed any repair: Siebert's penalty rounds (2006), seen from one node.
    pub penalty_broadcasts: u64,
    /// Requests to the predecessor.
    pub requests: u64,
    /// Requests and questions by multicast.
    pub urgent_requests: u64,
    /// Fragments multicast in answer to requests of the successor.
    pub answers: u64,
    /// Messages to other nodes.
    pub messages: u64,
}

impl Counters {
    /// Adds the counts of another node, or of another communicator.
    pub fn add(&mut self, other: &Counters) {
        self.broadcasts += other.broadcasts;
        self.sent += other.sent;
        self.received += other.received;
        self.useful += other.useful;
        self.duplicate += other.duplicate;
        self.late += other.late;
        self.no_room += other.no_room;
        self.repaired += other.repaired;
        self.restored += other.restored;
        self.penalty_broadcasts += other.penalty_broadcasts;
        self.requests += other.requests;
        self.urgent_requests += other.urgent_requests;
        self.answers += other.answers;
        self.messages += other.messages;
    }

    /// The counts since they were as `before`.
    pub fn since(&self, before: &Counters) -> Counters {
        Counters {
            broadcasts: self.broadcasts - before.broadcasts,
            sent: self.sent - before.sent,
            received: self.received - before.received,
            useful: self.useful - before.useful,
            duplicate: self.duplicate - before.duplicate,
            late: self.late - before.late,
            no_room: self.no_room - before.no_room,
            repaired: self.repaired - before.repaired,
            restored: self.restored - before.restored,
            penalty_broadcasts: self.penalty_broadcasts - before.penalty_broadcasts,
            requests: self.requests - before.requests,
            urgent_requests: self.urgent_requests - before.urgent_requests,
            answers: self.answers - before.answers,
            messages: self.messages - before.messages,
        }
    }

    /// The name and value of each count, for reports.
    pub fn named(&self) -> [(&'static str, u64); 14] {
        [
            ("broadcasts", self.broadcasts),
            ("sent", self.sent),
            ("received", self.received),
            ("useful", self.useful),
            ("duplicate", self.duplicate),
            ("late", self.late),
            ("no_room", self.no_room),
            ("repaired", self.repaired),
            ("restored", self.restored),
            ("penalty_broadcasts", self.penalty_broadcasts),
            ("requests", self.requests),
            ("urgent_requests", self.urgent_requests),
            ("answers", self.answers),
            ("messages", self.messages),
        ]
    }
}
