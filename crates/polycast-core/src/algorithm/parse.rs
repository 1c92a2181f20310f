//! Reads an algorithm: a name, and after a colon its parameters.

use std::num::NonZeroU64;
use std::str::FromStr;

use super::parameter::{READY, SEGMENT};
use super::{Algorithm, Entry, Need, Parameter, Registry};
use crate::collective::Collective;

/// The reason why an algorithm could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseAlgorithmError {
    /// No algorithm has this name.
    #[error("unknown algorithm {found:?}, expected one of {expected}")]
    UnknownName {
        /// The name that stood there.
        found: String,
        /// The names that there are.
        expected: String,
    },
    /// The algorithm is for other collectives.
    #[error("{found} serves {serves}, not {collective}: expected one of {expected}")]
    OtherCollective {
        /// The algorithm's name.
        found: String,
        /// The collectives that the algorithm serves.
        serves: String,
        /// The collective for which an algorithm is looked for.
        collective: Collective,
        /// The names of the algorithms for that collective.
        expected: String,
    },
    /// The algorithm has no such parameter.
    #[error("{algorithm} has no parameter {found:?}, expected {expected}")]
    UnknownParameter {
        /// The algorithm's name.
        algorithm: String,
        /// The name that stood there.
        found: String,
        /// The names that could stand there.
        expected: String,
    },
    /// The parameter's value is not usable.
    #[error("{parameter}={found}: expected {expected}")]
    BadValue {
        /// The parameter's name.
        parameter: String,
        /// The value that stood there.
        found: String,
        /// The values that could stand there.
        expected: String,
    },
    /// A parameter without which the algorithm is not defined.
    #[error("{algorithm} needs {parameter}, for example {example}")]
    Missing {
        /// The algorithm's name.
        algorithm: String,
        /// The name of the missing parameter.
        parameter: String,
        /// An example of the parameter as it could be written.
        example: String,
    },
    /// A parameter is given twice.
    #[error("{parameter} is given twice")]
    Twice {
        /// The parameter's name.
        parameter: String,
    },
}

impl Registry {
    /// Reads an algorithm for a collective.
    pub fn read(self, collective: Collective, text: &str) -> Result<Algorithm, ParseAlgorithmError> {
        let (name, parameters) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let Some(entry) = self.find(collective, name) else {
            let (found, expected) = (name.to_owned(), self.names(collective));
            let of_others =
                self.entries().filter(|entry| entry.name == name).flat_map(|entry| entry.collectives);
            let serves: Vec<&str> = of_others.map(|collective| collective.name()).collect();
            return Err(match serves.is_empty() {
                true => ParseAlgorithmError::UnknownName { found, expected },
                false => ParseAlgorithmError::OtherCollective {
                    found,
                    serves: serves.join(", "),
                    collective,
                    expected,
                },
            });
        };
        let given = given(entry, parameters)?;
        let own = entry.parameters.iter().map(|parameter| value(parameter, &given));
        let own = own.zip(entry.parameters).map(|(value, parameter)| match value? {
            None if parameter.need == Need::Required => {
                Err(missing(entry, parameter.name, parameter.written(parameter.typical)))
            }
            value => Ok(value.unwrap_or(0)),
        });
        let own = own.collect::<Result<Vec<u64>, _>>()?;
        pairs_are_complete(entry, &own)?;
        Ok(Algorithm {
            segment: value(&SEGMENT, &given)?.and_then(NonZeroU64::new),
            ready: value(&READY, &given)?.is_some_and(|value| value > 0),
            ..Algorithm::new(entry, own)
        })
    }
}

