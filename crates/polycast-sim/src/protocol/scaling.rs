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

/// A study of how the time of a broadcast grows with the number of nodes: multicast with losses,
/// beside a tree without.
#[derive(Clone, Debug)]
pub struct Scaling {
    /// Length of the message.
    pub bytes: u64,
    /// Probability that one receiver misses one datagram.
    pub loss: f64,
    /// The number of broadcasts that are measured for each form and number of nodes.
    pub broadcasts: u32,
    /// The seed of the losses.
    pub seed: u64,
    /// The cluster that is simulated.
    pub cluster: Cluster,
}

/// Nodes on one switch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cluster {
    /// The nodes' processors and ports.
    pub hardware: Hardware,
    /// The time from port to port.
    pub latency: Nanos,
    /// The bytes that a packet leaves for a fragment.
    pub payload_bytes: u32,
}

impl Cluster {
    /// Gigabit Ethernet with one or two switches; what an Ethernet packet of 1500 bytes leaves.
    pub fn gigabit() -> Cluster {
        Cluster { hardware: Hardware::gigabit(), latency: Nanos::from_micros(25), payload_bytes: 1440 }
    }

    /// Fast Ethernet of 2006; see [`Hardware::fast_ethernet`].
    pub fn fast_ethernet() -> Cluster {
        Cluster { hardware: Hardware::fast_ethernet(), latency: Nanos::from_micros(75), payload_bytes: 1440 }
    }

    /// InfiniBand of 2006; see [`Hardware::infiniband`].
    pub fn infiniband() -> Cluster {
        Cluster { hardware: Hardware::infiniband(), latency: Nanos(3_000), payload_bytes: 1980 }
    }

    /// Ethernet of 10 Gb/s with a kernel's TCP on present processors: o = 3 µs, L = 8 µs, of the order of such clusters.
    pub fn ten_gigabit() -> Cluster {
        Cluster::ethernet(0.8, Nanos(3_000), Nanos(8_000))
    }

    /// Ethernet of 25 Gb/s, as [`Cluster::ten_gigabit`] else: o = 2 µs, L = 6 µs.
    pub fn twenty_five_gigabit() -> Cluster {
        Cluster::ethernet(0.32, Nanos(2_000), Nanos(6_000))
    }

    /// Ethernet of 100 Gb/s, as [`Cluster::ten_gigabit`] else: o = 1.5 µs, L = 4 µs.
    pub fn hundred_gigabit() -> Cluster {
        Cluster::ethernet(0.08, Nanos(1_500), Nanos(4_000))
    }

    fn ethernet(ns_per_byte: f64, overhead: Nanos, latency: Nanos) -> Cluster {
        let hardware = Hardware {
            send_overhead: overhead,
            receive_overhead: overhead,
            ns_per_byte,
            ..Hardware::gigabit()
        };
        Cluster { hardware, latency, ..Cluster::gigabit() }
    }

    /// The network of this cluster for schedules of messages, of which nothing is lost.
    pub fn network(&self) -> Network {
        let hardware = self.hardware;
        Network {
            latency_ns: self.latency.0,
            ns_per_byte: hardware.ns_per_byte,
            packet_bytes: hardware.packet_bytes as u64,
            frame_bytes: hardware.frame_bytes,
            send_overhead_ns: hardware.send_overhead.0,
            receive_overhead_ns: hardware.receive_overhead.0,
            ..Network::ethernet(1e9)
        }
    }
}

/// The completion of broadcasts, from the call of all to the last node's return, over many of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The algorithm's name, such as `multicast-push` or `binomial`.
    pub algorithm: String,
    /// The number of nodes.
    pub nodes: u32,
    /// The median, in microseconds.
    pub median_us: f64,
    /// The mean, in microseconds.
    pub mean_us: f64,
    /// Half of the 95 % confidence interval around the mean, in microseconds.
    pub interval_us: f64,
    /// The 99th percentile, in microseconds: a hundredth of the broadcasts took longer.
    pub percentile_99_us: f64,
    /// The number of broadcasts that were measured.
    pub broadcasts: usize,
    /// The times of single nodes.
    pub of_nodes: OfNodes,
}

/// The times from the call of all to the return of single nodes, the root left out of all but
/// `each_us`; means over all broadcasts.
#[derive(Clone, Debug, PartialEq)]
pub struct OfNodes {
    /// The time of the node that returned first, in microseconds.
    pub least_us: f64,
    /// The median of the nodes' times, in microseconds.
    pub median_us: f64,
    /// The time of the node that returned last, in microseconds.
    pub most_us: f64,
    /// The time of each node, from the root on, which is the first; in microseconds.
    pub each_us: Vec<f64>,
}

/// The time between the calls of two broadcasts: long enough that most are over, with all their
/// repairs, when the next one begins; see [`Simulator::run_apart`].
const PERIOD: Nanos = Nanos::from_micros(50_000);
/// The number of broadcasts that one run simulates.
const BROADCASTS_AT_ONCE: u32 = 25;

