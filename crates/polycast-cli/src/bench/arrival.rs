//! When ranks call, and who is the root.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How ranks arrive at a broadcast, against the common start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Who comes late.
    pub pattern: Pattern,
    /// How late; `None`: as long as stock takes for this size, or 1 ms where stock is not measured.
    pub delay: Option<Duration>,
}

/// Who comes late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Nobody.
    None,
    /// Everybody but the root.
    RootFirst,
    /// The root.
    RootLast,
    /// One receiver, another one each time.
    OneLate,
    /// Everybody by a random part of the delay.
    Random,
}

const PATTERNS: [(Pattern, &str); 5] = [
    (Pattern::None, "none"),
    (Pattern::RootFirst, "root-first"),
    (Pattern::RootLast, "root-last"),
    (Pattern::OneLate, "one-late"),
    (Pattern::Random, "random"),
];

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name) = PATTERNS.iter().find(|(pattern, _)| pattern == self).unwrap_or(&PATTERNS[0]);
        f.pad(name)
    }
}

impl FromStr for Arrival {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, delay) = text.split_once(':').map_or((text, None), |(name, delay)| (name, Some(delay)));
        let Some((pattern, _)) = PATTERNS.iter().find(|(_, known)| *known == name) else {
            let names = PATTERNS.map(|(_, name)| name).join(", ");
            return Err(format!("expected one of {names}, with an optional delay such as root-last:2ms"));
        };
        let delay = delay.map(parse_duration).transpose()?;
        if delay.is_some() && *pattern == Pattern::None {
            return Err("none has no delay".into());
        }
        Ok(Arrival { pattern: *pattern, delay })
    }
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// This rank, always.
    Rank(u32),
    /// All ranks in turn.
    Rotate,
}

impl FromStr for Root {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "rotate" => Ok(Root::Rotate),
            _ => text.parse().map(Root::Rank).map_err(|_| "expected a rank or rotate".to_owned()),
        }
    }
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Root::Rank(rank) => rank.fmt(f),
            Root::Rotate => f.pad("rotate"),
        }
    }
}

/// Reads `3s`, `500ms`, `1.5s`, `20us`, `100ns`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected = "expected a time such as 3s, 500ms or 20us, of at most a day (86400s)";
    let error = || format!("{expected}, found {text:?}");
    let has_no_unit = || match text.parse::<f64>() {
        Ok(_) => format!("{expected}, found {text:?} without a unit: {text}s?"),
        Err(_) => error(),
    };
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(has_no_unit)?;
    let (number, unit) = text.split_at(unit_at);
    let scale = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        _ => return Err(error()),
    };
    let number: f64 = number.parse().map_err(|_| error())?;
    Some(number * scale)
        .filter(|seconds| *seconds <= MAX_SECONDS)
        .map(Duration::from_secs_f64)
        .ok_or_else(error)
}

/// A day: more is a mistake.
const MAX_SECONDS: f64 = 86_400.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_with_and_without_delay() {
        let parsed: Arrival = "root-last:2ms".parse().unwrap();
        assert_eq!(parsed, Arrival { pattern: Pattern::RootLast, delay: Some(Duration::from_millis(2)) });
        assert_eq!("one-late".parse::<Arrival>().unwrap().delay, None);
        for (text, expected) in
            [("last", "root-first"), ("none:1ms", "no delay"), ("random:2", "3s, 500ms"), ("random:", "3s")]
        {
            let error = text.parse::<Arrival>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn roots() {
        assert_eq!("3".parse(), Ok(Root::Rank(3)));
        assert_eq!("rotate".parse(), Ok(Root::Rotate));
        assert!("-1".parse::<Root>().is_err());
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("20us"), Ok(Duration::from_micros(20)));
        assert_eq!(parse_duration("86400s"), Ok(Duration::from_secs(86_400)));
        assert!(parse_duration("5").unwrap_err().ends_with("found \"5\" without a unit: 5s?"));
        assert!(parse_duration("2000m").unwrap_err().contains("at most a day (86400s)"));
        for text in ["", "3", "s", "1..2s", "-1s", "86401s", "3h", "."] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
