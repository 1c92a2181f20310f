//! Points that have been measured: each experiment once, and over again only if its file has gone.
//!
//! The file has a JSON object in each line: `experiment`, all of its settings as text, and `measured`. A line is added when its
//! point is known, so whatever ended a run, the next one goes on after its last point. What cannot be read is measured again.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use indicatif::ProgressBar;
use polycast_study::wormhole::{Experiment, Measured};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::report::Done;
use crate::json_lines::JsonLines;

/// The points that have been measured, by experiment.
pub struct Store {
    file: Option<JsonLines>,
    known: HashMap<String, Measured>,
}

impl Store {
    /// Keeps points for as long as it lives, and in `points.jsonl` in the directory if there is one.
    pub fn open(directory: Option<&Path>) -> Result<Store, String> {
        let Some(directory) = directory else { return Ok(Store { file: None, known: HashMap::new() }) };
        fs::create_dir_all(directory)
            .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        let (file, lines) = JsonLines::open::<Value>(&directory.join("points.jsonl"))?;
        Ok(Store { file: Some(file), known: lines.iter().filter_map(entry).collect() })
    }

    /// The number of these experiments that are not known yet.
    pub fn missing(&self, experiments: &[Experiment]) -> usize {
        experiments.iter().filter(|experiment| !self.known.contains_key(&key(experiment))).count()
    }

    /// Measures what is not known yet, several at a time.
    pub fn measure(
        &mut self,
        experiments: &[Experiment],
        progress: &ProgressBar,
    ) -> Result<Vec<Done>, String> {
        let mut missing: Vec<(String, Experiment)> =
            experiments.iter().map(|experiment| (key(experiment), *experiment)).collect();
        missing.retain(|(key, _)| !self.known.contains_key(key));
        missing.sort_by(|(one, _), (other, _)| one.cmp(other));
        missing.dedup_by(|(one, _), (other, _)| one == other);
        let store = Mutex::new(&mut *self);
        missing.into_par_iter().try_for_each(|(key, experiment)| {
            let measured = experiment.run();
            progress.inc(1);
            let mut store = store.lock().map_err(|_| "another point failed".to_owned())?;
            if let Some(file) = &mut store.file {
                file.add(&json!({ "experiment": key, "measured": value(&measured) }))?;
            }
            store.known.insert(key, measured);
            Ok::<(), String>(())
        })?;
        let known = |experiment: &Experiment| Done {
            experiment: *experiment,
            measured: self.known[&key(experiment)].clone(),
        };
        Ok(experiments.iter().map(known).collect())
    }
}

fn key(experiment: &Experiment) -> String {
    format!("{experiment:?}")
}

fn entry(line: &Value) -> Option<(String, Measured)> {
    Some((line["experiment"].as_str()?.to_owned(), measured(&line["measured"])?))
}

/// A point's measurements as `--json` and the store's file have them.
pub fn value(measured: &Measured) -> Value {
    json!({
        "offered": measured.offered,
        "accepted": measured.accepted,
        "accepted_error": measured.accepted_error,
        "is_saturated": measured.is_saturated(),
        "latency": measured.latency,
        "interval": measured.interval.is_finite().then_some(measured.interval),
        "is_exact": measured.is_exact,
        "groups": measured.groups,
        "alone": measured.bound,
        "contention_rate": measured.contention_rate(),
        "delayed": measured.delayed,
        "root_queue": measured.root_queue,
        "hold": measured.hold,
        "end": measured.end,
        "multicasts": measured.multicasts,
        "flit_hops": measured.flit_hops,
    })
}

fn measured(value: &Value) -> Option<Measured> {
    let number = |key: &str| value[key].as_f64();
    Some(Measured {
        latency: number("latency")?,
        interval: number("interval").unwrap_or(f64::INFINITY),
        groups: value["groups"].as_array()?.iter().map(Value::as_f64).collect::<Option<_>>()?,
        bound: number("alone")?,
        accepted: number("accepted")?,
        accepted_error: number("accepted_error")?,
        offered: number("offered")?,
        hold: number("hold")?,
        end: number("end")?,
        root_queue: number("root_queue")?,
        delayed: number("delayed")?,
        multicasts: value["multicasts"].as_u64()?,
        is_exact: value["is_exact"].as_bool()?,
        flit_hops: value["flit_hops"].as_u64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_was_measured() {
        let one = Measured {
            latency: 1.5,
            interval: f64::INFINITY,
            groups: vec![1.0, 2.0],
            bound: 1.25,
            accepted: 0.05,
            accepted_error: 0.001,
            offered: 0.06,
            hold: 2.0,
            end: 3.0,
            root_queue: 4.0,
            delayed: 5.0,
            multicasts: 6,
            is_exact: true,
            flit_hops: 1 << 60,
        };
        let text = value(&one).to_string();
        assert_eq!(measured(&serde_json::from_str(&text).unwrap()), Some(one));
        assert_eq!(measured(&json!({ "latency": 1 })), None);
    }
}
