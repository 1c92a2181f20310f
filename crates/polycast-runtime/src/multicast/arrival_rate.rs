//! How fast a message comes in, and how long a receiver may look away.
//!
//! Where ranks outnumber processors, a receiver that wakes for each packet spends more on waking than on receiving, and takes
//! the processor from the others. The kernel's buffer keeps what comes meanwhile: so it sleeps for half of the time that the
//! rest will take, then for half of what is left, and is awake when the end comes.

use std::time::{Duration, Instant};

/// Longest interval; requests of a successor wait as long.
const MAX_INTERVAL: Duration = Duration::from_millis(2);
/// Shortest interval: for less, waiting for the socket is as good.
const INTERVAL_LEAST: Duration = Duration::from_micros(150);

/// Divisor of the receive buffer: that part may fill while nobody looks.
const BUFFER_PART: u64 = 8;

/// Rate of one message on its way in.
pub struct ArrivalRate {
    buffer_bytes: u64,
    /// Time at which the first datagrams were read, and the bytes that they had.
    began: Option<(Instant, u64)>,
    /// Bytes when the last interval began: a stream that stands still is watched.
    at_last_poll: u64,
}

impl ArrivalRate {
    /// The rate of a message of which nothing has come.
    pub fn new(buffer_bytes: usize) -> ArrivalRate {
        ArrivalRate { buffer_bytes: buffer_bytes as u64, began: None, at_last_poll: 0 }
    }

    /// Time for which nobody needs to look; `None`: not long. `received` and `missing` are bytes of
    /// the message so far.
    pub fn poll_interval(&mut self, now: Instant, received: u64, missing: u64) -> Option<Duration> {
        if received == 0 {
            // What was waited for the root says nothing of the rate.
            return None;
        }
        let (began, first) = *self.began.get_or_insert((now, received));
        let since = received.saturating_sub(first);
        if since == 0 || missing == 0 || received == self.at_last_poll {
            return None;
        }
        let next = (missing / 2).min(self.buffer_bytes / BUFFER_PART);
        let nanos = now.duration_since(began).as_nanos() * u128::from(next) / u128::from(since);
        let interval = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(MAX_INTERVAL);
        self.at_last_poll = received;
        (interval >= INTERVAL_LEAST).then_some(interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn intervals_are_half_of_what_is_left_and_end_before_it_ends() {
        let mut rate = ArrivalRate::new(8 << 20);
        let start = Instant::now();
        assert_eq!(rate.poll_interval(start, MIB / 8, 7 * MIB / 8), None, "the rate is not known yet");
        // A mebibyte in 8 ms.
        let at = |eighths: u64| start + Duration::from_millis(eighths - 1);
        assert_eq!(rate.poll_interval(at(2), MIB / 4, 3 * MIB / 4), Some(MAX_INTERVAL), "half would be 3 ms");
        assert_eq!(rate.poll_interval(at(3), MIB / 4, 3 * MIB / 4), None, "nothing has come since");
        assert_eq!(rate.poll_interval(at(6), 6 * MIB / 8, 2 * MIB / 8), Some(Duration::from_millis(1)));
        assert_eq!(rate.poll_interval(at(8), MIB - 1000, 1000), None);
        assert_eq!(rate.poll_interval(at(8), MIB, 0), None);
    }

    #[test]
    fn a_root_that_comes_late_does_not_make_its_message_slow() {
        let mut rate = ArrivalRate::new(8 << 20);
        let start = Instant::now();
        assert_eq!(rate.poll_interval(start, 0, 8192), None);
        let at = |micros: u64| start + Duration::from_millis(250) + Duration::from_micros(micros);
        assert_eq!(rate.poll_interval(at(0), 4320, 3872), None, "nothing says yet how fast it comes");
        assert_eq!(rate.poll_interval(at(240), 5760, 2432), Some(Duration::from_micros(240) * 1216 / 1440));
    }

    #[test]
    fn the_buffer_does_not_fill_meanwhile() {
        let mut rate = ArrivalRate::new(64 << 10);
        let start = Instant::now();
        rate.poll_interval(start, MIB / 16, 15 * MIB / 16);
        // 8 KiB, an eighth of the buffer, take 125 microseconds at this rate: no time to sleep.
        assert_eq!(rate.poll_interval(start + Duration::from_millis(1), MIB / 8, 7 * MIB / 8), None);
    }
}
