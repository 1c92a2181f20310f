//! One message size between two ranks: streams and round trips until their times are known well, or the time is up.

use crate::jobs::{MAX_SAMPLES, Order, RankServer, RankServerError};

use super::estimate::Estimate;

/// The width of an interval, as a fraction of its median, that is narrow enough.
const NARROW_ENOUGH: f64 = 0.02;

/// The least time of a batch of a stream, in ns. It is long against what a token bucket of 64 KiB
/// gives away at 1 Gb/s (0.5 ms), and against the turns that ranks on one processor take.
const BATCH_NS: f64 = 20e6;

/// The most messages of a batch: where messages are short, as many as in the paper (Patarasuk et al. 2008, §4.2).
const MAX_BATCH: u64 = 100_000;

/// The most bytes of a batch: MPI libraries take short messages of a sender that runs ahead into memory without limit.
const MAX_BATCH_BYTES: u64 = 2 << 20;

/// The part of a stream that is not measured, as a fraction of the part that is.
const WARM_UP: f64 = 0.25;

/// The longest time of an order for round trips, in ns, unless the fewest round trips take longer.
const CHUNK_NS: f64 = 150e6;

/// The samples that must do where time is short.
const FEWEST_SAMPLES: usize = 4;

/// The measured times for one size, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// The message size.
    pub bytes: u64,
    /// The time from one arrival of a stream to the next, by the receiver's clock.
    pub gap: Estimate,
    /// The time from the call of the send to the return of the receive, after a pause.
    pub round_trip: Estimate,
    /// The send call of a round trip.
    pub send_call: Estimate,
    /// The receive call when the message is there already.
    pub receive_call: Estimate,
    /// The time of a round trip with a computation in its middle, beyond that computation, which is
    /// longer than the wait would be.
    pub busy: Estimate,
}

impl Figures {
    /// Returns the least time that measuring this size takes, in ns.
    pub fn least_time_ns(&self) -> f64 {
        let samples = FEWEST_SAMPLES as f64;
        let stream = self.gap.ns * (1.0 + WARM_UP) * samples;
        let round_trip = self.round_trip.ns + self.gap.ns;
        stream + round_trip * (samples + 3.0) + (round_trip + self.round_trip.ns) * (samples + 1.0)
    }
}

/// The measurement of a pair of ranks at one message size.
pub struct Size<'a> {
    /// The ranks that obey.
    pub server: &'a mut dyn RankServer,
    /// The rank that sends, and the rank that receives.
    pub pair: (usize, usize),
    /// The message size.
    pub bytes: u64,
    /// The time for each of the three measurements, in ns. The fewest samples are taken also if
    /// they need longer.
    pub limit_ns: f64,
}

