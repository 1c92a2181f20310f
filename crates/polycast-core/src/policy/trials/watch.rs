//! Calls of a way that stays are looked at now and then: where they take clearly longer or shorter than they did, the network or its other
//! users have changed, and the ways are compared anew.
//!
//! ```text
//!  settled ▶ 8 calls     64 calls or 50 ms     8 calls    …    8 calls                 8 calls
//!            timed       nothing               timed           timed                   timed
//!            ╰──────────── 4 looks: how far apart are they? ───╯      beyond that again, and by a quarter: compared anew
//! ```
//! What a look adds up is the same on all ranks, so all begin anew at the same call. What is usual is measured by the job itself, for how
//! much times vary is a matter of its network and of how evenly its ranks come.

use super::Arm;

/// Calls that a look times.
pub(super) const CALLS: usize = 8;
/// Looks that say what is usual.
const USUAL: u8 = 4;
/// Calls between two looks, at least, and the time that they take, at least, so that adding up
/// takes no part that matters.
const APART_CALLS: u64 = 64;
const APART_NANOS: u64 = 50_000_000;
/// Percent by which times must be off: less would not change much who is the fastest.
const LEAST_PERCENT: u128 = 25;

/// The looks at a way that stays, and what is usual for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    /// The way.
    arm: Option<Arm>,
    /// Calls until the look begins.
    wait: u64,
    /// Calls made of this look.
    made: usize,
    /// Times of these calls on this rank, in nanoseconds.
    nanos: [u64; CALLS],
    is_due: bool,
    /// Looks that count, and the shortest and the longest median among the first.
    looks: u8,
    low: u64,
    high: u64,
    /// True if the way is being compared anew.
    is_off: bool,
    /// The number of times that it was compared anew: looks become rare where that changes nothing.
    reopened: u32,
}

impl Watch {
    /// Begins the watch of a way that stays after a trial. What was usual for it still is, unless
    /// that had changed.
    pub fn again(&self, arm: Arm) -> Watch {
        let is_usual = self.arm == Some(arm) && !self.is_off;
        let kept =
            if is_usual { self.clone() } else { Watch { reopened: self.reopened, ..Watch::default() } };
        Watch { arm: Some(arm), made: 0, nanos: [0; CALLS], is_due: false, is_off: false, ..kept }
    }

    /// The next call's place in a look, if it is timed.
    pub fn next(&mut self) -> Option<u8> {
        if self.is_due {
            return None;
        }
        if self.wait > 0 {
            self.wait -= 1;
            return None;
        }
        let place = self.made;
        self.made += 1;
        self.is_due = self.made == CALLS;
        Some(place as u8)
    }

    /// Calls until the next that is timed.
    pub fn wait(&self) -> u64 {
        if self.is_due { 0 } else { self.wait }
    }

    /// Counts `calls` calls, no more than [`Watch::wait`] says.
    pub fn pass(&mut self, calls: u64) {
        self.wait -= calls;
    }

    /// Notes the time of a call on this rank, at its place in the look, in nanoseconds.
    pub fn took(&mut self, place: u8, nanos: u64) {
        if let Some(time) = self.nanos.get_mut(usize::from(place)) {
            *time = nanos;
        }
    }

    /// The times that are to be added up over all ranks.
    pub fn due(&self) -> Option<&[u64; CALLS]> {
        self.is_due.then_some(&self.nanos)
    }

    /// Whether by these sums, to each of which so many ranks have added a time, something has changed.
    pub fn judge(&mut self, sums: &[u64], timed_ranks: u32) -> bool {
        let mut times = [0; CALLS];
        times.iter_mut().zip(sums).for_each(|(time, sum)| *time = *sum);
        times.sort_unstable();
        let median = times[CALLS / 2].max(1);
        let call = median / u64::from(timed_ranks.max(1));
        let apart = (APART_NANOS / call.max(1)).max(APART_CALLS);
        self.wait = apart.saturating_mul(1 << self.reopened.min(16));
        (self.made, self.nanos, self.is_due) = (0, [0; CALLS], false);
        // A call that no rank has timed says nothing.
        if times[0] == 0 {
            return false;
        }
        if self.looks < USUAL {
            let low = if self.looks == 0 { median } else { self.low };
            (self.low, self.high, self.looks) = (low.min(median), self.high.max(median), self.looks + 1);
            return false;
        }
        self.is_off = self.is_beyond(median);
        self.reopened += u32::from(self.is_off);
        self.is_off
    }

    /// True if a median is beyond what is usual by as much as that is apart in itself, and a
    /// quarter.
    fn is_beyond(&self, median: u64) -> bool {
        let [low, high, median] = [self.low, self.high, median].map(u128::from);
        let beyond = |far: u128, near: u128, apart: [u128; 2]| {
            far * apart[0] * 100 > near * apart[1] * (100 + LEAST_PERCENT)
        };
        beyond(median, high, [low, high]) || beyond(low, median, [low, high])
    }
}
