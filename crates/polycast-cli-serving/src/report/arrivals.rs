//! When ranks called, against the first of each call, as a [file](crate::arrival_file) for `polycast bench` and `simulate`.

use std::fmt::Write;

use polycast_trace::{Call, has_root};

use super::load::Traced;
use crate::arrival_file::{HEADING, LONGEST, MAX_NUMBERS, MAX_ROWS};

/// Writes the arrival times of a job's calls as a file for `polycast bench`: those of the calls
/// with a root among all ranks of the job, or of all its other calls if there are none.
pub fn arrivals(traced: &Traced) -> Result<String, String> {
    let ranks = traced.job.ranks;
    let is_of_all = |call: &&Call| {
        call.size == ranks && call.parts.len() == ranks as usize && call.has_one_clock && is_readable(call)
    };
    let of_all = || traced.calls.iter().filter(is_of_all);
    let mut calls: Vec<&Call> = of_all().filter(|call| has_root(call.collective)).collect();
    if calls.is_empty() {
        calls = of_all().collect();
    }
    if calls.is_empty() {
        return Err(
            "no call of all ranks of the job, of which all ranks are known on clocks that were compared, \
                    within an hour"
                .to_owned(),
        );
    }
    let mut text = format!("{HEADING}\n# {}\nranks {ranks}\n", describe(traced));
    for call in calls.iter().take(MAX_ROWS.min(MAX_NUMBERS / ranks.max(1) as usize)) {
        let first = first_ns(call);
        let root = if has_root(call.collective) { call.root } else { 0 };
        let _ = write!(text, "{root}");
        for part in &call.parts {
            let _ = write!(text, " {}", part.called_ns.abs_diff(first));
        }
        text.push('\n');
    }
    Ok(text)
}

fn first_ns(call: &Call) -> i64 {
    call.parts.iter().map(|part| part.called_ns).min().unwrap_or(0)
}

/// True if readers of the file take the call: no rank arrives later than the longest delay. One refused row
/// would cost all the others.
fn is_readable(call: &Call) -> bool {
    let first = first_ns(call);
    call.parts.iter().all(|part| part.called_ns.abs_diff(first) <= LONGEST.0)
}

fn describe(traced: &Traced) -> String {
    let program = traced.job.traces.first().map_or("", |trace| &trace.program);
    program.replace(|c: char| c.is_control(), " ")
}
