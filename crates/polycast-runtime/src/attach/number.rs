//! The number of a communicator: its messages have tags of their own on the private communicator,
//! which all share.
//!
//! ```text
//!   search    every rank: which numbers are free here; rank 0: where to begin, by chance     MPI_Allreduce, the bits that all have
//!             ├─ what goes along shows that none is needed
//!             └─ none of the first: the same of all
//!   confirm   with threads: every rank has taken it, or another thread was faster            MPI_Allreduce
//!             └─ on some rank one was: search again
//! ```
//!
//! Invariants
//! 1. A rank gives a number back when it has nothing more to send or to receive under it, and has received all that others sent. So between
//!    two ranks that both have a number free no message of it is on its way.
//! 2. A rank that cannot know that, for something went wrong under this number, never gives it back.
//! 3. Nobody waits for another thread: who was too slow tries again, with another number by chance. No lock is held in an exchange.

use std::sync::Mutex;

use polycast_core::units::Rank;

use super::world::World;
use crate::abi::MpiError;
use crate::door::Door;
use crate::machine;
use crate::of_process::{Shared, of_process};

const BITS: usize = u64::BITS as usize;
/// Words of numbers that are exchanged first, so that the exchange is short.
const FIRST_WORDS: usize = 4;
/// Words that go along in the exchange.
const MORE_WORDS: usize = 2;
/// Most searches: if other threads were faster as often as this, something else is wrong.
const MAX_SEARCHES: u32 = 100;

of_process! {
    static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { taken: Vec::new() });
}

/// Agrees on a number that no other communicator of any of its ranks has; refused, on all ranks, if
/// none is left, or some rank is not able to use it. Collective.
///
/// `more` and `beside` go along in the first exchange, and come back as the bits that all ranks
/// have. If all are able, `wants` is asked then: true if a number is needed, which all ranks must
/// find alike.
pub fn agree(
    world: &World,
    door: &Door,
    rank: Rank,
    is_able: bool,
    more: [u64; MORE_WORDS],
    beside: &mut [u64],
    wants: impl FnOnce(&[u64]) -> bool,
) -> Result<Agreement, MpiError> {
    let mut negotiation =
        Negotiation::new(world.tags.agreed_numbers(), rank, is_able, more, world.has_threads);
    let mut first = Some((beside, wants));
    loop {
        let chance = machine::random().unwrap_or(0);
        let mut words = NUMBERS.change(|numbers| negotiation.say(numbers, chance));
        match first.take() {
            None => door.intersect(&mut words)?,
            Some((beside, wants)) => {
                let own = words.len();
                words.extend_from_slice(beside);
                door.intersect(&mut words)?;
                beside.copy_from_slice(&words[own..]);
                words.truncate(own);
                let are_able = words[0] != 0;
                if are_able && !wants(beside) {
                    return Ok(Agreement::NotWanted);
                }
            }
        }
        if let Outcome::Ended(agreed) = NUMBERS.change(|numbers| negotiation.hear(numbers, &words)) {
            return Ok(agreed.map_or(Agreement::Refused, Agreement::Number));
        }
    }
}

/// The outcome of an agreement.
pub enum Agreement {
    Number(Agreed),
    /// No number is left, or some rank is not able.
    Refused,
    /// No number was needed.
    NotWanted,
}

/// Values on which a communicator's ranks have agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    pub number: u32,
    pub more: [u64; MORE_WORDS],
}

/// Gives a number back, so that another communicator may have it next.
pub fn give_back(number: u32) {
    NUMBERS.change(|numbers| numbers.give_back(number));
}

/// Takes all numbers but the first `count`, for tests.
#[cfg(test)]
pub fn leave_only(count: usize, all: usize) {
    NUMBERS.change(|numbers| {
        let words = all.div_ceil(BITS);
        (count..all).for_each(|number| assert!(numbers.take(number as u32, words)));
    });
}

/// The numbers of a process.
#[derive(Default)]
struct Numbers {
    /// A bit for each number, set if it is taken.
    taken: Vec<u64>,
}

impl Numbers {
    fn free(&mut self, words: usize) -> impl Iterator<Item = u64> {
        self.taken.resize(self.taken.len().max(words), 0);
        self.taken.iter().map(|taken| !taken)
    }

    /// Takes a number; true if it was free.
    fn take(&mut self, number: u32, words: usize) -> bool {
        self.taken.resize(self.taken.len().max(words), 0);
        let (word, bit) = (&mut self.taken[number as usize / BITS], 1 << (number as usize % BITS));
        let was_free = *word & bit == 0;
        *word |= bit;
        was_free
    }

    fn give_back(&mut self, number: u32) {
        self.taken[number as usize / BITS] &= !(1 << (number as usize % BITS));
    }
}

