//! Experiments: one kind of traffic on several random placements, for as long as the mean latency is not known well enough
//! (Nupairoj 1998, §6.4).

use rayon::prelude::*;

use super::record::Trace;
use super::workload::{Counts, Load, Mean, Traffic, Workload};
use super::{Letter, Machine, NodeSettings, Switching, Topology};

/// An experiment: what is simulated, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Experiment {
    /// The network.
    pub topology: Topology,
    /// The network's routers.
    pub switching: Switching,
    /// The network's nodes.
    pub nodes: NodeSettings,
    /// The nodes' traffic; each placement has a seed of its own, from this one on.
    pub traffic: Traffic,
    /// The effort: for how long to simulate.
    pub effort: Effort,
}

/// The effort of an experiment: how well a mean is to be known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Random placements.
    pub placements: u32,
    /// Multicasts of each group before anything is counted.
    pub discarded: usize,
    /// The fewest multicasts of each group that are counted in each placement.
    pub least: usize,
    /// The most multicasts of each group that are counted in each placement.
    pub most: usize,
    /// The standard error of a placement's mean, in parts of it, that is enough.
    pub relative_error: f64,
    /// Units of time after which two multicasts that are counted are enough, and half of which is enough to discard.
    pub time: u64,
}

impl Effort {
    /// The effort of the published method: 50 multicasts discarded, a standard error of 2.5 %.
    pub const FULL: Effort =
        Effort { placements: 8, discarded: 50, least: 50, most: 2000, relative_error: 0.025, time: u64::MAX };
    /// The effort of a look: within some 10 %.
    pub const QUICK: Effort =
        Effort { placements: 4, discarded: 3, least: 6, most: 12, relative_error: 0.1, time: 1_500_000 };
}

/// The results of one experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The time from the call to the last receipt: the mean of the placements' means, in units of
    /// time.
    pub latency: f64,
    /// Half of the 95 % interval of that mean, by Student's t over the placements; infinite for one placement.
    pub interval: f64,
    /// The latency of each group: the same mean, over its multicasts only.
    pub groups: Vec<f64>,
    /// The latency if no message waited for another, over the same ways.
    pub bound: f64,
    /// Bytes that background nodes received in a unit of time, in parts of what all channels into nodes can carry.
    pub accepted: f64,
    /// The standard error of `accepted`: messages come at random, and their sizes are uniform.
    pub accepted_error: f64,
    /// The bytes that background nodes would send in a unit of time if nothing kept them from it,
    /// in the same parts as `accepted`.
    pub offered: f64,
    /// The mean `t_hold` of background messages.
    pub hold: f64,
    /// The mean `t_end` of background messages.
    pub end: f64,
    /// The mean `t_sq` of the messages of roots.
    pub root_queue: f64,
    /// The mean `t_cont` of a multicast's message.
    pub delayed: f64,
    /// The number of multicasts that were counted.
    pub multicasts: u64,
    /// True if every placement's mean is known well enough.
    pub is_exact: bool,
    /// The number of flits times the channels that each crossed.
    pub flit_hops: u64,
}

impl Measured {
    /// True if the background cannot send what it would, beyond what chance explains: more load
    /// than this changes little.
    pub fn is_saturated(&self) -> bool {
        self.accepted + 3.0 * self.accepted_error < 0.95 * self.offered
    }

    /// The part of the latency that is due to messages that wait for each other (§5.4.2).
    pub fn contention_rate(&self) -> f64 {
        (self.latency - self.bound) / self.latency
    }
}

struct Placement {
    latencies: Vec<Mean>,
    bound: f64,
    accepted: f64,
    counts: Counts,
    is_exact: bool,
    flit_hops: u64,
}

impl Experiment {
    /// The mean time that background nodes compute, so that they offer `load`, in parts of what all channels into nodes can
    /// carry; `None` if they could not even without computing.
    pub fn mean_compute(&self, load: f64) -> Option<f64> {
        let cycle = self.bytes_of_background() / (load * self.capacity());
        let mean = cycle - self.busy();
        (mean >= 0.0).then_some(mean)
    }

