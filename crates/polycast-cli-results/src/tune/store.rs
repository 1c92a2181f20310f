//! What was found: a line of JSON for each size, written as it comes, which the next run goes on with.

use std::path::Path;

use polycast_core::policy::tune::{Found, Measured};
use polycast_core::policy::{Choice, Collective};
use serde::{Deserialize, Serialize};

use crate::json_lines::JsonLines;

/// The conditions of a result. Another cluster, MPI or build of polycast is another key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The version of polycast.
    pub version: String,
    /// The mpiexec, as it calls itself.
    pub mpi: String,
    /// The hosts, or the lab.
    pub place: String,
    /// Ranks in all.
    pub ranks: u32,
    /// Nodes.
    pub nodes: u32,
    /// Ranks on the fullest node.
    pub ranks_per_node: u32,
    /// The collective.
    pub collective: String,
    /// True if all ways were measured for long.
    pub exhaustive: bool,
    /// The further settings of the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
}

/// The result of a race for one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The conditions of the result.
    pub key: Key,
    /// The size as the user asked for it.
    pub bytes: u64,
    /// The size in bytes by which rules count.
    pub block_bytes: u64,
    /// The best choice.
    pub best: String,
    /// A time: median, lower and upper end of its interval, in µs, and samples.
    pub time: Option<Numbers>,
    /// The numbers of stock.
    pub stock: Option<Numbers>,
    /// The second-best choice, and its numbers.
    pub second: Option<(String, Numbers)>,
    /// True if the intervals of the best two have nothing in common.
    pub separates: bool,
    /// Ways that were measured.
    pub measured: usize,
    /// The numbers of all ways, the fastest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub all: Vec<(String, Numbers)>,
    /// The time that the race took, in seconds.
    pub seconds: f64,
}

/// A time: median, lower and upper end of its interval, in µs, and samples.
pub type Numbers = (f64, f64, f64, usize);

fn numbers(time: Measured) -> Numbers {
    (time.median_us, time.low_us, time.high_us, time.samples)
}

fn time((median_us, low_us, high_us, samples): Numbers) -> Measured {
    Measured { median_us, low_us, high_us, samples }
}

impl Record {
    /// Makes the record of a race.
    pub fn new(key: &Key, (bytes, block_bytes): (u64, u64), found: &Found, seconds: f64) -> Record {
        Record {
            key: key.clone(),
            bytes,
            block_bytes,
            best: found.best.to_string(),
            time: found.time.map(numbers),
            stock: found.stock.map(numbers),
            second: found.second.map(|(choice, time)| (choice.to_string(), numbers(time))),
            separates: found.separates,
            measured: found.measured,
            all: found.all.iter().map(|(choice, time)| (choice.to_string(), numbers(*time))).collect(),
            seconds,
        }
    }

    /// Returns the result of the race; `None` if this polycast does not know its best or second
    /// choice.
    pub fn found(&self, collective: Collective) -> Option<Found> {
        let choice = |text: &str| Choice::read(collective, text).ok();
        let second = match &self.second {
            None => None,
            Some((text, numbers)) => Some((choice(text)?, time(*numbers))),
        };
        Some(Found {
            best: choice(&self.best)?,
            time: self.time.map(time),
            stock: self.stock.map(time),
            second,
            separates: self.separates,
            measured: self.measured,
            all: self
                .all
                .iter()
                .filter_map(|(text, numbers)| Some((choice(text)?, time(*numbers))))
                .collect(),
        })
    }
}

/// The file of results, and the results in it.
pub struct Store {
    file: JsonLines,
    records: Vec<Record>,
}

impl Store {
    /// Reads the file, if there is one.
    pub fn open(path: &Path) -> Result<Store, String> {
        let (file, records) = JsonLines::open(path)?;
        Ok(Store { file, records })
    }

    /// Adds a result.
    pub fn add(&mut self, record: Record) -> Result<(), String> {
        self.file.add(&record)?;
        self.records.push(record);
        Ok(())
    }

    /// Returns the records whose key passes the test `is_it`, the last one first.
    pub fn about<'a>(&'a self, is_it: &'a dyn Fn(&Key) -> bool) -> impl Iterator<Item = &'a Record> {
        self.records.iter().rev().filter(|record| is_it(&record.key))
    }

    /// Returns the records of a key by rising bytes, the last one of each size.
    pub fn of(&self, key: &Key) -> Vec<&Record> {
        let mut found: Vec<&Record> = Vec::new();
        for record in self.records.iter().filter(|record| record.key == *key) {
            found.retain(|other| other.block_bytes != record.block_bytes);
            found.push(record);
        }
        found.sort_by_key(|record| record.block_bytes);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(bytes: u64, best: &str) -> Record {
        let key = Key {
            version: "1".into(),
            mpi: "m".into(),
            place: "a,b".into(),
            ranks: 2,
            nodes: 2,
            ranks_per_node: 1,
            collective: "bcast".into(),
            exhaustive: false,
            settings: Vec::new(),
        };
        let found = Found {
            best: Choice::read(Collective::Broadcast, best).unwrap(),
            time: Some(Measured { median_us: 2.0, low_us: 1.0, high_us: 3.0, samples: 9 }),
            stock: None,
            second: Some((Choice::Stock, Measured { median_us: 4.0, low_us: 3.5, high_us: 5.0, samples: 7 })),
            separates: true,
            measured: 5,
            all: vec![(Choice::Stock, Measured { median_us: 4.0, low_us: 3.5, high_us: 5.0, samples: 7 })],
        };
        Record::new(&key, (bytes, bytes), &found, 1.5)
    }

    #[test]
    fn what_was_found_is_there_in_the_next_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("found");
        let mut store = Store::open(&path).unwrap();
        let records = [record(4096, "chain"), record(1024, "binomial"), record(4096, "chain:segment=1KiB")];
        records.iter().for_each(|one| store.add(one.clone()).unwrap());
        // As a run that was killed leaves it.
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + "{\"key\":{\"vers").unwrap();
        let again = Store::open(&path).unwrap();
        assert_eq!(again.of(&records[0].key), [&records[1], &records[2]]);
        let found = again.of(&records[0].key)[1].found(Collective::Broadcast).unwrap();
        assert_eq!(
            (found.best.to_string().as_str(), found.measured, found.all.len()),
            ("chain:segment=1KiB", 5, 1)
        );
        let key = &records[0].key;
        for other in [Key { ranks: 3, ..key.clone() }, Key { settings: vec!["A=1".into()], ..key.clone() }] {
            assert!(again.of(&other).is_empty());
        }
    }
}
