//! A job in virtual time: the chooser of production decides each call, and the cluster says how
//! long the call takes.

use std::collections::HashMap;
use std::sync::Arc;

use polycast_core::policy::chooser::{
    Again, Answer, Chooser, Learning, Numbered, Opened, RankExchange, Request, Waiting, WhoServes,
};
use polycast_core::policy::trials::{Ledger, SUMS};
use polycast_core::policy::tune::candidates;
use polycast_core::policy::{Call, Capabilities, Choice, Collective, Policy, Rules, Table};
use polycast_core::units::Bytes;

use super::clusters::{Cluster, chance};

/// Sizes of calls, as they are counted for each collective.
pub const SIZES: [u64; 6] = [8, 256, 4 << 10, 32 << 10, 256 << 10, 1 << 20];

/// What became of the calls of a collective of one size.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub collective: Collective,
    pub bytes: u64,
    /// The way in the end, and the best there is.
    pub way: Choice,
    pub best: Choice,
    /// Nanoseconds of a call by the MPI, by the way in the end, and by the best.
    pub mpi_ns: f64,
    pub way_ns: f64,
    pub best_ns: f64,
    /// Nanoseconds of all calls, and of as many by the MPI.
    pub took_ns: f64,
    pub mpi_took_ns: f64,
    /// Nanoseconds by which calls that were tried took longer than the MPI's.
    pub tried_ns: f64,
    /// True if ways were still compared in the end: more could not be afforded in so many calls.
    pub is_open: bool,
}

impl Outcome {
    pub fn regret(&self) -> f64 {
        self.way_ns / self.best_ns
    }
}

/// A job of so many calls of each collective and size on a cluster.
pub fn run(cluster: Cluster, shipped: &Table, calls: usize) -> Vec<Outcome> {
    let mut job = Job::new(cluster, shipped);
    let mut outcomes = Vec::new();
    for collective in Collective::ALL {
        let sizes = if collective == Collective::Barrier { &[0][..] } else { &SIZES };
        let mut of_sizes: Vec<Outcome> = sizes.iter().map(|bytes| job.begin(collective, *bytes)).collect();
        for _ in 0..calls {
            for outcome in &mut of_sizes {
                job.call(outcome);
            }
        }
        for mut outcome in of_sizes {
            (outcome.way, outcome.is_open) = job.chooser.expected(collective, Bytes(outcome.bytes), 0);
            outcome.way_ns = job.truth(outcome.way, collective, outcome.bytes);
            outcomes.push(outcome);
        }
    }
    outcomes
}

struct Job<'a> {
    cluster: Cluster,
    shipped: &'a Table,
    chooser: Chooser,
    known: HashMap<(Collective, u64, Choice), f64>,
    calls: u64,
}

