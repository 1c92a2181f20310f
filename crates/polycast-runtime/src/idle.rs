//! What a rank does while it waits for messages: spin briefly, then yield, then sleep on MPI's sockets.
//!
//! ```text
//!             a poll found something
//!        ┌────────────────────────────────┐
//!        ▼                                │
//!     spinning ──▶ yielding ──▶ sleeping on the sockets ──▶ (woken, or time is up: poll again)
//! ```
//! Where ranks outnumber processors, somebody else needs the processor to send what this rank waits for: it sleeps
//! at once.

use std::time::{Duration, Instant};

use crate::sockets::{Sockets, Wake};

/// Polls that find nothing before the first yield, and then before the first sleep, where every rank has a processor.
/// A poll takes about a microsecond, a message on a local network some tens of them.
const SPINS: u32 = 50;
const YIELDS: u32 = 100;

/// The same where ranks outnumber processors.
const YIELDS_OVERSUBSCRIBED: u32 = 1;

/// Polls between two sleeps: Open MPI's MPI_Testsome first looks and then lets messages in, so that what has come is
/// reported by the poll after the one that received it.
const POLLS_BETWEEN_SLEEPS: u32 = 2;

/// A sleep is this part of the time waited so far: so much later than possible is a message noticed at the worst, and
/// waiting for seconds costs next to nothing.
const SLEEP_PER_TIME_WAITED: u32 = 8;

/// Shorter sleeps only cost system calls.
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);

/// Where every message comes through a socket, which ends the sleep, and where some may come through shared memory, which
/// does not.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);
const LONGEST_SLEEP_WITH_NEIGHBOURS: Duration = Duration::from_millis(1);

/// How a rank waits. One per communicator.
pub struct Idle {
    polls_before_yield: u32,
    polls_before_sleep: u32,
    longest_sleep: Duration,
    sockets: Sockets,
    waiting_since: Option<Instant>,
    polls_since_sleep: u32,
}

/// Who is near this rank, itself included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbours {
    /// Ranks that share this machine's processors: those with the same kernel, in whatever container.
    pub on_this_kernel: usize,
    /// Ranks that share this host, so that messages may come through shared memory.
    pub on_this_host: usize,
}

impl Idle {
    /// For a rank with these neighbours.
    pub fn new(neighbours: Neighbours) -> Idle {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let is_oversubscribed = neighbours.on_this_kernel > processors;
        let (spins, yields) = if is_oversubscribed { (0, YIELDS_OVERSUBSCRIBED) } else { (SPINS, YIELDS) };
        let has_neighbours = neighbours.on_this_host > 1;
        Idle {
            polls_before_yield: spins,
            polls_before_sleep: spins + yields,
            longest_sleep: if has_neighbours { LONGEST_SLEEP_WITH_NEIGHBOURS } else { LONGEST_SLEEP },
            sockets: Sockets::default(),
            waiting_since: None,
            polls_since_sleep: 0,
        }
    }

    /// A poll found something.
    pub fn progress(&mut self) {
        self.waiting_since = None;
        self.sockets.progress();
    }

    /// The `fruitless_polls`-th poll in a row found nothing.
    pub fn wait(&mut self, fruitless_polls: u32, has_sends: bool) {
        self.polls_since_sleep += 1;
        if fruitless_polls <= self.polls_before_yield {
            std::hint::spin_loop();
        } else if fruitless_polls <= self.polls_before_sleep {
            std::thread::yield_now();
        } else if self.polls_since_sleep >= POLLS_BETWEEN_SLEEPS {
            self.sleep(has_sends);
            self.polls_since_sleep = 0;
        }
    }

    fn sleep(&mut self, has_sends: bool) {
        let now = Instant::now();
        let waited = now.duration_since(*self.waiting_since.get_or_insert(now));
        let sleep = (waited / SLEEP_PER_TIME_WAITED).clamp(SHORTEST_SLEEP, self.longest_sleep);
        if let Wake::NoSockets = self.sockets.wait(sleep, has_sends, now) {
            std::thread::sleep(sleep.min(LONGEST_SLEEP_WITH_NEIGHBOURS));
        }
    }
}