impl Scaling {
    /// Measures a multicast broadcast with losses.
    pub fn multicast(&self, spec: Multicast, nodes: u32) -> Result<Completion, Failure> {
        let runs = (0..self.broadcasts.div_ceil(BROADCASTS_AT_ONCE)).into_par_iter();
        let run = |run: u32| {
            let count = BROADCASTS_AT_ONCE.min(self.broadcasts - run * BROADCASTS_AT_ONCE);
            let outcome = Simulator::for_measuring().run_apart(self.scenario(spec, nodes, run, count))?;
            let after = |call: Nanos, returned: &Nanos| (*returned - call).0 as f64 / 1000.0;
            let took = outcome.broadcasts.iter().map(|timing| {
                timing.returned.iter().map(|returned| after(timing.first_call, returned)).collect()
            });
            Ok(took.collect::<Vec<Vec<f64>>>())
        };
        let took: Vec<Vec<Vec<f64>>> = runs.map(run).collect::<Result<_, Failure>>()?;
        Ok(Completion::of(Algorithm::from(spec).to_string(), nodes, took.concat()))
    }

    fn scenario(&self, spec: Multicast, nodes: u32, run: u32, count: u32) -> Scenario {
        let broadcast = Broadcast { spec, root: 0, bytes: self.bytes };
        let broadcasts = vec![broadcast; count as usize];
        Scenario {
            seed: self.seed.wrapping_add(u64::from(run)),
            nodes,
            payload_bytes: self.cluster.payload_bytes,
            batch_datagrams: 44,
            bits_per_second: None,
            communicators: vec![Communicator { first_operation: u64::from(run) << 32, broadcasts }],
            is_concurrent: false,
            hardware: self.cluster.hardware,
            faults: Faults {
                loss: self.loss,
                multicast_delay: Delay::constant(self.cluster.latency),
                message_delay: Delay::constant(self.cluster.latency),
                arrivals: Arrivals { period: PERIOD, late: Late::Nobody },
                ..Faults::default()
            },
        }
    }

    /// Measures a tree over a network of the same parameters that loses nothing.
    pub fn tree(&self, algorithm: Algorithm, nodes: u32) -> Completion {
        let call = Call::broadcast(nodes, Rank(0), Bytes(self.bytes));
        let outcome = Simulation::new(self.cluster.network(), call, algorithm).run();
        let took = outcome.map_or_else(
            |_| vec![f64::NAN; nodes as usize],
            |outcome| outcome.per_rank_ns.iter().map(|ns| *ns as f64 / 1000.0).collect(),
        );
        Completion::of(algorithm.to_string(), nodes, vec![took])
    }
}

impl Completion {
    /// The completion of broadcasts that took each node `took_us`; the outer list has the
    /// broadcasts.
    fn of(algorithm: String, nodes: u32, mut took_us: Vec<Vec<f64>>) -> Completion {
        let each_us = (0..nodes as usize).map(|node| mean(took_us.iter().map(|broadcast| broadcast[node])));
        let each_us = each_us.collect();
        let root_us: Vec<f64> = took_us.iter_mut().map(|broadcast| broadcast.remove(0)).collect();
        took_us.iter_mut().for_each(|broadcast| broadcast.sort_by(f64::total_cmp));
        let ranked = |part: f64| mean(took_us.iter().map(|broadcast| at(broadcast, part)));
        let of_nodes =
            OfNodes { least_us: ranked(0.0), median_us: ranked(0.5), most_us: ranked(1.0), each_us };
        let last_us = took_us.iter().map(|broadcast| at(broadcast, 1.0));
        let mut took_us: Vec<f64> = last_us.zip(root_us).map(|(last, root)| last.max(root)).collect();
        took_us.sort_by(f64::total_cmp);
        let count = took_us.len();
        let mean_us = mean(took_us.iter().copied());
        let squares = took_us.iter().map(|us| (us - mean_us).powi(2)).sum::<f64>();
        let variance_of_mean = squares / (count.max(2) - 1) as f64 / count as f64;
        Completion {
            algorithm,
            nodes,
            median_us: at(&took_us, 0.5),
            mean_us,
            interval_us: 1.96 * variance_of_mean.sqrt(),
            percentile_99_us: at(&took_us, 0.99),
            broadcasts: count,
            of_nodes,
        }
    }
}

fn at(sorted: &[f64], part: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::super::root_sync::RootSyncTrial;
    use super::*;
    use polycast_protocol::{Form, RootSync};

    /// Broadcasts that take longer than the period do not begin before the one before has ended.
    #[test]
    fn long_broadcasts_take_as_long_whatever_their_number() {
        let spec = "multicast-push".parse::<Algorithm>().unwrap().multicast().unwrap();
        let of = |broadcasts| {
            let cluster = Cluster::fast_ethernet();
            let scaling = Scaling { bytes: 1 << 20, loss: 0.0, broadcasts, seed: 0, cluster };
            scaling.multicast(spec, 2).unwrap().mean_us
        };
        // Some have more of their datagrams behind messages than others.
        let (two, ten) = (of(2), of(10));
        assert!((two / ten - 1.0).abs() < 0.1, "{two} {ten}");
        let trial =
            RootSyncTrial { nodes: 2, bytes: 4 << 20, receive_buffer_bytes: 1 << 20, broadcasts: 2, seed: 0 };
        let all = trial.run(Form::Push, RootSync::None, &Late::Nobody).unwrap();
        assert!((all.completion_us - all.after_last_call_us).abs() < 1.0, "{all:?}");
    }
}
