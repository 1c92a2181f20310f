//! What was served how, for `POLYCAST_REPORT=1`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use polycast_core::protocol;
use polycast_core::select::Choice;

use crate::multicast::{Dropped, Ring};
use crate::unserved;

/// Broadcasts that were treated alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub calls: u64,
    pub bytes: u64,
}

impl Count {
    pub fn add(&mut self, bytes: u64) {
        self.calls += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn merge(&mut self, other: Count) {
        self.calls += other.calls;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// One communicator's broadcasts; stock stands apart because it must be counted in a nanosecond.
#[derive(Debug, Default)]
pub struct Counters {
    pub stock: Count,
    by_algorithm: Vec<(Choice, Count)>,
    multicast: Multicast,
}

/// What multicast did, on one communicator or all.
#[derive(Clone, Copy, Debug, Default)]
struct Multicast {
    protocol: protocol::Counters,
    dropped: Dropped,
    send_errors: u64,
}

impl Counters {
    pub fn served(&mut self, choice: Choice, bytes: u64) {
        match self.by_algorithm.iter_mut().find(|(known, _)| *known == choice) {
            Some((_, count)) => count.add(bytes),
            None => self.by_algorithm.push((choice, Count { calls: 1, bytes })),
        }
    }

    /// The communicator's ring goes.
    pub fn multicast(&mut self, ring: &Ring) {
        let dropped = ring.group().take_dropped();
        self.multicast = Multicast { protocol: ring.counters(), dropped, send_errors: ring.send_errors() };
    }
}

impl Multicast {
    fn merge(&mut self, other: &Multicast) {
        self.protocol.add(&other.protocol);
        self.dropped.add(&other.dropped);
        self.send_errors += other.send_errors;
    }

    /// Name and value of each, in the order of the report.
    fn named(&self) -> Vec<(&'static str, u64)> {
        let Dropped { foreign, forged, unclaimed, by_kernel } = self.dropped;
        let dropped = [
            ("foreign", foreign),
            ("forged", forged),
            ("unclaimed", unclaimed),
            ("buffer_drops", by_kernel),
            ("send_errors", self.send_errors),
        ];
        self.protocol.named().into_iter().chain(dropped).collect()
    }
}

#[derive(Default)]
struct Totals {
    attached: u64,
    released: u64,
    /// Communicators that did without multicast.
    fallbacks: u64,
    /// All ranks of MPI_COMM_WORLD print a report, and know that of each other.
    all_ranks_report: bool,
    multicast: Multicast,
    by_name: BTreeMap<String, Count>,
    /// By what choices were made, where it is not the table that is built in alone.
    choices: BTreeSet<String>,
}

/// Ways to choose that a report names: each communicator may have its own.
const CHOICES_MOST: usize = 16;

static TOTALS: Mutex<Option<Totals>> = Mutex::new(None);

fn with_totals<R>(change: impl FnOnce(&mut Totals) -> R) -> R {
    change(TOTALS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

pub fn attached() {
    with_totals(|totals| totals.attached += 1);
}

/// All ranks of MPI_COMM_WORLD have been asked for a report.
pub fn all_ranks_report() {
    with_totals(|totals| totals.all_ranks_report = true);
}

/// By what the choices of a communicator are made.
pub fn choices(by: String) {
    with_totals(|totals| {
        if totals.choices.len() < CHOICES_MOST {
            totals.choices.insert(by);
        }
    });
}

/// A communicator that was to use multicast does without.
pub fn fell_back() {
    with_totals(|totals| totals.fallbacks += 1);
}

/// A communicator goes; what it did is kept.
pub fn released(counters: &Counters) {
    with_totals(|totals| {
        totals.released += 1;
        totals.multicast.merge(&counters.multicast);
        let served = counters.by_algorithm.iter().map(|(choice, count)| (choice.to_string(), *count));
        let stock = (counters.stock != Count::default()).then(|| ("stock".to_owned(), counters.stock));
        for (name, count) in served.chain(stock) {
            totals.by_name.entry(name).or_default().merge(count);
        }
    });
}

/// The report, a line per algorithm, as tests and people read it: calls as this rank made them; what multicast did, over all
/// ranks if all take part. `sum` is called only then, with the same number of values everywhere.
pub fn report(sum: impl FnOnce(&mut [u64]) -> bool) -> String {
    with_totals(|totals| {
        let named = totals.multicast.named();
        let mut values: Vec<u64> = named.iter().map(|(_, value)| *value).collect();
        let is_sum = totals.all_ranks_report && sum(&mut values);
        let mut text = String::new();
        for by in &totals.choices {
            let _ = writeln!(text, "polycast: report: choices {by}");
        }
        for (name, Count { calls, bytes }) in &totals.by_name {
            let _ = writeln!(text, "polycast: report: bcast {name} calls={calls} bytes={bytes}");
        }
        for (operation, Count { calls, bytes }) in unserved::counts() {
            let _ = writeln!(text, "polycast: report: unserved {operation} calls={calls} bytes={bytes}");
        }
        if values.iter().any(|value| *value > 0) || totals.fallbacks > 0 {
            text.push_str("polycast: report: multicast");
            for ((name, _), value) in named.iter().zip(values) {
                let _ = write!(text, " {name}={value}");
            }
            let of = if is_sum { "all" } else { "this" };
            let _ = writeln!(text, " fallbacks={} ranks={of}", totals.fallbacks);
        }
        let Totals { attached, released, .. } = totals;
        let _ = writeln!(text, "polycast: report: attached communicators={attached} released={released}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_a_line_per_algorithm() {
        let mut counters = Counters::default();
        counters.stock.add(10);
        counters.served("chain".parse().unwrap(), 100);
        counters.served("chain".parse().unwrap(), 11);
        attached();
        choices("by=prediction".to_owned());
        choices("by=prediction".to_owned());
        released(&counters);
        let report = report(|_| panic!("not all ranks report"));
        assert!(report.contains("bcast chain calls=2 bytes=111\n"), "{report}");
        assert_eq!(report.matches("polycast: report: choices by=prediction\n").count(), 1, "{report}");
        assert!(report.contains("bcast stock calls=1 bytes=10\n"), "{report}");
        assert!(report.contains("attached communicators=1 released=1\n"), "{report}");
    }
}
