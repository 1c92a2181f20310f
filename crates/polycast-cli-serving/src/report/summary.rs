//! What the calls of a job come to.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use polycast_core::collective::Collective;
use polycast_core::units::statistics::sample_at;
use polycast_trace::{Call, Trace, phases, skew};
use serde::Serialize;

use super::gains::{Gain, gains};
use super::load::Traced;

/// The summary of a job that `polycast report --json` prints.
#[derive(Serialize)]
pub struct Summary {
    /// The program.
    pub program: String,
    /// The program with its arguments; empty where they are not known.
    pub command: String,
    /// The MPI and its version; empty where it is not known.
    pub mpi: String,
    /// polycast's version.
    pub polycast: String,
    /// The time at which the job began, as in RFC 3339; null where it is not known.
    pub began: Option<String>,
    /// The networks as the job saw them, one of each kind: `16 nodes, 1gbit`.
    pub networks: Vec<String>,
    /// The number of ranks of the job.
    pub ranks: u32,
    /// The number of ranks whose traces are there.
    pub traced_ranks: usize,
    /// The number of hosts of the traced ranks.
    pub hosts: usize,
    /// The time from the first beginning to the last end, in seconds.
    pub seconds: f64,
    /// The largest error when times of two ranks are compared, in µs.
    pub clock_error_us: f64,
    /// Calls of all ranks together.
    pub calls: usize,
    /// The calls by collective, size, choice and reason.
    pub groups: Vec<Group>,
    /// The calls by collective, size and choice, whatever the reason was.
    #[serde(skip)]
    pub served: Vec<Group>,
    /// The ranks that called last, the most frequent first.
    pub last: Vec<Last>,
    /// The calls with a root whose ranks are all known.
    pub rooted_calls: u64,
    /// The calls among `rooted_calls` to which the root came last.
    pub root_was_last: u64,
    /// The results of trials.
    pub trials: Vec<Gain>,
    /// Calls that went to the MPI without a decision on a communicator, of which only the number is
    /// known.
    pub uncounted: Vec<Uncounted>,
    /// Remarks on the traces.
    pub notes: Vec<String>,
}

/// Calls that are alike.
#[derive(Serialize)]
pub struct Group {
    /// The operation.
    pub collective: &'static str,
    /// The smallest size of the class, in bytes, which ends below twice as many.
    pub first_bytes: u64,
    /// The choice that served the calls.
    pub choice: String,
    /// The reason for the choice.
    pub reason: String,
    /// Calls of a communicator.
    pub calls: u64,
    /// The bytes of the calls, counted once for each call.
    pub bytes: u64,
    /// The time of all ranks together within the calls, in seconds.
    pub rank_seconds: f64,
    /// The part of `rank_seconds` spent waiting in polycast, as far as it is known; null for calls
    /// that the MPI serves, whose waiting nobody sees.
    pub waited_seconds: Option<f64>,
    /// The median time of a rank in a call, in µs.
    pub median_us: f64,
    /// The time than which 90 % are not longer, in µs.
    pub p90_us: f64,
    /// The longest time, in µs.
    pub longest_us: f64,
    /// Calls of which all ranks are known, on clocks that were compared.
    pub whole_calls: u64,
    /// The median time from the first call to the root's, over the whole calls, in µs; null without
    /// a root.
    pub startup_us: Option<f64>,
    /// The median time from the root's call to the last one, in µs; null without a root.
    pub intermediate_us: Option<f64>,
    /// The median time from the last call to the last return, in µs.
    pub final_us: Option<f64>,
    /// The median time between the first and the last call, in µs.
    pub skew_in_us: Option<f64>,
    /// The median time between the first and the last return, in µs.
    pub skew_out_us: Option<f64>,
    /// Broadcasts that a leader saw datagrams of, and what all leaders saw.
    pub datagrams: Datagrams,
}

