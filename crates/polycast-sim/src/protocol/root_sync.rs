use polycast_core::units::Nanos;
use polycast_protocol::{Form, Multicast, RootSync};

use super::faults::{Arrivals, Delay, Faults, Late};
use super::outcome::{Failure, Timing};
use super::scenario::{Broadcast, Communicator, Hardware, Scenario};
use super::simulator::Simulator;

/// A study of what it is worth that the root waits for receivers, if some of them are late and
/// receive buffers are small.
#[derive(Clone, Debug)]
pub struct RootSyncTrial {
    /// The number of nodes, with one process on each.
    pub nodes: u32,
    /// Length of the message.
    pub bytes: u64,
    /// The bytes that the kernel keeps for a receiver that has not called.
    pub receive_buffer_bytes: usize,
    /// The number of broadcasts, one after the other, on one communicator.
    pub broadcasts: u32,
    /// The seed of everything that is drawn.
    pub seed: u64,
}

/// The result of a study.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RootSyncResult {
    /// The median time from the first call to the last return, in microseconds.
    pub completion_us: f64,
    /// The mean time from the last call to the last return, in microseconds: what the broadcast
    /// itself takes, since nobody can return with all others before the last one has called.
    pub after_last_call_us: f64,
    /// Fragments that multicast did not bring, per broadcast and receiver.
    pub repaired: f64,
}

/// The time between the turns of two broadcasts: long enough that most are over when the next one
/// begins, where nobody is later than a few milliseconds; see [`Simulator::run_apart`].
const PERIOD: Nanos = Nanos::from_micros(50_000);
const LATENCY: Nanos = Nanos::from_micros(25);

impl RootSyncTrial {
    /// The number of first broadcasts that do not count, because the root still learns from them.
    const LEARNING: usize = 20;

    /// Runs the study with one way to wait, under one way to arrive.
    pub fn run(&self, form: Form, sync: RootSync, late: &Late) -> Result<RootSyncResult, Failure> {
        let latest = match late {
            Late::Recorded(calls) => calls.iter().flat_map(|call| &call.late).max().copied(),
            _ => None,
        };
        let broadcast =
            Broadcast { spec: Multicast { form, sync, parity: false }, root: 0, bytes: self.bytes };
        let broadcasts = vec![broadcast; self.broadcasts as usize + Self::LEARNING];
        let outcome = Simulator::for_measuring().run_apart(Scenario {
            seed: self.seed,
            nodes: self.nodes,
            payload_bytes: 1440,
            batch_datagrams: 16,
            bits_per_second: None,
            communicators: vec![Communicator { first_operation: 0, broadcasts }],
            is_concurrent: false,
            hardware: Hardware::gigabit(),
            faults: Faults {
                multicast_delay: Delay::constant(LATENCY),
                message_delay: Delay::constant(LATENCY),
                receive_buffer_bytes: Some(self.receive_buffer_bytes),
                arrivals: Arrivals { period: PERIOD + latest.unwrap_or_default(), late: late.clone() },
                ..Faults::default()
            },
        })?;
        Ok(RootSyncResult::of(&outcome.broadcasts[Self::LEARNING..], self.nodes))
    }
}

impl RootSyncResult {
    fn of(timings: &[Timing], nodes: u32) -> RootSyncResult {
        let micros = |time: Nanos| time.0 as f64 / 1000.0;
        let mut completions: Vec<f64> = timings.iter().map(|timing| micros(timing.completion())).collect();
        completions.sort_by(f64::total_cmp);
        let count = timings.len() as f64;
        let after = timings.iter().map(|timing| micros(timing.last_return - timing.last_call));
        let repaired = timings.iter().map(|timing| timing.repaired).sum::<u64>() as f64;
        RootSyncResult {
            completion_us: completions[completions.len() / 2],
            after_last_call_us: after.sum::<f64>() / count,
            repaired: repaired / count / f64::from(nodes - 1),
        }
    }
}
