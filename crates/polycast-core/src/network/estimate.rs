use crate::units::{Nanos, Rate};

/// Latency and rate of the way to one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Half of the shortest round trip.
    pub latency: Nanos,
    /// While a long message is under way.
    pub rate: Rate,
}

/// The round trip of a message that a short one answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoundTrip {
    pub(super) bytes: u64,
    pub(super) time: Nanos,
}

/// A round trip of one byte that takes longer says more of ranks that had no processor than of the network between nodes that multicast
/// and trees are for.
const DISTURBED: Nanos = Nanos::from_micros(2000);

impl Estimate {
    /// Of the round trips of short messages, and of longer and longer ones; the shortest of each length counts, for nothing makes a
    /// message faster than the way is. `None` if there are none, if ranks were too slow to tell, or if the longest took hardly longer than an
    /// empty one.
    ///
    /// The rate is that between the two longest: a bucket that was full when the first came, and what every message costs whatever its
    /// length, have no part in it. Where the shorter one was held up, the difference would promise too much; more than twice the
    /// rate of the longest message as a whole is not believed.
    pub(super) fn of(short: &[Nanos], long: &[RoundTrip]) -> Option<Estimate> {
        let empty = *short.iter().min().filter(|empty| **empty <= DISTURBED)?;
        let best = |bytes: u64| long.iter().filter(|one| one.bytes == bytes).map(|one| one.time).min();
        let longest = long.iter().map(|one| one.bytes).max()?;
        let time = best(longest).filter(|time| (*time - empty).0 >= empty.0 / 2)?;
        let whole = bits_per_second(longest, time - empty);
        let before = long.iter().map(|one| one.bytes).filter(|bytes| *bytes < longest).max();
        let between = before
            .and_then(|before| Some((before, best(before)?)))
            .map_or(whole, |(before, first)| bits_per_second(longest - before, time - first));
        let bits = between.min(whole.saturating_mul(2));
        let bits = bits.clamp(Rate::MIN.bits_per_second(), Rate::MAX.bits_per_second());
        Some(Estimate { latency: Nanos((empty.0 / 2).max(1)), rate: Rate::from_bits_per_second(bits)? })
    }
}

fn bits_per_second(bytes: u64, time: Nanos) -> u64 {
    let bits = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(time.0.max(1));
    u64::try_from(bits).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A way of this rate whose bucket lets `burst` bytes pass at once.
    fn round_trip(bytes: u64, latency: u64, mbit: u64, burst: u64) -> RoundTrip {
        let on_wire = bytes.saturating_sub(burst) * 8000 / mbit;
        RoundTrip { bytes, time: Nanos(2 * latency + on_wire) }
    }

    fn estimate(times: &[RoundTrip], latency: u64) -> Estimate {
        Estimate::of(&[Nanos(2 * latency), Nanos(9 * latency)], times).unwrap()
    }

    #[test]
    fn nothing_is_estimated_from_nothing() {
        assert_eq!(Estimate::of(&[], &[round_trip(4096, 1, 1, 0)]), None);
        assert_eq!(Estimate::of(&[Nanos(1)], &[]), None);
    }

    #[test]
    fn ranks_without_processors_tell_nothing() {
        let times = [round_trip(4096, 50_000_000, 20, 0)];
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

    #[test]
    fn a_full_bucket_does_not_count() {
        let times = [4096, 16_384, 65_536, 262_144].map(|bytes| round_trip(bytes, 10_000, 1000, 65_536));
        let found = estimate(&times, 10_000);
        assert_eq!((found.latency, found.rate.to_string().as_str()), (Nanos(10_000), "1gbit"));
    }

    #[test]
    fn a_shorter_message_that_was_held_up_promises_nothing() {
        let mut times = [65_536, 262_144].map(|bytes| round_trip(bytes, 10_000, 1000, 0));
        times[0].time = times[1].time - Nanos(1);
        assert_eq!(estimate(&times, 10_000).rate.to_string(), "2gbit", "and not all that is possible");
    }

    proptest! {
        #[test]
        fn delays_make_no_way_faster_than_twice_and_one_good_repetition_is_enough(
            mbit in 1u64..100_000,
            latency in 1000u64..40_000,
            delays in prop::collection::vec(0u64..20_000_000, 3),
        ) {
            let sizes = [65_536, 262_144, 1 << 20];
            let mut times: Vec<RoundTrip> = sizes.iter().map(|bytes| round_trip(*bytes, latency, mbit, 0)).collect();
            let clean = estimate(&times, latency);
            let ratio = clean.rate.bits_per_second() as f64 / (mbit as f64 * 1e6);
            prop_assert!((0.98..1.02).contains(&ratio), "{:?}", clean);
            let held_up = |(one, delay): (&RoundTrip, &u64)| RoundTrip { time: one.time + Nanos(*delay), ..*one };
            let slow: Vec<RoundTrip> = times.iter().zip(&delays).map(held_up).collect();
            prop_assert!(estimate(&slow, latency).rate.bits_per_second() as f64 <= 2.05e6 * mbit as f64);
            times.extend(slow);
            prop_assert_eq!(estimate(&times, latency), clean);
        }
    }
}
