//! DYN-tree (Nupairoj 1998, §6.3): OPT-tree with the times of a network that is in use.
//!
//! A send returns when the message stands in the send buffer, so `t_hold` does not show how full the network is. The time until
//! the message has left its sender, `t_as`, does:
//!
//! ```text
//!   t_as = t_hold + t_hol          t_hol = waiting for earlier messages + t_out + delay by others in the network
//! ```
//!
//! What it exceeds an idle network's by is expected of the next message, too, whatever its size. So a sender that is
//! delayed gives larger parts away to fewer receivers. Each divides [its own part](super::Part) by its own delay: the message
//! tells the receiver its part.

use super::SendTimes;
use crate::units::Nanos;

/// How long messages of one size take on an idle network. One unit of time is as good as another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IdleTimes {
    /// `t_hold`: from the call until the next send can be called.
    pub hold: Nanos,
    /// `t_out`: how long the message occupies its sender's way into the network.
    pub out: Nanos,
    /// `t_end`: from the call until the receiver can send the message on.
    pub end: Nanos,
}

/// What one sender knows of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DynamicTimes {
    /// `t_sq + t_cont` of the message that left last: waiting in the send buffer and in the network.
    delay: Option<Nanos>,
}

impl DynamicTimes {
    /// A message left its sender `time_at_sender` (`t_as`) after the call; `idle` is for its size.
    pub fn left(&mut self, time_at_sender: Nanos, idle: IdleTimes) {
        self.delay = Some(Nanos(time_at_sender.0.saturating_sub(idle.hold.0.saturating_add(idle.out.0))));
    }

    /// With what to plan a multicast whose messages would take `idle`; see [`super::Splits::optimal`].
    ///
    /// Before the first message has left, that of an idle network.
    pub fn expected(&self, idle: IdleTimes) -> SendTimes {
        let Some(delay) = self.delay else { return SendTimes { hold: idle.hold, end: idle.end } };
        SendTimes { hold: idle.hold.max(idle.out + delay), end: idle.end + delay }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tree::Splits;

    /// Nupairoj 1998, §6.4: the baseline's start-up and delay per byte, in units of 10 ns.
    fn idle(bytes: u64) -> IdleTimes {
        IdleTimes {
            hold: Nanos(1915 + 2 * bytes),
            out: Nanos(1390 + 2 * bytes),
            end: Nanos(5330 + 7 * bytes),
        }
    }

    /// The formulas as they stand in §6.3, from a message of `n` bytes that left to one of `m`.
    fn by_the_formulas(t_as: u64, n: u64, m: u64) -> SendTimes {
        let t_hol = t_as - (1915 + 2 * n) - 2 * n;
        let t_end = t_as - 2 * n - 2 * n + 2025;
        SendTimes { hold: Nanos((1915 + 2 * m).max(t_hol + 2 * m)), end: Nanos(t_end + m * (2 + 2 + 3)) }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_times_are_those_of_the_formulas(n in 1u64..100_000, m in 1u64..100_000, delay in 0u64..1_000_000) {
            let t_as = idle(n).hold.0 + idle(n).out.0 + delay;
            let mut times = DynamicTimes::default();
            times.left(Nanos(t_as), idle(n));
            prop_assert_eq!(times.expected(idle(m)), by_the_formulas(t_as, n, m));
        }

        #[test]
        fn a_slower_network_has_fewer_receivers_of_the_root(delay in 0u64..1_000_000, ranks in 2u32..256) {
            let first_receivers = |delay: u64| {
                let mut times = DynamicTimes::default();
                times.left(idle(1024).hold + idle(1024).out + Nanos(delay), idle(1024));
                let splits = Splits::optimal(times.expected(idle(1024)), ranks);
                let mut rest = ranks;
                let mut receivers = 0;
                while rest > 1 {
                    rest -= splits.led(rest).sum::<u32>();
                    receivers += 1;
                }
                receivers
            };
            let halvings = (ranks - 1).ilog2() + 1;
            prop_assert!(first_receivers(delay) <= first_receivers(0));
            prop_assert!(first_receivers(10_000_000) <= halvings + 1);
        }
    }

    #[test]
    fn before_the_first_message_has_left_and_after_one_that_was_quicker_than_can_be() {
        let mut times = DynamicTimes::default();
        let new = times.expected(idle(1024));
        assert_eq!((new.hold, new.end), (Nanos(3963), Nanos(12_498)));
        times.left(Nanos(1), idle(1024));
        assert_eq!(times.expected(idle(1024)), new);
    }
}
