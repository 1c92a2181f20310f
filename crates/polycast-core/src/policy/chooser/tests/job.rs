//! The ranks of a job, whose exchanges are answered by a world.

use super::super::*;
use crate::algorithm::Registry;
use crate::network::Network;
use crate::policy::Passing;
use crate::policy::trials::{Ledger, Recalled};
use crate::policy::{Call, CommunicatorShape, Rules, Table};

/// What the ranks of a job find when they try something.
#[derive(Clone, Debug)]
pub struct World {
    pub table: Table,
    /// What the table leaves to the MPI has challengers.
    pub challenges: bool,
    pub sums: ServedSums,
    pub of_sums: Table,
    pub shape: CommunicatorShape,
    pub learning: Learning,
    pub has_number: bool,
    pub has_memory: bool,
    /// Multicast works when it is tried for the first time, the second, …; then as the last time.
    pub multicast: Vec<bool>,
    /// Looks at multicast until it dies.
    pub looks: u32,
    pub network: Network,
    /// Exchanges so far.
    pub exchanges: usize,
    pub tries: usize,
    pub is_asked: bool,
}

impl World {
    pub fn policy(&self, network: Option<Network>) -> Arc<Policy> {
        let shape = CommunicatorShape { network, ..self.shape };
        Arc::new(Policy::new(self.rules(), shape))
    }

    pub fn rules(&self) -> Rules<'_> {
        let rules = Rules::new(&[], None, &self.table, None).with_challengers(self.challenges);
        rules.with_sums(Some(self.sums), &self.of_sums)
    }

    fn answer(&mut self, exchange: RankExchange, ranks: &[Rank], request: &Request) -> Answer {
        self.exchanges += 1;
        let trials = || Ledger::default().resumed(&Ledger::default().words_for_others());
        match exchange {
            RankExchange::Open(opening) => {
                self.is_asked |= opening.asks;
                let policy = self.policy((self.is_asked).then_some(self.network));
                let CommunicatorShape { ranks, nodes, .. } = self.shape;
                Answer::Opened(if opening.asks && !opening.wants_number(&policy) {
                    Opened::NotWanted { policy }
                } else if self.has_number {
                    Opened::Number(Numbered {
                        policy,
                        ranks,
                        shares_nodes: nodes < ranks,
                        has_multicast: false,
                        trials: opening.hears.then(trials),
                    })
                } else {
                    Opened::Refused
                })
            }
            RankExchange::Multicast => {
                let works = self.multicast[self.tries.min(self.multicast.len() - 1)];
                self.tries += 1;
                Answer::Multicast(if works && self.shape.nodes > 1 { Ok(()) } else { Err(Again::Later) })
            }
            RankExchange::Look => {
                self.looks = self.looks.saturating_sub(1);
                Answer::Look { has_died: self.looks == 0 }
            }
            RankExchange::Memory => Answer::Memory(self.has_memory),
            RankExchange::Sum => {
                let mut sums = [0; crate::policy::trials::SUMS];
                for rank in ranks.iter().filter(|rank| !rank.has_failed) {
                    sums.iter_mut().zip(rank.chooser.times()).for_each(|(sum, time)| *sum += time);
                }
                Answer::Sums(Box::new(sums))
            }
            RankExchange::Hear => Answer::Heard { trials: trials(), measured: Vec::new() },
            RankExchange::Measure => {
                let capabilities = ranks.iter().find(|rank| !rank.has_failed).unwrap().chooser.capabilities();
                let Call { collective, bytes, .. } = request.call;
                let of = Sameness::tuned(collective, bytes.0, capabilities);
                let way = Registry::BUILT_IN.samples(collective).first().copied().map(Choice::Algorithm);
                let found = way.filter(|_| bytes.0 % 3 != 0).map(|way| {
                    let times = vec![(way, 10), (Choice::Stock, 20)];
                    Recalled { of, times, arm: (bytes.0 % 2) as u8, until_calls: 256 }
                });
                Answer::Measured { of, found }
            }
        }
    }
}

/// One rank's chooser, with what its door does by itself.
#[derive(Clone, Debug)]
pub struct Rank {
    pub chooser: Chooser,
    pub number: u32,
    /// The door asks about each call.
    pub asks_always: bool,
    /// What the door leaves by itself, and the calls that it has counted.
    pub passing: [Passing; 8],
    pub counts: [u64; 8],
    pub has_failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    Left,
    Served(Chosen),
}

impl Rank {
    /// True if the door leaves the call by itself.
    fn passes(&mut self, request: &Request) -> bool {
        let Call { collective, bytes, .. } = request.call;
        if self.asks_always || request.when != Waiting::Waited {
            return false;
        }
        self.passing[collective as usize].passes(bytes.0, &mut self.counts[collective as usize])
    }

    /// Tells the chooser of the calls that were counted, as before everything that changes it.
    fn count_passed(&mut self) {
        self.chooser.passed(std::mem::take(&mut self.counts).iter().sum());
    }

    fn next(&mut self, request: &Request) -> WhoServes {
        self.count_passed();
        self.chooser.next(request)
    }
}

#[derive(Clone, Debug)]
pub struct Job {
    pub world: World,
    pub ranks: Vec<Rank>,
    /// The exchange, from 0, that fails on this rank.
    pub failure: Option<(usize, usize)>,
    pub chance: fastrand::Rng,
}

