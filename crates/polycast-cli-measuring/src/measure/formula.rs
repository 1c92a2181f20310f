//! A network whose times are formulas: what is measured there is known.

use crate::jobs::{Order, RankServer, RankServerError};

/// Times in nanoseconds.
#[derive(Clone, Debug)]
pub struct Formula {
    pub send_ns: f64,
    pub receive_ns: f64,
    pub latency_ns: f64,
    pub ns_per_byte: f64,
    /// The size in bytes from which on a message takes a handshake more.
    pub handshake_from: u64,
    pub handshake_ns: f64,
    /// Every time is longer by up to this fraction.
    pub noise: f64,
    /// The time of all orders so far, in ns.
    pub used_ns: f64,
    pub draws: u64,
}

impl Default for Formula {
    fn default() -> Formula {
        Formula {
            send_ns: 8_000.0,
            receive_ns: 5_000.0,
            latency_ns: 40_000.0,
            ns_per_byte: 400.0,
            handshake_from: u64::MAX,
            handshake_ns: 0.0,
            noise: 0.0,
            used_ns: 0.0,
            draws: 0,
        }
    }
}

impl Formula {
    fn handshake_of(&self, bytes: u64) -> f64 {
        if bytes >= self.handshake_from { self.handshake_ns } else { 0.0 }
    }

    pub fn gap_ns(&self, bytes: u64) -> f64 {
        self.send_ns + self.ns_per_byte * bytes as f64 + self.handshake_of(bytes)
    }

    pub fn end_ns(&self, bytes: u64) -> f64 {
        self.gap_ns(bytes) + self.latency_ns + self.receive_ns
    }

    fn noisy(&mut self, ns: f64) -> i64 {
        self.draws =
            self.draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let share = (self.draws >> 11) as f64 / (1u64 << 53) as f64;
        (ns * (1.0 + self.noise * share)).round() as i64
    }
}

impl RankServer for Formula {
    fn carry_out(&mut self, order: &Order) -> Result<Vec<i64>, RankServerError> {
        let mut answer = Vec::new();
        match *order {
            Order::Stream { bytes, warm_up, batch, samples, .. } => {
                let gap_ns = self.gap_ns(bytes);
                // Senders run ahead: only the receiver's numbers are true.
                answer.resize(samples, 17);
                answer.extend((0..samples).map(|_| self.noisy(gap_ns * batch as f64)));
                self.used_ns += gap_ns * (warm_up + batch * samples as u64) as f64;
            }
            Order::PingPong { bytes, pause_ns, dummy_ns, samples, .. } => {
                let round_trip_ns = 2.0 * self.end_ns(bytes);
                let own_ns = self.send_ns + self.receive_ns;
                let whole_ns = round_trip_ns.max(own_ns + dummy_ns as f64);
                for _ in 0..samples {
                    let waited_ns = whole_ns - self.send_ns - dummy_ns as f64;
                    let (send_ns, whole_ns) = (self.send_ns, whole_ns);
                    answer.extend([self.noisy(send_ns), self.noisy(waited_ns), self.noisy(whole_ns)]);
                }
                self.used_ns += (whole_ns + pause_ns as f64) * (samples + 1) as f64;
            }
            Order::Flows { .. } => answer.resize(order.answer_len(), 1),
        }
        Ok(answer)
    }
}