/// The datagrams that leaders saw of multicast.
#[derive(Clone, Copy, Default, Serialize)]
pub struct Datagrams {
    /// Datagrams that were multicast by roots, and by nodes that repaired.
    pub sent: u64,
    /// Datagrams that came.
    pub received: u64,
    /// Datagrams that brought something new.
    pub useful: u64,
    /// Fragments that were sent again.
    pub repaired: u64,
    /// Fragments that the parity restored.
    pub restored: u64,
    /// Requests for lost fragments.
    pub requests: u64,
}

/// A rank that was the last to call, and how often.
#[derive(Serialize)]
pub struct Last {
    /// The rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// The rank's host.
    pub host: String,
    /// The number of calls in which the rank was the last.
    pub calls: u64,
    /// The median time in these calls between the first rank's call and this rank's, in µs.
    pub median_us: f64,
}

/// Calls of which only the number is known.
#[derive(Serialize)]
pub struct Uncounted {
    /// The fate of the calls.
    pub kind: &'static str,
    /// The reason, or the function.
    pub name: String,
    /// The calls of all ranks.
    pub calls: u64,
    /// The bytes of all ranks.
    pub bytes: u64,
}

/// Returns the class of a size, by its smallest size: each class begins at twice the one before.
pub fn class_of(bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { 1 << bytes.ilog2() }
}

/// The name of a collective's number.
pub fn collective_name(number: u8) -> &'static str {
    Collective::ALL.get(usize::from(number)).map_or("unknown", |collective| collective.name())
}

/// Returns the value that `percent` of a hundred are not above; 0 of no values. Sorts the values.
pub fn percentile(values: &mut [u64], percent: usize) -> u64 {
    values.sort_unstable();
    sample_at(values, percent as f64 / 100.0).unwrap_or(0)
}

