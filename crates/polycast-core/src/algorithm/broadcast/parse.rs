//! Reads an algorithm: a name, and after a colon its parameters.

use std::num::{NonZeroU32, NonZeroU64};
use std::str::FromStr;

use super::{Algorithm, Shape};
use crate::tree::{CONTENTION_FREE_CHILDREN_MOST, SendTimes};
use crate::units::{Bytes, Nanos};

/// The names, with the parameters that each understands beside `segment` and `ready`.
const NAMES: [(&str, &[&str]); 16] = [
    ("flat", &[]),
    ("chain", &[]),
    ("binary", &[]),
    ("k-ary", &["k"]),
    ("binomial", &[]),
    ("k-nomial", &["k"]),
    ("split-binary", &[]),
    ("scatter-ring", &[]),
    ("scatter-doubling", &[]),
    ("contention-free-chain", &[]),
    ("contention-free-binary", &[]),
    ("contention-free-k-ary", &["k"]),
    ("link-aware", &[]),
    ("opt-tree", &["hold", "end"]),
    ("alpha-port", &["ports", "hold", "end"]),
    ("block-binomial", &["block"]),
];

/// More ports than this make no difference: the root has the first one back before the last is used.
const PORTS_MOST: u32 = 64;

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
        expected: String,
    },
    /// The parameter's value is not usable.
    #[error("{parameter}={found}: expected {expected}")]
    BadValue {
        /// The parameter's name.
        parameter: String,
        /// What stood there.
        found: String,
        /// What could stand there.
        expected: String,
    },
    /// A parameter without which the algorithm is not defined.
    #[error("{algorithm} needs {parameter}, for example {example}")]
    Missing {
        /// The algorithm's name.
        algorithm: String,
        /// What is missing.
        parameter: &'static str,
        /// How it could be written.
        example: String,
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

/// What stands after the colon, each once.
struct Parameters<'a> {
    algorithm: &'static str,
    values: Vec<(&'a str, &'a str)>,
}

impl<'a> Parameters<'a> {
    fn read(algorithm: &'static str, own: &[&str], text: &'a str) -> Result<Self, ParseAlgorithmError> {
        let known = || own.iter().copied().chain(["segment", "ready"]);
        let mut values: Vec<(&str, &str)> = Vec::new();
        for parameter in text.split(',').map(str::trim).filter(|parameter| !parameter.is_empty()) {
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            if !known().any(|known| known == key) {
                let own = own.iter().map(|own| format!("{own}, ")).collect::<String>();
                return Err(ParseAlgorithmError::UnknownParameter {
                    algorithm: algorithm.to_owned(),
                    found: key.to_owned(),
                    expected: format!("{}segment or ready", own),
                });
            }
            if values.iter().any(|(before, _)| *before == key) {
                return Err(ParseAlgorithmError::Twice { parameter: key.to_owned() });
            }
            values.push((key, value));
        }
        Ok(Parameters { algorithm, values })
    }

