//! The reports of jobs (`POLYCAST_REPORT=FILE.json`, docs/report.md), for people: one as text, several as a table.

use std::fmt::Write;
use std::time::{Duration, UNIX_EPOCH};

use polycast_core::policy::trials::Sameness;
use serde_json::Value;

use crate::terminal::{count, hanging, nanoseconds, paragraph, size, table};

/// The name of the schema in a job's report.
const SCHEMA: &str = "polycast-report";
/// The most reasons that are listed for one job.
const REASONS: usize = 6;

/// A job's report.
pub struct JobReport {
    file: String,
    report: Value,
}

/// Calls of rank 0, their bytes and seconds.
#[derive(Clone, Copy, Default)]
struct Calls {
    calls: u64,
    bytes: u64,
    seconds: f64,
}

impl Calls {
    fn of(value: &Value) -> Calls {
        let number = |key: &str| value[key].as_u64().unwrap_or(0);
        Calls {
            calls: number("calls"),
            bytes: number("bytes"),
            seconds: value["seconds"].as_f64().unwrap_or(0.0),
        }
    }

    fn and(self, other: Calls) -> Calls {
        Calls {
            calls: self.calls.saturating_add(other.calls),
            bytes: self.bytes.saturating_add(other.bytes),
            seconds: self.seconds + other.seconds,
        }
    }
}

/// Reads a report; `None` if the text is no report.
///
/// # Errors
/// A report of a version that this tool cannot read.
pub fn read(text: &str, file: &str) -> Result<Option<JobReport>, String> {
    let Ok(report) = serde_json::from_str::<Value>(text) else { return Ok(None) };
    if report["schema"] != SCHEMA {
        return Ok(None);
    }
    match report["schema_version"].as_u64() {
        Some(1) => Ok(Some(JobReport { file: file.to_owned(), report })),
        _ => Err(format!(
            "{file}: a report of version {}, expected version 1: read it with the polycast that wrote it",
            report["schema_version"]
        )),
    }
}

impl JobReport {
    fn job(&self, key: &str) -> Option<&Value> {
        Some(&self.report["job"][key]).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.job(key)?.as_str().filter(|text| !text.is_empty())
    }

    /// The program, or the file where that is not known.
    fn name(&self) -> String {
        self.text("program").map_or_else(|| self.file.clone(), str::to_owned)
    }

    fn began(&self) -> Option<String> {
        let seconds = self.job("began_unix_seconds")?.as_u64().filter(|seconds| *seconds < 1 << 36)?;
        let at = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string();
        at.get(..16).map(|minute| minute.replace('T', " "))
    }

    /// Writes ranks in all, and nodes: `16 × 4`.
    fn place(&self) -> Option<String> {
        let [ranks, nodes] = ["ranks", "nodes"].map(|key| self.job(key).and_then(Value::as_u64));
        Some(format!("{} × {}", ranks?, nodes?))
    }

    fn collectives(&self) -> impl Iterator<Item = &Value> {
        self.report["rank_0"]["collectives"].as_array().into_iter().flatten()
    }

    fn sum(&self, what: &str) -> Calls {
        self.collectives().map(|of| Calls::of(&of[what])).fold(Calls::default(), Calls::and)
    }

    /// Returns the share of the time between MPI's begin and end that rank 0 spent in collectives,
    /// from 0 to 1.
    fn share(&self) -> Option<f64> {
        let all = self.job("seconds")?.as_f64().filter(|seconds| *seconds > 0.0)?;
        Some((self.sum("served").and(self.sum("left_to_mpi")).seconds / all).min(1.0))
    }

