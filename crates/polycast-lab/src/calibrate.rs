//! Calibration: how far a lab is to be believed.
//!
//! A token bucket that has rested gives its content away at once, so short transfers look faster than any wire; and
//! all links of a lab are forwarded by the cores of one machine, so many fast links together look slower. Both are
//! measured with bare TCP, before any MPI, and written beside every result.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::probe::{Arrived, OneWayTimes, Task, Transfers, Window, monotonic_nanoseconds};
use crate::{Lab, LabError};
use polycast_core::units::Rate;
use polycast_core::units::statistics::sample_at;

/// Ratios to the wire within which a measurement says something about a real link of that rate.
const BELIEVABLE: (f64, f64) = (0.9, 1.15);

/// Payload of a full TCP segment with time stamps, and what Ethernet, IP and TCP add to it.
const SEGMENT_BYTES: u64 = 1_448;
const HEADER_BYTES: u64 = 66;

/// The time that `bytes` of payload need on one link with their headers.
pub fn wire_time(bytes: u64, rate: Rate) -> Duration {
    let on_wire = bytes + bytes.div_ceil(SEGMENT_BYTES) * HEADER_BYTES;
    Duration::from_secs_f64(on_wire as f64 * 8.0 / rate.bits_per_second() as f64)
}

/// The measurements to make.
#[derive(Clone, Debug)]
pub struct CalibrationOptions {
    /// Sizes of single transfers in bytes.
    pub sizes: Vec<u64>,
    /// The number of transfers of each size.
    pub repetitions: usize,
    /// The time for which all links are loaded at once.
    pub load_time: Duration,
}

impl Default for CalibrationOptions {
    /// 1 KiB to 4 MiB in powers of four, five times each; one second of load.
    fn default() -> Self {
        let sizes = (0..7).map(|power| 1024 << (2 * power)).collect();
        CalibrationOptions { sizes, repetitions: 5, load_time: Duration::from_secs(1) }
    }
}

/// The results of measuring a lab without MPI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Number of hosts.
    pub hosts: usize,
    /// Bucket of the links in bytes.
    pub burst_bytes: u32,
    /// Rate of the slowest link between the two hosts of the single transfers.
    pub rate_bits_per_second: Rate,
    /// Single transfers between two hosts, with no other traffic, by size.
    pub transfers: Vec<Transfer>,
    /// All links at once.
    pub load: Load,
}

/// One-way transfers of one size, from idle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Payload.
    pub bytes: u64,
    /// Median time from the first write to the last byte read, in microseconds.
    pub median_us: f64,
    /// The shortest time.
    pub min_us: f64,
    /// The longest time.
    pub max_us: f64,
    /// The time that the wire alone would need, in microseconds.
    pub wire_us: f64,
    /// `median_us / wire_us`.
    pub ratio_to_wire: f64,
    /// Whether the transfer is larger than a bucket and the ratio is near enough to 1.
    pub believable: bool,
}

/// Every host sends to its successor in a ring, as in a pipelined chain: each link carries one flow in each direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Flows at once.
    pub flows: usize,
    /// The rate that the links would carry together.
    pub expected_bits_per_second: u64,
    /// The rate that arrived, headers included.
    pub achieved_bits_per_second: u64,
    /// `achieved / expected`.
    pub ratio: f64,
    /// Whether the machine carries all links at once.
    pub believable: bool,
}

impl Calibration {
    /// Whether transfers of this size are to be believed: sizes between two that were measured need both of them, sizes
    /// outside the nearest.
    pub fn believes(&self, bytes: u64) -> bool {
        let below = self.transfers.iter().rfind(|transfer| transfer.bytes <= bytes);
        let above = self.transfers.iter().find(|transfer| transfer.bytes >= bytes);
        let mut nearest = below.into_iter().chain(above).peekable();
        nearest.peek().is_some() && nearest.all(|transfer| transfer.believable)
    }
}

impl Lab {
    /// Measures what this lab does without MPI. Nothing else should run on it.
    ///
    /// It takes about `repetitions` × (wire time of all sizes + 50 ms each) + `load_time` + 2 s.
    pub fn calibrate(&self, options: &CalibrationOptions) -> Result<Calibration, LabError> {
        // Neighbours in this order share switches, so that each link carries one flow each way at most.
        let order = self.plan().tree_order();
        let (Some(&first), Some(&last), true) = (order.first(), order.last(), order.len() > 1) else {
            return Err(LabError::Probe("expected a lab of at least two hosts".into()));
        };
        let rate = self.plan().path_rate(first, last);
        Ok(Calibration {
            hosts: order.len(),
            burst_bytes: self.plan().burst_bytes,
            rate_bits_per_second: rate,
            transfers: self.single_transfers(options, (first, last), rate)?,
            load: self.ring_load(options.load_time, &order)?,
        })
    }

    /// Loads all links at once for this time. Nothing else should run on the lab, which has two hosts at least.
    pub fn load(&self, time: Duration) -> Result<Load, LabError> {
        self.ring_load(time, &self.plan().tree_order())
    }

    fn single_transfers(
        &self,
        options: &CalibrationOptions,
        (from, to): (usize, usize),
        rate: Rate,
    ) -> Result<Vec<Transfer>, LabError> {
        let transfers = Transfers {
            sizes: options.sizes.clone(),
            repetitions: options.repetitions.max(1),
            idle: Duration::from_millis(50),
        };
        let receiver = self.probe(to, &Task::Receive { transfers: transfers.clone() })?;
        let sender = self.probe(from, &Task::Send { to: self.hosts()[to].address, transfers })?;
        let times: OneWayTimes = sender.result()?;
        receiver.end()?;
        let burst = self.plan().burst_bytes;
        Ok(options
            .sizes
            .iter()
            .zip(times)
            .map(|(&bytes, times)| Transfer::of(bytes, rate, burst, times))
            .collect())
    }

