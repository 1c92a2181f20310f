use polycast_core::executor::Limits;
use polycast_core::schedule::Schedule;
use polycast_core::topology::Paths;
use polycast_core::tree::Site;
use polycast_core::units::Rank;

use crate::buffers::{Buffers, Combine, Data};
use crate::engine::Engine;
use crate::network::Network;

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The time from the first rank's start to the last rank's end.
    pub completion_ns: u64,
    /// The time at which each rank was done, in virtual time.
    pub per_rank_ns: Vec<u64>,
    /// Messages over all ranks, signals included.
    pub messages: u64,
    /// The most memory that messages took, at the rank where it was most, because they came before their receive
    /// was posted.
    pub peak_unexpected_bytes: u64,
    /// Every rank's output, if data was carried.
    pub delivered: Option<Vec<Vec<u8>>>,
}

/// The error that nothing happens any more, but some ranks are not done: the schedules are not
/// correct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The ranks that are not done.
    pub ranks: Vec<Rank>,
}

impl std::fmt::Display for Stuck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let first = self.ranks.first().copied().unwrap_or(Rank(0));
        write!(f, "{} ranks never finish, the first is rank {first}", self.ranks.len())
    }
}

impl std::error::Error for Stuck {}

/// Any collective in virtual time: one schedule for each rank.
pub struct Schedules<S> {
    network: Network,
    schedules: Vec<S>,
    limits: Limits,
    starts_ns: Vec<u64>,
    data: Option<(Vec<Buffers>, Combine)>,
    is_by_rank: bool,
    paths: Option<Paths>,
}

impl<S: Schedule> Schedules<S> {
    /// Schedules whose ranks all start at 0, with the executor's usual limits; only sizes travel.
    pub fn new(network: Network, schedules: Vec<S>) -> Self {
        let starts_ns = vec![0; schedules.len()];
        let limits = Limits::default();
        Schedules { network, schedules, limits, starts_ns, data: None, is_by_rank: false, paths: None }
    }

    /// Sets other limits for every rank's executor.
    pub fn limits(self, limits: Limits) -> Self {
        Schedules { limits, ..self }
    }

    /// Sets the time at which each rank calls the collective.
    pub fn starts(self, starts_ns: Vec<u64>) -> Self {
        Schedules { starts_ns, ..self }
    }

    /// Lets bytes travel: those in the ranks' `buffers`.
    pub fn carry(self, buffers: Vec<Buffers>, combine: Combine) -> Self {
        Schedules { data: Some((buffers, combine)), ..self }
    }

    /// Sends messages over these paths, and those of a host's ranks over its one link. Without them
    /// each rank has a host of its own, all on one switch.
    pub fn paths(self, paths: Paths) -> Self {
        Schedules { paths: Some(paths), ..self }
    }

    /// Orders messages that reach a port at the same time by their senders' ranks, as predictions
    /// do, and not by the times at which they were sent.
    pub fn by_rank(self) -> Self {
        Schedules { is_by_rank: true, ..self }
    }

    /// Runs the schedules. The same simulation always has the same outcome.
    pub fn run(self) -> Result<Outcome, Stuck> {
        let combine = self.data.as_ref().map(|(_, combine)| *combine);
        let data = self.data.map(|(buffers, _)| {
            let of = |(buffers, schedule): (Buffers, &S)| {
                let scratch = vec![0; schedule.scratch_bytes() as usize];
                Data([buffers.input, buffers.output, scratch])
            };
            buffers.into_iter().zip(&self.schedules).map(of).collect()
        });
        let flat = || Site::flat(self.schedules.len().max(1) as u32).paths().clone();
        let (network, paths) = (self.network, self.paths.unwrap_or_else(flat));
        let mut engine =
            Engine::new(network, paths, self.schedules, self.limits, &self.starts_ns, data, combine);
        engine.is_by_rank = self.is_by_rank;
        engine.run();
        let unfinished = (0..).map(Rank).zip(&engine.hosts).filter(|(_, host)| host.finished_ns.is_none());
        let ranks: Vec<Rank> = unfinished.map(|(rank, _)| rank).collect();
        if !ranks.is_empty() {
            return Err(Stuck { ranks });
        }
        let per_rank_ns: Vec<u64> = engine.hosts.iter().filter_map(|host| host.finished_ns).collect();
        let last_ns = per_rank_ns.iter().max().copied().unwrap_or(0);
        let first_ns = self.starts_ns.iter().min().copied().unwrap_or(0);
        let outputs = engine.hosts.iter_mut().map(|host| host.data.take().map(Data::into_output));
        Ok(Outcome {
            completion_ns: last_ns - first_ns,
            per_rank_ns,
            delivered: outputs.collect(),
            messages: engine.messages,
            peak_unexpected_bytes: engine.hosts.iter().map(|h| h.peak_unexpected_bytes).max().unwrap_or(0),
        })
    }
}
