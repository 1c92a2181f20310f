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

/// The first and the longest sleep of a row. Sleeps double, so that waiting for seconds costs next to nothing.
/// Messages between ranks of one host come through shared memory and wake nobody, so without sockets the longest sleep
/// bounds what a message is late.
const FIRST_SLEEP: Duration = Duration::from_micros(50);
const LONGEST_SLEEP_WITH_SOCKETS: Duration = Duration::from_millis(10);
const LONGEST_SLEEP_WITHOUT: Duration = Duration::from_millis(1);

/// How a rank waits. One per communicator.
pub struct Idle {
    polls_before_yield: u32,
    polls_before_sleep: u32,
    sockets: Sockets,
    next_sleep: Duration,
    polls_since_sleep: u32,
}

impl Idle {
    /// `ranks_on_this_kernel` counts those that share this machine's processors, this one included.
    pub fn new(ranks_on_this_kernel: usize) -> Idle {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let (spins, yields) =
            if ranks_on_this_kernel > processors { (0, YIELDS_OVERSUBSCRIBED) } else { (SPINS, YIELDS) };
        Idle {
            polls_before_yield: spins,
            polls_before_sleep: spins + yields,
            sockets: Sockets::default(),
            next_sleep: FIRST_SLEEP,
            polls_since_sleep: 0,
        }
    }

    /// A poll found something.
    pub fn progress(&mut self) {
        self.next_sleep = FIRST_SLEEP;
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
        let longest = match self.sockets.wait(self.next_sleep, has_sends, Instant::now()) {
            Wake::Ready => return,
            Wake::TimeIsUp => LONGEST_SLEEP_WITH_SOCKETS,
            Wake::NoSockets => {
                std::thread::sleep(self.next_sleep);
                LONGEST_SLEEP_WITHOUT
            }
        };
        self.next_sleep = (2 * self.next_sleep).min(longest);
    }
}
