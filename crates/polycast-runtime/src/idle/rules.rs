//! When a waiting rank spins, gives way and sleeps, and for how long. Pure: the time comes in.
//!
//! ```text
//!             a test found something
//!        ┌──────────────────────────────────────────────┐
//!        ▼                                              │
//!     spinning ──▶ giving way ──▶ looking at sockets ──▶ sleeping ──▶ (woken, or time is up: test again)
//! ```
//! What a rule costs and saves depends on what MPI's messages come through, which nobody says. So it is learned: a sleep that something
//! has ended and after which a message was there was *told*; one whose time was up before that was not.

use std::time::Duration;

/// Open MPI's MPI_Testsome first looks and then lets messages in, so that what has come is reported by the test after the one that
/// received it.
pub const TESTS_UNTIL_NOTHING: u32 = 2;

/// Where every rank has a processor, waiting awake disturbs nobody at first; a sleep would add its length and the kernel's to a
/// message that comes a few microseconds later.
const SPIN: Duration = Duration::from_micros(50);

/// How long a rank waits awake where each has a processor. Where ranks share them it is as much less as they are more: so all that
/// wait for one message take no more time from those that work.
const AWAKE: Duration = Duration::from_millis(1);

/// The same where a rank has a processor and sleeps are not told: nothing but the time would end one.
const AWAKE_UNTOLD: Duration = Duration::from_millis(20);

/// A sleep is this part of the time waited so far, so much later than possible is a message noticed at the worst, and waiting for
/// seconds costs next to nothing.
const SLEEP_PER_TIME_WAITED: u32 = 8;
/// The same where sleeps are not told.
const SLEEP_PER_TIME_WAITED_UNTOLD: u32 = 32;

/// Shorter sleeps only cost system calls.
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);
/// The same where sleeps are told, so that they end when there is reason to.
const SHORTEST_SLEEP_TOLD: Duration = Duration::from_millis(1);

/// Nothing but the time ends a sleep of a rank that waits for memory, so it goes on giving way where it would be a shorter one.
const SHORTEST_SLEEP_UNTOLD: Duration = Duration::from_micros(250);

/// Where every message comes through a socket, which ends the sleep, and where some may come through shared memory, which
/// does not.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);
const LONGEST_SLEEP_WITH_NEIGHBOURS: Duration = Duration::from_millis(1);

/// So many messages in a row must say the same before it is believed.
const MESSAGES_UNTIL_BELIEVED: u32 = 3;

/// A wake-up after which no message is there mostly was the first packet of a message of several. From the second on the other
/// packets get time to arrive: so long, twice as long, and then four times, so that a message of many packets does not cost as many
/// wake-ups.
const FIRST_PAUSE: Duration = Duration::from_micros(25);
const PAUSE_DOUBLINGS: u32 = 2;
/// In a message that takes long a pause is at least this part of the time since its beginning. How long it was waited for says nothing of it.
const PAUSE_PER_TIME_COMING: u32 = 64;
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// Who is near this rank, itself included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbours {
    /// Ranks of the job that share this rank's processors: those with the same kernel that are bound to the same ones, in whatever
    /// container, and in the communicator or not.
    pub on_this_kernel: usize,
    /// Ranks of the communicator that share this host, so that messages may come through shared memory.
    pub on_this_host: usize,
}

/// What to do before MPI is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing: it would not yet say what has come.
    None,
    Spin,
    GiveWay,
    /// Find out, without waiting, whether a socket has something that the last test has not seen, and say so by [`Rules::looked`].
    Look,
    /// Let more of it arrive, for as long.
    Pause(Duration),
    /// At most so long; how it ended is for [`Rules::slept`].
    Sleep(Duration),
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Something came for MPI.
    Told,
    TimeIsUp,
    /// Something else came, or was to be done.
    Elsewhere,
}

/// See the module. Of one communicator on one rank.
#[derive(Clone, Debug)]
pub struct Rules {
    is_crowded: bool,
    awake: Duration,
    longest_sleep: Duration,
    waiting_since: Option<Duration>,
    /// Tests since the last rest.
    fruitless: u32,
    has_looked: bool,
    /// How the last sleep of this wait ended, if there was one: told, or not.
    was_told: Option<bool>,
    /// Wake-ups in this wait after which nothing was there, and when the first of them was.
    parts: u32,
    first_part: Option<Duration>,
    /// Messages in a row that were found after sleeps that were told, and that were not.
    told: u32,
    untold: u32,
}

impl Rules {
    /// `processors`: those that the rank may run on.
    pub fn new(neighbours: Neighbours, processors: usize) -> Rules {
        let is_crowded = neighbours.on_this_kernel > processors;
        let has_neighbours = neighbours.on_this_host > 1;
        let share = processors as f64 / neighbours.on_this_kernel.max(1) as f64;
        Rules {
            is_crowded,
            awake: AWAKE.mul_f64(share.min(1.0)),
            longest_sleep: if has_neighbours { LONGEST_SLEEP_WITH_NEIGHBOURS } else { LONGEST_SLEEP },
            waiting_since: None,
            fruitless: 0,
            has_looked: false,
            was_told: None,
            parts: 0,
            first_part: None,
            told: 0,
            untold: 0,
        }
    }

    /// Ranks outnumber processors: who wakes less often leaves more to the others.
    pub fn is_crowded(&self) -> bool {
        self.is_crowded
    }

