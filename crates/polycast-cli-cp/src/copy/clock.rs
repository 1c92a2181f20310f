//! The time in which this process had its turns. Who was not heard while it had none was not silent: on a machine that is busy, or after a stop, words
//! wait to be read.

use std::time::{Duration, Instant};

use polycast_core::units::Nanos;

/// The longest time that a turn counts for: twice what one takes without any news.
const LONGEST_TURN: Duration = Duration::from_millis(40);

/// See the module.
pub struct Clock {
    looked: Instant,
    now: Nanos,
}

impl Clock {
    /// A clock that begins at 0.
    pub fn new() -> Clock {
        Clock { looked: Instant::now(), now: Nanos(0) }
    }

    /// Begins another turn.
    pub fn turn(&mut self) {
        let looked = Instant::now();
        self.took(looked - self.looked);
        self.looked = looked;
    }

    fn took(&mut self, turn: Duration) {
        self.now = self.now + Nanos(turn.min(LONGEST_TURN).as_nanos() as u64);
    }

    /// The time at the beginning of this turn.
    pub fn now(&self) -> Nanos {
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_a_turn_does_not_count() {
        let mut clock = Clock::new();
        for milliseconds in [20, 3_000, 40] {
            clock.took(Duration::from_millis(milliseconds));
        }
        assert_eq!(clock.now(), Nanos::from_micros(100_000));
        clock.turn();
        assert!(clock.now() > Nanos::from_micros(100_000));
    }
}
