//! What trials found, and what the job gained by it.

use std::collections::BTreeMap;

use polycast_core::policy::trials::Sameness;
use serde::Serialize;
use serde_json::Value;

use super::load::Traced;
use super::summary::{class_of, collective_name};

/// A trial that is over.
#[derive(Serialize)]
pub struct Gain {
    /// The operation.
    pub collective: String,
    /// The smallest size in bytes of those that trials take for one: up to twice as many, or all below a
    /// cache line.
    pub first_bytes: u64,
    /// Ranks of the communicators.
    pub ranks: u64,
    /// The choices that were compared, each with the median of the mean of the ranks.
    pub compared: Vec<Time>,
    /// The choice that stays.
    pub stays: String,
    /// True if an earlier job found the result.
    pub is_remembered: bool,
    /// The speed of the choice that stays, as a multiple of the speed of the MPI below.
    pub times_as_fast: Option<f64>,
    /// The calls of these sizes on these communicators that the choice has served.
    pub calls: u64,
    /// The time in seconds that each rank saved in these calls, by the medians of the trial.
    pub saved_seconds: Option<f64>,
}

/// The time of one way.
#[derive(Serialize)]
pub struct Time {
    /// The way.
    pub choice: String,
    /// The median.
    pub seconds: f64,
}

/// The number of calls by collective, class of sizes, ranks of the communicator, and choice.
type Counts = BTreeMap<(u8, u64, u32, u16), u64>;

/// Reads the trials from the report that rank 0 leaves (docs/report.md). Trials that are not as
/// they should be are left out.
pub fn gains(traced: &Traced) -> Vec<Gain> {
    let mut counts = Counts::new();
    for call in &traced.calls {
        *counts.entry((call.collective, class_of(call.bytes), call.size, call.choice())).or_default() += 1;
    }
    let trials = traced.report.as_ref().and_then(|report| report["rank_0"]["trials"].as_array());
    trials.into_iter().flatten().filter_map(|trial| gain(trial, traced, &counts)).collect()
}

fn gain(trial: &Value, traced: &Traced, counts: &Counts) -> Option<Gain> {
    let collective = trial["collective"].as_str()?.to_owned();
    let ranks = trial["ranks"].as_u64()?;
    let (first_bytes, stays) = (trial["first_bytes"].as_u64()?, trial["stays"].as_str()?.to_owned());
    let time = |one: &Value| {
        Some(Time { choice: one["choice"].as_str()?.to_owned(), seconds: one["median_seconds"].as_f64()? })
    };
    let compared: Vec<Time> = trial["times"].as_array()?.iter().filter_map(time).collect();
    let of = |name: &str| compared.iter().find(|time| time.choice == name).map(|time| time.seconds);
    let (stock, best) = (of("stock"), of(&stays));
    let of_trial = (&collective[..], first_bytes, ranks, &stays[..]);
    let is_it = |(number, class, size, choice): &(u8, u64, u32, u16)| {
        let first = *Sameness::sizes_alike(*class).start();
        (collective_name(*number), first, u64::from(*size), traced.name(*choice)) == of_trial
    };
    let calls = counts.iter().filter(|(key, _)| is_it(key)).map(|(_, calls)| calls).sum();
    Some(Gain {
        first_bytes,
        ranks,
        is_remembered: trial["is_remembered"].as_bool()?,
        times_as_fast: stock.zip(best).filter(|(_, best)| *best > 0.0).map(|(stock, best)| stock / best),
        saved_seconds: stock.zip(best).map(|(stock, best)| (stock - best) * calls as f64),
        collective,
        compared,
        stays,
        calls,
    })
}

#[cfg(test)]
mod tests {
    use polycast_core::collective::Collective;
    use polycast_trace::{Event, Job, Kind, calls};
    use serde_json::json;

    use super::super::load::tests::{event, trace};
    use super::*;

    #[test]
    fn a_trial_counts_the_calls_of_its_communicators_whether_they_have_bytes_or_not() {
        let barrier = Collective::Barrier as u8;
        let of_rank = |rank: u32| {
            trace(rank, 64, |recorder| {
                let choice = recorder.name("node-flags").into();
                // Three barriers of all, and one of two ranks.
                let all = recorder.communicator(1, 0, 3, rank, 0);
                let pair = (rank < 2).then(|| recorder.communicator(2, 0, 2, rank, 0));
                let numbers = (1..4).map(|call| (all, call)).chain(pair.map(|pair| (pair, 1)));
                for (communicator, call) in numbers {
                    let event = |kind| Event { communicator, call, ..event(kind, 5) };
                    recorder.record(Event { detail: barrier, ..event(Kind::Call) });
                    recorder.record(Event { b: choice, ..event(Kind::Chosen) });
                }
            })
        };
        let job = Job::new((0..3).map(of_rank).collect()).unwrap();
        let trial = |ranks: u32| {
            json!({ "collective": "barrier", "first_bytes": 0, "ranks": ranks, "stays": "node-flags", "is_remembered": false,
                "times": [{ "choice": "node-flags", "median_seconds": 1.0 }, { "choice": "stock", "median_seconds": 3.0 }] })
        };
        let report = Some(json!({ "rank_0": { "trials": [trial(2), trial(3), trial(4)] } }));
        let traced = Traced { calls: calls(&job), job, report, notes: Vec::new() };
        let found: Vec<_> = gains(&traced).iter().map(|gain| (gain.calls, gain.saved_seconds)).collect();
        assert_eq!(found, [(1, Some(2.0)), (3, Some(6.0)), (0, Some(0.0))]);
    }
}
