use super::exchange::MAX_MESSAGE_BYTES;
use crate::units::{Nanos, Rate};

/// Latency and rate of the way to one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Half of the shortest round trip.
    pub latency: Nanos,
    /// The rate while a long message is under way.
    pub rate: Rate,
}

/// The round trip of a message that a short one answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoundTrip {
    pub(super) bytes: u64,
    pub(super) time: Nanos,
}

/// The longest round trip of one byte that is believed. A longer one says more of ranks that had no
/// processor than of the network between nodes that multicast and trees are for.
const DISTURBED: Nanos = Nanos::from_micros(2000);
/// The time by which a message must take longer than an empty one to tell the rate.
const LONG_ENOUGH: Nanos = Nanos::from_micros(1000);
/// The number of messages in succession that are believed if they agree.
const IN_SUCCESSION: usize = 3;

impl RoundTrip {
    /// True if the message's bytes take much longer than what any message takes (`empty`), or if
    /// the message has [`MAX_MESSAGE_BYTES`], the most there are.
    pub(super) fn tells_the_rate(&self, empty: Nanos) -> bool {
        self.bytes >= MAX_MESSAGE_BYTES || self.time - empty >= LONG_ENOUGH
    }

    fn bits_per_second(&self, empty: Nanos) -> u64 {
        let bits = u128::from(self.bytes) * 8 * 1_000_000_000 / u128::from((self.time - empty).0.max(1));
        u64::try_from(bits).unwrap_or(u64::MAX)
    }
}

/// Returns the middle one of the last [`IN_SUCCESSION`] messages if these agree and tell the rate.
/// Then none of them was let pass by a full token bucket, and none was held up. They agree if they
/// have the same bytes and, beyond an empty message, none takes more than half longer than another.
pub(super) fn settled(long: &[RoundTrip], empty: Nanos) -> Option<RoundTrip> {
    let mut last: [RoundTrip; IN_SUCCESSION] = *long.last_chunk()?;
    last.sort_unstable_by_key(|one| one.time);
    let [fastest, middle, slowest] = last;
    let are_alike = fastest.bytes == slowest.bytes && fastest.bytes == middle.bytes;
    let agree = (slowest.time - empty).0 <= (fastest.time - empty).0.saturating_mul(3) / 2;
    (are_alike && agree && fastest.tells_the_rate(empty)).then_some(middle)
}

impl Estimate {
    /// Estimates a way from the round trips of short messages, and of long ones in their order.
    /// `None` if there are none, if the ranks were too slow to tell, or if the message that is
    /// chosen took hardly longer than an empty one.
    ///
    /// If no messages in succession agreed, the median is chosen of those that took long enough,
    /// but for the first, which a full bucket may have let pass in part.
    pub(super) fn of(short: &[Nanos], long: &[RoundTrip]) -> Option<Estimate> {
        let empty = *short.iter().min().filter(|empty| **empty <= DISTURBED)?;
        let took_long: Vec<RoundTrip> =
            long.iter().filter(|one| one.tells_the_rate(empty)).copied().collect();
        let later = if took_long.len() > 1 { &took_long[1..] } else { &took_long };
        let mut by_rate: Vec<RoundTrip> = later.to_vec();
        by_rate.sort_by_key(|one| one.bits_per_second(empty));
        let usual = by_rate.get(by_rate.len() / 2).or_else(|| long.iter().max_by_key(|one| one.bytes));
        let chosen = settled(long, empty).or(usual.copied())?;
        if (chosen.time - empty).0 < empty.0 / 2 {
            return None;
        }
        let bits =
            chosen.bits_per_second(empty).clamp(Rate::MIN.bits_per_second(), Rate::MAX.bits_per_second());
        Some(Estimate { latency: Nanos((empty.0 / 2).max(1)), rate: Rate::from_bits_per_second(bits)? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(bytes: u64, latency: u64, mbit: u64) -> RoundTrip {
        RoundTrip { bytes, time: Nanos(2 * latency + bytes * 8000 / mbit) }
    }

    fn estimate(times: &[RoundTrip], latency: u64) -> Estimate {
        Estimate::of(&[Nanos(2 * latency), Nanos(9 * latency)], times).unwrap()
    }

    #[test]
    fn nothing_is_estimated_from_nothing() {
        assert_eq!(Estimate::of(&[], &[round_trip(4096, 1, 1)]), None);
        assert_eq!(Estimate::of(&[Nanos(1)], &[]), None);
    }

    #[test]
    fn ranks_without_processors_tell_nothing() {
        let times = [round_trip(4096, 50_000_000, 20)];
        assert_eq!(
            Estimate::of(&[Nanos(100_000_000)], &times),
            None,
            "not the fastest network that there is"
        );
        assert_eq!(
            Estimate::of(&[Nanos(1_000_000)], &[RoundTrip { bytes: 4096, time: Nanos(1_000_000) }]),
            None
        );
    }

    /// What passes a full bucket is fast however long it is; the rest is not.
    #[test]
    fn a_full_bucket_does_not_count() {
        let free = [4096, 16_384, 65_536].map(|bytes| round_trip(bytes, 10_000, 1000));
        let half = round_trip(65_536, 10_000, 20);
        let paid = [round_trip(16_384, 10_000, 10); 3];
        let found = estimate(&[&free[..], &[half], &paid].concat(), 10_000);
        assert_eq!((found.latency, found.rate.to_string().as_str()), (Nanos(10_000), "10mbit"));
        // And where time is over before anything has agreed.
        let found = estimate(&[&free[..], &[half], &paid[..1]].concat(), 10_000);
        assert_eq!(found.rate.to_string(), "10mbit");
    }

    #[test]
    fn three_in_succession_must_agree() {
        let (good, late) = (round_trip(262_144, 10_000, 1000), round_trip(262_144, 10_000, 100));
        for (times, is_settled) in [
            (&[good, good, good][..], true),
            (&[late, good, good], false),
            (&[late, good, good, good], true),
            (&[good, good], false),
            (&[round_trip(65_536, 10_000, 1000), good, good], false),
            (&[round_trip(4096, 10_000, 1000); 3], false),
        ] {
            assert_eq!(settled(times, Nanos(20_000)).is_some(), is_settled, "{times:?}");
        }
    }

    proptest! {
        #[test]
        fn delays_of_some_make_no_way_faster_and_hardly_slower(
            mbit in 1u64..10_000,
            latency in 1000u64..40_000,
            delays in prop::collection::vec(prop_oneof![2 => Just(0u64), 1 => 0u64..20_000_000], 3..9),
        ) {
            let clean = round_trip(1 << 20, latency, mbit);
            let late = |delay: &u64| RoundTrip { time: clean.time + Nanos(*delay), ..clean };
            let times: Vec<RoundTrip> = delays.iter().map(late).collect();
            let ratio = estimate(&times, latency).rate.bits_per_second() as f64 / (mbit as f64 * 1e6);
            prop_assert!(ratio < 1.02, "{}", ratio);
            let most_are_in_time = delays[1..].iter().filter(|delay| **delay == 0).count() * 2 > delays.len() - 1;
            prop_assert!(ratio > 0.6 || !most_are_in_time || settled(&times, Nanos(2 * latency)).is_some(), "{}", ratio);
        }
    }
}
