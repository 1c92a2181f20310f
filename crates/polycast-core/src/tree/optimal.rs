//! Optimal trees in the parameterized model (Nupairoj 1998, ch. 4): a sender is held for `t_hold` by each message, and the receiver
//! can send on after `t_end`.
//!
//! With `i` ranks the root sends to one that will lead `i - j` of them, and goes on with its own `j`. If `t_hold` is much
//! smaller than `t_end` the tree is flat, if both are equal it is binomial; t_hold = 20, t_end = 55, 9 ranks:
//!
//! ```text
//!   t = 0      0 ──▶ 6         root keeps 6 of 9
//!      20      0 ──▶ 4         4 of 6
//!      40      0 ──▶ 3         3 of 4
//!      55      6 ──▶ 8
//!      60      0 ──▶ 2
//!      75      6 ──▶ 7   4 ──▶ 5
//!      80      0 ──▶ 1
//!     135      1 is the last
//! ```

use std::num::NonZeroU32;

use super::SendTimes;
use crate::units::Nanos;

/// The division of ranks in an optimal tree, for every number of ranks up to a limit: how many of
/// them each receiver of the root's next messages leads, and how long it takes until the last one
/// has the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splits {
    ports: usize,
    /// `latency[i]` is the time until the last of `i` ranks has the message.
    latency: Vec<Nanos>,
    /// `ports` entries for each number of ranks.
    led: Vec<u32>,
}

impl Splits {
    /// The OPT-tree in O(k) (Nupairoj 1998, §4.3, Lemma 3): the root's share grows by at most one with every rank.
    pub fn optimal(times: SendTimes, ranks: u32) -> Splits {
        let mut splits = Splits::begin(1, times, ranks);
        let mut kept = 1;
        for i in 3..=ranks {
            let takes = |kept: u32| {
                let t = |ranks: u32| splits.latency[ranks as usize];
                (t(kept) + times.hold).max(t(i - kept) + times.end)
            };
            if takes(kept + 1) <= takes(kept) {
                kept += 1;
            }
            let latency = takes(kept);
            splits.latency.push(latency);
            splits.led.push(i - kept);
        }
        splits
    }

    /// The alpha-port OPT-tree in O(alpha k) (Nupairoj 1998, §4.5, Lemma 4): the root sends over all its ports, one after the other
    /// with `interval` between, before it has its first port back after `t_hold`. One rank more joins the part where it is
    /// served soonest.
    pub fn optimal_with_ports(times: SendTimes, interval: Nanos, ports: NonZeroU32, ranks: u32) -> Splits {
        let ports = ports.get() as usize;
        let mut splits = Splits::begin(ports, times, ranks);
        let mut kept = 1_usize;
        let mut led = vec![0_u32; ports];
        led[0] = 1;
        for i in 3..=ranks as usize {
            let t = |ranks: usize| splits.latency[ranks];
            let with_port = |port: usize| {
                t(led[port] as usize + 1) + times.end + Nanos(interval.0.saturating_mul(port as u64))
            };
            let best_port = (0..ports).min_by_key(|port| with_port(*port)).unwrap_or(0);
            let with_root = t(kept + 1) + times.hold;
            let soonest = with_root.min(with_port(best_port));
            splits.latency.push(t(i - 1).max(soonest));
            if with_root <= soonest {
                kept += 1
            } else {
                led[best_port] += 1
            }
            splits.led.extend_from_slice(&led);
        }
        splits
    }

    /// The binomial tree's halves, which OPT-tree gives for `t_hold` = `t_end`; the root keeps the larger one.
    pub fn halves(ranks: u32) -> Splits {
        Splits {
            ports: 1,
            latency: (0..=ranks).map(|i| Nanos(i.max(1).next_power_of_two().ilog2().into())).collect(),
            led: (0..=ranks).map(|i| i / 2).collect(),
        }
    }

    /// The splits for up to two ranks, which every construction begins with.
    fn begin(ports: usize, times: SendTimes, ranks: u32) -> Splits {
        let entries = ranks.min(2) as usize + 1;
        let mut led = vec![0; entries * ports];
        if entries == 3 {
            led[2 * ports] = 1;
        }
        Splits { ports, latency: [Nanos(0), Nanos(0), times.end][..entries].to_vec(), led }
    }

    /// The time until the last of `ranks` ranks has the message.
    pub fn latency(&self, ranks: u32) -> Nanos {
        self.latency[ranks as usize]
    }

