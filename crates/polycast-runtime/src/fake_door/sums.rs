//! Sums of doubles, bit by bit: whatever serves them, they have the bits that the combinations of the tree have, one after the other.

use std::ffi::{c_int, c_void};
use std::num::NonZeroU64;
use std::ptr::{null, null_mut};

use polycast_core::algorithm::{Algorithm, Registry};
use polycast_core::collective::doubles::{self, contribution};
use polycast_core::collective::{Call, Collective, CombinationOrder, CombinationTree};
use polycast_core::policy::chooser::Chosen;
use polycast_core::policy::{Choice, Epoch};
use polycast_core::schedule::{Contract, Nodes};
use polycast_core::units::{Bytes, Rank};

use super::allocations::outside;
use super::collectives::{assert_nothing_is_left, barrier};
use super::job::{Job, Step};
use super::process::{Ended, Member};
use super::random::{Random, with_seeds};
use crate::abi::{CollectiveCall, Reduction};
use crate::call::Buffers;
use crate::interface::{SERVED, code, polycast_plan, polycast_plan_free, polycast_run};

const DOUBLE: NonZeroU64 = NonZeroU64::new(8).unwrap();
/// As the doors tell of sums of floating-point numbers.
const EXACT_OF_TWO: u32 = 2;

/// A reduction of doubles.
#[derive(Clone, Debug)]
pub struct DoubleSum {
    collective: Collective,
    root: u32,
    doubles: u64,
    is_in_place: bool,
    /// The way; `None`: what the settings say, which has to serve it.
    algorithm: Option<Algorithm>,
}

unsafe extern "C" fn add(_: *const Reduction, from: *const c_void, into: *mut c_void, bytes: usize) -> c_int {
    outside(|| {
        // SAFETY: as polycast.h says.
        let (left, right) = unsafe {
            (
                std::slice::from_raw_parts(from.cast::<u8>(), bytes),
                std::slice::from_raw_parts_mut(into.cast::<u8>(), bytes),
            )
        };
        doubles::add(left, right);
    });
    0
}

impl Member {
    /// One sum, of which this rank's result is looked at.
    pub fn double_sum(&mut self, sum: &DoubleSum, ranks: u32) -> Ended {
        self.attach();
        let bytes = Bytes(8 * sum.doubles);
        let plain = Call::new(sum.collective, ranks, Rank(sum.root), bytes);
        let (order, is_in_place) = (CombinationOrder::Tree, sum.is_in_place);
        let call = Call { element: DOUBLE, order, is_in_place, ..plain };
        let rank = Rank(self.rank);
        let own: Vec<u8> = (0..sum.doubles).flat_map(|at| contribution(rank, at).to_le_bytes()).collect();
        let contract = Contract { call };
        let mut output = vec![0xEE; contract.size(rank, polycast_core::schedule::Buffer::Output) as usize];
        let is_here = call.is_in_place_at(rank);
        if is_here {
            output.copy_from_slice(&own);
        }
        let reduction = Reduction {
            element_bytes: 8,
            is_commutative: 1,
            is_exact: EXACT_OF_TWO,
            is_own: 0,
            combine: add,
        };
        let (send, receive) = (if is_here { null() } else { own.as_ptr() }, output.as_mut_ptr());
        let is_told = sum.collective == Collective::Allreduce || rank == call.root;
        let receive = if is_told { receive } else { null_mut() };
        let (is_served, code) = match sum.algorithm {
            Some(algorithm) => {
                // SAFETY: the pointer comes from polycast_attach, and is not NULL where these are called.
                let communicator = unsafe { &mut *self.runtime };
                let choice = Choice::Algorithm(algorithm);
                let has_all = communicator.provides(choice.needs(), &barrier());
                assert!(matches!(has_all, Ok(true)), "nothing is refused: {has_all:?}");
                let chosen = Chosen { choice, epoch: Epoch::default(), is_ahead: false };
                let buffers = Buffers { input: send, output: receive, reduction: &raw const reduction };
                // SAFETY: the buffers are as long as the contract says.
                (true, code(unsafe { communicator.run(chosen, call, buffers) }))
            }
            None => {
                let wanted = CollectiveCall {
                    collective: sum.collective as u32,
                    root: sum.root as c_int,
                    bytes: bytes.0 as usize,
                    reduction: &raw const reduction,
                };
                let mut plan = null_mut();
                // SAFETY: the pointer comes from polycast_attach; the reduction outlives the plan, and buffers are as for the other way.
                unsafe {
                    match polycast_plan(self.runtime, &wanted, &mut plan) {
                        SERVED => {
                            let code = polycast_run(plan, send.cast(), receive.cast());
                            polycast_plan_free(plan);
                            (true, code)
                        }
                        _ => (false, 0),
                    }
                }
            }
        };
        let tree = CombinationTree::new(ranks);
        let expected =
            |at: u64| tree.evaluate(|rank| contribution(rank, at), |left, right| left + right).to_le_bytes();
        let has_data = !is_told || (0..).zip(output.as_chunks().0).all(|(at, found)| *found == expected(at));
        Ended { is_served, code, has_data }
    }
}