    /// Estimates the seconds that polycast saved: how much longer the served calls would have taken
    /// by the MPI, for classes of sizes that have a trial. Of several trials of a class the one
    /// with the least gain counts; `None` if no trial chose polycast.
    fn gained_seconds(&self) -> Option<f64> {
        let trials = self.report["rank_0"]["trials"].as_array()?;
        let mut gained = None;
        for of in self.collectives() {
            for class in
                of["sizes"].as_array().into_iter().flatten().filter(|class| class["by"] == "polycast")
            {
                let (first, seconds) = (class["first_bytes"].as_u64()?, class["seconds"].as_f64()?);
                let above = class["above_bytes"].as_u64().unwrap_or(u64::MAX);
                let is_of = |trial: &&Value| {
                    let alike = trial["first_bytes"].as_u64().map(Sameness::sizes_alike);
                    trial["collective"] == of["collective"]
                        && alike.is_some_and(|alike| *alike.start() < above && first <= *alike.end())
                };
                let times =
                    trials.iter().filter(is_of).filter_map(times_as_fast).fold(f64::INFINITY, f64::min);
                if times.is_finite() {
                    *gained.get_or_insert(0.0) += seconds * (times - 1.0).max(0.0);
                }
            }
        }
        gained
    }

    /// Returns why calls were left to the MPI: collective, reason, calls; the most calls first.
    fn reasons(&self) -> Vec<(String, String, u64)> {
        let mut found: Vec<(String, String, u64)> = Vec::new();
        for of in self.collectives() {
            for reason in of["reasons"].as_array().into_iter().flatten() {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                found.push((text(&of["collective"]), text(&reason["reason"]), Calls::of(reason).calls));
            }
        }
        for of in self.report["rank_0"]["unserved"].as_array().into_iter().flatten() {
            let operation = of["operation"].as_str().unwrap_or_default().to_owned();
            found.push((operation, "cannot be served".to_owned(), Calls::of(of).calls));
        }
        found.sort_by_key(|(.., calls)| std::cmp::Reverse(*calls));
        found
    }

    /// Writes the report for a screen.
    pub fn told(&self) -> String {
        let began = self.began().map(|began| format!("{began} UTC"));
        let ranks = self.job("ranks").and_then(Value::as_u64).zip(self.job("nodes").and_then(Value::as_u64));
        let ranks = ranks.map(|(ranks, nodes)| {
            format!("{} on {}", count(ranks, "rank", "ranks"), count(nodes, "node", "nodes"))
        });
        let seconds = self.job("seconds").and_then(Value::as_f64).map(|seconds| nanoseconds(seconds * 1e9));
        let version = self.report["polycast"].as_str().map(|version| format!("polycast {version}"));
        let mpi = self.text("mpi").map(str::to_owned);
        let facts: Vec<String> = [began, ranks, mpi, version, seconds].into_iter().flatten().collect();
        let mut text = paragraph(&format!("{}: {}", self.name(), facts.join(", "))) + "\n";
        if let Some(command) = self.text("command") {
            text += &(hanging("  ", "  ", command) + "\n");
        }
        let summary = self.report["summary"].as_str().unwrap_or_default();
        let _ = writeln!(text, "\n{}", paragraph(summary));
        // Reports of before do not say it: only jobs that reached MPI_Finalize left one.
        if let Some(how) = self.report["ended_by"].as_str().filter(|how| *how != "MPI_Finalize") {
            let how = match how {
                "MPI_Abort" => "it called MPI_Abort".to_owned(),
                _ => format!(
                    "rank 0 ended without MPI_Finalize: {how}; what it did shortly before may be missing"
                ),
            };
            let _ = writeln!(text, "{}", paragraph(&how));
        }
        let share =
            self.share().map(|share| format!("{:.1} % of rank 0's time was in collectives", share * 100.0));
        let gained = self.gained_seconds();
        let gained =
            gained.map(|seconds| format!("about {} less than by the MPI alone", nanoseconds(seconds * 1e9)));
        let both: Vec<String> = [share, gained].into_iter().flatten().collect();
        if !both.is_empty() {
            let _ = writeln!(text, "{}", paragraph(&both.join("; ")));
        }
        let rows: Vec<Vec<String>> = self.collectives().map(of_collective).collect();
        if !rows.is_empty() {
            let header = ["COLLECTIVE", "SERVED BY", "SERVED", "BYTES", "TIME", "LEFT", "BYTES", "TIME"];
            text += &format!("\n{}", table(header, rows, 2));
        }
        let reasons = self.reasons();
        if !reasons.is_empty() {
            text += "\nnot served:\n";
        }
        for (of, reason, calls) in reasons.iter().take(REASONS) {
            let line = format!("{} of {of}: {reason}", count(*calls, "call", "calls"));
            text += &(hanging("  ", "    ", &line) + "\n");
        }
        if let Some(more) = reasons.len().checked_sub(REASONS).filter(|more| *more > 0) {
            let _ = writeln!(text, "  and {} more, which --json has", count(more, "reason", "reasons"));
        }
        text
    }