    /// For each of the root's next messages, the number of ranks, of `ranks` in all, that its
    /// receiver leads; the first message first.
    pub fn led(&self, ranks: u32) -> impl Iterator<Item = u32> {
        let first = ranks as usize * self.ports;
        self.led[first..first + self.ports].iter().copied().filter(|led| *led > 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times(hold: u64, end: u64) -> SendTimes {
        SendTimes { hold: Nanos(hold), end: Nanos(end) }
    }

    fn latencies(splits: &Splits) -> Vec<u64> {
        splits.latency[1..].iter().map(|latency| latency.0).collect()
    }

    /// Nupairoj 1998, Table 4.3.
    #[test]
    fn the_papers_tree_of_nine() {
        let splits = Splits::optimal(times(20, 55), 9);
        assert_eq!(latencies(&splits), [0, 55, 75, 95, 110, 115, 130, 130, 135]);
        let kept: Vec<u32> = (2..=9).map(|i| i - splits.led(i).sum::<u32>()).collect();
        assert_eq!(kept, [1, 2, 3, 3, 4, 5, 5, 6]);
    }

    /// Nupairoj 1998, Table 4.4.
    #[test]
    fn the_papers_tree_of_twelve_with_three_ports() {
        let splits = Splits::optimal_with_ports(times(22, 55), Nanos(10), NonZeroU32::new(3).unwrap(), 12);
        assert_eq!(latencies(&splits), [0, 55, 65, 75, 77, 87, 97, 99, 109, 110, 119, 120]);
        assert_eq!(splits.led(12).collect::<Vec<_>>(), [3, 1, 1]);
        assert_eq!(splits.led(4).collect::<Vec<_>>(), [1, 1, 1]);
        assert_eq!(splits.led(2).collect::<Vec<_>>(), [1]);
    }

    /// The recurrence as it stands in §4.2, over all splits.
    fn one_port_by_all_splits(times: SendTimes, ranks: usize) -> Vec<u64> {
        let mut t = vec![0, 0, times.end.0];
        for i in 3..=ranks {
            t.push((1..i).map(|j| (t[j] + times.hold.0).max(t[i - j] + times.end.0)).min().unwrap());
        }
        t[1..=ranks].to_vec()
    }

    /// The recurrence as it stands in §4.5: the root keeps some, and the rest is given to ports in every way.
    fn ports_by_all_splits(times: SendTimes, interval: u64, ports: u64, ranks: usize) -> Vec<u64> {
        fn given(t: &[u64], rest: usize, port: u64, ports: u64, end: u64, interval: u64) -> u64 {
            if rest == 0 {
                return 0;
            }
            if port == ports {
                return u64::MAX;
            }
            let most = rest.min(t.len() - 1);
            let with = |led: usize| {
                let takes = if led == 0 { 0 } else { t[led] + end + port * interval };
                takes.max(given(t, rest - led, port + 1, ports, end, interval))
            };
            (0..=most).map(with).min().unwrap()
        }
        let mut t = vec![0, 0, times.end.0];
        for i in 3..=ranks {
            let with = |kept: usize| {
                (t[kept] + times.hold.0).max(given(&t, i - kept, 0, ports, times.end.0, interval))
            };
            t.push((1..i).map(with).min().unwrap());
        }
        t[1..=ranks].to_vec()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn two_splits_are_enough(hold in 1u64..200, end in 1u64..200, ranks in 2u32..80) {
            let times = times(hold, end);
            let all = one_port_by_all_splits(times, ranks as usize);
            prop_assert_eq!(latencies(&Splits::optimal(times, ranks)), all);
        }

        #[test]
        fn one_more_rank_joins_one_part(
            (end, hold) in (1u64..200).prop_flat_map(|end| (Just(end), 1..=end)),
            ports in 1u32..4,
            ranks in 2u32..18,
        ) {
            let (times, interval) = (times(hold, end), hold.div_ceil(ports.into()));
            let splits =
                Splits::optimal_with_ports(times, Nanos(interval), NonZeroU32::new(ports).unwrap(), ranks);
            let all = ports_by_all_splits(times, interval, ports.into(), ranks as usize);
            prop_assert_eq!(latencies(&splits), all);
        }

        #[test]
        fn one_port_is_the_one_port_tree(
            (end, hold) in (1u64..200).prop_flat_map(|end| (Just(end), 1..=end)),
            ranks in 2u32..200,
        ) {
            let times = times(hold, end);
            let one = Splits::optimal_with_ports(times, times.hold, NonZeroU32::MIN, ranks);
            prop_assert_eq!(latencies(&one), latencies(&Splits::optimal(times, ranks)));
        }
    }

    #[test]
    fn a_lonely_root_and_equal_times() {
        assert_eq!(Splits::optimal(times(1, 2), 1).latency(1), Nanos(0));
        assert_eq!(latencies(&Splits::optimal(times(1, 1), 40)), latencies(&Splits::halves(40)));
    }
}
