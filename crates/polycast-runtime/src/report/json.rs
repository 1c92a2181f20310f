use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use polycast_core::collective::Collective;

use super::record::{Count, Found, Job};
use super::summary::{AllRanks, CallsOf, SizeClass, Summary};
use crate::machine;

/// Version of the file's format. Rises with every change that a reader of the file would notice,
/// but for new fields.
const SCHEMA_VERSION: u32 = 1;

/// The report, in the order of its fields: what a person who opens the file should see first stands
/// first.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    schema_version: u32,
    polycast: &'static str,
    ended_by: &'static str,
    summary: String,
    job: Option<Value>,
    notes: Vec<String>,
    rank_0: Value,
    all_ranks: Option<Value>,
    multicast: Option<Map<String, Value>>,
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Count { calls, bytes, nanos } = self;
        json!({ "calls": calls, "bytes": bytes, "seconds": seconds(*nanos) }).serialize(serializer)
    }
}

impl Summary {
    /// The report as JSON, as docs/report.md describes it, and a line's end.
    pub fn json(&self) -> String {
        // Nobody waits for a nonblocking call here, so it takes no time.
        let unserved = self.unserved.iter().map(
            |(of, Count { calls, bytes, .. })| json!({ "operation": of, "calls": calls, "bytes": bytes }),
        );
        let without = self.without_multicast.iter();
        let without = without.map(|(reason, count)| json!({ "reason": reason, "communicators": count }));
        let collectives = self.calls.iter().filter(|calls| calls.were_any());
        let collectives =
            collectives.map(|calls| with(json!({ "collective": calls.collective.name() }), of_calls(calls)));
        let report = Report {
            schema: "polycast-report",
            schema_version: SCHEMA_VERSION,
            polycast: env!("CARGO_PKG_VERSION"),
            ended_by: self.ended_by,
            summary: self.sentence(),
            job: self.job.map(of_job),
            notes: self.notes.clone(),
            rank_0: with(
                of_calls(self.broadcasts()),
                json!({
                    "collectives": collectives.collect::<Vec<_>>(),
                    "unserved": unserved.collect::<Vec<_>>(),
                    "choices": self.choices,
                    "networks": self.asked,
                    "trials": self.found.iter().map(of_found).collect::<Vec<_>>(),
                    "communicators": {
                        "attached": self.attached,
                        "released": self.released,
                        "without_multicast": without.collect::<Vec<_>>(),
                    },
                }),
            ),
            all_ranks: self.all_ranks.as_ref().map(of_all_ranks),
            multicast: self.of_multicast(),
        };
        let text = serde_json::to_string_pretty(&report).expect("numbers, texts and objects with names");
        text + "\n"
    }

    fn of_multicast(&self) -> Option<Map<String, Value>> {
        let numbers = self.multicast.as_ref()?.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
        let ranks = ("ranks".to_owned(), json!(self.ranks_of_multicast()));
        Some(numbers.chain([ranks]).collect())
    }
}

/// Adds the fields of `more` to `object`.
fn with(mut object: Value, more: Value) -> Value {
    if let (Value::Object(fields), Value::Object(more)) = (&mut object, more) {
        fields.extend(more);
    }
    object
}

/// The job, as rank 0 knows it when MPI ends.
fn of_job(Job { ranks, nodes, began_1970_ns }: Job) -> Value {
    json!({
        "program": machine::program(),
        "command": machine::command(),
        "mpi": Some(machine::mpi()).filter(|mpi| !mpi.is_empty()),
        "began_unix_seconds": began_1970_ns / 1_000_000_000,
        "seconds": seconds(machine::nanos_since_1970().saturating_sub(began_1970_ns)),
        "ranks": ranks,
        "nodes": nodes,
    })
}

fn of_calls(calls: &CallsOf) -> Value {
    let named = |name: &str, of: &str, count: &Count| with(json!({ name: of }), json!(count));
    let algorithms = calls.served.iter().map(|(of, count)| named("algorithm", of, count));
    let reasons = calls.left.iter().map(|(of, count)| named("reason", of, count));
    json!({
        "served": calls.all_served(),
        "left_to_mpi": calls.all_left(),
        "algorithms": algorithms.collect::<Vec<_>>(),
        "reasons": reasons.collect::<Vec<_>>(),
        "sizes": calls.sizes.iter().map(of_size).collect::<Vec<_>>(),
    })
}

fn of_all_ranks(all: &AllRanks) -> Value {
    let counts = |[served, left]: &[Count; 2]| json!({ "served": served, "left_to_mpi": left });
    let were_any = |(_, [served, left]): &(Collective, &[Count; 2])| served.calls + left.calls > 0;
    let collectives = Collective::ALL.into_iter().zip(&all.calls).filter(were_any);
    let collectives = collectives
        .map(|(collective, calls)| with(json!({ "collective": collective.name() }), counts(calls)));
    with(
        counts(&all.calls[Collective::Broadcast as usize]),
        json!({
            "collectives": collectives.collect::<Vec<_>>(),
            "unserved": { "calls": all.unserved.calls, "bytes": all.unserved.bytes },
        }),
    )
}

fn of_size(class: &SizeClass) -> Value {
    let SizeClass { first_bytes, above_bytes, by, count, times } = class;
    json!({
        "first_bytes": first_bytes,
        "above_bytes": above_bytes,
        "by": by.name(),
        "calls": count.calls,
        "bytes": count.bytes,
        "seconds": seconds(count.nanos),
        "median_seconds": seconds(times.median_nanos),
        "mean_seconds": seconds(count.nanos) / count.calls as f64,
        "longest_seconds": seconds(times.longest_nanos),
    })
}

fn of_found(found: &Found) -> Value {
    let times = found.times.iter();
    let times =
        times.map(|(way, nanos)| json!({ "choice": way.to_string(), "median_seconds": seconds(*nanos) }));
    json!({
        "collective": found.collective.name(),
        "first_bytes": found.first_bytes,
        "ranks": found.ranks,
        "times": times.collect::<Vec<_>>(),
        "stays": found.stays.to_string(),
        "is_tuned": found.is_tuned,
        "is_remembered": found.is_remembered,
    })
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
