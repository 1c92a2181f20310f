//! The ranks of a job on one clock: rank 0's, from the job's beginning on.

use std::collections::{BTreeMap, HashMap};

use thiserror::Error;

use crate::decode::Trace;
use crate::layout::{Clock, NOT_NAMED};

/// The traces of the ranks of one job, brought together.
#[derive(Clone, Debug)]
pub struct Job {
    /// The traces by their rank in MPI_COMM_WORLD.
    pub traces: Vec<Trace>,
    /// The number of ranks of the job.
    pub ranks: u32,
    /// The ranks without a trace.
    pub missing: Vec<u32>,
    /// Ranks whose clock was never compared with that of the others: their times are not to be held against those.
    pub without_clock: Vec<u32>,
    /// The largest error when times of two ranks are compared, in nanoseconds.
    pub clock_error_ns: u64,
    /// The time from the first beginning to the last end, in nanoseconds.
    pub length_ns: u64,
    /// The names of all ranks, each once.
    pub names: Vec<String>,
    /// The index in `names` of each trace's names.
    of_names: Vec<Vec<u16>>,
    lines: Vec<Line>,
    origin_ns: i64,
}

/// Ranks that are looked for.
const MAX_RANKS: u32 = 1 << 20;

/// The reason why no job can be made of the traces.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum JobError {
    /// No trace was given.
    #[error("no trace that can be read")]
    Nothing,
    /// Ranks of several jobs: of each its number and its ranks.
    #[error("traces of several jobs: {}", of_jobs(.0))]
    SeveralJobs(Vec<(u64, usize)>),
    /// Two files are of one rank.
    #[error("two traces of rank {0}")]
    Twice(u32),
}

fn of_jobs(jobs: &[(u64, usize)]) -> String {
    let one = |(job, ranks): &(u64, usize)| format!("{job:016x} ({ranks} ranks)");
    jobs.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A line that says how far rank 0's clock is ahead at a time of another clock: straight through
/// two comparisons.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    at_ns: u64,
    offset_ns: i64,
    drift: f64,
}

impl Line {
    fn through(clocks: [Option<Clock>; 2]) -> Option<(Line, u64)> {
        let (first, last) = match clocks {
            [Some(first), Some(last)] => (first, last),
            [Some(one), None] | [None, Some(one)] => (one, one),
            [None, None] => return None,
        };
        let span = last.local_ns.saturating_sub(first.local_ns);
        let apart = last.offset_ns.saturating_sub(first.offset_ns);
        let drift = if span == 0 { 0.0 } else { apart as f64 / span as f64 };
        // What drifts by a thousandth is no clock.
        let drift = if drift.abs() < 1e-3 { drift } else { 0.0 };
        let line = Line { at_ns: first.local_ns, offset_ns: first.offset_ns, drift };
        Some((line, first.error_ns.max(last.error_ns)))
    }

    fn common_ns(&self, local_ns: u64) -> i64 {
        let passed = local_ns as i128 - i128::from(self.at_ns);
        let offset = i128::from(self.offset_ns) + (self.drift * passed as f64) as i128;
        i64::try_from(i128::from(local_ns) + offset).unwrap_or(i64::MAX)
    }
}

