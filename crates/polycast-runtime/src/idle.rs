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

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use crate::machine;
use crate::sockets::{Sockets, Wake};

/// How long a rank spins, and then yields until, before it sleeps for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Patience {
    spin: Duration,
    until_sleep: Duration,
}

/// Every rank has a processor, so waiting awake disturbs nobody; a sleep would add its length and the kernel's to a message
/// that comes a few microseconds later.
const PROCESSORS_TO_SPARE: Patience =
    Patience { spin: Duration::from_micros(50), until_sleep: Duration::from_millis(1) };

/// Ranks outnumber processors, and some messages come through shared memory, which ends no sleep: the processor goes to
/// the others, but not for long.
const CROWDED_HOST: Patience = Patience { spin: Duration::ZERO, until_sleep: Duration::from_micros(100) };

/// Ranks outnumber processors, and every message comes through a socket, which ends the sleep at once.
const CROWDED_PROCESSORS: Patience = Patience { spin: Duration::ZERO, until_sleep: Duration::ZERO };

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

/// What ends a rest beside MPI's sockets.
pub struct Watch<'a> {
    pub socket: BorrowedFd<'a>,
    pub events: PollFlags,
    pub at_most: Option<Duration>,
}

/// How a rank waits. One per communicator.
pub struct Idle {
    patience: Patience,
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
        let processors = machine::processors();
        let has_neighbours = neighbours.on_this_host > 1;
        Idle {
            patience: match neighbours.on_this_kernel > processors {
                false => PROCESSORS_TO_SPARE,
                true if has_neighbours => CROWDED_HOST,
                true => CROWDED_PROCESSORS,
            },
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

    /// Something came that MPI does not know of.
    pub fn progress_elsewhere(&mut self) {
        self.waiting_since = None;
    }

    /// A poll found nothing, and the one before it neither if `has_polled_twice`. See [`Idle::rest`].
    pub fn wait(&mut self, watch: Option<Watch<'_>>, has_polled_twice: bool, has_sends: bool) {
        self.polls_since_sleep += 1;
        if !has_polled_twice {
            match self.waited().0 < self.patience.spin {
                true => machine::spin(),
                false => machine::give_way(),
            }
        } else if self.polls_since_sleep >= POLLS_BETWEEN_SLEEPS {
            self.rest(watch, has_sends);
        }
    }

    /// Enough polls found nothing. A sleep ends also by what `watch` says. False if only its socket ended it: there is no reason
    /// to ask MPI.
    pub fn rest(&mut self, watch: Option<Watch<'_>>, has_sends: bool) -> bool {
        let (waited, now) = self.waited();
        if waited < self.patience.spin {
            machine::spin();
            return true;
        }
        if waited < self.patience.until_sleep {
            machine::give_way();
            return true;
        }
        self.polls_since_sleep = 0;
        let sleep = (waited / SLEEP_PER_TIME_WAITED).clamp(SHORTEST_SLEEP, self.longest_sleep);
        let at_most = watch.as_ref().and_then(|watch| watch.at_most).unwrap_or(Duration::MAX);
        let own = watch.map(|watch| (watch.socket, watch.events));
        let sleep = sleep.min(at_most);
        let wake = self.sockets.wait(own, sleep, has_sends, now);
        if let Wake::NoSockets = wake {
            machine::sleep(sleep.min(LONGEST_SLEEP_WITH_NEIGHBOURS));
        }
        !matches!(wake, Wake::OwnReady)
    }

    /// Ranks outnumber processors: who wakes less often leaves more to the others.
    pub fn is_crowded(&self) -> bool {
        self.patience != PROCESSORS_TO_SPARE
    }

    /// How long this rank has been waiting, and what time it is.
    fn waited(&mut self) -> (Duration, Instant) {
        let now = machine::now();
        (now.duration_since(*self.waiting_since.get_or_insert(now)), now)
    }
}
