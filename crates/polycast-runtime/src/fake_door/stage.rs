//! Whose turn it is, and what time it is.
//!
//! Invariants
//! 1. One rank runs at a time; the others wait until they are called. So what a job does depends on its seed only.
//! 2. Time goes on by what a rank does (a little for each call) and, when all ranks wait, to the first moment that one of them waits
//!    for. Those that do not wait have a processor each: what one of them does takes its part of them. The machine's clock is not looked at.
//! 3. When all ranks wait for each other, or nothing has moved for a long time, the job is *stuck*: all ranks are called and told. What moves is
//!    messages, datagrams and what is in the memory that ranks share.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Display;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::random::Random;
use super::segments::Segments;

const NOBODY: u32 = u32::MAX;
const FRACTION_BITS: u32 = 20;
/// Longer than anything that the runtime waits for.
const NOTHING_MOVES_NANOS: u64 = 3_000_000_000;

/// When ranks are called: by default in any order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delays {
    /// One in so many turns of a rank takes long; 0: none does.
    pub one_in: u64,
    pub most: Duration,
}

/// How often ranks take turns, which is what many ranks cost: each is a thread.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    /// In one of so many calls others come first.
    pub others_one_in: u64,
    /// Who waits for datagrams is called so long after the first: by then there are more.
    pub wake_up: Duration,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { others_one_in: 3, wake_up: Duration::ZERO }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    NotYetThere,
    Ready,
    Waits { until: Option<u64>, for_datagrams: bool },
    Gone,
}

struct State {
    now: u64,
    /// Of a nanosecond, in 2^-[`FRACTION_BITS`].
    fraction: u64,
    moved: u64,
    segments: Segments,
    random: Random,
    ranks: Vec<Standing>,
    /// Those that are so, in any order, and where each stands among them.
    ready: Vec<u32>,
    places: Vec<usize>,
    /// When ranks stop waiting. Some of it is over: they waited for less, and do not any more.
    ends: BinaryHeap<Reverse<(u64, u32)>>,
    to_come: u32,
    gone: usize,
    is_stuck: bool,
}

/// See the module.
pub struct Stage {
    start: Instant,
    delays: Delays,
    pub turns: Turns,
    state: Mutex<State>,
    threads: Box<[OnceLock<Thread>]>,
    on_stage: AtomicU32,
}

