//! Rules by which a waiting rank spins, gives way and sleeps, and for how long. Pure: the time
//! comes in.
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

/// Tests that find nothing before nothing is there. Open MPI's MPI_Testsome first looks and then
/// lets messages in, so that what has come is reported by the test after the one that received it.
pub const TESTS_UNTIL_NOTHING: u32 = 2;

/// Time for which a rank with its own processor spins, which disturbs nobody. A sleep would add its
/// length and the kernel's to a message that comes a few microseconds later.
const SPIN: Duration = Duration::from_micros(50);

/// Time for which a rank with its own processor waits awake. Where ranks share processors it is as
/// much less as they are more: so all that wait for one message take no more time from those that
/// work.
const AWAKE: Duration = Duration::from_millis(1);

/// Time for which a rank with its own processor waits awake if sleeps are not told: only the time
/// would end one.
const AWAKE_UNTOLD: Duration = Duration::from_millis(20);

/// Divisor of the time waited so far, for a sleep's length: so much later than possible is a
/// message noticed at the worst, and waiting for seconds costs next to nothing.
const SLEEP_PER_TIME_WAITED: u32 = 8;
/// Divisor of the time waited so far, for a sleep's length, if sleeps are not told.
const SLEEP_PER_TIME_WAITED_UNTOLD: u32 = 32;

/// Shortest sleep: shorter ones only cost system calls.
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);
/// Shortest sleep if sleeps are told, so that they end when there is reason to.
const SHORTEST_SLEEP_TOLD: Duration = Duration::from_millis(1);

/// Shortest sleep of a rank that waits for memory: only the time ends it, so the rank goes on
/// giving way in place of a shorter one.
const SHORTEST_SLEEP_UNTOLD: Duration = Duration::from_micros(250);

/// Longest sleep. The first is for ranks whose messages all come through a socket, which ends the
/// sleep; the second for those whose messages may come through shared memory, which does not.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);
const LONGEST_SLEEP_WITH_NEIGHBOURS: Duration = Duration::from_millis(1);

/// Messages in a row that must say the same before it is believed.
const MESSAGES_UNTIL_BELIEVED: u32 = 3;

/// Length of a pause, and its doublings. A wake-up after which no message is there mostly was the
/// first packet of a message of several. From the second on the other packets get time to arrive:
/// so long, twice as long, and then four times, so that a message of many packets does not cost as
/// many wake-ups.
const FIRST_PAUSE: Duration = Duration::from_micros(25);
const PAUSE_DOUBLINGS: u32 = 2;
/// Divisor of the time since a message's first packet: a pause is at least that part of it. The
/// time waited before says nothing.
const PAUSE_PER_TIME_COMING: u32 = 64;
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// The ranks near this one, itself included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbours {
    /// Ranks of the job that share this rank's processors: those with the same kernel that are bound to the same ones, in whatever
    /// container, and in the communicator or not.
    pub on_this_kernel: usize,
    /// Ranks of the communicator that share this host, so that messages may come through shared memory.
    pub on_this_host: usize,
}

/// Rest of a rank before MPI is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// No rest: another test is needed to say what has come.
    None,
    Spin,
    GiveWay,
    /// Find out, without waiting, whether a socket has something that the last test has not seen, and say so by [`Rules::looked`].
    Look,
    /// Pause, so that more of a message arrives, for this time.
    Pause(Duration),
    /// Sleep for this time at most; its end is for [`Rules::slept`].
    Sleep(Duration),
}

/// Reason for which a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepEnd {
    /// A message came for MPI.
    Told,
    TimeIsUp,
    /// Another event came, or another thing was to be done.
    Elsewhere,
}

/// Rules of one communicator on one rank: what the module describes.
#[derive(Clone, Debug)]
pub struct Rules {
    is_crowded: bool,
    awake: Duration,
    longest_sleep: Duration,
    waiting_since: Option<Duration>,
    /// Tests since the last rest.
    fruitless: u32,
    has_looked: bool,
    /// True if the last sleep of this wait was told; `None` if there was none.
    was_told: Option<bool>,
    /// Number of wake-ups in this wait after which nothing was there, and the time of the first.
    parts: u32,
    first_part: Option<Duration>,
    /// Numbers of messages in a row that were found after sleeps that were told, and that were not.
    told: u32,
    untold: u32,
}

impl Rules {
    /// Rules for a rank that may run on `processors` processors.
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

    /// True if ranks outnumber processors: a rank that wakes less often leaves more to the others.
    pub fn is_crowded(&self) -> bool {
        self.is_crowded
    }

    /// Notes that a test found something.
    pub fn found(&mut self) {
        match self.was_told {
            Some(true) => (self.told, self.untold) = (self.told.saturating_add(1), 0),
            Some(false) => (self.told, self.untold) = (0, self.untold.saturating_add(1)),
            None => {}
        }
        self.found_elsewhere();
    }

    /// Notes that something came that MPI does not know of.
    pub fn found_elsewhere(&mut self) {
        (self.waiting_since, self.was_told) = (None, None);
        (self.parts, self.first_part) = (0, None);
        self.fresh_start();
    }

    /// The rest after a test that found nothing, at `now`. `or_memory`: what is waited for may come
    /// through memory, too, which ends no sleep.
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

    /// The rest at `now`, if enough tests found nothing or there was no reason to test. Never says
    /// to look.
    pub fn rest(&mut self, now: Duration) -> Rest {
        let rest = self.next(now, false);
        self.take(rest)
    }

    /// Takes a rest; no pause follows another.
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

    /// The rest while data is to come through memory: no sleep is told, whatever messages have
    /// shown.
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

    /// The rest while data is to come through memory from a rank that wakes those who sleep. To
    /// wake many, one by one, takes longer than they take in giving way to each other.
    pub fn until_woken(&mut self, now: Duration) -> Rest {
        let waited = self.waited(now);
        match waited {
            _ if waited < SPIN && !self.is_crowded => Rest::Spin,
            _ if !self.is_crowded || waited < AWAKE => Rest::GiveWay,
            _ => Rest::Sleep((waited / SLEEP_PER_TIME_WAITED).min(LONGEST_SLEEP_WITH_NEIGHBOURS)),
        }
    }

    /// Notes whether a socket has something.
    pub fn looked(&mut self, has_something: bool) {
        if has_something {
            self.slept(SleepEnd::Told);
        }
    }

    /// Notes the end of a sleep.
    pub fn slept(&mut self, how: SleepEnd) {
        self.fresh_start();
        self.was_told = match how {
            SleepEnd::Told => Some(true),
            SleepEnd::TimeIsUp => Some(false),
            SleepEnd::Elsewhere => None,
        };
        if how == SleepEnd::Told {
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
