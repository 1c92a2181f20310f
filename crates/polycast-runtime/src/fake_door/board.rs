//! The fabric of `operation/board.rs`: a board with letters, which all ranks of a job see. And what shows that a fabric needs no more:
//! all collectives over it, by the schedules of all algorithms.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

use polycast_core::algorithm::{Algorithm, Registry};
use polycast_core::collective::{Collective, CombinationOrder};

use super::collectives::{self, Called};
use super::job::{Job, Step};
use super::mail::Way;
use super::process::Ended;
use super::random::{Random, with_seeds};
use super::table::here;
use super::world::World;
use crate::fault::Point;

/// Who sends, who is to receive, and what tells a call's letters from others: on each address, letters stay in order.
pub type Address = Way;

/// What one rank sends to another.
#[derive(Debug, Default)]
pub struct Letter {
    /// The bytes of the sender's call, of a lane's first letter.
    pub total: u64,
    pub data: Vec<u8>,
}

/// The letters that nobody has taken.
#[derive(Debug, Default)]
pub struct Board {
    letters: Mutex<BTreeMap<Address, VecDeque<Letter>>>,
}

impl Board {
    fn change<R>(&self, change: impl FnOnce(&mut BTreeMap<Address, VecDeque<Letter>>) -> R) -> R {
        change(&mut self.letters.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many letters there are.
    pub fn letters(&self) -> usize {
        self.change(|letters| letters.values().map(VecDeque::len).sum())
    }
}

/// A rank's place before the board.
pub struct Place {
    world: Arc<World>,
    board: Arc<Board>,
    process: u32,
}

/// This thread's place, if its job has a board.
pub fn place_here() -> Option<Place> {
    let (world, process) = here()?;
    let board = world.conditions.board.clone()?;
    Some(Place { world, board, process })
}

impl Place {
    /// The address of letters from `peer` to this rank.
    pub fn address_from(&self, peer: u32, tag: c_int) -> Address {
        Way { from: peer, to: self.process, tag }
    }

    /// Puts a letter to `peer` on the board.
    pub fn post(&self, peer: u32, tag: c_int, letter: Letter) {
        self.world.stage.turn(self.process);
        let address = Way { from: self.process, to: peer, tag };
        self.board.change(|letters| letters.entry(address).or_default().push_back(letter));
        self.world.stage.moves();
    }

    /// Takes the first letter of an address.
    pub fn take(&self, address: Address) -> Option<Letter> {
        self.world.stage.turn(self.process);
        self.board.change(|letters| {
            let of_address = letters.get_mut(&address)?;
            let letter = of_address.pop_front();
            if of_address.is_empty() {
                letters.remove(&address);
            }
            letter
        })
    }
}

/// Calls in flight on ranks of one host, where nobody asks about the network, in a job that has a board; one in four by an algorithm that
/// goes another way.
fn job(random: &mut Random, seed: u64, ranks: u64, count: u64) -> (Job, Vec<Called>) {
    let (mut job, mut calls) = collectives::job(random, seed, ranks, count, false);
    for called in &mut calls {
        if random.one_in(4) {
            continue;
        }
        let mut all = Registry::BUILT_IN.samples(called.collective);
        all.retain(goes_over_board);
        called.algorithm = random.one_of(&all);
        called.order = if random.one_in(2) { called.algorithm.entry.keeps } else { CombinationOrder::Any };
    }
    job.conditions.board = Some(Arc::default());
    job.program[1] = Step::Collectives(calls.clone());
    job.program[2] = Step::Collectives(calls.clone());
    (job, calls)
}

fn goes_over_board(algorithm: &Algorithm) -> bool {
    let entry = algorithm.entry;
    entry.has_schedules() && !entry.shares_memory() && !entry.is_dynamic
}

#[test]
fn a_further_fabric_serves_all_collectives() {
    let counts = Collective::ALL.map(|_| std::cell::Cell::new(0));
    with_seeds(100, |seed| {
        let random = &mut Random::new(seed);
        let (ranks, count) = (random.within(2, 9), random.within(1, 4));
        let (job, calls) = job(random, seed, ranks, count);
        let outcome = job.run();
        for (rank, told) in outcome.ranks.iter().enumerate() {
            assert_eq!(told.calls, vec![Ended::SERVED_WELL; 2 * calls.len()], "rank {rank} of {job:?}");
        }
        let is_mine = |called: &&Called| goes_over_board(&called.algorithm);
        if calls.iter().all(|called| is_mine(&called)) {
            assert_eq!(outcome.messages, 0, "nothing goes through the MPI: {job:?}");
        }
        assert_eq!(outcome.letters, 0, "all letters are taken: {job:?}");
        for called in calls.iter().filter(is_mine) {
            let count = &counts[called.collective as usize];
            count.set(count.get() + 1);
        }
    });
    let is_met = counts.iter().all(|count| count.get() > 5);
    assert!(super::random::seeds(100).count() < 100 || is_met, "{counts:?}");
}

#[test]
fn sizes_that_differ_and_a_panic_end_one_call_over_it() {
    let panics = std::cell::Cell::new(0);
    with_seeds(80, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(2, 6);
        let rank = random.below(ranks) as u32;
        let (mut job, mut calls) = job(random, seed, ranks, 3);
        let wrong = random.below(3) as usize;
        let is_panic = random.one_in(2);
        if is_panic {
            job.panic = Some((rank, Point::Message, random.below(8) as u32));
        } else if !matches!(calls[wrong].collective, Collective::Barrier | Collective::Broadcast) {
            calls[wrong].bytes[rank as usize] += 2 * random.within(1, 6000);
        }
        job.program[1] = Step::Collectives(calls.clone());
        job.program.remove(2);
        let outcome = job.run();
        let ended_badly = |at: &usize| outcome.ranks.iter().any(|told| told.calls[*at].code != 0);
        let bad: Vec<usize> = (0..3).filter(ended_badly).collect();
        panics.set(panics.get() + usize::from(is_panic && !bad.is_empty()));
        // What went wrong in one is in no other.
        assert!(
            if is_panic { bad.len() <= 1 } else { bad.iter().all(|at| *at == wrong) },
            "{bad:?} of {job:?}"
        );
        for told in &outcome.ranks {
            let others = (0..3).filter(|at| !bad.contains(at) && *at != wrong);
            others.for_each(|at| assert_eq!(told.calls[at], Ended::SERVED_WELL, "call {at} of {job:?}"));
        }
    });
    assert!(super::random::seeds(80).count() < 80 || panics.get() > 10, "{}", panics.get());
}
