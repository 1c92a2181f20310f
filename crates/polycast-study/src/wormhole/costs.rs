//! The costs of messages for their nodes, and the published sets of them.

use polycast_core::tree::IdleTimes;
use polycast_core::units::Nanos;

/// The cost of a message, in units of time: `startup + bytes * per_byte`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The cost of a message of no bytes.
    pub startup: u64,
    /// The cost of each byte.
    pub per_byte: u64,
}

/// The parameterized model's system level (Nupairoj 1998, ch. 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// `t_hs`, `t_hd`: the sender's processor, until the message stands in its send buffer.
    pub hold: Cost,
    /// `t_ns`, `t_nd`: the network interface before the first byte; a byte on a channel.
    pub network: Cost,
    /// `t_rs`, `t_rd`: the receiver's processor.
    pub receive: Cost,
}

impl Cost {
    /// The cost of a message of `bytes` bytes.
    pub fn of(self, bytes: u64) -> u64 {
        self.startup + bytes * self.per_byte
    }
}

const fn costs(hold: (u64, u64), network: (u64, u64), receive: (u64, u64)) -> Costs {
    const fn cost((startup, per_byte): (u64, u64)) -> Cost {
        Cost { startup, per_byte }
    }
    Costs { hold: cost(hold), network: cost(network), receive: cost(receive) }
}

impl Costs {
    /// Like an IBM SP, in units of 10 ns (Nupairoj 1998, §5.4).
    pub const CHAPTER_5: Costs = costs((2000, 2), (1000, 2), (2500, 3));
    /// An IBM SP, in units of 10 ns (§6.4).
    pub const BASELINE: Costs = costs((1915, 2), (1390, 2), (2025, 3));
    /// The baseline with channels twice as fast and half the network's start-up (§6.4.6).
    pub const FAST_NETWORK: Costs = costs((1915, 2), (695, 1), (2025, 3));
    /// The baseline with half the software's start-up (§6.4.6). Here a message occupies its sender's channel for longer than
    /// its processor, so that a node's messages queue on an idle network, too.
    pub const FAST_SOFTWARE: Costs = costs((957, 2), (1390, 2), (1012, 3));

    /// The times of a message of `bytes` bytes on an idle network, over so short a way that only
    /// its length counts.
    pub fn idle(&self, bytes: u64) -> IdleTimes {
        let (hold, out) = (self.hold.of(bytes), self.network.of(bytes));
        IdleTimes { hold: Nanos(hold), out: Nanos(out), end: Nanos(hold + out + self.receive.of(bytes)) }
    }
}
