//! When ranks called, against the first of each call: what `polycast bench --arrival FILE` lets ranks do again.
//!
//! ```text
//!     polycast-arrivals 1        of the format
//!     ranks N                    so many numbers in each row
//!     R T0 T1 …                  a row for each call: its root, and how many nanoseconds after the first each rank called
//! ```
//! Lines that begin with `#` say nothing.

use std::fmt::Write;

use polycast_trace::{Call, has_root};

use super::load::Traced;

/// The first line.
pub const HEADING: &str = "polycast-arrivals 1";

/// Calls that a file has at most: the first ones. A measuring job keeps them all.
pub const MAX_ROWS: usize = 4096;
/// Ranks at most, and numbers in all.
pub const MAX_NUMBERS: usize = 1 << 22;

/// Of the calls with a root among all ranks of the job, or of all other calls where there is none.
pub fn arrivals(traced: &Traced) -> Result<String, String> {
    let ranks = traced.job.ranks;
    let of_all =
        || traced.calls.iter().filter(|call| call.size == ranks && call.parts.len() == ranks as usize);
    let mut calls: Vec<&Call> = of_all().filter(|call| has_root(call.collective)).collect();
    if calls.is_empty() {
        calls = of_all().collect();
    }
    if calls.is_empty() {
        return Err("no call of all ranks of the job, of which all ranks are known".to_owned());
    }
    let mut text = format!("{HEADING}\n# {}\nranks {ranks}\n", describe(traced));
    for call in calls.iter().take(MAX_ROWS.min(MAX_NUMBERS / ranks.max(1) as usize)) {
        let first = call.parts.iter().map(|part| part.called_ns).min().unwrap_or(0);
        let root = if has_root(call.collective) { call.root } else { 0 };
        let _ = write!(text, "{root}");
        for part in &call.parts {
            let _ = write!(text, " {}", part.called_ns.abs_diff(first));
        }
        text.push('\n');
    }
    Ok(text)
}

fn describe(traced: &Traced) -> String {
    let program = traced.job.traces.first().map_or("", |trace| &trace.program);
    program.replace(|c: char| c.is_control(), " ")
}