    /// A test found something.
    pub fn found(&mut self) {
        match self.was_told {
            Some(true) => (self.told, self.untold) = (self.told.saturating_add(1), 0),
            Some(false) => (self.told, self.untold) = (0, self.untold.saturating_add(1)),
            None => {}
        }
        self.found_elsewhere();
    }

    /// Something came that MPI does not know of.
    pub fn found_elsewhere(&mut self) {
        (self.waiting_since, self.was_told) = (None, None);
        (self.parts, self.first_part) = (0, None);
        self.fresh_start();
    }

    /// A test found nothing, at `now`. `or_memory`: what is waited for may come through memory, too, which ends no sleep.
    pub fn nothing(&mut self, now: Duration, or_memory: bool) -> Rest {
        self.fruitless += 1;
        if self.fruitless < TESTS_UNTIL_NOTHING {
            self.waited(now);
            return Rest::None;
        }
        match self.next(now, or_memory) {
            Rest::Sleep(_) | Rest::Pause(_) if !std::mem::replace(&mut self.has_looked, true) => Rest::Look,
            rest => self.take(rest),
        }
    }

    /// As many tests found nothing as it takes, at `now`, or there was no reason to test. Never says to look.
    pub fn rest(&mut self, now: Duration) -> Rest {
        let rest = self.next(now, false);
        self.take(rest)
    }

    /// No pause follows another.
    fn take(&mut self, rest: Rest) -> Rest {
        if let Rest::Pause(_) = rest {
            self.fresh_start();
            self.was_told = None;
        }
        rest
    }

    fn next(&mut self, now: Duration, or_memory: bool) -> Rest {
        let waited = self.waited(now);
        if waited < SPIN && !self.is_crowded {
            return Rest::Spin;
        }
        if waited < self.awake() || or_memory && !self.is_crowded {
            self.fruitless = 0;
            return Rest::GiveWay;
        }
        if self.was_told == Some(true) && self.parts > 1 {
            let pause = FIRST_PAUSE * (1 << (self.parts - 2).min(PAUSE_DOUBLINGS));
            let coming = now.saturating_sub(*self.first_part.get_or_insert(now));
            return Rest::Pause(pause.max(coming / PAUSE_PER_TIME_COMING).min(LONGEST_PAUSE));
        }
        let (part, least) = match (self.is_untold(), self.told >= MESSAGES_UNTIL_BELIEVED && !or_memory) {
            (true, _) => (SLEEP_PER_TIME_WAITED_UNTOLD, SHORTEST_SLEEP),
            (_, true) => (SLEEP_PER_TIME_WAITED, SHORTEST_SLEEP_TOLD),
            _ => (SLEEP_PER_TIME_WAITED, SHORTEST_SLEEP),
        };
        Rest::Sleep((waited / part).max(least).min(self.longest_sleep))
    }

    /// What is waited for comes through memory: no sleep is told, whatever messages have shown.
    ///
    /// Messages of the program's may come through memory as well, which MPI takes out here only when it is asked, and without which their
    /// senders wait. So nobody sleeps who has a processor, and nobody long who has not.
    pub fn untold(&mut self, now: Duration) -> Rest {
        let waited = self.waited(now);
        let sleep = (waited / SLEEP_PER_TIME_WAITED).min(self.longest_sleep);
        match waited {
            _ if waited < SPIN && !self.is_crowded => Rest::Spin,
            _ if !self.is_crowded || waited < self.awake || sleep < SHORTEST_SLEEP_UNTOLD => Rest::GiveWay,
            _ => Rest::Sleep(sleep),
        }
    }

    /// The same where what is waited for wakes who sleeps; who wakes many of them, one by one, takes longer than they take in giving way to
    /// each other.
    pub fn until_woken(&mut self, now: Duration) -> Rest {
        let waited = self.waited(now);
        match waited {
            _ if waited < SPIN && !self.is_crowded => Rest::Spin,
            _ if !self.is_crowded || waited < AWAKE => Rest::GiveWay,
            _ => Rest::Sleep((waited / SLEEP_PER_TIME_WAITED).min(LONGEST_SLEEP_WITH_NEIGHBOURS)),
        }
    }

    /// Whether a socket has something.
    pub fn looked(&mut self, has_something: bool) {
        if has_something {
            self.slept(Ended::Told);
        }
    }

    /// A sleep has ended.
    pub fn slept(&mut self, how: Ended) {
        self.fresh_start();
        self.was_told = match how {
            Ended::Told => Some(true),
            Ended::TimeIsUp => Some(false),
            Ended::Elsewhere => None,
        };
        if how == Ended::Told {
            self.parts = self.parts.saturating_add(1);
        } else {
            // One test is enough: sockets are looked at before the next sleep.
            self.fruitless = TESTS_UNTIL_NOTHING - 1;
        }
    }

    fn fresh_start(&mut self) {
        (self.fruitless, self.has_looked) = (0, false);
    }

    fn is_untold(&self) -> bool {
        self.untold >= MESSAGES_UNTIL_BELIEVED
    }

    fn awake(&self) -> Duration {
        if self.is_untold() && !self.is_crowded { AWAKE_UNTOLD } else { self.awake }
    }

    fn waited(&mut self, now: Duration) -> Duration {
        now.saturating_sub(*self.waiting_since.get_or_insert(now))
    }
}

#[cfg(test)]
mod tests;