/// Reads what stands after the colon: names and values, each name once.
fn given<'a>(entry: &Entry, text: &'a str) -> Result<Vec<(&'a str, &'a str)>, ParseAlgorithmError> {
    let mut given: Vec<(&str, &str)> = Vec::new();
    for parameter in text.split(',').map(str::trim).filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        if !entry.has_parameter(name) {
            let known: Vec<&str> = entry.all_parameters().map(|known| known.name).collect();
            let expected = match known.split_last() {
                None => "none".to_owned(),
                Some((last, [])) => (*last).to_owned(),
                Some((last, before)) => format!("{} or {last}", before.join(", ")),
            };
            let (algorithm, found) = (entry.name.to_owned(), name.to_owned());
            return Err(ParseAlgorithmError::UnknownParameter { algorithm, found, expected });
        }
        if given.iter().any(|(before, _)| *before == name) {
            return Err(ParseAlgorithmError::Twice { parameter: name.to_owned() });
        }
        given.push((name, value));
    }
    Ok(given)
}

/// The value of a parameter, if it is given.
fn value(parameter: &Parameter, given: &[(&str, &str)]) -> Result<Option<u64>, ParseAlgorithmError> {
    let Some((_, text)) = given.iter().find(|(name, _)| *name == parameter.name) else { return Ok(None) };
    parameter.read(text).map(Some).ok_or_else(|| ParseAlgorithmError::BadValue {
        parameter: parameter.name.to_owned(),
        found: (*text).to_owned(),
        expected: parameter.domain.to_string(),
    })
}

/// Fails if one of two parameters that are given together or not at all is missing.
fn pairs_are_complete(entry: &Entry, own: &[u64]) -> Result<(), ParseAlgorithmError> {
    let paired = || {
        entry.parameters.iter().zip(own).filter(|(parameter, _)| matches!(parameter.need, Need::Beside(_)))
    };
    for (parameter, _) in paired().filter(|(_, value)| **value > 0) {
        let Need::Beside(other) = parameter.need else { continue };
        if paired().any(|(parameter, value)| parameter.name == other && *value == 0) {
            let example: Vec<String> =
                paired().map(|(parameter, _)| parameter.written(parameter.typical)).collect();
            return Err(missing(entry, &format!("{other} beside {}", parameter.name), example.join(",")));
        }
    }
    Ok(())
}

fn missing(entry: &Entry, parameter: &str, example: String) -> ParseAlgorithmError {
    let example = format!("{}:{example}", entry.name);
    ParseAlgorithmError::Missing {
        algorithm: entry.name.to_owned(),
        parameter: parameter.to_owned(),
        example,
    }
}

impl FromStr for Algorithm {
    type Err = ParseAlgorithmError;

    /// A broadcast; [`Registry::read`] reads algorithms of other collectives.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Registry::BUILT_IN.read(Collective::Broadcast, text)
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
    fn every_sample_is_read_back() {
        for collective in Collective::ALL {
            for sample in Registry::BUILT_IN.of(collective).flat_map(Entry::samples) {
                assert_eq!(Registry::BUILT_IN.read(collective, &sample.to_string()), Ok(sample));
            }
        }
        assert_eq!("k-nomial:k=2,ready".parse::<Algorithm>().unwrap().to_string(), "binomial:ready");
    }

    #[test]
    fn each_collective_has_names_of_its_own() {
        let read = |of, text: &str| Registry::BUILT_IN.read(of, text);
        assert_ne!(read(Collective::Reduce, "binomial"), read(Collective::Scatter, "binomial"));
        let error = |of, text: &str| read(of, text).unwrap_err().to_string();
        let other = error(Collective::Reduce, "double-tree");
        let expected = "double-tree serves bcast, not reduce: expected one of flat, chain, binary, binomial, k-nomial, \
                        pairwise, contention-free-chain, contention-free-binary, contention-free-k-ary, two-level, cells, direct";
        assert_eq!(other, expected);
        let uncut = error(Collective::Allgather, "bruck:segment=8KiB");
        assert_eq!(uncut, "bruck has no parameter \"segment\", expected none");
        assert!(error(Collective::Reduce, "binomial:ready").ends_with("expected segment"));
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
