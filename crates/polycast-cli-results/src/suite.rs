//! What a suite of measurements keeps of each job: `polycast bench --suite` writes it, `polycast report` draws it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::point::Point;

/// The rates of a lab's links, by name; the bucket holds what makes the emulation cheap enough at
/// that rate.
pub const RATES: [(&str, &str); 4] = [
    ("20mbit", "rate=20mbit"),
    ("100mbit", "rate=100mbit,burst=4KiB"),
    ("1gbit", "rate=1gbit,burst=64KiB"),
    ("unthrottled", "rate=100gbit,burst=1MiB"),
];

/// The job that measures one combination, in all sizes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// The MPI as `--mpi` takes it.
    pub mpi: String,
    /// Hosts of the lab.
    pub hosts: u32,
    /// Ranks on each.
    pub ranks_per_host: u32,
    /// The rate of the lab's links, or `unthrottled`.
    pub rate: String,
    /// A rank, or `rotate`.
    pub root: String,
}

impl Cell {
    /// Returns the lab, as `--lab` takes it.
    pub fn lab(&self) -> String {
        let known = RATES.iter().find(|(name, _)| *name == self.rate).map_or("", |(_, links)| links);
        format!("hosts={},{known}", self.hosts)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cell { mpi, hosts, ranks_per_host, rate, root } = self;
        write!(f, "{hosts} hosts × {ranks_per_host}, {rate}, {mpi}, root {root}")
    }
}

/// The result of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// The combination that was measured.
    pub cell: Cell,
    /// The points, one for each size and variant.
    pub points: Vec<Point>,
    /// The reason why there are fewer points than were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The time that the job took, its lab included, in seconds.
    pub seconds: f64,
}
