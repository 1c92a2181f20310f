use std::fmt;

/// The most samples of one order.
pub const MAX_SAMPLES: usize = 2048;

/// An order to the ranks: something to measure. A pair is the rank that sends (first) and the one
/// that receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Messages one after the other, one way. Answered by the time of each batch, in ns: all of the sender, then all of
    /// the receiver.
    Stream {
        /// Sender and receiver.
        pair: (usize, usize),
        /// Size of a message.
        bytes: u64,
        /// Messages that are not measured.
        warm_up: u64,
        /// Messages of a batch.
        batch: u64,
        /// Batches.
        samples: usize,
    },
    /// Round trips. Answered by three times in ns for each: of the send, of the receive, of the whole.
    PingPong {
        /// The rank that begins, and the rank that answers.
        pair: (usize, usize),
        /// Size of a message.
        bytes: u64,
        /// Pause before each.
        pause_ns: u64,
        /// Computation between send and receive.
        dummy_ns: u64,
        /// Round trips.
        samples: usize,
    },
    /// Pairs at the same time. Answered by two numbers for each: bytes that arrived, and within how many ns.
    Flows {
        /// Senders and receivers, all of them different ranks.
        pairs: Vec<(usize, usize)>,
        /// Size of a message.
        bytes: u64,
        /// Time that is not measured.
        warm_up_ns: u64,
        /// Time after that.
        time_ns: u64,
    },
}

impl Order {
    /// Returns how many numbers answer this order.
    pub fn answer_len(&self) -> usize {
        match self {
            Order::Stream { samples, .. } => 2 * samples,
            Order::PingPong { samples, .. } => 3 * samples,
            Order::Flows { pairs, .. } => 2 * pairs.len(),
        }
    }
}

impl fmt::Display for Order {
    /// Writes the order as the measuring program reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Stream { pair: (from, to), bytes, warm_up, batch, samples } => {
                write!(f, "stream {from} {to} {bytes} {warm_up} {batch} {samples}")
            }
            Order::PingPong { pair: (from, to), bytes, pause_ns, dummy_ns, samples } => {
                write!(f, "pingpong {from} {to} {bytes} {pause_ns} {dummy_ns} {samples}")
            }
            Order::Flows { pairs, bytes, warm_up_ns, time_ns } => {
                write!(f, "flows {bytes} {warm_up_ns} {time_ns}")?;
                pairs.iter().try_for_each(|(from, to)| write!(f, " {from} {to}"))
            }
        }
    }
}