impl Stage {
    pub fn new(ranks: u32, seed: u64, delays: Delays, turns: Turns) -> Stage {
        let state = State {
            now: 0,
            fraction: 0,
            moved: 0,
            segments: Segments::default(),
            random: Random::new(seed),
            ranks: vec![Standing::NotYetThere; ranks as usize],
            ready: Vec::new(),
            places: vec![0; ranks as usize],
            ends: BinaryHeap::new(),
            to_come: ranks,
            gone: 0,
            is_stuck: false,
        };
        Stage {
            start: Instant::now(),
            delays,
            turns,
            state: Mutex::new(state),
            threads: (0..ranks).map(|_| OnceLock::new()).collect(),
            on_stage: AtomicU32::new(NOBODY),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This thread is the rank's from now on. Returns when it is called for the first time, which is when all are there.
    pub fn enter(&self, rank: u32) {
        self.threads[rank as usize].set(thread::current()).expect("a rank enters once");
        let mut state = self.lock();
        state.to_come -= 1;
        if state.to_come == 0 {
            // Threads come in any order.
            (0..state.ranks.len() as u32).for_each(|rank| state.is_ready(rank));
            let first = state.next();
            drop(state);
            self.call(first);
        } else {
            drop(state);
        }
        self.wait_for_call(rank);
    }

    /// The rank has ended.
    pub fn leave(&self, rank: u32) {
        let mut state = self.lock();
        state.moved = state.moved.max(state.now);
        state.stands(rank, Standing::Gone);
        state.gone += 1;
        let next = state.next();
        drop(state);
        self.call(next);
    }

    fn call(&self, next: Option<u32>) {
        // Release: what the rank before has done is there for the next.
        self.on_stage.store(next.unwrap_or(NOBODY), Ordering::Release);
        if let Some(thread) = next.and_then(|next| self.threads[next as usize].get()) {
            thread.unpark();
        }
    }

    fn wait_for_call(&self, rank: u32) {
        while self.on_stage.load(Ordering::Acquire) != rank {
            thread::park();
        }
    }

    fn hand_over(&self, rank: u32, mut state: MutexGuard<'_, State>) {
        let next = state.next();
        drop(state);
        if next != Some(rank) {
            self.call(next);
            self.wait_for_call(rank);
        }
    }

    pub fn now(&self) -> Instant {
        let mut state = self.lock();
        state.spend(20);
        self.start + Duration::from_nanos(state.now)
    }

    pub fn nanos(&self) -> u64 {
        self.lock().now
    }

    /// A rank does something: others may come first.
    pub fn turn(&self, rank: u32) {
        let mut state = self.lock();
        let nanos = state.random.within(50, 1000);
        state.spend(nanos);
        let Delays { one_in, most } = self.delays;
        if one_in > 0 && state.random.one_in(one_in) {
            let until = state.now + state.random.below(most.as_nanos() as u64);
            state.stands(rank, Standing::Waits { until: Some(until), for_datagrams: false });
            self.hand_over(rank, state);
        } else if state.random.one_in(self.turns.others_one_in) {
            self.hand_over(rank, state);
        }
    }

    /// A rank does something for so long.
    pub fn spend(&self, nanos: u64) {
        self.lock().spend(nanos);
    }

    /// Until it is woken, or for as long. Returns at once when the job is stuck.
    pub fn wait(&self, rank: u32, longest: Option<Duration>, for_datagrams: bool) {
        let mut state = self.lock();
        if state.is_stuck {
            return;
        }
        let until = longest.map(|longest| state.now.saturating_add(longest.as_nanos() as u64));
        state.stands(rank, Standing::Waits { until, for_datagrams });
        self.hand_over(rank, state);
    }

    /// The program does something else, which is no waiting.
    pub fn pause(&self, rank: u32, time: Duration) {
        let mut state = self.lock();
        state.moved = state.moved.max(state.now + time.as_nanos() as u64);
        drop(state);
        self.wait(rank, Some(time), false);
    }

    /// For a moment.
    pub fn give_way(&self, rank: u32) {
        let moment = Duration::from_nanos(self.lock().random.within(500, 60_000));
        self.wait(rank, Some(moment), false);
    }

    /// Calls those of these ranks that wait for no time.
    pub fn wake(&self, ranks: impl IntoIterator<Item = u32>) {
        let mut state = self.lock();
        state.moved = state.moved.max(state.now);
        for rank in ranks {
            if let Standing::Waits { until: None, .. } = state.ranks[rank as usize] {
                state.is_ready(rank);
            }
        }
    }

    pub fn wake_all(&self) {
        self.wake(0..self.threads.len() as u32);
    }

    /// Datagrams will be there for these ranks at these times.
    pub fn datagrams_at(&self, arrivals: &[(u32, u64)]) {
        let mut state = self.lock();
        for (rank, at) in arrivals {
            let woken = at + self.turns.wake_up.as_nanos() as u64;
            if let Standing::Waits { until: Some(until), for_datagrams: true } = state.ranks[*rank as usize]
                && woken < until
            {
                state.stands(*rank, Standing::Waits { until: Some(woken), for_datagrams: true });
            }
        }
    }

    /// With FAKE_DOOR_TRACE=1, says what a rank does, and when.
    pub fn trace(&self, rank: u32, what: impl Display) {
        static IS_WANTED: LazyLock<bool> = LazyLock::new(|| std::env::var_os("FAKE_DOOR_TRACE").is_some());
        if *IS_WANTED {
            eprintln!("{:>12.3} µs, rank {rank}: {what}", self.nanos() as f64 / 1e3);
        }
    }

    /// The job gets somewhere.
    pub fn moves(&self) {
        let mut state = self.lock();
        state.moved = state.moved.max(state.now);
    }

    /// Ranks will share this memory, too.
    pub fn watch(&self, segment: &OwnedFd) -> io::Result<()> {
        self.lock().segments.add(segment)
    }

    /// See the module.
    pub fn is_stuck(&self) -> bool {
        self.lock().is_stuck
    }
}

impl State {
    fn stands(&mut self, rank: u32, standing: Standing) {
        let before = std::mem::replace(&mut self.ranks[rank as usize], standing);
        if before == Standing::Ready {
            let place = self.places[rank as usize];
            self.ready.swap_remove(place);
            if let Some(moved) = self.ready.get(place) {
                self.places[*moved as usize] = place;
            }
        }
        if let Standing::Waits { until: Some(until), .. } = standing {
            self.ends.push(Reverse((until, rank)));
        }
    }

    fn is_ready(&mut self, rank: u32) {
        if self.ranks[rank as usize] != Standing::Ready {
            self.stands(rank, Standing::Ready);
            self.places[rank as usize] = self.ready.len();
            self.ready.push(rank);
        }
    }

    /// A rank does something for so long, and so do meanwhile all others that do not wait.
    fn spend(&mut self, nanos: u64) {
        self.fraction += (nanos << FRACTION_BITS) / self.ready.len().max(1) as u64;
        self.now += self.fraction >> FRACTION_BITS;
        self.fraction &= (1 << FRACTION_BITS) - 1;
    }

    /// When the first of them stops waiting.
    fn first_end(&mut self) -> Option<u64> {
        while let Some(Reverse((end, rank))) = self.ends.peek() {
            match self.ranks[*rank as usize] {
                Standing::Waits { until: Some(until), .. } if until == *end => return Some(*end),
                _ => drop(self.ends.pop()),
            }
        }
        None
    }

    /// Who comes next; `None` if all have gone.
    fn next(&mut self) -> Option<u32> {
        if self.now.saturating_sub(self.moved) > NOTHING_MOVES_NANOS {
            match self.segments.have_changed() {
                true => self.moved = self.now,
                false => self.is_stuck = true,
            }
        }
        loop {
            if self.is_stuck {
                let waits = |rank: &u32| matches!(self.ranks[*rank as usize], Standing::Waits { .. });
                let waiting: Vec<u32> = (0..self.ranks.len() as u32).filter(waits).collect();
                waiting.into_iter().for_each(|rank| self.is_ready(rank));
            }
            while self.first_end().is_some_and(|end| end <= self.now) {
                self.ends.pop().into_iter().for_each(|Reverse((_, rank))| self.is_ready(rank));
            }
            if !self.ready.is_empty() {
                return Some(self.ready[self.random.below(self.ready.len() as u64) as usize]);
            }
            match self.first_end() {
                Some(first) => self.now = first,
                None if self.gone == self.ranks.len() => return None,
                None => self.is_stuck = true,
            }
        }
    }
}
