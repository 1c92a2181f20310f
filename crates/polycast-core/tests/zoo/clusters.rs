//! The clusters of the zoo: shapes, networks and MPIs that people have, and in what they differ
//! from what a prediction assumes.

use polycast_core::network::Network;
use polycast_core::policy::challengers::Costs;
use polycast_core::policy::{Choice, Collective, CommunicatorShape};
use polycast_core::units::{Nanos, Rate};

/// The MPI below, by the rules that are published of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    OpenMpi,
    Mpich,
}

#[derive(Clone, Copy, Debug)]
pub struct Cluster {
    pub nodes: u32,
    pub per_node: u32,
    pub mbit: u64,
    pub latency_us: u64,
    pub has_multicast: bool,
    pub ranks_per_processor: u32,
    pub switches: u32,
    pub below: Below,
    /// Percent by which calls vary, and by which ranks come late.
    pub noise_percent: u64,
    /// Another number is another cluster of the same kind: other costs, other ways that are better
    /// or worse than their work.
    pub variety: u64,
}

const fn cluster(nodes: u32, per_node: u32, mbit: u64, latency_us: u64, below: Below) -> Cluster {
    Cluster {
        nodes,
        per_node,
        mbit,
        latency_us,
        has_multicast: mbit <= 10_000,
        ranks_per_processor: 1,
        switches: 1,
        below,
        noise_percent: 10,
        variety: 0,
    }
}

use Below::{Mpich, OpenMpi};

/// From boards in a classroom to clouds.
pub const ZOO: [Cluster; 26] = [
    Cluster { noise_percent: 40, ..cluster(16, 1, 20, 200, OpenMpi) },
    cluster(4, 4, 100, 80, OpenMpi),
    cluster(8, 1, 100, 80, Mpich),
    cluster(16, 1, 100, 80, OpenMpi),
    cluster(28, 1, 100, 80, Mpich),
    Cluster { switches: 2, ..cluster(12, 2, 100, 80, OpenMpi) },
    cluster(3, 3, 200, 60, Mpich),
    cluster(6, 3, 200, 60, OpenMpi),
    cluster(2, 16, 1000, 50, OpenMpi),
    cluster(3, 8, 1000, 50, Mpich),
    Cluster { ranks_per_processor: 2, noise_percent: 60, ..cluster(4, 4, 1000, 50, OpenMpi) },
    cluster(5, 1, 1000, 50, OpenMpi),
    Cluster { has_multicast: false, ..cluster(8, 16, 1000, 50, Mpich) },
    Cluster { switches: 3, ..cluster(32, 1, 1000, 50, OpenMpi) },
    cluster(2, 64, 10_000, 25, OpenMpi),
    cluster(5, 3, 10_000, 25, Mpich),
    cluster(16, 32, 10_000, 25, OpenMpi),
    cluster(64, 64, 10_000, 25, OpenMpi),
    Cluster { noise_percent: 30, ..cluster(2, 36, 25_000, 30, OpenMpi) },
    cluster(8, 36, 25_000, 30, Mpich),
    cluster(64, 64, 25_000, 20, OpenMpi),
    cluster(256, 1, 25_000, 20, Mpich),
    cluster(32, 48, 100_000, 15, Mpich),
    cluster(64, 64, 100_000, 15, OpenMpi),
    cluster(1, 20, 0, 0, OpenMpi),
    Cluster { noise_percent: 30, ..cluster(1, 64, 0, 0, Mpich) },
];