impl Job {
    /// Makes a job of the traces of its ranks, in any order.
    pub fn new(mut traces: Vec<Trace>) -> Result<Job, JobError> {
        let mut jobs: BTreeMap<u64, usize> = BTreeMap::new();
        traces.iter().for_each(|trace| *jobs.entry(trace.job).or_default() += 1);
        if jobs.len() > 1 {
            return Err(JobError::SeveralJobs(jobs.into_iter().collect()));
        }
        traces.sort_by_key(|trace| trace.rank);
        if let Some(pair) = traces.windows(2).find(|pair| pair[0].rank == pair[1].rank) {
            return Err(JobError::Twice(pair[0].rank));
        }
        let Some(first) = traces.first() else { return Err(JobError::Nothing) };
        let ranks = first.ranks;
        let of_clocks = lines(&traces);
        let line = |trace: &Trace| of_clocks.get(&trace.clock);
        let without_clock =
            traces.iter().filter(|trace| line(trace).is_none()).map(|trace| trace.rank).collect();
        let error = of_clocks.values().map(|(_, error)| *error).max().unwrap_or(0);
        let origin = |trace: &Trace| line(trace).map(|(line, _)| line.common_ns(trace.began_ns));
        let origin = traces.iter().filter_map(origin).min().unwrap_or(0);
        // Clocks that were not compared may be hours apart: each of them begins with the job, so that calls are shown near others.
        let mut began: BTreeMap<u64, u64> = BTreeMap::new();
        for trace in &traces {
            let began = began.entry(trace.clock).or_insert(trace.began_ns);
            *began = trace.began_ns.min(*began);
        }
        let own_line = |trace: &Trace| {
            let offset_ns = i128::from(origin) - i128::from(began[&trace.clock]);
            Line { offset_ns: i64::try_from(offset_ns).unwrap_or(i64::MIN), ..Line::default() }
        };
        let lines: Vec<Line> = traces
            .iter()
            .map(|trace| line(trace).map_or_else(|| own_line(trace), |(line, _)| *line))
            .collect();
        let both = || traces.iter().zip(&lines);
        let end = both().map(|(trace, line)| line.common_ns(trace.ended_ns)).max().unwrap_or(0);
        let there: Vec<u32> = traces.iter().map(|trace| trace.rank).collect();
        let missing = (0..ranks.min(MAX_RANKS)).filter(|rank| there.binary_search(rank).is_err()).collect();
        let (names, of_names) = one_list_of_names(&traces);
        Ok(Job {
            ranks,
            missing,
            without_clock,
            clock_error_ns: error,
            length_ns: end.saturating_sub(origin).max(0) as u64,
            names,
            of_names,
            lines,
            origin_ns: origin,
            traces,
        })
    }

    /// Converts a time of the trace with this index to nanoseconds from the job's beginning.
    pub fn common_ns(&self, trace: usize, local_ns: u64) -> i64 {
        self.lines[trace].common_ns(local_ns).saturating_sub(self.origin_ns)
    }

    /// True if times of the traces with these indices may be held against each other.
    pub(crate) fn have_one_clock(&self, mut traces: impl Iterator<Item = usize>) -> bool {
        let own_clock = |trace: usize| {
            let trace = &self.traces[trace];
            self.without_clock.binary_search(&trace.rank).is_ok().then_some(trace.clock)
        };
        let Some(first) = traces.next().filter(|_| !self.without_clock.is_empty()) else { return true };
        let first = own_clock(first);
        traces.all(|trace| own_clock(trace) == first)
    }

    /// Converts the index of a name in the trace with this index to one into `names`; 0, an empty
    /// name, is for what is not named.
    pub fn name(&self, trace: usize, index: u32) -> u16 {
        self.of_names[trace].get(index as usize).copied().unwrap_or(0)
    }
}

/// Returns for each clock its line, and the line's largest error in nanoseconds.
fn lines(traces: &[Trace]) -> BTreeMap<u64, (Line, u64)> {
    let mut lines = BTreeMap::new();
    for trace in traces {
        if let Some(line) = Line::through(trace.clocks) {
            lines.entry(trace.clock).or_insert(line);
        }
    }
    // Where nothing is known of rank 0's clock, the first rank's stands for it.
    if let Some(first) = traces.first().filter(|first| first.rank == 0 || lines.is_empty()) {
        lines.insert(first.clock, (Line::default(), 0));
    }
    lines
}

fn one_list_of_names(traces: &[Trace]) -> (Vec<String>, Vec<Vec<u16>>) {
    let (mut names, mut places) = (vec![String::new()], HashMap::from([(String::new(), 0)]));
    let mut place = |name: &String| match places.get(name) {
        Some(place) => *place,
        None if names.len() < usize::from(NOT_NAMED) => {
            places.insert(name.clone(), names.len() as u16);
            names.push(name.clone());
            names.len() as u16 - 1
        }
        None => 0,
    };
    let of_names = traces.iter().map(|trace| trace.names.iter().map(&mut place).collect()).collect();
    (names, of_names)
}