    /// A parameter that may be left out; `None` from `read` means that the value is not usable.
    fn optional<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, ParseAlgorithmError> {
        let Some((_, value)) = self.values.iter().find(|(known, _)| *known == key) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| ParseAlgorithmError::BadValue {
            parameter: key.to_owned(),
            found: (*value).to_owned(),
            expected: expected.to_owned(),
        })
    }

    fn number(&self, key: &str, least: u32, most: u32) -> Result<Option<NonZeroU32>, ParseAlgorithmError> {
        let expected = match most {
            u32::MAX => format!("a whole number of at least {least}"),
            most => format!("a whole number from {least} to {most}"),
        };
        let read =
            |value: &str| value.parse().ok().filter(|n: &NonZeroU32| (least..=most).contains(&n.get()));
        self.optional(key, &expected, read)
    }

    fn times(&self) -> Result<Option<SendTimes>, ParseAlgorithmError> {
        let time = |key| {
            let read = |value: &str| value.parse().ok().filter(|time: &Nanos| time.0 > 0);
            self.optional(key, "a time above 0 such as 20us", read)
        };
        match (time("hold")?, time("end")?) {
            (None, None) => Ok(None),
            (Some(hold), Some(end)) => Ok(Some(SendTimes { hold, end })),
            (Some(_), None) => Err(self.missing("end beside hold", "hold=20us,end=55us")),
            (None, Some(_)) => Err(self.missing("hold beside end", "hold=20us,end=55us")),
        }
    }

    fn missing(&self, parameter: &'static str, example: &str) -> ParseAlgorithmError {
        let algorithm = self.algorithm.to_owned();
        ParseAlgorithmError::Missing { parameter, example: format!("{algorithm}:{example}"), algorithm }
    }

    fn shape(&self) -> Result<Shape, ParseAlgorithmError> {
        let k = |most| self.number("k", 2, most)?.ok_or_else(|| self.missing("k", "k=4"));
        Ok(match self.algorithm {
            "flat" => Shape::Flat,
            "chain" => Shape::Chain,
            "binary" => Shape::Binary,
            "k-ary" => Shape::KAry(k(u32::MAX)?),
            "binomial" => Shape::KNomial(const { NonZeroU32::new(2).unwrap() }),
            "k-nomial" => Shape::KNomial(k(u32::MAX)?),
            "split-binary" => Shape::SplitBinary,
            "scatter-ring" => Shape::ScatterRing,
            "scatter-doubling" => Shape::ScatterDoubling,
            "contention-free-chain" => Shape::ContentionFreeChain,
            "contention-free-binary" => Shape::ContentionFreeBinary,
            "contention-free-k-ary" => Shape::ContentionFreeKAry(k(CONTENTION_FREE_CHILDREN_MOST)?),
            "link-aware" => Shape::LinkAware,
            "opt-tree" => Shape::OptTree(self.times()?),
            "alpha-port" => {
                let ports = self.number("ports", 1, PORTS_MOST)?;
                let ports = ports.ok_or_else(|| self.missing("ports", "ports=3"))?;
                Shape::AlphaPort { ports, times: self.times()? }
            }
            _ => Shape::BlockBinomial(self.number("block", 1, u32::MAX)?),
        })
    }
}

impl FromStr for Algorithm {
    type Err = ParseAlgorithmError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, parameters) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let Some((name, own)) = NAMES.iter().find(|(known, _)| *known == name) else {
            return Err(ParseAlgorithmError::UnknownName { found: name.to_owned() });
        };
        let parameters = Parameters::read(name, own, parameters)?;
        let size = |value: &str| value.parse::<Bytes>().ok().and_then(|bytes| NonZeroU64::new(bytes.0));
        let yes_or_no = |value: &str| match value {
            "" | "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        };
        Ok(Algorithm {
            shape: parameters.shape()?,
            segment: parameters.optional("segment", "a size above 0 such as 8KiB", size)?,
            ready: parameters.optional("ready", "yes or no", yes_or_no)?.unwrap_or(false),
        })
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
            "contention-free-chain:segment=8KiB",
            "contention-free-binary:segment=8KiB,ready",
            "contention-free-k-ary:k=4",
            "link-aware:segment=8KiB",
            "opt-tree",
            "opt-tree:hold=20us,end=55.500us",
            "alpha-port:ports=3",
            "alpha-port:ports=3,hold=22us,end=55us,segment=8KiB",
            "block-binomial",
            "block-binomial:block=4",
        ] {
            assert_eq!(text.parse::<Algorithm>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn every_name_is_its_own() {
        for (name, own) in NAMES {
            let needed = if own.contains(&"k") {
                ":k=3"
            } else if own.contains(&"ports") {
                ":ports=3"
            } else {
                ""
            };
            let text = format!("{name}{needed}");
            assert_eq!(text.parse::<Algorithm>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn errors_say_what_was_expected() {
        for (text, expected) in [
            ("chian", "expected one of flat, chain"),
            ("chain:k=2", "expected segment or ready"),
            ("k-ary:ports=2", "expected k, segment or ready"),
            ("chain:segment=0", "a size above 0"),
            ("chain:segment=8KiB,segment=4KiB", "twice"),
            ("k-ary", "k-ary:k=4"),
            ("k-ary:k=1", "at least 2"),
            ("contention-free-k-ary:k=65", "from 2 to 64"),
            ("opt-tree:hold=20us", "opt-tree:hold=20us,end=55us"),
            ("opt-tree:hold=0us,end=1us", "a time above 0"),
            ("opt-tree:hold=20,end=55", "such as 20us"),
            ("alpha-port", "alpha-port:ports=3"),
            ("alpha-port:ports=65", "from 1 to 64"),
            ("block-binomial:block=0", "at least 1"),
            ("chain:ready=maybe", "yes or no"),
            ("", "expected one of"),
        ] {
            let error = text.parse::<Algorithm>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
