use polycast_units::Nanos;

/// Keeps a root from sending faster than the slowest link carries.
///
/// Invariant: over any time, what was let through is at most what the rate allows plus one batch.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    /// The rate; `None` if the sender's own link is the slowest, which holds the sender up by
    /// itself.
    bits_per_second: Option<u64>,
    /// The time from which the link is free again.
    free_at: Nanos,
}

impl Pacer {
    /// A pacer for a link of this rate.
    pub fn new(bits_per_second: Option<u64>) -> Pacer {
        Pacer { bits_per_second, free_at: Nanos(0) }
    }

    /// The time from which the next batch may go; `None` if it may go now.
    pub fn wait_until(&self, now: Nanos) -> Option<Nanos> {
        (self.free_at > now).then_some(self.free_at)
    }

    /// A batch of `bytes` goes now.
    pub fn sent(&mut self, now: Nanos, bytes: usize) {
        if let Some(rate) = self.bits_per_second {
            self.free_at = self.free_at.max(now) + Nanos::on_link(bytes, rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut pacer = Pacer::new(None);
        pacer.sent(Nanos(5), 1 << 30);
        assert_eq!(pacer.wait_until(Nanos(5)), None);
    }

    proptest! {
        #[test]
        fn a_window_holds_no_more_than_the_rate_and_a_batch(
            batches in prop::collection::vec((1usize..65_000, 0u64..1_000_000), 1..50),
            rate in 1_000_000u64..10_000_000_000,
        ) {
            let (mut pacer, mut now, mut sent) = (Pacer::new(Some(rate)), Nanos(0), 0);
            for (bytes, idle) in batches {
                now = pacer.wait_until(now).unwrap_or(now);
                prop_assert!(Nanos::on_link(sent, rate).0 <= now.0 + 1000, "{} bytes in {}", sent, now);
                pacer.sent(now, bytes);
                sent += bytes;
                // Idle time is not saved up.
                now = now + Nanos(idle);
                if pacer.wait_until(now).is_none() {
                    (pacer, now, sent) = (Pacer::new(Some(rate)), Nanos(0), 0);
                }
            }
        }
    }
}
