//! The behaviour of routers, apart from where messages go: published descriptions leave much of it
//! open, so it is a parameter.

use super::Node;

/// Routers and channels. Times are in units of the network; one unit is as good as another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switching {
    /// The time that a flit takes over a channel, at least 1. A flit is a byte.
    pub flit_time: u64,
    /// The number of flits that can stand at the end of a channel, at least 1. The buffer is one
    /// message's until its last flit has left.
    pub buffer_flits: u64,
    /// The time that a head waits in each router before it asks for the next channel.
    pub router_delay: u64,
    /// The rule for who goes first where several heads wait.
    pub arbitration: Arbitration,
    /// The rule for the way that a head takes where several are free.
    pub choice: Choice,
    /// The seed of everything that is drawn.
    pub seed: u64,
}

/// A rule for who goes first where several heads wait for a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arbitration {
    /// The head that has waited longest; of those that came together, the one whose message is
    /// older.
    FirstCome,
    /// The head that has waited longest; of those that came together, one that is drawn.
    FirstComeOrDrawn,
    /// The head whose message is oldest.
    OldestMessage,
}

/// A rule for the way that a head takes where two are free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The channel on the head's own line.
    Straight,
    /// A channel that is drawn.
    Drawn,
}

/// A message for the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The sender.
    pub from: Node,
    /// The receiver, another node.
    pub to: Node,
    /// The length in flits, at least 1.
    pub flits: u64,
    /// A number that names the message; the network says it again. Of two messages, the one with
    /// the lower number is older.
    pub number: u64,
}

/// News of a message from the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The message's last flit has left its sender's node.
    Left,
    /// The message's last flit has arrived. `delayed` is how long its head waited for channels on
    /// the way, its own node's excluded.
    Arrived {
        /// The delay in units of time.
        delayed: u64,
    },
}

impl Switching {
    /// One-flit buffers, no delay in routers, first come, first served, straight on where possible: the least that a
    /// wormhole network can be.
    pub fn plain(flit_time: u64) -> Switching {
        Switching {
            flit_time,
            buffer_flits: 1,
            router_delay: 0,
            arbitration: Arbitration::FirstCome,
            choice: Choice::Straight,
            seed: 0,
        }
    }

    /// The place in line of a message whose head has arrived at the end of its `hop`th channel at `at`: the lowest goes first.
    pub(super) fn priority(&self, number: u64, hop: usize, at: u64) -> (u64, u64, u64) {
        match self.arbitration {
            Arbitration::FirstCome => (at, number, 0),
            Arbitration::FirstComeOrDrawn => (at, self.drawn(number, hop), number),
            Arbitration::OldestMessage => (number, 0, 0),
        }
    }

    /// True if the message prefers the way that is not straight after its `hop`th channel.
    pub(super) fn prefers_other(&self, number: u64, hop: usize) -> bool {
        self.choice == Choice::Drawn && self.drawn(number, hop) & 1 == 1
    }

    /// A number that depends on the seed, the message and the hop only, however the network is simulated.
    fn drawn(&self, number: u64, hop: usize) -> u64 {
        let mut state = self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (hop as u64) << 56;
        // SplitMix64's finisher.
        state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^ state >> 31
    }
}

/// The room for messages in each node's receive buffer.
///
/// A message takes its room when it is given the channel into its node, and keeps it until its receiver has it.
/// One that is larger than the buffer comes alone.
#[derive(Clone, Debug)]
pub(super) struct Rooms {
    bytes: u64,
    used: Vec<u64>,
}

impl Rooms {
    pub fn new(nodes: u32, bytes: u64) -> Rooms {
        Rooms { bytes, used: vec![0; nodes as usize] }
    }

    pub fn take(&mut self, node: Node, bytes: u64) -> bool {
        let used = &mut self.used[node as usize];
        let fits = *used == 0 || *used + bytes <= self.bytes;
        if fits {
            *used += bytes;
        }
        fits
    }

    pub fn give_back(&mut self, node: Node, bytes: u64) {
        self.used[node as usize] -= bytes;
    }
}
