//! What all rounds came to.

use std::collections::BTreeMap;
use std::fmt;

use crate::common::report::Report;

/// Sums over rounds.
#[derive(Debug, Default)]
pub struct Totals {
    /// Rounds in which something did not hold.
    pub failed: u64,
    /// By the names of programs' and reports' counters, and of faults.
    counted: BTreeMap<String, u64>,
}

/// The counters of multicast that tell what happened.
const OF_MULTICAST: [&str; 5] = ["repaired", "foreign", "forged", "fallbacks", "dropped"];

impl Totals {
    /// Adds something that happened.
    pub fn add(&mut self, name: &str, number: u64) {
        *self.counted.entry(name.to_owned()).or_default() += number;
    }

    /// Adds `name=number` of a line with this first word.
    pub fn add_line(&mut self, word: &str, output: &str) {
        for line in output.lines().filter(|line| line.split_whitespace().next() == Some(word)) {
            for (name, number) in line.split_whitespace().filter_map(|field| field.split_once('=')) {
                // Times are no counts.
                if let Ok(number) = number.parse() {
                    self.add(name, number);
                }
            }
        }
    }

    /// Adds what polycast counted.
    pub fn add_report(&mut self, report: &Report) {
        self.add("served on rank 0", report.served());
        for name in OF_MULTICAST {
            self.add(name, report.multicast.get(name).copied().unwrap_or(0));
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted: Vec<String> =
            self.counted.iter().map(|(name, number)| format!("{name} {number}")).collect();
        write!(f, "{}", counted.join(", "))
    }
}
