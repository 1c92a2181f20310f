//! What stands in every report beside the figures: where, with what, how exactly.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;

use super::operation::Operation;
use crate::jobs::record::{Clock, Place, Span, TimeFrom};

/// The surroundings of a measurement; the first line of the JSON output, under the key `environment`.
#[derive(Clone, Debug, Serialize)]
pub struct Environment {
    /// Version of polycast.
    pub polycast: &'static str,
    /// The command line, to repeat it.
    pub command: Vec<String>,
    /// Seconds since 1970 at the beginning.
    pub started_unix_s: u64,
    /// The machine that the tool runs on.
    pub machine: Machine,
    /// `openmpi` or `mpich`.
    pub mpi: String,
    /// The MPI library's description of itself.
    pub mpi_version: String,
    /// The mpiexec.
    pub launcher: String,
    /// The MPIs if several are measured in turn, each with its version; the three fields before
    /// name all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mpis: Vec<String>,
    /// True if polycast was preloaded; if not, only stock could be measured.
    pub preloaded: bool,
    /// Ranks of the job.
    pub ranks: usize,
    /// Hosts of the job.
    pub nodes: usize,
    /// The hosts with their ranks.
    pub hosts: Vec<Host>,
    /// True if there are more ranks than cores under one kernel.
    pub oversubscribed: bool,
    /// The time limit for a size, per variant, over all launches.
    pub time_limit_s: f64,
    /// Jobs that are started.
    pub launches: usize,
    /// The common clock.
    pub clock: Option<ClockReport>,
    /// The call that times run from.
    pub time_from: TimeFrom,
    /// True if caches were emptied before each repetition.
    pub cold: bool,
    /// The span that is measured of a repetition of the present operation; each point carries its
    /// own.
    #[serde(skip)]
    pub span: Span,
    /// The present operation.
    #[serde(skip)]
    pub operation: Operation,
    /// The spread in µs with which ranks wake up that were given the same time, where times run
    /// from the root's call.
    pub wake_up_spread_us: Option<f64>,
    /// The definition of late repetitions, in words.
    pub tolerance: &'static str,
    /// The slowest link, where it is known.
    pub rate_bits_per_second: Option<u64>,
    /// The reason for the rate of a lab's links, where it was not given.
    pub rate_choice: Option<String>,
    /// The emulated cluster, where there is one.
    pub lab: Option<serde_json::Value>,
}

/// A machine.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The machine's name.
    pub host: String,
    /// The version of the machine's kernel.
    pub kernel: String,
    /// The model of the machine's processor.
    pub cpu: String,
    /// Cores that the tool may use.
    pub cores: usize,
}

/// A host of the job.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Host {
    /// The host's name.
    pub name: String,
    /// The number of ranks on the host.
    pub ranks: usize,
    /// The online cores of the host, which it may share with other hosts of a lab.
    pub cores: u32,
}

/// The common clock: how the clocks of the ranks were brought together, and how well.
#[derive(Clone, Debug, Serialize)]
pub struct ClockReport {
    /// `shared`: all ranks read one clock. `two-level`: one rank per kernel was measured by ping-pongs. `pingpong`:
    /// every rank was.
    pub method: String,
    /// Clocks that were measured.
    pub clocks: u32,
    /// The bound of the error at the beginning, in µs; points carry their own.
    pub error_us: f64,
    /// The error seen between ranks whose clocks are one in truth.
    pub observed_error_us: f64,
}

impl From<&Clock> for ClockReport {
    fn from(clock: &Clock) -> Self {
        ClockReport {
            method: clock.method.clone(),
            clocks: clock.clocks,
            error_us: clock.error_ns as f64 / 1e3,
            observed_error_us: clock.observed_error_ns as f64 / 1e3,
        }
    }
}

/// The rule of the measuring program, in words.
pub fn tolerance_rule(oversubscribed: bool, from: TimeFrom) -> &'static str {
    match (oversubscribed, from) {
        (_, TimeFrom::CallsInARow | TimeFrom::RootCallByAnswers) => {
            "there is no deadline, and no repetition is late"
        }
        (true, TimeFrom::RootCall) => {
            "a repetition is late when a rank calls after the root by more than max(100 us, 5 % of the estimate), or the \
             root after its deadline by more than the wake-up spread"
        }
        (true, TimeFrom::FirstCall) => {
            "a repetition is late when a rank enters it late by more than max(500 us, 125 us for each rank on a core, \
             5 % of the estimate)"
        }
        (false, _) => {
            "a repetition is late when a rank enters it late by more than max(50 us, 1 % of the estimate)"
        }
    }
}

impl Machine {
    /// Describes this machine. A value that cannot be read is empty.
    pub fn here() -> Machine {
        let uname = nix::sys::utsname::uname().ok();
        let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find(|line| line.starts_with("model name"));
        Machine {
            host: text(uname.as_ref().map(|uname| uname.nodename())),
            kernel: text(uname.as_ref().map(|uname| uname.release())),
            cpu: model.and_then(|line| line.split(": ").nth(1)).unwrap_or_default().to_owned(),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get()),
        }
    }
}

/// The hosts of a job in the order of their first ranks, and the host of each rank.
pub fn hosts(places: &[Place]) -> (Vec<Host>, Vec<usize>) {
    let (mut hosts, mut host_of): (Vec<Host>, Vec<usize>) = Default::default();
    // Two kernels may give themselves one name: they are two hosts all the same.
    let mut positions = BTreeMap::new();
    for place in places {
        let position = *positions.entry((&place.host, place.kernel)).or_insert_with(|| {
            hosts.push(Host { name: place.host.clone(), ranks: 0, cores: place.cores });
            hosts.len() - 1
        });
        hosts[position].ranks += 1;
        host_of.push(position);
    }
    (hosts, host_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_apart_by_name_and_kernel() {
        let place = |host: &str, kernel| Place { host: host.into(), kernel, cores: 2 };
        let (found, host_of) = hosts(&[place("h0", 0), place("h1", 0), place("h0", 0), place("h0", 3)]);
        let ranks: Vec<_> = found.iter().map(|host| (host.name.as_str(), host.ranks)).collect();
        assert_eq!(ranks, [("h0", 2), ("h1", 1), ("h0", 1)]);
        assert_eq!(host_of, [0, 1, 0, 2]);
    }
}
