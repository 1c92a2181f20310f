use std::collections::HashMap;

use super::infer::Quartet;

use crate::jobs::{Order, RankServer, RankServerError};

/// The times for which flows run before they are measured, and while they are. A queue of 200 ms,
/// as switches have it, is not filled: few messages are under way at a time.
const WARM_UP_NS: u64 = 40_000_000;
const TIME_NS: u64 = 160_000_000;

/// The aim for the time that a message takes alone, in nanoseconds: many messages fit into the time
/// of a measurement.
const MESSAGE_NS: f64 = 6e6;

/// Bounds of a message.
const MESSAGE_BYTES: (u64, u64) = (1 << 10, 4 << 20);

/// Two flows that carry less than this share of what they carry alone disturb each other. A link that both have to share
/// leaves them half, if each of them can fill it.
const DISTURBED: f64 = 0.8;

/// The number of tries of a pair that carries less than the share `NEARLY` of what its hosts are
/// able to: in all, and each time that the pair is asked for.
const ATTEMPTS: usize = 8;
const AT_ONCE: usize = 2;
const NEARLY: f64 = 0.9;

/// The number of tries of two flows together before they are said to disturb each other.
const TRIALS: usize = 3;

/// The most that a pair was seen to carry, in bits per second: everything that disturbs makes it less.
#[derive(Clone, Copy, Debug, Default)]
struct Alone {
    most: f64,
    attempts: usize,
}

/// Flows between hosts of a job with one rank per host.
pub struct Flows<'a> {
    server: &'a mut dyn RankServer,
    message_bytes: u64,
    alone: HashMap<(usize, usize), Alone>,
    /// The most that a quartet's two flows carried together.
    together: HashMap<Quartet, f64>,
}