    /// Bytes that all channels into nodes carry in a unit of time.
    fn capacity(&self) -> f64 {
        f64::from(self.topology.nodes()) / self.nodes.costs.network.per_byte.max(1) as f64
    }

    /// Bytes that all background nodes send, if each sends one message.
    fn bytes_of_background(&self) -> f64 {
        let background = self.topology.nodes() - self.traffic.groups * self.traffic.group_nodes;
        f64::from(background) * self.traffic.mean_bytes as f64
    }

    /// The time for which a message occupies its two processors, in units of time.
    fn busy(&self) -> f64 {
        let costs = self.nodes.costs;
        (costs.hold.of(self.traffic.mean_bytes) + costs.receive.of(self.traffic.mean_bytes)) as f64
    }

    /// Runs the experiment, placements in parallel.
    pub fn run(&self) -> Measured {
        let seeds: Vec<u64> = (0..u64::from(self.effort.placements)).collect();
        let placements: Vec<Placement> = seeds.into_par_iter().map(|number| self.place(number)).collect();
        let over = |value: &dyn Fn(&Placement) -> f64| {
            let mut mean = Mean::default();
            placements.iter().for_each(|placement| mean.add(value(placement)));
            mean
        };
        let latency_of = |placement: &Placement| {
            placement.latencies.iter().map(Mean::mean).sum::<f64>() / placement.latencies.len() as f64
        };
        let latency = over(&latency_of);
        let counted = |value: &dyn Fn(&Counts) -> f64| over(&|placement| value(&placement.counts)).mean();
        let accepted = over(&|placement| placement.accepted).mean();
        let offered = self.traffic.background.map_or(0.0, |background| {
            self.bytes_of_background() / (background.mean_compute + self.busy()) / self.capacity()
        });
        let messages: u64 = placements.iter().map(|placement| placement.counts.end.count()).sum();
        Measured {
            latency: latency.mean(),
            interval: latency.standard_error() * students_t(latency.count()),
            groups: (0..self.traffic.groups as usize)
                .map(|group| over(&|placement| placement.latencies[group].mean()).mean())
                .collect(),
            bound: over(&|placement| placement.bound).mean(),
            accepted,
            // Where chance kept all away, it explains that.
            accepted_error: match messages {
                0 => offered,
                _ => accepted * (4.0 / 3.0 / messages as f64).sqrt(),
            },
            offered,
            hold: counted(&|counts| counts.hold.mean()),
            end: counted(&|counts| counts.end.mean()),
            root_queue: counted(&|counts| counts.root_queue.mean()),
            delayed: counted(&|counts| counts.delayed.mean()),
            multicasts: placements.iter().flat_map(|it| &it.latencies).map(Mean::count).sum(),
            is_exact: placements.iter().all(|placement| placement.is_exact),
            flit_hops: placements.iter().map(|placement| placement.flit_hops).sum(),
        }
    }

    /// Traces the first multicast of the first group on the first placement after those that are
    /// discarded, message by message.
    pub fn trace(&self) -> Trace {
        let mut machine = self.machine(self.traffic);
        let wanted = self.effort().discarded as u64;
        machine.fabric().record();
        machine.program.letters = Some(Vec::new());
        let is_wanted = |letter: &Letter<Load>| matches!(letter.load, Load::Multicast { group: 0, number, .. } if number == wanted);
        let receivers = self.traffic.group_nodes as usize - 1;
        let mut letters: Vec<Letter<Load>> = Vec::new();
        while letters.len() < receivers && machine.step() {
            letters.extend(machine.program.letters.iter_mut().flat_map(std::mem::take).filter(is_wanted));
        }
        let called = letters.iter().map(|letter| letter.called).min().unwrap_or(0);
        let received = letters.iter().map(|letter| letter.received).max().unwrap_or(0);
        let mut record = machine.fabric().recorded();
        record.holds.retain(|hold| hold.until > called && hold.from < received);
        record.waits.retain(|wait| wait.until > called && wait.from < received);
        Trace { called, received, letters, record }
    }