enum Step {
    /// Searches among the first `words` words of numbers.
    Search {
        words: usize,
    },
    Confirm {
        agreed: Agreed,
        is_taken: bool,
    },
}

/// Part of one rank in one agreement.
struct Negotiation {
    words: usize,
    is_first: bool,
    is_able: bool,
    more: [u64; MORE_WORDS],
    has_threads: bool,
    step: Step,
    searches: u32,
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    GoesOn,
    Ended(Option<Agreed>),
}

impl Negotiation {
    fn new(
        numbers: usize,
        rank: Rank,
        is_able: bool,
        more: [u64; MORE_WORDS],
        has_threads: bool,
    ) -> Negotiation {
        let words = numbers.div_ceil(BITS);
        let step = Step::Search { words: FIRST_WORDS.min(words) };
        Negotiation { words, is_first: rank == Rank(0), is_able, more, has_threads, step, searches: 0 }
    }

    /// Words of this rank for the intersection.
    fn say(&self, numbers: &mut Numbers, chance: u64) -> Vec<u64> {
        match self.step {
            Step::Search { words } if !self.is_able => vec![0; 2 + MORE_WORDS + words],
            Step::Search { words } => {
                let start = if self.is_first { chance } else { u64::MAX };
                let own = [u64::MAX, start].into_iter().chain(self.more);
                own.chain(numbers.free(self.words).take(words)).collect()
            }
            Step::Confirm { is_taken, .. } => vec![if is_taken { u64::MAX } else { 0 }],
        }
    }

    /// Takes the words that all ranks have in common.
    fn hear(&mut self, numbers: &mut Numbers, common: &[u64]) -> Outcome {
        match self.step {
            Step::Search { words } => {
                let (own, free) = common.split_at(2 + MORE_WORDS);
                let found = if own[0] == 0 { None } else { choose(free, own[1]) };
                let Some(number) = found else {
                    let is_over = common[0] == 0 || words == self.words;
                    self.step = Step::Search { words: self.words };
                    return if is_over { Outcome::Ended(None) } else { Outcome::GoesOn };
                };
                let is_taken = numbers.take(number, self.words);
                let agreed = Agreed { number, more: [own[2], own[3]] };
                if !self.has_threads {
                    return Outcome::Ended(Some(agreed));
                }
                self.step = Step::Confirm { agreed, is_taken };
                Outcome::GoesOn
            }
            Step::Confirm { agreed, is_taken } => {
                if common[0] != 0 {
                    return Outcome::Ended(Some(agreed));
                }
                if is_taken {
                    numbers.give_back(agreed.number);
                }
                self.searches += 1;
                self.step = Step::Search { words: FIRST_WORDS.min(self.words) };
                if self.searches == MAX_SEARCHES { Outcome::Ended(None) } else { Outcome::GoesOn }
            }
        }
    }
}

