//! Numbers and sentences as the tables for people write them.

/// No line of a table is longer.
pub const WIDTH: usize = 80;

const UNITS: [(f64, &str); 3] = [(1e6, "s"), (1e3, "ms"), (1.0, "µs")];

/// Three digits: `0.98`, `12.3`, `279`, `12500`.
pub fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        small if small < 9.995 => 2,
        medium if medium < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A time that is given in microseconds, with its own unit: `279 ms`.
pub fn time(us: f64) -> String {
    let (scale, unit) = unit_of(us);
    format!("{} {unit}", digits(us / scale))
}

/// An interval around a time, in that time's unit: `265–291`.
pub fn interval_of_time(us: f64, interval: Option<(f64, f64)>) -> String {
    let (scale, _) = unit_of(us);
    interval.map_or_else(|| "-".to_owned(), |(low, high)| range(low / scale, high / scale))
}

/// `3.07–3.57`
pub fn range(low: f64, high: f64) -> String {
    format!("{}–{}", digits(low), digits(high))
}

/// What is not known is a dash.
pub fn or_dash(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

fn unit_of(us: f64) -> (f64, &'static str) {
    // What would be written as 1000 is one of the next larger unit.
    let fits = |(scale, _): &&(f64, &str)| us.abs() >= 0.9995 * scale;
    UNITS.iter().find(fits).copied().unwrap_or(UNITS[UNITS.len() - 1])
}

/// `text` in lines of at most [`WIDTH`] characters, broken between words; all but the first are indented by `indent`.
pub fn wrap(text: &str, indent: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(" ".repeat(indent) + word),
            None => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
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

/// `1 rank`, `16 ranks`
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_its_unit_and_three_digits() {
        let shown = [0.4, 9.994, 9.996, 99.96, 278_953.8, 999.6, 1_500_000.0, 0.0].map(time);
        assert_eq!(
            shown,
            ["0.40 µs", "9.99 µs", "10.0 µs", "100 µs", "279 ms", "1.00 ms", "1.50 s", "0.00 µs"]
        );
        assert_eq!(interval_of_time(278_953.8, Some((265_000.0, 1_291_000.0))), "265–1291");
        assert_eq!(interval_of_time(1.0, None), "-");
    }

    #[test]
    fn lines_break_between_words() {
        let text = wrap(&"word ".repeat(40), 4);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("    word") && line.ends_with("word")));
        assert_eq!(text.split_whitespace().count(), 40);
        assert_eq!(wrap("short", 4), "short");
        assert_eq!(wrap(&"x".repeat(100), 4).lines().count(), 1, "what has no space is not torn apart");
    }

    #[test]
    fn heads_break_where_names_have_marks() {
        assert_eq!(head("multicast-pull", 9), ["multicast-", "pull"]);
        assert_eq!(head("chain:segment=8KiB,ready", 9), ["chain:", "segment=", "8KiB,", "ready"]);
        assert_eq!(head("stock", 9), ["stock"]);
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!((count(1, "rank"), count(16, "rank")), ("1 rank".into(), "16 ranks".into()));
    }
}
