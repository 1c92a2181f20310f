//! Whose turn it is, and what time it is.
//!
//! Invariants
//! 1. One rank runs at a time; the others wait until they are called. So what a job does depends on its seed only.
//! 2. Time goes on by what a rank does (a little for each call) and, when all ranks wait, to the first moment that one of them waits
//!    for. The machine's clock is not looked at.
//! 3. When all ranks wait for each other, or nothing has moved for a long time, the job is *stuck*: all ranks are called and told.

use std::fmt::Display;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::random::Random;

const NOBODY: u32 = u32::MAX;
/// Longer than anything that the runtime waits for.
const NOTHING_MOVES_NANOS: u64 = 3_000_000_000;

/// When ranks are called: by default in any order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delays {
    /// One in so many turns of a rank takes long; 0: none does.
    pub one_in: u64,
    pub most: Duration,
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
    moved: u64,
    random: Random,
    ranks: Vec<Standing>,
    is_stuck: bool,
}

/// See the module.
pub struct Stage {
    start: Instant,
    delays: Delays,
    state: Mutex<State>,
    threads: Box<[OnceLock<Thread>]>,
    on_stage: AtomicU32,
}

impl Stage {
    pub fn new(ranks: u32, seed: u64, delays: Delays) -> Stage {
        let (now, moved, is_stuck) = (0, 0, false);
        let standings = vec![Standing::NotYetThere; ranks as usize];
        let state = State { now, moved, random: Random::new(seed), ranks: standings, is_stuck };
        Stage {
            start: Instant::now(),
            delays,
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
        state.ranks[rank as usize] = Standing::Ready;
        let is_complete = !state.ranks.contains(&Standing::NotYetThere);
        if is_complete {
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
        (state.moved, state.ranks[rank as usize]) = (state.moved.max(state.now), Standing::Gone);
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
        state.now += 20;
        self.start + Duration::from_nanos(state.now)
    }

    pub fn nanos(&self) -> u64 {
        self.lock().now
    }

    /// A rank does something: others may come first.
    pub fn turn(&self, rank: u32) {
        let mut state = self.lock();
        state.now += state.random.within(50, 1000);
        let Delays { one_in, most } = self.delays;
        if one_in > 0 && state.random.one_in(one_in) {
            let until = state.now + state.random.below(most.as_nanos() as u64);
            state.ranks[rank as usize] = Standing::Waits { until: Some(until), for_datagrams: false };
            self.hand_over(rank, state);
        } else if state.random.one_in(3) {
            self.hand_over(rank, state);
        }
    }

    /// Until it is woken, or for as long. Returns at once when the job is stuck.
    pub fn wait(&self, rank: u32, longest: Option<Duration>, for_datagrams: bool) {
        let mut state = self.lock();
        if state.is_stuck {
            return;
        }
        let until = longest.map(|longest| state.now.saturating_add(longest.as_nanos() as u64));
        state.ranks[rank as usize] = Standing::Waits { until, for_datagrams };
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

    /// Calls all that wait for no time.
    pub fn wake_all(&self) {
        let mut state = self.lock();
        state.moved = state.moved.max(state.now);
        let is_blocked = |standing: &&mut Standing| matches!(standing, Standing::Waits { until: None, .. });
        state.ranks.iter_mut().filter(is_blocked).for_each(|standing| *standing = Standing::Ready);
    }

    /// A datagram will be there for this rank at that time.
    pub fn datagram_at(&self, rank: u32, at: u64) {
        if let Standing::Waits { until: Some(until), for_datagrams: true } =
            &mut self.lock().ranks[rank as usize]
        {
            *until = at.min(*until);
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

    /// See the module.
    pub fn is_stuck(&self) -> bool {
        self.lock().is_stuck
    }
}

impl State {
    /// Who comes next; `None` if all have gone.
    fn next(&mut self) -> Option<u32> {
        if self.now.saturating_sub(self.moved) > NOTHING_MOVES_NANOS {
            self.is_stuck = true;
        }
        loop {
            let (now, is_stuck) = (self.now, self.is_stuck);
            for standing in &mut self.ranks {
                if let Standing::Waits { until, .. } = standing
                    && (is_stuck || until.is_some_and(|until| until <= now))
                {
                    *standing = Standing::Ready;
                }
            }
            let ready = self.ranks.iter().filter(|standing| **standing == Standing::Ready).count() as u64;
            if ready > 0 {
                let nth = self.random.below(ready) as usize;
                let mut ready = (0..).zip(&self.ranks).filter(|(_, standing)| **standing == Standing::Ready);
                return ready.nth(nth).map(|(rank, _)| rank);
            }
            let until = |standing: &Standing| match standing {
                Standing::Waits { until, .. } => *until,
                _ => None,
            };
            match self.ranks.iter().filter_map(until).min() {
                Some(first) => self.now = first,
                None if self.ranks.iter().all(|standing| *standing == Standing::Gone) => return None,
                None => self.is_stuck = true,
            }
        }
    }
}
