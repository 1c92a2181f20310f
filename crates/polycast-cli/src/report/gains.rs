//! What trials found, and what the job gained by it.

use serde::Serialize;
use serde_json::Value;

use super::summary::Group;

/// A trial that is over.
#[derive(Serialize)]
pub struct Gain {
    /// The operation.
    pub collective: String,
    /// Sizes from here to twice as many.
    pub first_bytes: u64,
    /// Ranks of the communicators.
    pub ranks: u64,
    /// What was compared: its choice, and the median of the mean of the ranks.
    pub compared: Vec<Time>,
    /// What stays.
    pub stays: String,
    /// An earlier job found it.
    pub is_remembered: bool,
    /// How many times as fast it is as the MPI below.
    pub times_as_fast: Option<f64>,
    /// Calls of such sizes that it has served.
    pub calls: u64,
    /// What each rank saved in them, by the medians of the trial.
    pub saved_seconds: Option<f64>,
}

/// What one way took.
#[derive(Serialize)]
pub struct Time {
    /// The way.
    pub choice: String,
    /// The median.
    pub seconds: f64,
}

/// Of the report that rank 0 leaves (docs/report.md). What is not as it should be is not there.
pub fn gains(report: Option<&Value>, groups: &[Group]) -> Vec<Gain> {
    let trials = report.and_then(|report| report["rank_0"]["trials"].as_array());
    trials.into_iter().flatten().filter_map(|trial| gain(trial, groups)).collect()
}

fn gain(trial: &Value, groups: &[Group]) -> Option<Gain> {
    let collective = trial["collective"].as_str()?.to_owned();
    let (first_bytes, stays) = (trial["first_bytes"].as_u64()?, trial["stays"].as_str()?.to_owned());
    let time = |one: &Value| {
        Some(Time { choice: one["choice"].as_str()?.to_owned(), seconds: one["median_seconds"].as_f64()? })
    };
    let compared: Vec<Time> = trial["times"].as_array()?.iter().filter_map(time).collect();
    let of = |name: &str| compared.iter().find(|time| time.choice == name).map(|time| time.seconds);
    let (stock, best) = (of("stock"), of(&stays));
    let is_it = |group: &&Group| {
        (group.collective, &group.choice) == (&collective[..], &stays)
            && (first_bytes..first_bytes.saturating_mul(2)).contains(&group.first_bytes)
    };
    let calls = groups.iter().filter(is_it).map(|group| group.calls).sum();
    Some(Gain {
        first_bytes,
        ranks: trial["ranks"].as_u64()?,
        is_remembered: trial["is_remembered"].as_bool()?,
        times_as_fast: stock.zip(best).filter(|(_, best)| *best > 0.0).map(|(stock, best)| stock / best),
        saved_seconds: stock.zip(best).map(|(stock, best)| (stock - best) * calls as f64),
        collective,
        compared,
        stays,
        calls,
    })
}