/// Hosts whose ranks are one after the other, as many on each or not, or in turn.
fn hosts(random: &mut Random, ranks: u32) -> Vec<u32> {
    let width = random.one_of(&[1, 2, 3, 4, 64]);
    match random.below(3) {
        0 => (0..ranks).map(|rank| rank % width).collect(),
        1 => (0..ranks).map(|_| random.below(u64::from(width)) as u32).collect(),
        _ => (0..ranks).map(|rank| rank / width).collect(),
    }
}

fn length(random: &mut Random, most: u64) -> u64 {
    let most = random.one_of(&[3, 64, most]);
    random.within(1, most)
}

fn run(mut job: Job, sums: &[DoubleSum]) {
    let free = job.program.pop();
    job.program.extend(sums.iter().cloned().map(Step::DoubleSum));
    job.program.extend(free);
    let outcome = job.run();
    for (rank, told) in outcome.ranks.iter().enumerate() {
        assert_eq!(told.calls, vec![Ended::SERVED_WELL; sums.len()], "rank {rank} of {job:?}");
    }
    assert_nothing_is_left(&outcome, &job);
}

fn any_sum(random: &mut Random, ranks: u32, most: u64) -> DoubleSum {
    DoubleSum {
        collective: random.one_of(&[Collective::Reduce, Collective::Allreduce]),
        root: random.below(u64::from(ranks)) as u32,
        doubles: length(random, most),
        is_in_place: random.one_in(3),
        algorithm: None,
    }
}

/// The ways that claim the order where the ranks are.
fn ways(collective: Collective, hosts: &[u32]) -> Vec<Algorithm> {
    let host_of: Vec<u64> = hosts.iter().copied().map(u64::from).collect();
    let ring: Vec<Rank> = (0..).map(Rank).take(hosts.len()).collect();
    let nodes = Nodes::new(&host_of, &ring, Rank(0));
    let mut all = Registry::BUILT_IN.samples(collective);
    if nodes.count() == 1 {
        all.extend(Registry::BUILT_IN.samples_on_one_node(collective));
    }
    all.retain(|algorithm| algorithm.keeps_on(&nodes) == CombinationOrder::Tree);
    all
}

fn every_way(seed: u64, ranks: u32, most: u64) {
    let random = &mut Random::new(seed);
    let mut job = Job::new(ranks, seed, "chain", &[]);
    job.conditions.hosts = hosts(random, ranks);
    job.conditions.eager_bytes = random.one_of(&[0, 1000, 1 << 20]);
    let mut sums = Vec::new();
    for collective in [Collective::Reduce, Collective::Allreduce] {
        for algorithm in ways(collective, &job.conditions.hosts) {
            let segment = NonZeroU64::new(random.one_of(&[0, 24, 1000, 16 << 10]));
            let segment = segment.filter(|_| algorithm.entry.has_parameter("segment"));
            let algorithm = Some(Algorithm { segment, ..algorithm });
            sums.push(DoubleSum { collective, algorithm, ..any_sum(random, ranks, most) });
        }
    }
    run(job, &sums);
}

#[test]
fn every_way_that_claims_it_has_the_bits_of_the_tree() {
    with_seeds(25, |seed| {
        let ranks = Random::new(seed).one_of(&[2, 3, 4, 5, 6, 7, 8, 9]);
        every_way(seed, ranks, 5000);
    });
    every_way(16, 16, 600);
    every_way(17, 17, 600);
}

/// By the tables, wherever the ranks are, from the first call on.
#[test]
fn all_sums_are_served_where_the_user_says_so() {
    with_seeds(40, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.one_of(&[3, 4, 5, 6, 7, 8, 9, 12]);
        let mut job = Job::new(ranks, seed, "chain", &[]).with(None, "POLYCAST_SUMS", "canonical");
        if random.one_in(4) {
            let rank = Some(random.below(u64::from(ranks)) as u32);
            job = job.with(rank, "POLYCAST_SHARED_MEMORY", "off");
        }
        if random.one_in(3) {
            job = job.with(None, "POLYCAST_ALLREDUCE", "ring").with(None, "POLYCAST_REDUCE", "stock");
        }
        job.conditions.hosts = hosts(random, ranks);
        let sums: Vec<DoubleSum> = (0..6).map(|_| any_sum(random, ranks, 5000)).collect();
        run(job, &sums);
    });
}

mod long {
    use super::*;

    #[test]
    #[ignore = "make test-all: megabytes through threads of which one runs at a time"]
    fn every_way_that_claims_it_has_the_bits_of_the_tree() {
        for (seed, ranks) in [(1, 3), (2, 4), (3, 7)] {
            every_way(seed, ranks, 2 << 20);
        }
        with_seeds(300, |seed| every_way(seed, Random::new(seed).within(2, 17) as u32, 5000));
    }
}