impl<'a> Flows<'a> {
    /// Finds out how long messages have to be.
    pub fn new(server: &'a mut dyn RankServer) -> Result<Flows<'a>, RankServerError> {
        let mut flows =
            Flows { server, message_bytes: 4 << 10, alone: HashMap::new(), together: HashMap::new() };
        let rate = flows.measure(&[(0, 1)])?[0];
        let bytes = (rate / 8e9 * MESSAGE_NS) as u64;
        flows.message_bytes = bytes.clamp(MESSAGE_BYTES.0, MESSAGE_BYTES.1);
        Ok(flows)
    }

    /// Measures the bits per second that a pair carries alone. A pair that carries less than its
    /// hosts are able to is tried again whenever it is asked for: a connection that was just
    /// opened, or a busy machine, would otherwise make all later answers wrong in the same way.
    pub fn alone(&mut self, pair: (usize, usize)) -> Result<f64, RankServerError> {
        let able = self.most_of_host(pair.0).min(self.most_of_host(pair.1));
        for _ in 0..AT_ONCE {
            let Alone { most, attempts } = self.alone.get(&pair).copied().unwrap_or_default();
            if attempts > 0 && (most >= NEARLY * able || attempts >= ATTEMPTS) {
                break;
            }
            let most = most.max(self.measure(&[pair])?[0]);
            self.alone.insert(pair, Alone { most, attempts: attempts + 1 });
        }
        Ok(self.alone.get(&pair).map_or(0.0, |alone| alone.most))
    }

    /// Whether the flows of a quartet disturb each other: whatever else is going on makes them slower too, so they do only if
    /// they are never as fast as alone.
    pub fn disturb(&mut self, quartet: Quartet) -> Result<bool, RankServerError> {
        let [a, b] = quartet.near;
        let [c, d] = quartet.far;
        let alone = self.alone((a, c))? + self.alone((b, d))?;
        for _ in 0..TRIALS {
            let rates = self.measure(&[(a, c), (b, d)])?;
            for (pair, rate) in [(a, c), (b, d)].into_iter().zip(&rates) {
                self.alone.entry(pair).and_modify(|alone| alone.most = alone.most.max(*rate));
            }
            let together: f64 = rates.iter().sum();
            let most = self.together.entry(quartet).or_default();
            *most = most.max(together);
            if *most >= DISTURBED * alone {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The most that the flows of a quartet carried together, and alone, in bits per second; zero if they never ran.
    pub fn rates_of(&self, quartet: Quartet) -> (f64, f64) {
        let alone = |near: usize, far: usize| self.alone.get(&(near, far)).map_or(0.0, |alone| alone.most);
        let ([a, b], [c, d]) = (quartet.near, quartet.far);
        (self.together.get(&quartet).copied().unwrap_or(0.0), alone(a, c) + alone(b, d))
    }

    /// The most that a host was seen to send or receive, in bits per second.
    pub fn most_of_host(&self, host: usize) -> f64 {
        let own = self.alone.iter().filter(|((from, to), _)| *from == host || *to == host);
        own.map(|(_, alone)| alone.most).fold(0.0, f64::max)
    }

    /// The rates of flows at the same time; 0 of one that stalled.
    fn measure(&mut self, pairs: &[(usize, usize)]) -> Result<Vec<f64>, RankServerError> {
        let mut unseen = 0;
        loop {
            let order = Order::Flows {
                pairs: pairs.to_vec(),
                bytes: self.message_bytes,
                warm_up_ns: WARM_UP_NS,
                time_ns: TIME_NS,
            };
            let answer = self.server.carry_out(&order)?;
            let is_seen = answer.chunks_exact(2).all(|flow| flow[1] > 0);
            if is_seen || self.message_bytes == MESSAGE_BYTES.0 {
                return Ok(answer.chunks_exact(2).map(rate).collect());
            }
            // Twice less than two messages in the time: this link is slower than the first one was.
            unseen += 1;
            if unseen > 1 {
                self.message_bytes = (self.message_bytes / 4).max(MESSAGE_BYTES.0);
            }
        }
    }
}

/// Bits per second. Messages that come together after a stall say nothing of the link, so arrivals must be spread over half
/// of the time.
fn rate(flow: &[i64]) -> f64 {
    let (bytes, time_ns) = (flow[0] as f64, flow[1] as f64);
    if time_ns >= TIME_NS as f64 / 2.0 { bytes * 8e9 / time_ns } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts 0, 1 and 2, 3 at two ends of a link; rates in bits per second.
    struct TwoSwitches {
        host: f64,
        link: f64,
        orders: usize,
    }

    impl RankServer for TwoSwitches {
        fn carry_out(&mut self, order: &Order) -> Result<Vec<i64>, RankServerError> {
            let Order::Flows { pairs, bytes, time_ns, .. } = order else { panic!("{order}") };
            self.orders += 1;
            let crossing = pairs.iter().filter(|(from, to)| (*from < 2) != (*to < 2)).count();
            let rate_of = |&(from, to): &(usize, usize)| match (from < 2) != (to < 2) {
                true => self.host.min(self.link / crossing as f64),
                false => self.host,
            };
            let message_ns = |pair| *bytes as f64 * 8e9 / rate_of(pair);
            let answer = |pair| {
                let messages = (*time_ns as f64 / message_ns(pair)).floor();
                match messages >= 2.0 {
                    true => [(messages * *bytes as f64) as i64, (messages * message_ns(pair)) as i64],
                    false => [0, 0],
                }
            };
            Ok(pairs.iter().flat_map(answer).collect())
        }
    }

    fn answers(host: f64, link: f64) -> (bool, bool) {
        let mut network = TwoSwitches { host, link, orders: 0 };
        let mut flows = Flows::new(&mut network).unwrap();
        let across = flows.disturb(Quartet { near: [0, 1], far: [2, 3] }).unwrap();
        let beside = flows.disturb(Quartet { near: [0, 2], far: [1, 3] }).unwrap();
        (across, beside)
    }

    #[test]
    fn flows_disturb_each_other_on_a_link_that_does_not_carry_both() {
        assert_eq!(answers(20e6, 20e6), (true, false));
        assert_eq!(answers(20e6, 31e6), (true, false));
        assert_eq!(answers(20e6, 40e6), (false, false));
        assert_eq!(answers(1e9, 20e6), (true, false), "the link is slower than a host");
    }

    /// The first flow of every pair is slow: its connection is being opened.
    struct SlowStart(TwoSwitches, std::collections::HashSet<(usize, usize)>);

    impl RankServer for SlowStart {
        fn carry_out(&mut self, order: &Order) -> Result<Vec<i64>, RankServerError> {
            let mut answer = self.0.carry_out(order)?;
            let Order::Flows { pairs, .. } = order else { panic!("{order}") };
            for (pair, flow) in pairs.iter().zip(answer.chunks_exact_mut(2)) {
                if self.1.insert(*pair) {
                    flow[0] /= 3;
                }
            }
            Ok(answer)
        }
    }

    #[test]
    fn a_burst_after_a_stall_is_no_rate() {
        assert_eq!(rate(&[300_000, 17_000]), 0.0);
        assert_eq!(rate(&[300_000, 120_000_000]), 20e6);
        assert_eq!(rate(&[0, 0]), 0.0);
    }

    #[test]
    fn a_slow_first_flow_hides_no_link() {
        let network = TwoSwitches { host: 20e6, link: 20e6, orders: 0 };
        let mut network = SlowStart(network, [(0, 1), (1, 2), (2, 3), (3, 0)].into());
        let mut flows = Flows::new(&mut network).unwrap();
        for pair in [(0, 1), (1, 2), (2, 3), (3, 0)] {
            flows.alone(pair).unwrap();
        }
        assert!(flows.disturb(Quartet { near: [0, 1], far: [2, 3] }).unwrap());
        assert!(!flows.disturb(Quartet { near: [0, 2], far: [1, 3] }).unwrap());
    }

    /// Every other time something else takes the processor.
    struct Busy(TwoSwitches);

    impl RankServer for Busy {
        fn carry_out(&mut self, order: &Order) -> Result<Vec<i64>, RankServerError> {
            let mut answer = self.0.carry_out(order)?;
            if self.0.orders.is_multiple_of(2) {
                answer.iter_mut().step_by(2).for_each(|bytes| *bytes /= 2);
            }
            Ok(answer)
        }
    }

    #[test]
    fn a_busy_machine_is_not_taken_for_a_link() {
        let mut network = Busy(TwoSwitches { host: 20e6, link: 20e6, orders: 0 });
        let mut flows = Flows::new(&mut network).unwrap();
        for pair in [(0, 1), (1, 0), (2, 3), (3, 2)] {
            flows.alone(pair).unwrap();
        }
        for _ in 0..4 {
            assert!(flows.disturb(Quartet { near: [0, 1], far: [2, 3] }).unwrap());
            assert!(!flows.disturb(Quartet { near: [0, 2], far: [1, 3] }).unwrap());
        }
    }

    #[test]
    fn what_pairs_carry_alone_is_measured_once() {
        let mut network = TwoSwitches { host: 20e6, link: 20e6, orders: 0 };
        let mut flows = Flows::new(&mut network).unwrap();
        let quartet = Quartet { near: [0, 1], far: [2, 3] };
        for _ in 0..3 {
            flows.disturb(quartet).unwrap();
        }
        let (together, alone) = flows.rates_of(quartet);
        assert!((together / 20e6 - 1.0).abs() < 0.01 && (alone / 40e6 - 1.0).abs() < 0.01);
        assert!((flows.most_of_host(3) / 20e6 - 1.0).abs() < 0.01);
        assert_eq!(network.orders, 1 + 2 + 3 * TRIALS);
    }
}