impl Job {
    pub fn new(world: World, count: u32, longest: Option<LongestCalls>, kinds: &[(bool, bool)]) -> Job {
        Job::after([0; 8], world, count, longest, kinds)
    }

    /// A job whose doors have left so many calls before the communicator was attached.
    pub fn after(
        earlier_calls: [u64; 8],
        world: World,
        count: u32,
        longest: Option<LongestCalls>,
        kinds: &[(bool, bool)],
    ) -> Job {
        let rank = |number: u32| {
            let (is_read, asks_always) = kinds[number as usize % kinds.len()];
            let (policy, longest) = (world.policy(None), longest.clone());
            let chooser = Chooser::new(policy, world.learning, longest, earlier_calls, is_read);
            let passing = chooser.passing();
            Rank { chooser, number, asks_always, passing, counts: [0; 8], has_failed: false }
        };
        let ranks = (0..count).map(rank).collect();
        Job { world, ranks, failure: None, chance: fastrand::Rng::with_seed(7) }
    }

    /// One call; what becomes of it on all ranks that have not failed.
    pub fn call(&mut self, request: Request) -> Option<Outcome> {
        let on = |rank: &Rank| Request { is_root: rank.number == 0, ..request };
        let mut outcomes: Vec<Option<Outcome>> =
            self.ranks.iter_mut().map(|rank| rank.passes(&on(rank)).then_some(Outcome::Left)).collect();
        while outcomes.contains(&None) {
            let mut wanted: Option<RankExchange> = None;
            for (rank, outcome) in self.ranks.iter_mut().zip(&mut outcomes).filter(|(_, of)| of.is_none()) {
                let next = rank.next(&on(rank));
                let (sample, of) = match next {
                    WhoServes::Leave { sample, .. } => (sample, Outcome::Left),
                    WhoServes::Serve { chosen, sample, .. } => (sample, Outcome::Served(chosen)),
                    WhoServes::Broken => {
                        assert!(rank.has_failed, "only what has failed is broken");
                        *outcome = Some(Outcome::Left);
                        continue;
                    }
                    WhoServes::First(exchange) => {
                        assert_ne!(request.when, Waiting::Ahead, "invariant 3");
                        assert!(!rank.has_failed, "invariant 4");
                        assert_eq!(*wanted.get_or_insert(exchange), exchange, "invariant 1");
                        continue;
                    }
                };
                let is_sum_ahead = request.when == Waiting::Ahead && request.call.is_sum;
                let passes = is_sum_ahead
                    || rank.chooser.policy().leaves(&request.call)
                    || rank.chooser.limited(&on(rank)).is_some();
                assert!(!rank.has_failed || passes, "invariant 4: {next:?}");
                if let (Waiting::Ahead, Outcome::Served(chosen)) = (request.when, of) {
                    let has_tried = rank.chooser.clone().provides(chosen.choice.needs());
                    assert!(
                        matches!(has_tried, Ok(true) | Err(RankExchange::Look)),
                        "invariant 3: {chosen:?}"
                    );
                }
                if let Some(sample) = sample {
                    rank.chooser.took(sample, 1000 + self.chance.u64(0..20_000));
                }
                *outcome = Some(of);
            }
            let Some(exchange) = wanted else { break };
            let all_wait = self.ranks.iter().zip(&outcomes).all(|(rank, of)| rank.has_failed || of.is_none());
            assert!(all_wait, "invariants 1 and 2: all ranks come to {exchange:?}");
            let fails = self.failure.filter(|(_, at)| *at == self.world.exchanges);
            let mut world = self.world.clone();
            let answers: Vec<Answer> = (0..self.ranks.len())
                .map(|_| {
                    world = self.world.clone();
                    world.answer(exchange, &self.ranks, &request)
                })
                .collect();
            self.world = world;
            let mut found = Vec::new();
            for ((at, rank), answer) in self.ranks.iter_mut().enumerate().zip(answers) {
                if fails.is_some_and(|(failing, _)| failing == at) {
                    rank.chooser.fail();
                    rank.has_failed = true;
                } else if !rank.has_failed {
                    found.push(rank.chooser.heard(answer));
                    rank.chooser.spent(exchange, self.chance.u64(0..50_000));
                }
            }
            assert!(found.windows(2).all(|two| two[0] == two[1]), "invariant 1: {found:?}");
        }
        for rank in self.ranks.iter_mut().filter(|rank| rank.counts == [0; 8]) {
            rank.passing = rank.chooser.passing();
        }
        let right = self.ranks.iter().zip(outcomes).filter(|(rank, _)| !rank.has_failed);
        let right: Vec<Outcome> = right.filter_map(|(_, outcome)| outcome).collect();
        assert!(right.windows(2).all(|two| two[0] == two[1]), "invariant 1: {right:?} for {request:?}");
        right.first().copied()
    }

    /// What each rank knows in the end must be the same, whoever asked and whoever counted.
    pub fn assert_all_know_the_same(&mut self) {
        let mut known = Vec::new();
        for rank in self.ranks.iter_mut().filter(|rank| !rank.has_failed) {
            rank.count_passed();
            rank.chooser.add_up();
            let mut ledger = Ledger::default();
            rank.chooser.trials_mut().into_iter().for_each(|trials| ledger.learn(trials));
            known.push((format!("{:?}", rank.chooser.counts), ledger.words_for_others()));
        }
        assert!(known.windows(2).all(|two| two[0] == two[1]), "invariant 2: {known:?}");
    }
}
