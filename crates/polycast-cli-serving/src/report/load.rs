//! The traces of a folder.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use polycast_trace::{Call, Ending, Job, Kind, Trace, calls, decode};
use serde_json::Value;

/// The most events of all ranks that are read: of more, the last ones of each rank. An event takes
/// 40 bytes, and its calls twice that.
const MAX_EVENTS: usize = 24_000_000;

/// The extension of ranks' files. Rank 0 leaves its report beside them.
const EXTENSION: &str = "trace";
const REPORT: &str = "report.json";

/// A job as its ranks have recorded it.
pub struct Traced {
    /// The ranks on one clock.
    pub job: Job,
    /// The calls of the ranks.
    pub calls: Vec<Call>,
    /// The job's own report, if it left one.
    pub report: Option<Value>,
    /// Remarks on the traces: damaged files, missing events, clocks.
    pub notes: Vec<String>,
}

/// Reads a folder. What is wrong with one file is a note.
pub fn load(folder: &Path) -> Result<Traced, String> {
    let mut notes = Vec::new();
    let (mut traces, files) = read_all(folder, &mut notes)?;
    keep_newest_job(&mut traces, &mut notes);
    let job = Job::new(traces).map_err(|error| match notes.first() {
        Some(note) => format!("{}: {error}; {note}", folder.display()),
        None => format!("{}: {error} (looked at {files} files)", folder.display()),
    })?;
    notes.extend(notes_of(&job));
    let calls = calls(&job);
    let report = read_regular(&folder.join(REPORT)).ok();
    let report = report.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    Ok(Traced { job, calls, report, notes })
}

fn read_all(folder: &Path, notes: &mut Vec<String>) -> Result<(Vec<Trace>, usize), String> {
    let error = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(error)? {
        let path = entry.map_err(error)?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            files.push(path);
        }
    }
    files.sort();
    let of_rank = MAX_EVENTS / files.len().max(1);
    let mut has_surplus = false;
    let mut traces = Vec::new();
    for file in &files {
        let read = read_regular(file).map_err(|error| error.to_string());
        match read.and_then(|bytes| decode(&bytes).map_err(|error| error.to_string())) {
            Ok(mut trace) => {
                has_surplus |= keep_last(&mut trace, of_rank);
                traces.push(trace);
            }
            Err(problem) => notes.push(format!("{}: {problem}", file.display())),
        }
    }
    if has_surplus {
        notes.push(format!(
            "only the last {of_rank} events of a rank are shown: there are too many to be shown at once"
        ));
    }
    Ok((traces, files.len()))
}

/// Keeps the last `events` events of a trace; true if there were more. The count of recorded events
/// falls by those removed here, so they do not count as events that the rank did not keep.
fn keep_last(trace: &mut Trace, events: usize) -> bool {
    let surplus = trace.events.len().saturating_sub(events);
    if surplus > 0 {
        // Not drained, which would keep the memory of all.
        trace.events = trace.events.split_off(surplus);
        trace.recorded -= surplus as u64;
    }
    surplus > 0
}

/// Reads a regular file and refuses others: a pipe may block until somebody writes, and a device
/// may have no end.
fn read_regular(file: &Path) -> io::Result<Vec<u8>> {
    match fs::metadata(file)?.is_file() {
        true => fs::read(file),
        false => Err(io::Error::other("it is no regular file, and is not opened")),
    }
}

/// An earlier job with more ranks may have left some.
fn keep_newest_job(traces: &mut Vec<Trace>, notes: &mut Vec<String>) {
    let mut jobs: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for trace in traces.iter() {
        let of_job = jobs.entry(trace.job).or_default();
        *of_job = (of_job.0.max(trace.began_1970_ns), of_job.1 + 1);
    }
    let Some((newest, _)) = jobs.iter().max_by_key(|(_, (began, _))| *began) else { return };
    let others: usize = jobs.iter().filter(|(job, _)| *job != newest).map(|(_, (_, ranks))| ranks).sum();
    if others > 0 {
        notes.push(format!("{others} traces are of earlier jobs, and are left out"));
        let newest = *newest;
        traces.retain(|trace| trace.job == newest);
    }
}