impl Size<'_> {
    /// Measures.
    pub fn measure(mut self) -> Result<Figures, RankServerError> {
        let gap = self.gap()?;
        // A link with a token bucket has it full again after this pause, as it is when a broadcast begins.
        let pause_ns = gap.ns as u64;
        let at_once = self.round_trips(pause_ns, 0)?;
        let round_trip = at_once.estimate(|trip| trip.whole_ns);
        // Longer than any wait, so that the message is there when it is asked for.
        let dummy_ns = (round_trip.high * 1.05) as u64 + 20_000;
        let late = self.round_trips(pause_ns, dummy_ns)?;
        Ok(Figures {
            bytes: self.bytes,
            gap,
            round_trip,
            send_call: at_once.estimate(|trip| trip.send_ns),
            receive_call: late.estimate(|trip| trip.receive_ns),
            busy: late.estimate(|trip| trip.whole_ns - dummy_ns as f64),
        })
    }

    /// The time per message of a long stream. The sender's clock would not do: its calls return when a message is in some
    /// buffer, and buffers hold seconds of a slow link; over a stream that is long against them both clocks agree.
    fn gap(&mut self) -> Result<Estimate, RankServerError> {
        let mut batch = 1;
        let largest = (MAX_BATCH_BYTES / self.bytes.max(1)).clamp(1, MAX_BATCH);
        loop {
            let probe = self.arrivals(1, batch, FEWEST_SAMPLES)?;
            let batch_ns = Estimate::of(&probe).map_or(0.0, |probe| probe.ns * batch as f64);
            if batch_ns >= BATCH_NS || batch == largest {
                break;
            }
            let wanted = BATCH_NS / (batch_ns / batch as f64).max(1.0);
            batch = (wanted.ceil() as u64).clamp(batch + 1, batch * 32).min(largest);
        }
        let mut samples = Vec::new();
        let mut used_ns = 0.0;
        let mut wanted = FEWEST_SAMPLES;
        loop {
            let warm_up = ((batch * wanted as u64) as f64 * WARM_UP).ceil() as u64;
            let more = self.arrivals(warm_up, batch, wanted)?;
            let batch_ns = more.iter().sum::<f64>() / more.len() as f64 * batch as f64;
            used_ns += batch_ns * more.len() as f64 * (1.0 + WARM_UP);
            samples.extend(more);
            let estimate = Estimate::of(&samples).unwrap_or_else(nothing);
            let left = (self.limit_ns - used_ns) / (batch_ns * (1.0 + WARM_UP));
            if estimate.is_narrow(NARROW_ENOUGH) || left < FEWEST_SAMPLES as f64 {
                return Ok(estimate);
            }
            wanted = (left as usize).clamp(FEWEST_SAMPLES, 24);
        }
    }

    /// The receiver's times per message, by batch.
    fn arrivals(&mut self, warm_up: u64, batch: u64, samples: usize) -> Result<Vec<f64>, RankServerError> {
        let order = Order::Stream { pair: self.pair, bytes: self.bytes, warm_up, batch, samples };
        let times = self.server.carry_out(&order)?;
        Ok(times[samples..].iter().map(|ns| *ns as f64 / batch as f64).collect())
    }

    fn round_trips(&mut self, pause_ns: u64, dummy_ns: u64) -> Result<Trips, RankServerError> {
        let mut trips = Trips::default();
        let mut used_ns = 0.0;
        let mut wanted = 2;
        loop {
            let order =
                Order::PingPong { pair: self.pair, bytes: self.bytes, pause_ns, dummy_ns, samples: wanted };
            trips.add(&self.server.carry_out(&order)?);
            let whole = trips.estimate(|trip| trip.whole_ns);
            let trip_ns = whole.ns + pause_ns as f64;
            // The server does one round trip more than it reports.
            used_ns += trip_ns * (wanted + 1) as f64;
            let left = (self.limit_ns - used_ns) / trip_ns;
            // Beside a long computation the calls are what is to be known.
            let beyond = Estimate { ns: whole.ns - dummy_ns as f64, ..whole };
            let is_known = beyond.is_narrow(NARROW_ENOUGH);
            if is_known || (left < 2.0 && trips.0.len() >= FEWEST_SAMPLES) {
                return Ok(trips);
            }
            wanted =
                (CHUNK_NS.min(self.limit_ns - used_ns) / trip_ns).clamp(2.0, MAX_SAMPLES as f64) as usize;
        }
    }
}

fn nothing() -> Estimate {
    Estimate { ns: 0.0, low: 0.0, high: 0.0, samples: 0 }
}

struct Trip {
    send_ns: f64,
    receive_ns: f64,
    whole_ns: f64,
}

#[derive(Default)]
struct Trips(Vec<Trip>);

impl Trips {
    fn add(&mut self, answer: &[i64]) {
        self.0.extend(answer.chunks_exact(3).map(|times| Trip {
            send_ns: times[0] as f64,
            receive_ns: times[1] as f64,
            whole_ns: times[2] as f64,
        }));
    }

    fn estimate(&self, of: impl Fn(&Trip) -> f64) -> Estimate {
        Estimate::of(&self.0.iter().map(of).collect::<Vec<_>>()).unwrap_or_else(nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::formula::Formula;

    fn measure(server: &mut Formula, bytes: u64) -> Figures {
        Size { server, pair: (0, 1), bytes, limit_ns: 1e9 }.measure().unwrap()
    }

    #[test]
    fn a_network_that_is_a_formula_is_measured_exactly() {
        let mut network = Formula::default();
        for bytes in [1, 1000, 65_536] {
            let (figures, truth) = (measure(&mut network, bytes), network.clone());
            let close = |estimate: Estimate, ns: f64| {
                assert!((estimate.ns / ns - 1.0).abs() < 0.01, "{bytes}: {estimate:?}, expected {ns}");
            };
            close(figures.gap, truth.gap_ns(bytes));
            close(figures.round_trip, 2.0 * truth.end_ns(bytes));
            close(figures.send_call, truth.send_ns);
            close(figures.receive_call, truth.receive_ns);
            close(figures.busy, truth.send_ns + truth.receive_ns);
        }
    }

    #[test]
    fn time_is_used_where_the_samples_scatter_and_only_there() {
        let mut steady = Formula::default();
        measure(&mut steady, 1000);
        let mut noisy = Formula { noise: 0.5, ..Formula::default() };
        measure(&mut noisy, 1000);
        assert!(steady.used_ns < 1.2e9, "{}", steady.used_ns);
        assert!((2e9..5e9).contains(&noisy.used_ns), "{}", noisy.used_ns);
    }

    #[test]
    fn long_messages_get_the_fewest_samples() {
        let mut network = Formula::default();
        let figures = measure(&mut network, 8 << 20);
        assert_eq!(figures.gap.samples, FEWEST_SAMPLES);
        assert_eq!(figures.round_trip.samples, FEWEST_SAMPLES);
        let least = figures.least_time_ns();
        assert!((0.7..1.5).contains(&(network.used_ns / least)), "{} for {least}", network.used_ns);
    }
}