    fn machine(&self, traffic: Traffic) -> Machine<Workload> {
        let switching = Switching { seed: traffic.seed, ..self.switching };
        let workload = Workload::new(traffic, self.topology, self.nodes.costs);
        Machine::new(self.topology, switching, self.nodes, workload)
    }

    fn place(&self, number: u64) -> Placement {
        let traffic = Traffic { seed: self.traffic.seed.wrapping_add(number), ..self.traffic };
        let mut machine = self.machine(traffic);
        let effort = self.effort();
        let groups = 0..traffic.groups;
        let mut complete = 0;
        let mut is_counting = false;
        let mut counted: Vec<(usize, Mean)> =
            groups.clone().map(|_| (effort.discarded, Mean::default())).collect();
        let mut is_exact = false;
        while machine.step() {
            let now: usize = groups.clone().map(|group| machine.program.latencies(group).len()).sum();
            if now == std::mem::replace(&mut complete, now) {
                continue;
            }
            let fewest =
                groups.clone().map(|group| machine.program.latencies(group).len()).min().unwrap_or(0);
            let is_long = machine.now() >= effort.time;
            if fewest < effort.discarded && !(is_counting || fewest > 0 && machine.now() >= effort.time / 2) {
                continue;
            }
            if !std::mem::replace(&mut is_counting, true) {
                machine.program.count_from(machine.now());
                for (group, (first, _)) in groups.clone().zip(&mut counted) {
                    *first = machine.program.latencies(group).len();
                }
            }
            for (group, (next, mean)) in groups.clone().zip(&mut counted) {
                let latencies = machine.program.latencies(group);
                latencies[*next..].iter().for_each(|latency| mean.add(*latency as f64));
                *next = latencies.len();
            }
            let is_known = |mean: &Mean| mean.standard_error() <= effort.relative_error * mean.mean();
            is_exact = counted.iter().all(|(_, mean)| is_known(mean));
            let fewest = counted.iter().map(|(_, mean)| mean.count()).min().unwrap_or(0) as usize;
            if fewest >= effort.most || (is_exact && fewest >= effort.least) || (is_long && fewest >= 2) {
                break;
            }
        }
        let time = (machine.now() - machine.program.counts.since).max(1) as f64;
        let flit_hops = machine.fabric().flit_hops();
        let flit_time = self.switching.flit_time;
        let router_delay = self.switching.router_delay;
        let bounds = groups.map(|group| {
            let way = |from, to| {
                let channels = u64::from(self.topology.distance(from, to));
                (channels - 1) * (flit_time + router_delay)
            };
            machine.program.multicast(group).latency(&self.nodes.costs, traffic.bytes, way) as f64
        });
        Placement {
            bound: bounds.sum::<f64>() / f64::from(traffic.groups),
            latencies: counted.into_iter().map(|(_, mean)| mean).collect(),
            accepted: machine.program.counts.background_bytes as f64 / time / self.capacity(),
            is_exact,
            flit_hops,
            counts: machine.program.counts,
        }
    }

    /// The effort that this traffic needs. Where nothing is drawn but the placement, the third
    /// multicast is like any later one: the first two show DYN-tree what messages take.
    fn effort(&self) -> Effort {
        let Traffic { background, local, interval, groups, .. } = self.traffic;
        if background.is_none() && local.is_none() && interval.is_none() && groups == 1 {
            Effort { discarded: 2, least: 2, most: 2, ..self.effort }
        } else {
            self.effort
        }
    }
}

/// The 97.5 % quantile of Student's t for the mean of `count` values.
fn students_t(count: u64) -> f64 {
    const QUANTILES: [f64; 16] = [
        f64::INFINITY,
        f64::INFINITY,
        12.706,
        4.303,
        3.182,
        2.776,
        2.571,
        2.447,
        2.365,
        2.306,
        2.262,
        2.228,
        2.201,
        2.179,
        2.160,
        2.145,
    ];
    QUANTILES.get(count as usize).copied().unwrap_or(if count < 31 { 2.131 } else { 2.042 })
}
