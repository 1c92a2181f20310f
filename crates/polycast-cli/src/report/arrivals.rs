//! When ranks called, against the first of each call: what `polycast bench` and `simulate --arrival FILE` let ranks do again.
//!
//! ```text
//!     polycast-arrivals 1        of the format
//!     ranks N                    so many numbers in each row
//!     R T0 T1 …                  a row for each call: its root, and how many nanoseconds after the first each rank called
//! ```
//! Lines that begin with `#` say nothing.

use std::fmt::Write;

use polycast_core::units::Nanos;
use polycast_sim::protocol::RecordedCall;
use polycast_trace::{Call, has_root};

use super::load::Traced;
use crate::arrival_file::{HEADING, check_heading};

/// The most calls in a file, which has the first ones. A measuring job keeps all calls of a file.
pub const MAX_ROWS: usize = 4096;
/// The most ranks of a file, and the most numbers in all.
pub const MAX_NUMBERS: usize = 1 << 22;
/// The longest time that a rank may wait for another.
const LONGEST: Nanos = Nanos(3600 * 1_000_000_000);

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

/// True if [`read`] takes the call: no rank arrives later than the longest delay. One refused row
/// would cost all the others.
fn is_readable(call: &Call) -> bool {
    let first = first_ns(call);
    call.parts.iter().all(|part| part.called_ns.abs_diff(first) <= LONGEST.0)
}

/// Reads a file of arrival times.
///
/// # Errors
/// Which line is wrong, and what was expected.
pub fn read(text: &str) -> Result<Vec<RecordedCall>, String> {
    check_heading(text)?;
    let mut lines = text.lines().zip(1..).skip(1).filter(|(line, _)| !line.starts_with('#'));
    let ranks = lines.next().and_then(|(line, _)| line.strip_prefix("ranks ")?.trim().parse::<usize>().ok());
    let Some(ranks) = ranks.filter(|ranks| (1..=MAX_NUMBERS).contains(ranks)) else {
        return Err("expected `ranks` and how many in the line after the first".to_owned());
    };
    let row = |(line, number): (&str, usize)| {
        let mut words = line.split_ascii_whitespace();
        let root = words.next().and_then(|word| word.parse().ok()).filter(|root| (*root as usize) < ranks);
        let late: Option<Vec<Nanos>> = words.map(|word| word.parse().ok().map(Nanos)).collect();
        let late = late.filter(|late| late.len() == ranks && late.iter().all(|late| *late <= LONGEST));
        let call = root.zip(late).map(|(root, late)| RecordedCall { root, late });
        let expected = || {
            format!(
                "line {number}: expected a root below {ranks}, and {ranks} times in ns, none above an hour"
            )
        };
        call.ok_or_else(expected)
    };
    let rows = lines.take(MAX_ROWS).map(row).collect::<Result<Vec<_>, _>>()?;
    if rows.is_empty() { Err("expected a line of times at least".to_owned()) } else { Ok(rows) }
}

fn describe(traced: &Traced) -> String {
    let program = traced.job.traces.first().map_or("", |trace| &trace.program);
    program.replace(|c: char| c.is_control(), " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_and_what_is_wrong_is_named() {
        let read_rows = |rows: &str| read(&format!("{HEADING}\n# a.out\nranks 3\n{rows}"));
        let call = |root, late: [u64; 3]| RecordedCall { root, late: late.map(Nanos).to_vec() };
        let expected = vec![call(0, [120, 0, 4500]), call(2, [0, 1, 2])];
        assert_eq!(read_rows("0 120 0 4500\n# later\n2 0 1 2\n"), Ok(expected));
        for rows in ["3 0 0 0", "0 1 2", "0 1 2 3 4", "0 1 2 -3", "0 0 0 3600000000001", "", "x"] {
            assert!(
                read_rows(&format!("0 1 2 3\n{rows}\n")).unwrap_err().starts_with("line 5: expected"),
                "{rows}"
            );
        }
        assert!(read_rows("").unwrap_err().contains("a line of times"));
        for text in ["", "polycast-arrivals 2\nranks 3\n", "ranks 3\n"] {
            assert!(read(text).unwrap_err().contains(HEADING), "{text}");
        }
        for ranks in ["", "0", "-1", "3 4", "99999999999999999999"] {
            let error = read(&format!("{HEADING}\nranks {ranks}\n0 1\n")).unwrap_err();
            assert!(error.contains("`ranks`"), "{ranks}: {error}");
        }
    }
}
