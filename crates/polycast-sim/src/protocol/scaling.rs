use polycast_core::algorithm::Algorithm;
use polycast_core::collective::Call;
use polycast_core::units::{Bytes, Nanos, Rank};
use polycast_protocol::Multicast;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::faults::{Arrivals, Delay, Faults, Late};
use super::outcome::Failure;
use super::scenario::{Broadcast, Communicator, Hardware, Scenario};
use super::simulator::Simulator;
use crate::network::Network;
use crate::simulation::Simulation;

/// How the time of a broadcast grows with the number of nodes: multicast with losses, beside a tree without.
#[derive(Clone, Debug)]
pub struct Scaling {
    /// Length of the message.
    pub bytes: u64,
    /// Probability that one receiver misses one datagram.
    pub loss: f64,
    /// How many are measured for each form and number of nodes.
    pub broadcasts: u32,
    /// For the losses.
    pub seed: u64,
}

/// Completion, from the call of all to the last node's return, over many broadcasts.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// `multicast-push`, `binomial`.
    pub algorithm: String,
    /// How many nodes.
    pub nodes: u32,
    /// Half of the broadcasts took no longer.
    pub median_us: f64,
    /// On average.
    pub mean_us: f64,
    /// Half of the 95 % confidence interval around the mean.
    pub interval_us: f64,
    /// One of a hundred took longer.
    pub percentile_99_us: f64,
    /// How many were measured.
    pub broadcasts: usize,
}

/// From port to port, in a cluster on gigabit Ethernet with one or two switches.
const LATENCY: Nanos = Nanos::from_micros(25);
/// What an Ethernet packet of 1500 bytes leaves for the payload.
const PAYLOAD_BYTES: u32 = 1440;
/// Long enough that a broadcast is over, with all its repairs, when the next one begins.
const PERIOD: Nanos = Nanos::from_micros(50_000);
/// A run's share.
const BROADCASTS_AT_ONCE: u32 = 25;

impl Scaling {
    /// A multicast broadcast with losses.
    pub fn multicast(&self, spec: Multicast, nodes: u32) -> Result<Completion, Failure> {
        let runs = (0..self.broadcasts.div_ceil(BROADCASTS_AT_ONCE)).into_par_iter();
        let run = |run: u32| {
            let count = BROADCASTS_AT_ONCE.min(self.broadcasts - run * BROADCASTS_AT_ONCE);
            let outcome = Simulator::for_measuring().run(&self.scenario(spec, nodes, run, count))?;
            let took = outcome.broadcasts.iter().map(|timing| timing.completion().0 as f64 / 1000.0);
            Ok(took.collect::<Vec<f64>>())
        };
        let took: Vec<Vec<f64>> = runs.map(run).collect::<Result<_, Failure>>()?;
        Ok(Completion::of(Algorithm::from(spec).to_string(), nodes, took.concat()))
    }

    fn scenario(&self, spec: Multicast, nodes: u32, run: u32, count: u32) -> Scenario {
        let broadcast = Broadcast { spec, root: 0, bytes: self.bytes };
        let broadcasts = vec![broadcast; count as usize];
        Scenario {
            seed: self.seed.wrapping_add(u64::from(run)),
            nodes,
            payload_bytes: PAYLOAD_BYTES,
            batch_datagrams: 44,
            bits_per_second: None,
            communicators: vec![Communicator { first_operation: u64::from(run) << 32, broadcasts }],
            is_concurrent: false,
            hardware: Hardware::gigabit(),
            faults: Faults {
                loss: self.loss,
                multicast_delay: Delay::constant(LATENCY),
                message_delay: Delay::constant(LATENCY),
                arrivals: Arrivals { period: PERIOD, late: Late::Nobody },
                ..Faults::default()
            },
        }
    }

    /// A tree over a network of the same parameters that loses nothing.
    pub fn tree(&self, algorithm: Algorithm, nodes: u32) -> Completion {
        let hardware = Hardware::gigabit();
        let packets = self.bytes.div_ceil(hardware.packet_bytes as u64);
        let framing = 1.0 + (packets * hardware.frame_bytes) as f64 / self.bytes as f64;
        let network = Network {
            latency_ns: LATENCY.0,
            send_overhead_ns: hardware.send_overhead.0,
            receive_overhead_ns: hardware.receive_overhead.0,
            rendezvous_threshold: Some(64 << 10),
            ..Network::bare(hardware.ns_per_byte * framing)
        };
        let call = Call::broadcast(nodes, Rank(0), Bytes(self.bytes));
        let outcome = Simulation::new(network, call, algorithm).run();
        let took = outcome.map_or(f64::NAN, |outcome| outcome.completion_ns as f64 / 1000.0);
        Completion::of(algorithm.to_string(), nodes, vec![took])
    }
}

impl Completion {
    fn of(algorithm: String, nodes: u32, mut took_us: Vec<f64>) -> Completion {
        took_us.sort_by(f64::total_cmp);
        let count = took_us.len();
        let at = |part: f64| took_us[((count - 1) as f64 * part).round() as usize];
        let mean_us = took_us.iter().sum::<f64>() / count as f64;
        let squares = took_us.iter().map(|us| (us - mean_us).powi(2)).sum::<f64>();
        let variance_of_mean = squares / (count.max(2) - 1) as f64 / count as f64;
        Completion {
            algorithm,
            nodes,
            median_us: at(0.5),
            mean_us,
            interval_us: 1.96 * variance_of_mean.sqrt(),
            percentile_99_us: at(0.99),
            broadcasts: count,
        }
    }
}
