//! The messages that the leaders of all nodes send while they measure at once, each to the next
//! one.
//!
//! ```text
//!  to the next      ping ×5   4 KiB   16 KiB   64 KiB … until one takes long, then so long ones until three in succession agree      over
//!  from the next       ▲ answers of one byte; each is sent when the one before was answered
//! ```
//! A token bucket is full at the beginning: what goes through it then tells nothing of the rate, however often it is repeated. What it lets pass
//! at first is known by what follows taking longer, so only messages in succession that agree are believed.
//!
//! Each leader is measured by the one before it in the same way, so every link carries data in both directions, as it does in a chain.
//! It answers what comes from there whenever it comes; the two have nothing to do with each other, so nobody waits for anybody in a
//! circle.

use super::Estimate;
use super::estimate::{RoundTrip, settled};
use crate::units::Nanos;

/// Round trips of one byte: one that opens the connection and counts for nothing, and those that tell the latency.
const PINGS: usize = 5;
/// Bytes of the shortest message that is to tell the rate: a few packets, of which the first is
/// often free, tell none.
const FIRST_BYTES: u64 = 4 << 10;
/// The factor by which each message is longer than the one before, until one takes long.
const GROWTH: u64 = 4;
/// The longest message: at 100 Gb/s it takes as long as a round trip or a few.
pub const MAX_MESSAGE_BYTES: u64 = 1 << 20;
/// The time from which on a message is followed by shorter ones, which tell as much.
const TOO_LONG: Nanos = Nanos::from_micros(16_000);
/// The time for all messages. None is begun that would end later, as far as one can tell: links so
/// slow have told enough.
const PATIENCE: Nanos = Nanos::from_micros(160_000);
/// Messages that are not pings, at most.
const MAX_MESSAGES: usize = 24;

/// The next step of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send so many bytes to the next leader, and call [`Exchange::answered`] when the answer
    /// comes.
    Send(u64),
    /// Send an empty message: nothing more comes. It is not answered.
    Over,
}

/// A leader's measurement of its way to the next leader. Time and answers go in, messages come out.
#[derive(Clone, Debug)]
pub struct Exchange {
    began: Nanos,
    sent: Nanos,
    bytes: u64,
    short: Vec<Nanos>,
    long: Vec<RoundTrip>,
}

impl Exchange {
    /// Begins a measurement. The first message has one byte.
    pub fn new(now: Nanos) -> (Exchange, Next) {
        (Exchange { began: now, sent: now, bytes: 1, short: Vec::new(), long: Vec::new() }, Next::Send(1))
    }

    /// Notes that the last message was answered at `now`, and returns the next step.
    pub fn answered(&mut self, now: Nanos) -> Next {
        let time = now - self.sent;
        match self.bytes {
            1 => self.short.push(time),
            bytes => self.long.push(RoundTrip { bytes, time }),
        }
        let next = self.next(now);
        if let Next::Send(bytes) = next {
            (self.bytes, self.sent) = (bytes, now);
        }
        next
    }

    fn next(&self, now: Nanos) -> Next {
        let spent = now - self.began;
        let Some(last) = self.long.last() else {
            let is_hopeless = spent > PATIENCE;
            return Next::Send(if self.short.len() < PINGS && !is_hopeless { 1 } else { FIRST_BYTES });
        };
        if self.long.len() >= MAX_MESSAGES || settled(&self.long, self.fastest_ping()).is_some() {
            return Next::Over;
        }
        let takes = last.time - self.fastest_ping();
        let (bytes, would_take) = match () {
            () if takes >= TOO_LONG && last.bytes > FIRST_BYTES => {
                (last.bytes / GROWTH, Nanos(last.time.0 / GROWTH))
            }
            () if last.tells_the_rate(self.fastest_ping()) => (last.bytes, last.time),
            () => (last.bytes * GROWTH, Nanos(last.time.0.saturating_mul(GROWTH))),
        };
        if spent + would_take > PATIENCE { Next::Over } else { Next::Send(bytes) }
    }

    fn fastest_ping(&self) -> Nanos {
        self.counted().iter().min().copied().unwrap_or_default()
    }

    /// Round trips of the pings but for the first, which opened the connection.
    fn counted(&self) -> &[Nanos] {
        if self.short.len() > 1 { &self.short[1..] } else { &self.short }
    }

    /// Returns the estimate that the answers give, once the exchange is over.
    pub fn estimate(&self) -> Option<Estimate> {
        Estimate::of(self.counted(), &self.long)
    }
}

#[cfg(test)]
mod tests;
