//! A cluster that is only numbers: what each way to serve a call takes there in virtual time, and what measuring it a few times shows.

use std::cell::RefCell;
use std::collections::HashMap;

use polycast_core::algorithm::Algorithm;
use polycast_core::algorithm::broadcast::Planner;
use polycast_core::collective::{Call, Collective};
use polycast_core::network;
use polycast_core::policy::tune::{Known, Measured, Task};
use polycast_core::policy::{Choice, CommunicatorShape};
use polycast_core::topology::Topology;
use polycast_core::tree::Site;
use polycast_core::units::{Bytes, Nanos, Rank};
use polycast_sim::{Network, Schedules};

/// The tuner's `--time`, the number of calls after which an interval is narrow enough, and the
/// times that starting the job and each task takes.
const TIME_US: f64 = 150e3;
const MOST_SAMPLES: f64 = 60.0;
const LAUNCH_US: f64 = 1e6;
const TASK_US: f64 = 2e5;

/// Hosts on a switch, and the MPI that they have.
pub struct Cluster {
    pub name: &'static str,
    pub network: Network,
    pub nodes: u32,
    pub ranks_per_node: u32,
    /// Times are off by about so much.
    pub noise: f64,
    /// The rate and the latency in ns that the tuner is told of the network; `None`: nothing.
    pub told: Option<(&'static str, u64)>,
    /// The bytes from which on the stock MPI cuts messages into segments of 8 KiB.
    pub stock_cuts_from: u64,
}

impl Cluster {
    pub fn shape(&self) -> CommunicatorShape {
        CommunicatorShape {
            ranks: self.nodes * self.ranks_per_node,
            nodes: self.nodes,
            ranks_per_node: self.ranks_per_node,
            ranks_per_processor: 1,
            switches: 1,
            are_parts: true,
            is_of_all: true,
            network: None,
        }
    }

    pub fn known(&self) -> Option<Known> {
        let (rate, latency_ns) = self.told?;
        let latency = Some(Nanos(latency_ns));
        let network = network::Network { rate: rate.parse().ok(), latency, multicast_rate: None };
        Known::assumed(self.shape(), network)
    }

    /// The algorithm of the stock MPI, chosen as MPI libraries do: trees for what is short, rings
    /// and chains for what is long.
    fn stock(&self, collective: Collective, bytes: u64) -> Algorithm {
        let is_long = bytes >= self.stock_cuts_from;
        let name = match (collective, is_long) {
            (Collective::Broadcast | Collective::Reduce, true) => "chain:segment=8KiB",
            (Collective::Broadcast | Collective::Reduce | Collective::Scatter | Collective::Gather, _) => {
                "binomial"
            }
            (Collective::Allgather, true) => "ring",
            (Collective::Allgather, false) => "bruck",
            (Collective::Alltoall, _) => "pairwise",
            (Collective::Barrier, _) => "dissemination",
            (Collective::Allreduce, true) => "ring",
            (Collective::Allreduce, false) => "recursive-doubling",
        };
        match Choice::read(collective, name) {
            Ok(Choice::Algorithm(algorithm)) => algorithm,
            other => panic!("{name}: {other:?}"),
        }
    }

    /// The time of a call; `None` if the choice cannot be simulated.
    pub fn truth_us(&self, choice: Choice, collective: Collective, block: u64) -> Option<f64> {
        let algorithm = match choice {
            Choice::Stock => self.stock(collective, block),
            Choice::Algorithm(algorithm) => algorithm,
        };
        if !algorithm.entry.has_schedules() {
            return None;
        }
        let ranks = self.shape().ranks;
        let call = Call::new(collective, ranks, Rank(0), Bytes(block));
        let hosts: Vec<String> = (0..ranks).map(|rank| format!("n{}", rank / self.ranks_per_node)).collect();
        let placed = Topology::flat((0..self.nodes).map(|node| format!("n{node}"))).place(&hosts);
        let mut planner = Planner::new(Site::new(&placed));
        let schedules = (0..ranks).map(|rank| algorithm.schedule(call, Rank(rank), &mut planner)).collect();
        let run = Schedules::new(self.network, schedules).run();
        let ns = run.unwrap_or_else(|stuck| panic!("{choice}: {stuck}")).completion_ns;
        // Calling takes time, too.
        Some(1.0 + ns as f64 / 1e3)
    }
}

/// Measures there, and counts the time.
pub struct Field<'a> {
    cluster: &'a Cluster,
    collective: Collective,
    truths: &'a RefCell<HashMap<(Choice, u64), Option<f64>>>,
    draw: u64,
    pub spent_us: f64,
    pub measured: usize,
}

impl<'a> Field<'a> {
    pub fn new(
        cluster: &'a Cluster,
        collective: Collective,
        truths: &'a RefCell<HashMap<(Choice, u64), Option<f64>>>,
        seed: u64,
    ) -> Field<'a> {
        Field { cluster, collective, truths, draw: seed, spent_us: LAUNCH_US, measured: 0 }
    }

    pub fn truth_us(&self, choice: Choice, block: u64) -> Option<f64> {
        let mut truths = self.truths.borrow_mut();
        *truths
            .entry((choice, block))
            .or_insert_with(|| self.cluster.truth_us(choice, self.collective, block))
    }

    fn uniform(&mut self) -> f64 {
        self.draw = self.draw.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.draw >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A call is off by a few percent, and now and then somebody has come between.
    fn once(&mut self, truth_us: f64) -> f64 {
        let spread: f64 = (0..4).map(|_| self.uniform() - 0.5).sum();
        let outlier = if self.uniform() < 0.03 { 1.0 + 2.0 * self.uniform() } else { 1.0 };
        truth_us * (1.0 + self.cluster.noise * spread) * outlier
    }

    /// Measures the ways by turns in one job, as `polycast bench` does: all have the same number of
    /// calls, however slow some are.
    pub fn measure(&mut self, task: &Task, block: u64) -> Vec<(Choice, Option<Measured>)> {
        let Task { ways, effort, least_us, .. } = task;
        let mut times = Vec::new();
        for some in ways.chunks(32) {
            let truths: Vec<_> = some.iter().map(|way| self.truth_us(*way, block)).collect();
            let cycle_us: f64 = truths.iter().flatten().sum();
            let each_us = (TIME_US * f64::from(effort.0)).max(*least_us);
            let budget_us = each_us * some.len() as f64;
            let samples = (budget_us / cycle_us).clamp(1.0, MOST_SAMPLES) as usize;
            self.spent_us += TASK_US + cycle_us * (1 + samples) as f64;
            self.measured += some.len();
            for (way, truth) in some.iter().zip(truths) {
                let of = truth.and_then(|us| Measured::of((0..samples).map(|_| self.once(us)).collect()));
                times.push((*way, of));
            }
        }
        times
    }
}
