//! When ranks call, and who is the root.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use polycast_core::units::{Nanos, ParseNanosError};

use crate::arrival_file::check_heading;

/// The arrival of ranks at a call, against the common start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The ranks that come late.
    pub pattern: Pattern,
    /// The delay of late ranks; `None`: as long as stock takes for this size, or 1 ms where stock
    /// is not measured.
    pub delay: Option<Duration>,
    /// The file of [`Pattern::Recorded`].
    pub file: Option<PathBuf>,
}

/// A pattern of arrival: which ranks come late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// No rank is late.
    None,
    /// Every rank but the root is late.
    RootFirst,
    /// The root.
    RootLast,
    /// A receiver, another one each time, is late.
    OneLate,
    /// Every rank is late by a random part of the delay.
    Random,
    /// The ranks are as late as in a job that was traced.
    Recorded,
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
        let known = PATTERNS.iter().find(|(pattern, _)| pattern == self);
        let name = known.map_or("recorded", |(_, name)| name);
        f.pad(name)
    }
}

impl FromStr for Arrival {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains(['/', '.']) && fs::metadata(text).is_ok() {
            return Arrival::recorded(text);
        }
        let (name, delay) = text.split_once(':').map_or((text, None), |(name, delay)| (name, Some(delay)));
        let Some((pattern, _)) = PATTERNS.iter().find(|(_, known)| *known == name) else {
            let names = PATTERNS.map(|(_, name)| name).join(", ");
            return Err(format!(
                "expected one of {names}, with an optional delay such as root-last:2ms, or a file of `polycast report --arrivals` \
                 with a / or a . in its name"
            ));
        };
        let delay = delay.map(parse_duration).transpose()?;
        if delay.is_some() && *pattern == Pattern::None {
            return Err("none has no delay".into());
        }
        Ok(Arrival { pattern: *pattern, delay, file: None })
    }
}

impl Arrival {
    /// Makes the arrival of a recorded file, which rank 0 of a job reads; here only its heading is
    /// checked.
    fn recorded(name: &str) -> Result<Arrival, String> {
        let error = |error: std::io::Error| format!("cannot read {name}: {error}");
        let file = fs::canonicalize(name).map_err(error)?;
        let text = fs::read_to_string(&file).map_err(error)?;
        check_heading(&text).map_err(|error| format!("{name}: {error}"))?;
        Ok(Arrival { pattern: Pattern::Recorded, delay: None, file: Some(file) })
    }
}

/// The rank that is the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// A fixed rank.
    Rank(u32),
    /// Each rank in turn.
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
    let time: Nanos = text.parse().map_err(|error: ParseNanosError| error.to_string())?;
    Ok(Duration::from_nanos(time.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_with_and_without_delay() {
        let parsed: Arrival = "root-last:2ms".parse().unwrap();
        let (pattern, delay) = (Pattern::RootLast, Some(Duration::from_millis(2)));
        assert_eq!(parsed, Arrival { pattern, delay, file: None });
        assert_eq!("one-late".parse::<Arrival>().unwrap().delay, None);
        for (text, expected) in [
            ("last", "root-first"),
            ("none:1ms", "no delay"),
            ("random:2", "20us, 1.5ms or 3s"),
            ("random:", "or 3s"),
            ("/nowhere/job.arrivals", "a file of `polycast report --arrivals`"),
            ("/dev/null", "expected polycast-arrivals 1"),
        ] {
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
        for text in ["", "3", "s", "1..2s", "-1s", "86401s", "3d", "."] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