fn notes_of(job: &Job) -> Vec<String> {
    let mut notes = Vec::new();
    if !job.missing.is_empty() {
        notes.push(format!(
            "nothing is known of {}: what is said of whole calls leaves theirs out",
            ranks(&job.missing)
        ));
    }
    if !job.without_clock.is_empty() {
        let of = ranks(&job.without_clock);
        notes
            .push(format!("the clock of {of} was not compared with the others': do not compare their times"));
    }
    let lost = job.traces.iter().filter(|trace| trace.recorded > trace.events.len() as u64);
    let lost: Vec<u32> = lost.map(|trace| trace.rank).collect();
    if !lost.is_empty() {
        notes.push(format!("of {} only the last events are known: a rank keeps 65,536", ranks(&lost)));
    }
    for (ending, how) in
        [(Ending::Terminated, "were ended by SIGTERM"), (Ending::Exited, "exited without MPI_Finalize")]
    {
        let such: Vec<u32> =
            job.traces.iter().filter(|trace| trace.ending == ending).map(|trace| trace.rank).collect();
        if !such.is_empty() {
            let clocks = "; drifts of clocks are not known";
            notes.push(format!("{} {how}{}", ranks(&such), if job.clock_error_ns > 0 { clocks } else { "" }));
        }
    }
    let met = job.traces.iter().any(|trace| trace.met > trace.communicators.len() as u64);
    if met {
        notes.push("calls on communicators after the first 1,024 of a rank are not shown".to_owned());
    }
    notes
}

/// Lists ranks: `rank 3`, `ranks 0, 1, 2, 3 and 60 more`.
fn ranks(ranks: &[u32]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = ranks.iter().take(SHOWN).map(u32::to_string).collect();
    let more = ranks.len().saturating_sub(SHOWN);
    let one = if ranks.len() == 1 { "rank" } else { "ranks" };
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{one} {}{more}", shown.join(", "))
}

impl Traced {
    /// The calls that no communicator was asked about: how many of each reason or function.
    pub fn uncounted(&self) -> BTreeMap<(&'static str, String), (u64, u64)> {
        let mut found: BTreeMap<(&'static str, String), (u64, u64)> = BTreeMap::new();
        for (index, trace) in self.job.traces.iter().enumerate() {
            for event in &trace.events {
                let kind = match event.kind {
                    Kind::Left => "left to the MPI",
                    Kind::Unserved => "cannot be served",
                    _ => continue,
                };
                let name = self.job.names[usize::from(self.job.name(index, event.b))].clone();
                let count = found.entry((kind, name)).or_default();
                *count = (count.0 + 1, count.1.saturating_add(event.a));
            }
        }
        found
    }

    /// The name of a choice or a reason.
    pub fn name(&self, index: u16) -> &str {
        &self.job.names[usize::from(index)]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use polycast_trace::{About, Event, Recorder};

    use super::*;

    fn about(rank: u32) -> About<'static> {
        About {
            rank,
            ranks: 3,
            job: 7,
            clock: 1,
            process: 1,
            began_ns: 0,
            began_1970_ns: 0,
            host: "n",
            program: "p",
            polycast: "0",
            mpi: "",
            command: "",
        }
    }

    pub fn event(kind: Kind, at_ns: u64) -> Event {
        Event { at_ns, kind, detail: 0, communicator: 0, call: 1, a: 0, b: 0, c: 0 }
    }

    /// Returns a trace that one rank of three has recorded.
    pub fn trace(rank: u32, room: usize, record: impl Fn(&Recorder)) -> Trace {
        let recorder = Recorder::new(&about(rank), room);
        record(&recorder);
        let mut file = Vec::new();
        recorder.write(Ending::Finalized, 20, |part| {
            file.extend_from_slice(part);
            true
        });
        decode(&file).unwrap()
    }

    #[test]
    fn events_that_are_left_out_here_are_none_that_the_rank_lost() {
        let mut trace = trace(0, 10, |recorder| {
            (0..10).for_each(|at_ns| recorder.record(event(Kind::Left, at_ns)));
        });
        assert!(!keep_last(&mut trace, 10) && keep_last(&mut trace, 4));
        assert_eq!((trace.events.len(), trace.events.capacity(), trace.events[0].at_ns), (4, 4, 6));
        let notes = notes_of(&Job::new(vec![trace]).unwrap());
        assert!(!notes.iter().any(|note| note.contains("65,536")), "{notes:?}");
    }
}