fn us(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// Groups of calls, by collective, class of sizes, choice and reason.
type Groups = BTreeMap<(u8, u64, String, String), Of>;

#[derive(Default)]
struct Of {
    calls: u64,
    bytes: u64,
    times: Vec<u64>,
    waited: u64,
    whole: u64,
    phases: [Vec<u64>; 2],
    finals: Vec<u64>,
    skews: [Vec<u64>; 2],
    datagrams: Datagrams,
}

impl Of {
    fn add(&mut self, call: &Call) {
        self.calls += 1;
        self.bytes = self.bytes.saturating_add(call.bytes);
        for part in &call.parts {
            if let Some(returned) = part.returned_ns {
                self.times.push(returned.abs_diff(part.called_ns));
                self.waited = self.waited.saturating_add(part.waited_ns);
            }
            if let Some(seen) = &part.datagrams {
                let all = &mut self.datagrams;
                all.sent += u64::from(seen.sent);
                all.received = all.received.saturating_add(seen.received);
                all.useful += u64::from(seen.useful);
                all.repaired = all.repaired.saturating_add(seen.repaired);
                all.restored += u64::from(seen.restored);
                all.requests += u64::from(seen.requests);
            }
        }
        if let Some(skew) = skew(call) {
            self.whole += 1;
            self.finals.push(skew.after_last_ns);
            self.skews[0].push(skew.in_ns);
            self.skews[1].push(skew.out_ns);
        }
        if let Some(phases) = phases(call) {
            self.phases[0].push(phases.startup_ns);
            self.phases[1].push(phases.intermediate_ns);
        }
    }

    fn group(mut self, (collective, first_bytes, choice, reason): (u8, u64, String, String)) -> Group {
        let median = |values: &mut Vec<u64>| (!values.is_empty()).then(|| us(percentile(values, 50)));
        let [startup, intermediate] = &mut self.phases;
        let [skew_in, skew_out] = &mut self.skews;
        Group {
            collective: collective_name(collective),
            first_bytes,
            waited_seconds: (choice != "stock").then_some(self.waited as f64 / 1e9),
            choice,
            reason,
            calls: self.calls,
            bytes: self.bytes,
            rank_seconds: self.times.iter().map(|time| *time as f64 / 1e9).sum(),
            median_us: us(percentile(&mut self.times, 50)),
            p90_us: us(percentile(&mut self.times, 90)),
            longest_us: us(percentile(&mut self.times, 100)),
            whole_calls: self.whole,
            startup_us: median(startup),
            intermediate_us: median(intermediate),
            final_us: median(&mut self.finals),
            skew_in_us: median(skew_in),
            skew_out_us: median(skew_out),
            datagrams: self.datagrams,
        }
    }
}

/// A time that a clock may show.
fn moment(since_1970_ns: u64) -> Option<String> {
    // Until the year 2262; 0 is that of a clock that was never set.
    let is_likely = (1..i64::MAX as u64).contains(&since_1970_ns);
    let at = || UNIX_EPOCH + Duration::from_secs(since_1970_ns / 1_000_000_000);
    is_likely.then(|| humantime::format_rfc3339_seconds(at()).to_string())
}

/// Reads the networks from the report that rank 0 leaves.
fn networks(traced: &Traced) -> Vec<String> {
    let all = traced.report.as_ref().and_then(|report| report["rank_0"]["networks"].as_array());
    let known = all.into_iter().flatten().filter_map(|network| {
        let rate = network["rate"].as_str()?;
        Some(format!("{} nodes, {rate}", network["nodes"].as_u64()?))
    });
    known.collect()
}

/// Returns the summary of a job.
pub fn summary(traced: &Traced) -> Summary {
    let job = &traced.job;
    let (mut groups, mut served): (Groups, Groups) = Default::default();
    let mut lateness: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    let (mut rooted_calls, mut root_was_last) = (0, 0);
    for call in &traced.calls {
        let reason = call.parts.first().map_or(0, |part| part.reason);
        let names = (traced.name(call.choice()).to_owned(), traced.name(reason).to_owned());
        let (collective, class) = (call.collective, class_of(call.bytes));
        served.entry((collective, class, names.0.clone(), String::new())).or_default().add(call);
        groups.entry((collective, class, names.0, names.1)).or_default().add(call);
        // Who was last by less than clocks are wrong is not known.
        let Some(skew) = skew(call).filter(|skew| skew.in_ns > job.clock_error_ns) else { continue };
        if let Some(part) = call.parts.iter().find(|part| part.rank == skew.last) {
            lateness.entry(job.traces[part.trace as usize].rank).or_default().push(skew.in_ns);
        }
        if polycast_trace::has_root(call.collective) {
            rooted_calls += 1;
            root_was_last += u64::from(skew.last == call.root);
        }
    }
    let host = |rank: u32| {
        job.traces.iter().find(|trace| trace.rank == rank).map_or(String::new(), |trace| trace.host.clone())
    };
    let mut last: Vec<Last> = lateness
        .into_iter()
        .map(|(rank, mut times)| Last {
            rank,
            host: host(rank),
            calls: times.len() as u64,
            median_us: us(percentile(&mut times, 50)),
        })
        .collect();
    last.sort_by_key(|last| std::cmp::Reverse(last.calls));
    let mut hosts: Vec<&str> = job.traces.iter().map(|trace| &trace.host[..]).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let uncounted = traced.uncounted().into_iter();
    let [groups, served] =
        [groups, served].map(|all| all.into_iter().map(|(key, of)| of.group(key)).collect::<Vec<Group>>());
    let of_first = |text: fn(&Trace) -> &String| job.traces.first().map(text).cloned().unwrap_or_default();
    Summary {
        program: of_first(|trace| &trace.program),
        command: of_first(|trace| &trace.command),
        mpi: of_first(|trace| &trace.mpi),
        polycast: of_first(|trace| &trace.polycast),
        began: job.traces.iter().map(|trace| trace.began_1970_ns).min().and_then(moment),
        networks: networks(traced),
        ranks: job.ranks,
        traced_ranks: job.traces.len(),
        hosts: hosts.len(),
        seconds: job.length_ns as f64 / 1e9,
        clock_error_us: us(job.clock_error_ns),
        calls: traced.calls.len(),
        trials: gains(traced),
        groups,
        served,
        last,
        rooted_calls,
        root_was_last,
        uncounted: uncounted
            .map(|((kind, name), (calls, bytes))| Uncounted { kind, name, calls, bytes })
            .collect(),
        notes: traced.notes.clone(),
    }
}