impl<'a> Job<'a> {
    fn new(cluster: Cluster, shipped: &'a Table) -> Job<'a> {
        let policy = policy(cluster, shipped, false);
        let learning = Learning { tries: true, tunes: false };
        let chooser = Chooser::new(policy, learning, None, [0; Collective::ALL.len()], false);
        Job { cluster, shipped, chooser, known: HashMap::new(), calls: 0 }
    }

    fn truth(&mut self, way: Choice, collective: Collective, bytes: u64) -> f64 {
        let cluster = self.cluster;
        let truth = || cluster.truth_ns(way, collective, bytes.max(1));
        *self.known.entry((collective, bytes, way)).or_insert_with(truth)
    }

    fn begin(&mut self, collective: Collective, bytes: u64) -> Outcome {
        let there = match self.cluster.has_multicast {
            true => Capabilities::ALL,
            false => Capabilities::ALL.without(Capabilities::MULTICAST),
        };
        let ways = candidates(collective, self.cluster.shape(true), bytes.max(1), there);
        let times = ways.into_iter().map(|way| (way, self.truth(way, collective, bytes)));
        let (best, best_ns) = times.min_by(|one, other| one.1.total_cmp(&other.1)).unwrap();
        let mpi_ns = self.truth(Choice::Stock, collective, bytes);
        let (way, way_ns) = (Choice::Stock, mpi_ns);
        let [took_ns, mpi_took_ns, tried_ns] = [0.0; 3];
        let is_open = true;
        Outcome {
            collective,
            bytes,
            way,
            best,
            mpi_ns,
            way_ns,
            best_ns,
            took_ns,
            mpi_took_ns,
            tried_ns,
            is_open,
        }
    }

    fn call(&mut self, outcome: &mut Outcome) {
        let call = Call::new(outcome.collective, Bytes(outcome.bytes));
        let request = Request {
            call,
            // Who times such calls.
            is_root: matches!(outcome.collective, Collective::Gather | Collective::Reduce),
            may_be_compared: true,
            is_ordered: false,
            is_own: false,
            when: Waiting::Waited,
        };
        let (way, sample, why) = loop {
            match self.chooser.next(&request) {
                WhoServes::First(exchange) => {
                    let (answer, nanos) = self.answer(exchange);
                    self.chooser.heard(answer);
                    self.chooser.spent(exchange, nanos);
                    outcome.took_ns += nanos as f64;
                }
                WhoServes::Leave { sample, why } => break (Choice::Stock, sample, why),
                WhoServes::Serve { chosen, sample, why } => break (chosen.choice, sample, why),
                WhoServes::Broken => unreachable!("nothing fails"),
            }
        };
        self.calls += 1;
        let noise = self.noise();
        let (ns, mpi_ns) = (self.truth(way, call.collective, call.bytes.0) * noise, outcome.mpi_ns * noise);
        if let Some(sample) = sample {
            self.chooser.took(sample, ns as u64);
        }
        if why == Some(polycast_core::policy::chooser::Why::Compared) {
            outcome.tried_ns += ns - mpi_ns;
        }
        outcome.took_ns += ns;
        outcome.mpi_took_ns += mpi_ns;
    }

    /// The factor by which this call takes longer than it might: ranks come late, and now and then
    /// something else runs.
    fn noise(&self) -> f64 {
        let draw = |which| chance(&[self.calls, which, self.cluster.mbit, self.cluster.per_node.into()]);
        let usual = 1.0 + self.cluster.noise_percent as f64 / 100.0 * draw(1) * draw(2);
        if draw(3) < 0.005 { usual * (1.0 + 5.0 * draw(4)) } else { usual }
    }

    /// What the ranks learn, and how long that takes in nanoseconds.
    fn answer(&self, exchange: RankExchange) -> (Answer, u64) {
        let Cluster { nodes, per_node, has_multicast, .. } = self.cluster;
        let trials = || Ledger::default().resumed(&Ledger::default().words_for_others());
        let of_sum = self.cluster.truth_ns(Choice::Stock, Collective::Allreduce, 8 * SUMS as u64) as u64;
        match exchange {
            RankExchange::Open(opening) => {
                let policy = policy(self.cluster, self.shipped, true);
                let asked = if nodes > 1 { 3_000_000 } else { 0 };
                let opened = match opening.wants_number(&policy) {
                    false => Opened::NotWanted { policy },
                    true => Opened::Number(Numbered {
                        policy,
                        ranks: 1,
                        shares_nodes: per_node > 1,
                        has_multicast: false,
                        trials: opening.hears.then(trials),
                    }),
                };
                (Answer::Opened(opened), asked + of_sum)
            }
            RankExchange::Multicast if has_multicast && nodes > 1 => (Answer::Multicast(Ok(())), 5_000_000),
            RankExchange::Multicast => (Answer::Multicast(Err(Again::Never)), 1_000_000_000),
            RankExchange::Look => (Answer::Look { has_died: false }, 0),
            RankExchange::Memory => (Answer::Memory(true), 1_000_000),
            RankExchange::Sum => (Answer::Sums(Box::new(self.chooser.times())), of_sum),
            RankExchange::Hear => (Answer::Heard { trials: trials(), measured: Vec::new() }, of_sum),
            RankExchange::Measure => unreachable!("nothing is tuned"),
        }
    }
}

fn policy(cluster: Cluster, shipped: &Table, is_asked: bool) -> Arc<Policy> {
    let rules = Rules::new(&[], None, shipped, None).with_challengers(true);
    Arc::new(Policy::new(rules, cluster.shape(is_asked)))
}
