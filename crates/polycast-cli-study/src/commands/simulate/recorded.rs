//! Recorded arrivals, read from a [file](crate::arrival_file).

use polycast_core::units::Nanos;
use polycast_sim::protocol::RecordedCall;

use crate::arrival_file::{LONGEST, MAX_NUMBERS, MAX_ROWS, check_heading};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrival_file::HEADING;

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