/// A number that looks random, from 0 to 1, of some words.
pub fn chance(words: &[u64]) -> f64 {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for word in words {
        state = (state ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^= state >> 31;
    }
    (state >> 11) as f64 / (1u64 << 53) as f64
}

impl Cluster {
    pub fn name(&self) -> String {
        let Cluster { nodes, per_node, mbit, below, .. } = self;
        let network = if *nodes == 1 { "one node".to_owned() } else { format!("{mbit} Mb/s") };
        format!("{nodes} x {per_node}, {network}, {below:?}")
    }

    /// The shape, as a job finds it out: rates and latencies fall into classes.
    pub fn shape(&self, is_asked: bool) -> CommunicatorShape {
        let shape = CommunicatorShape::new(self.nodes * self.per_node, self.nodes, None).unwrap();
        let shape = shape.on_processors(self.ranks_per_processor).on_switches(self.switches).unwrap();
        let network = Network {
            rate: Rate::from_bits_per_second(class(self.mbit * 940_000)),
            latency: Some(Nanos(class(self.latency_us * 1000))),
            multicast_rate: None,
        };
        if self.nodes > 1 && is_asked { shape.on_network(network) } else { shape }
    }

    fn seed(&self) -> [u64; 3] {
        [self.nodes.into(), self.per_node.into(), self.mbit ^ self.variety << 32]
    }

    /// What work costs in truth.
    fn costs(&self) -> Costs {
        let [nodes, per_node, mbit] = self.seed();
        let vary = |which: u64, factor: f64| {
            factor.powf(2.0 * chance(&[nodes, per_node, mbit, which, self.below as u64]) - 1.0)
        };
        let turns = f64::from(self.ranks_per_processor - 1);
        let byte = if self.nodes > 1 { 8000.0 / (self.mbit as f64 * 0.94) } else { 0.0 };
        Costs {
            latency: self.latency_us as f64 * 1000.0 * vary(1, 1.3),
            byte: byte * vary(2, 1.1),
            multicast_byte: (byte * 1.05).max(0.7 * vary(3, 1.5)),
            message: 2000.0 * vary(4, 3.0),
            line: 500.0 * vary(5, 3.0) + turns * 5000.0,
            copied: 0.15 * vary(6, 2.0) * (1.0 + f64::from(self.per_node) / 16.0),
        }
    }

    /// How long a call takes in truth, in nanoseconds: by its work, and by what the way is in
    /// itself.
    pub fn truth_ns(&self, way: Choice, collective: Collective, bytes: u64) -> f64 {
        let (algorithm, kind) = match way {
            Choice::Stock => (self.below_by_rule(collective, bytes), 7),
            Choice::Algorithm(algorithm) => {
                let name = format!("{} {}", algorithm.entry.name, algorithm.entry.is_on_two_levels());
                (algorithm, name.bytes().fold(0, |all: u64, byte| all.wrapping_mul(31) + u64::from(byte)))
            }
        };
        let ns = self.costs().call_ns(&algorithm, collective, self.shape(true), bytes);
        let [nodes, per_node, mbit] = self.seed();
        let by_itself = 1.4f64.powf(2.0 * chance(&[nodes, per_node, mbit, kind, collective as u64]) - 1.0);
        // What a call costs in software, whoever serves it.
        (ns.unwrap_or(f64::INFINITY) + 300.0) * by_itself
    }

    fn below_by_rule(&self, collective: Collective, bytes: u64) -> polycast_core::algorithm::Algorithm {
        let shape = self.shape(false);
        let name = match self.below {
            OpenMpi => super::below::open_mpi(collective, shape.ranks, bytes),
            Mpich => super::below::mpich(collective, shape, bytes),
        };
        match Choice::read(collective, &name) {
            Ok(Choice::Algorithm(algorithm)) => algorithm,
            other => panic!("{name} for {collective}: {other:?}"),
        }
    }
}

/// The nearest of 1, 2, 5, 10 …, as jobs round what they measure.
fn class(value: u64) -> u64 {
    let decades = (0..13).map(|power| 10u64.pow(power));
    let classes = decades.flat_map(|decade| [1, 2, 5].map(|digit| decade * digit));
    let distance = |class: &u64| (*class as f64 / value.max(1) as f64).ln().abs();
    classes.min_by(|one, other| distance(one).total_cmp(&distance(other))).unwrap()
}