    fn ring_load(&self, load_time: Duration, order: &[usize]) -> Result<Load, LabError> {
        // Starting a process on a host takes some milliseconds; the window opens when all of them are there.
        let start_up = Duration::from_millis(500 + 40 * order.len() as u64);
        let send_from = monotonic_nanoseconds() + start_up.as_nanos() as u64;
        let count_from = send_from + Duration::from_millis(300).as_nanos() as u64;
        let window = Window { send_from, count_from, until: count_from + load_time.as_nanos() as u64 };
        let successors = order.iter().cycle().skip(1);
        let mut probes = Vec::new();
        let mut expected = 0;
        for (&host, &next) in order.iter().zip(successors) {
            expected += self.plan().path_rate(host, next).bits_per_second();
            probes.push(self.probe(host, &Task::Ring { to: self.hosts()[next].address, window })?);
        }
        let arrived = probes.into_iter().map(Probe::result::<Arrived>).sum::<Result<u64, LabError>>()?;
        let with_headers = arrived as f64 * (SEGMENT_BYTES + HEADER_BYTES) as f64 / SEGMENT_BYTES as f64;
        let achieved = with_headers * 8.0 / load_time.as_secs_f64();
        let ratio = achieved / expected as f64;
        Ok(Load {
            flows: order.len(),
            expected_bits_per_second: expected,
            achieved_bits_per_second: achieved as u64,
            ratio,
            believable: ratio >= BELIEVABLE.0,
        })
    }

    fn probe(&self, host: usize, task: &Task) -> Result<Probe, LabError> {
        let name = &self.hosts()[host].name;
        let failed =
            |error: std::io::Error| LabError::Probe(format!("cannot start a probe on {name}: {error}"));
        let mut command: Command = self.tool_on(name, &["lab", "probe"])?;
        command.arg(serde_json::to_string(task).map_err(|error| failed(error.into()))?);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Ok(Probe { host: name.clone(), child: Some(child.map_err(failed)?) })
    }
}

impl Transfer {
    fn of(bytes: u64, rate: Rate, burst_bytes: u32, mut nanoseconds: Vec<u64>) -> Transfer {
        nanoseconds.sort_unstable();
        let microseconds = |index: usize| nanoseconds.get(index).map_or(f64::NAN, |time| *time as f64 / 1e3);
        let wire_us = wire_time(bytes, rate).as_secs_f64() * 1e6;
        let median_us = sample_at(&nanoseconds, 0.5).map_or(f64::NAN, |time| time as f64 / 1e3);
        let ratio_to_wire = median_us / wire_us;
        Transfer {
            bytes,
            median_us,
            min_us: microseconds(0),
            max_us: microseconds(nanoseconds.len().saturating_sub(1)),
            wire_us,
            ratio_to_wire,
            // What fits into a bucket is not slowed down by the link at all: a ratio near 1 would be chance.
            believable: bytes > burst_bytes.into() && (BELIEVABLE.0..=BELIEVABLE.1).contains(&ratio_to_wire),
        }
    }
}

/// A process on a host; it ends with us.
struct Probe {
    host: String,
    child: Option<Child>,
}

impl Probe {
    fn result<T: for<'a> Deserialize<'a>>(self) -> Result<T, LabError> {
        let host = self.host.clone();
        let output = self.end()?;
        serde_json::from_slice(&output).map_err(|error| LabError::Probe(format!("answer of {host}: {error}")))
    }

    /// Waits for the end of the process and returns what the process printed.
    fn end(mut self) -> Result<Vec<u8>, LabError> {
        let Some(child) = self.child.take() else { return Ok(Vec::new()) };
        let output =
            child.wait_with_output().map_err(|error| LabError::Probe(format!("{}: {error}", self.host)))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(LabError::Probe(format!("on {}: {}", self.host, said.trim())))
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_carries_headers_too() {
        let rate = "20mbit".parse().unwrap();
        assert_eq!(wire_time(1_448, rate), Duration::from_nanos(605_600));
        assert_eq!(wire_time(0, rate), Duration::ZERO);
        assert_eq!(wire_time(1 << 20, rate).as_millis(), 438);
    }

    #[test]
    fn a_size_is_believed_with_its_neighbours() {
        let rate: Rate = "20mbit".parse().unwrap();
        let at = |bytes, ratio: f64| {
            Transfer::of(bytes, rate, 1_600, vec![(wire_time(bytes, rate).as_nanos() as f64 * ratio) as u64])
        };
        let load = Load {
            flows: 2,
            expected_bits_per_second: 1,
            achieved_bits_per_second: 1,
            ratio: 1.0,
            believable: true,
        };
        let calibration = Calibration {
            hosts: 2,
            burst_bytes: 1_600,
            rate_bits_per_second: rate,
            transfers: vec![at(1_024, 1.0), at(4_096, 0.95), at(16_384, 1.1), at(65_536, 1.2)],
            load,
        };
        for (bytes, believed) in [
            (1, false),
            (1_024, false),
            (2_048, false),
            (4_096, true),
            (8_192, true),
            (16_384, true),
            (20_000, false),
            (1 << 20, false),
        ] {
            assert_eq!(calibration.believes(bytes), believed, "{bytes}");
        }
    }
}
