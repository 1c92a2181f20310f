//! Pieces of the tables for people.

use crate::terminal::nanoseconds;

/// A time that is given in microseconds, as figures are.
pub fn time(us: f64) -> String {
    nanoseconds(us * 1e3)
}

/// Shows a value, or a dash if it is not known.
pub fn or_dash(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

/// The head of a column in lines of at most `width` characters, broken after the marks in the names of algorithms.
pub fn head(name: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for part in name.split_inclusive(['-', ':', ',', '=']) {
        let line = lines.last_mut().expect("there is a first line");
        if !line.is_empty() && line.chars().count() + part.chars().count() > width {
            lines.push(part.to_owned());
        } else {
            line.push_str(part);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_break_where_names_have_marks() {
        assert_eq!(head("multicast-pull", 9), ["multicast-", "pull"]);
        assert_eq!(head("chain:segment=8KiB,ready", 9), ["chain:", "segment=", "8KiB,", "ready"]);
        assert_eq!(head("stock", 9), ["stock"]);
    }
}