    fn row(&self) -> Vec<String> {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let calls = |what: &str| self.sum(what).calls;
        let reason = self.reasons().into_iter().next();
        vec![
            self.name(),
            or_dash(self.began()),
            or_dash(self.text("mpi").map(str::to_owned)),
            or_dash(reason.map(|(of, reason, calls)| format!("{calls} {of}: {}", shortened(&reason)))),
            or_dash(self.place()),
            or_dash(self.share().map(|share| format!("{:.0}%", share * 100.0))),
            format!("{}/{}", calls("served"), calls("left_to_mpi")),
            or_dash(self.gained_seconds().map(|seconds| nanoseconds(seconds * 1e9))),
        ]
    }

    /// Returns the report as `--json` prints it.
    pub fn json(&self) -> Value {
        let calls = |what: &str| self.sum(what).calls;
        let reasons = self.reasons();
        let reasons = reasons.iter().map(
            |(of, reason, calls)| serde_json::json!({ "operation": of, "reason": reason, "calls": calls }),
        );
        serde_json::json!({
            "file": self.file,
            "job": self.report["job"],
            "ended_by": self.report["ended_by"],
            "share_in_collectives": self.share(),
            "served": calls("served"),
            "left_to_mpi": calls("left_to_mpi"),
            "gained_seconds": self.gained_seconds(),
            "not_served": reasons.collect::<Vec<_>>(),
        })
    }
}

/// Returns how many times as fast as stock the choice that stays is; `None` if stock itself stays.
fn times_as_fast(trial: &Value) -> Option<f64> {
    let stays = trial["stays"].as_str().filter(|stays| *stays != "stock")?;
    let times = trial["times"].as_array()?;
    let of = |name: &str| times.iter().find(|time| time["choice"] == name)?["median_seconds"].as_f64();
    Some(of("stock")? / of(stays).filter(|seconds| *seconds > 0.0)?)
}

/// Returns a collective's row in the table of one job.
fn of_collective(of: &Value) -> Vec<String> {
    let mut algorithms: Vec<(&str, u64)> = of["algorithms"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| Some((one["algorithm"].as_str()?, one["bytes"].as_u64()?)))
        .collect();
    algorithms.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let by = algorithms.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let [served, left] = ["served", "left_to_mpi"].map(|what| Calls::of(&of[what]));
    let numbers = |of: Calls| [of.calls.to_string(), size(of.bytes), nanoseconds(of.seconds * 1e9)];
    let name = of["collective"].as_str().unwrap_or_default().to_owned();
    let by = if by.is_empty() { "-".to_owned() } else { by };
    [name, by].into_iter().chain(numbers(served)).chain(numbers(left)).collect()
}

/// Shortens a reason: without its brackets, and no longer than a cell.
fn shortened(reason: &str) -> String {
    const MOST: usize = 48;
    let plain = reason.split(" (").next().unwrap_or_default();
    match plain.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &plain[..end]),
        None => plain.to_owned(),
    }
}

/// Writes several reports: a line for each, the earliest first.
pub fn told_of_several(reports: &[JobReport]) -> String {
    let mut sorted: Vec<&JobReport> = reports.iter().collect();
    sorted.sort_by_key(|report| report.job("began_unix_seconds").and_then(Value::as_u64));
    let header = ["JOB", "BEGAN", "MPI", "NOT SERVED", "RANKS", "IN COLL.", "SERVED/LEFT", "GAINED"];
    let rows = sorted.iter().map(|report| report.row()).collect();
    table(header, rows, 4)
        + "\nRANKS: ranks × nodes. Calls and times are rank 0's; GAINED is an estimate by trials.\n"
}
