//! How an algorithm is written: `chain:segment=8KiB`, `k-nomial:k=4`, `scatter-ring`.

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::str::FromStr;

use crate::units::Bytes;

/// The form of the way that the data takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// The root sends to everybody itself.
    Flat,
    /// Each rank forwards to the next one.
    Chain,
    /// Two children per rank, in breadth-first order.
    Binary,
    /// `k` children per rank, in breadth-first order.
    KAry(NonZeroU32),
    /// The number of informed ranks grows by the factor `k` (at least 2) per round; `k` = 2 is the binomial tree.
    KNomial(NonZeroU32),
    /// Each half of the data runs down one half of a binary tree; pairs of ranks then exchange halves.
    SplitBinary,
    /// The root scatters blocks down a binomial tree, then the blocks go around a ring.
    ScatterRing,
    /// The root scatters blocks down a binomial tree, then ranks exchange what they have with doubling distance.
    ScatterDoubling,
}

/// A broadcast algorithm with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Algorithm {
    /// The way of the data.
    pub shape: Shape,
    /// The largest message; `None` sends everything whole.
    pub segment: Option<NonZeroU64>,
    /// Children tell their parents that they have arrived, before any data is sent. Bounds the memory that early
    /// data takes at a late rank, and costs nothing when the root is the last to arrive.
    pub ready: bool,
}

/// The names, with the parameters that each understands beside `segment` and `ready`.
const NAMES: [(&str, &str); 9] = [
    ("flat", ""),
    ("chain", ""),
    ("binary", ""),
    ("k-ary", "k"),
    ("binomial", ""),
    ("k-nomial", "k"),
    ("split-binary", ""),
    ("scatter-ring", ""),
    ("scatter-doubling", ""),
];

/// Why an algorithm could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseAlgorithmError {
    /// No algorithm has this name.
    #[error("unknown algorithm {found:?}, expected one of {}", names())]
    UnknownName {
        /// What stood there.
        found: String,
    },
    /// The algorithm has no such parameter.
    #[error("{algorithm} has no parameter {found:?}, expected {expected}")]
    UnknownParameter {
        /// The algorithm's name.
        algorithm: String,
        /// What stood there.
        found: String,
        /// What could stand there.
        expected: &'static str,
    },
    /// The parameter's value is not usable.
    #[error("{parameter}={found}: expected {expected}")]
    BadValue {
        /// The parameter's name.
        parameter: String,
        /// What stood there.
        found: String,
        /// What could stand there.
        expected: &'static str,
    },
    /// A parameter without which the algorithm is not defined.
    #[error("{algorithm} needs k, for example {algorithm}:k=4")]
    MissingK {
        /// The algorithm's name.
        algorithm: String,
    },
    /// The same parameter twice.
    #[error("{parameter} is given twice")]
    Twice {
        /// The parameter's name.
        parameter: String,
    },
}

fn names() -> String {
    NAMES.map(|(name, _)| name).join(", ")
}

impl FromStr for Algorithm {
    type Err = ParseAlgorithmError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, parameters) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let Some((name, own)) = NAMES.iter().find(|(known, _)| *known == name) else {
            return Err(ParseAlgorithmError::UnknownName { found: name.to_owned() });
        };
        let (mut k, mut segment, mut ready) = (None, None, None);
        for parameter in parameters.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let bad = |expected| ParseAlgorithmError::BadValue {
                parameter: key.into(),
                found: value.into(),
                expected,
            };
            let twice = match key {
                "k" if *own == "k" => {
                    let parsed = value.parse::<NonZeroU32>().ok().filter(|k| k.get() >= 2);
                    k.replace(parsed.ok_or_else(|| bad("a whole number of at least 2"))?).is_some()
                }
                "segment" => {
                    let parsed = value.parse::<Bytes>().ok().and_then(|b| NonZeroU64::new(b.0));
                    segment.replace(parsed.ok_or_else(|| bad("a size above 0 such as 8KiB"))?).is_some()
                }
                "ready" => ready
                    .replace(match value {
                        "" | "yes" => true,
                        "no" => false,
                        _ => return Err(bad("yes or no")),
                    })
                    .is_some(),
                _ => {
                    return Err(ParseAlgorithmError::UnknownParameter {
                        algorithm: (*name).into(),
                        found: key.into(),
                        expected: if *own == "k" { "k, segment or ready" } else { "segment or ready" },
                    });
                }
            };
            if twice {
                return Err(ParseAlgorithmError::Twice { parameter: key.into() });
            }
        }
        let k = || k.ok_or_else(|| ParseAlgorithmError::MissingK { algorithm: (*name).into() });
        let shape = match *name {
            "flat" => Shape::Flat,
            "chain" => Shape::Chain,
            "binary" => Shape::Binary,
            "k-ary" => Shape::KAry(k()?),
            "binomial" => Shape::KNomial(const { NonZeroU32::new(2).unwrap() }),
            "k-nomial" => Shape::KNomial(k()?),
            "split-binary" => Shape::SplitBinary,
            "scatter-ring" => Shape::ScatterRing,
            _ => Shape::ScatterDoubling,
        };
        Ok(Algorithm { shape, segment, ready: ready.unwrap_or(false) })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, k) = match self.shape {
            Shape::Flat => ("flat", None),
            Shape::Chain => ("chain", None),
            Shape::Binary => ("binary", None),
            Shape::KAry(k) => ("k-ary", Some(k)),
            Shape::KNomial(k) if k.get() == 2 => ("binomial", None),
            Shape::KNomial(k) => ("k-nomial", Some(k)),
            Shape::SplitBinary => ("split-binary", None),
            Shape::ScatterRing => ("scatter-ring", None),
            Shape::ScatterDoubling => ("scatter-doubling", None),
        };
        let parameters: Vec<String> = [
            k.map(|k| format!("k={k}")),
            self.segment.map(|segment| format!("segment={}", Bytes(segment.get()))),
            self.ready.then(|| "ready".to_owned()),
        ]
        .into_iter()
        .flatten()
        .collect();
        let separator = if parameters.is_empty() { "" } else { ":" };
        f.pad(&format!("{name}{separator}{}", parameters.join(",")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        for text in [
            "flat",
            "chain:segment=8KiB",
            "binary:segment=2KiB,ready",
            "k-ary:k=3",
            "binomial",
            "k-nomial:k=4,segment=1000",
            "split-binary:segment=4KiB",
            "scatter-ring",
            "scatter-doubling:ready",
        ] {
            assert_eq!(text.parse::<Algorithm>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn errors_say_what_was_expected() {
        for (text, expected) in [
            ("chian", "expected one of flat, chain"),
            ("chain:k=2", "expected segment or ready"),
            ("chain:segment=0", "a size above 0"),
            ("chain:segment=8KiB,segment=4KiB", "twice"),
            ("k-ary", "k-ary:k=4"),
            ("k-ary:k=1", "at least 2"),
            ("chain:ready=maybe", "yes or no"),
            ("", "expected one of"),
        ] {
            let error = text.parse::<Algorithm>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