/// The bit, of those that are set, that `start` picks.
fn choose(free: &[u64], start: u64) -> Option<u32> {
    let count: u64 = free.iter().map(|word| u64::from(word.count_ones())).sum();
    let mut nth = start.checked_rem(count)?;
    for (index, word) in free.iter().enumerate() {
        let here = u64::from(word.count_ones());
        if nth < here {
            let bit = (0..BITS).filter(|bit| word >> bit & 1 == 1).nth(nth as usize)?;
            return Some((index * BITS + bit) as u32);
        }
        nth -= here;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_door::random::{Random, with_seeds};

    #[test]
    fn every_free_number_can_be_chosen_and_no_other() {
        let free = [0, 1 << 63 | 1, 1 << 5];
        let all: Vec<_> = (0..3).map(|start| choose(&free, start)).collect();
        assert_eq!(all, [64, 127, 133].map(Some));
        assert_eq!(choose(&free, u64::MAX), choose(&free, u64::MAX % 3));
        assert_eq!(choose(&[0, 0], 7), None);
    }

    /// An agreement among some processes, of which each is in an exchange or not.
    struct Running {
        members: Vec<usize>,
        parts: Vec<Negotiation>,
        said: Vec<Option<Vec<u64>>>,
        heard: Vec<bool>,
    }

    impl Running {
        fn new(random: &mut Random, processes: usize, numbers: usize) -> Running {
            let mut members: Vec<usize> = (0..processes).collect();
            random.shuffle(&mut members);
            members.truncate(random.within(2, processes as u64) as usize);
            let is_unable = random.one_in(20);
            let part = |rank: usize| {
                Negotiation::new(numbers, Rank(rank as u32), !is_unable || rank != 1, [3; 2], true)
            };
            let parts: Vec<Negotiation> = (0..members.len()).map(part).collect();
            Running { said: vec![None; parts.len()], heard: vec![false; parts.len()], members, parts }
        }

        /// One rank goes on, if it can; its result if it has one.
        fn step(&mut self, random: &mut Random, processes: &mut [Numbers]) -> Vec<(usize, Option<u32>)> {
            let rank = random.below(self.members.len() as u64) as usize;
            let numbers = &mut processes[self.members[rank]];
            if self.said[rank].is_none() {
                self.said[rank] = Some(self.parts[rank].say(numbers, random.below(u64::MAX)));
            }
            let mut ended = Vec::new();
            if self.said.iter().all(Option::is_some) && !self.heard[rank] {
                let all = self.said.iter().flatten();
                let and =
                    |one: Vec<u64>, other: &Vec<u64>| one.iter().zip(other).map(|(a, b)| a & b).collect();
                let common = all.fold(vec![u64::MAX; self.said[rank].as_ref().map_or(0, Vec::len)], and);
                self.heard[rank] = true;
                if let Outcome::Ended(agreed) = self.parts[rank].hear(numbers, &common) {
                    assert!(agreed.is_none_or(|agreed| agreed.more == [3; 2]));
                    ended.push((rank, agreed.map(|agreed| agreed.number)));
                }
                if self.heard.iter().all(|heard| *heard) {
                    self.said.fill(None);
                    self.heard.fill(false);
                }
            }
            ended
        }
    }

    /// Threads of the same processes agree on numbers at the same time, for communicators that have processes in common: all ranks get the same
    /// number, nobody gets one that is in use, numbers come back, and nobody tries for ever.
    #[test]
    fn agreements_at_a_time_never_share_a_number() {
        let retries = std::cell::Cell::new(0);
        with_seeds(200, |seed| {
            let random = &mut Random::new(seed);
            let count = random.within(2, 5) as usize;
            let numbers = random.one_of(&[64, 128, 512, 8192]);
            let mut processes: Vec<Numbers> = (0..count).map(|_| Numbers::default()).collect();
            // Few are left, so that they are wanted twice.
            let left = random.one_of(&[1, 3, 8, 40]);
            for process in &mut processes {
                (left..numbers).for_each(|number| assert!(process.take(number as u32, numbers / BITS)));
            }
            let mut running: Vec<Running> =
                (0..random.within(1, 6)).map(|_| Running::new(random, count, numbers)).collect();
            let mut results: Vec<Vec<Option<Option<u32>>>> =
                running.iter().map(|one| vec![None; one.members.len()]).collect();
            let mut live: Vec<(Vec<usize>, u32)> = Vec::new();
            let mut steps = 0;
            while !running.is_empty() {
                steps += 1;
                assert!(steps < 1_000_000, "seed {seed}: {} go on", running.len());
                let at = random.below(running.len() as u64) as usize;
                for (rank, number) in running[at].step(random, &mut processes) {
                    results[at][rank] = Some(number);
                }
                if results[at].iter().any(Option::is_none) {
                    continue;
                }
                let (ended, results) = (running.swap_remove(at), results.swap_remove(at));
                retries.set(retries.get() + ended.parts[0].searches);
                assert!(results.iter().all(|result| *result == results[0]), "seed {seed}: {results:?}");
                if let Some(Some(number)) = results[0] {
                    let is_in_use = |(members, other): &(Vec<usize>, u32)| {
                        *other == number && members.iter().any(|member| ended.members.contains(member))
                    };
                    assert!(!live.iter().any(is_in_use), "seed {seed}: {number} twice");
                    live.push((ended.members, number));
                }
                if random.one_in(3) && !live.is_empty() {
                    let (members, number) = live.swap_remove(random.below(live.len() as u64) as usize);
                    members.iter().for_each(|member| processes[*member].give_back(number));
                }
            }
        });
        assert!(retries.get() > 20, "no thread was ever too slow: {}", retries.get());
    }

    /// Alone, a rank finds the last one, far behind the first words, and knows when there is none.
    #[test]
    fn the_last_free_number_is_found() {
        for (numbers, free) in [(64, 63), (8192, 255), (8192, 256), (8192, 8191)] {
            let mut process = Numbers::default();
            (0..numbers).filter(|number| *number != free).for_each(|number| {
                process.take(number, (numbers as usize).div_ceil(BITS));
            });
            for expected in [Some(free), None] {
                let mut part = Negotiation::new(numbers as usize, Rank(0), true, [3; 2], false);
                let mut exchanges = 0;
                let found = loop {
                    exchanges += 1;
                    let words = part.say(&mut process, 12345);
                    if let Outcome::Ended(agreed) = part.hear(&mut process, &words) {
                        break agreed.map(|agreed| agreed.number);
                    }
                };
                assert_eq!(found, expected);
                assert!(exchanges <= 2);
            }
        }
    }
}
