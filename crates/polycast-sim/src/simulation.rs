use polycast_core::algorithm::Algorithm;
use polycast_core::algorithm::broadcast::Planner;
use polycast_core::collective::Call;
use polycast_core::cost::MAX_STEPS;
use polycast_core::executor::Limits;
use polycast_core::schedule::{Contract, Schedule};
use polycast_core::tree::Site;
use polycast_core::units::Rank;

use crate::buffers::Buffers;
use crate::filled;
use crate::network::Network;
use crate::schedules::{Outcome, Schedules, Stuck};

/// A call to be run in virtual time.
#[derive(Clone, Debug)]
pub struct Simulation {
    network: Network,
    call: Call,
    algorithm: Algorithm,
    site: Option<Site>,
    limits: Limits,
    starts_ns: Vec<u64>,
    data: Option<Vec<u8>>,
}

/// Why a call does not do what MPI promises, as far as can be seen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// More steps than can be followed.
    #[error("expected at most {MAX_STEPS} steps of all ranks, which can be followed")]
    TooLong,
    /// The error that some ranks are not done.
    #[error(transparent)]
    Stuck(#[from] Stuck),
    /// The error that this rank has something else than it should.
    #[error("rank {0} ends with wrong data")]
    Data(Rank),
}

impl Simulation {
    /// A simulation in which all ranks start at 0, with the executor's usual limits; only sizes
    /// travel.
    pub fn new(network: Network, call: Call, algorithm: Algorithm) -> Self {
        let starts_ns = vec![0; call.ranks as usize];
        Simulation { network, call, algorithm, site: None, limits: Limits::default(), starts_ns, data: None }
    }

    /// Places the ranks at a site: algorithms that know the network go by it, and messages go over
    /// its links. Without a site each rank is on a host of its own, all on one switch.
    ///
    /// # Panics
    /// When it runs, if the site has another number of ranks than the call.
    pub fn site(mut self, site: Site) -> Self {
        self.site = Some(site);
        self
    }

    /// Sets other limits for every rank's executor.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Lets `rank` make the call at this time.
    pub fn start(mut self, rank: Rank, at_ns: u64) -> Self {
        self.starts_ns[rank.index()] = at_ns;
        self
    }

    /// Lets the root broadcast `data` instead of just a number of bytes; its length replaces that
    /// of the call.
    pub fn carry(mut self, data: Vec<u8>) -> Self {
        self.call.bytes.0 = data.len() as u64;
        self.data = Some(data);
        self
    }

    /// Runs the call. The same simulation always has the same outcome.
    pub fn run(self) -> Result<Outcome, Stuck> {
        let call = self.call;
        let mut planner = Planner::new(self.site.unwrap_or_else(|| Site::flat(call.ranks)));
        let schedule = |rank| self.algorithm.schedule(call, Rank(rank), &mut planner);
        let schedules = (0..call.ranks).map(schedule).collect();
        let run = Schedules::new(self.network, schedules).paths(planner.site().paths().clone());
        let run = run.limits(self.limits).starts(self.starts_ns);
        let Some(data) = self.data else { return run.run() };
        let empty = Buffers { input: Vec::new(), output: vec![0; data.len()] };
        let mut buffers = vec![empty; call.ranks as usize];
        buffers[call.root.index()].output = data;
        run.carry(buffers, |_, _| {}).run()
    }

    /// Runs a call of any collective with data of its own, which all ranks must end with as MPI promises. Where it combines, elements have a
    /// multiple of 8 bytes.
    pub fn run_checked(self) -> Result<Outcome, Wrong> {
        let contract = Contract { call: self.call };
        let ranks = || (0..self.call.ranks).map(Rank);
        let mut planner = Planner::new(self.site.unwrap_or_else(|| Site::flat(self.call.ranks)));
        let mut left = MAX_STEPS;
        // Those of thousands of ranks take gigabytes: no more are made once there are too many steps.
        let counted = ranks().map(|rank| {
            let schedule = self.algorithm.schedule(self.call, rank, &mut planner);
            left = left.checked_sub(schedule.lanes().iter().map(|lane| lane.steps).sum())?;
            Some(schedule)
        });
        let schedules = counted.collect::<Option<_>>().ok_or(Wrong::TooLong)?;
        let run = Schedules::new(self.network, schedules).paths(planner.site().paths().clone());
        let run = run.limits(self.limits).starts(self.starts_ns);
        let buffers = ranks().map(|rank| filled::before(&contract, rank)).collect();
        let outcome = run.carry(buffers, filled::add).run()?;
        let mut outputs = ranks().zip(outcome.delivered.iter().flatten());
        match outputs.find(|(rank, output)| !filled::is_right(&contract, *rank, output)) {
            Some((rank, _)) => Err(Wrong::Data(rank)),
            None => Ok(outcome),
        }
    }
}
