use std::fmt;
use std::str::FromStr;

use super::Capabilities;
use crate::algorithm::{Algorithm, ParseAlgorithmError};
use crate::cost::Candidate;
use polycast_protocol::{MULTICAST_NAMES, Multicast, ParseMulticastError};

/// What serves a broadcast. Written `stock`, or as the algorithm is: `chain:segment=8KiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// The MPI below.
    Stock,
    /// One of polycast's algorithms.
    Algorithm(Algorithm),
    /// Multicast, repaired by a ring.
    Multicast(Multicast),
}

impl Choice {
    /// What a communicator must have for it.
    pub fn needs(self) -> Capabilities {
        match self {
            Choice::Stock => Capabilities::NONE,
            Choice::Algorithm(_) => Capabilities::PRIVATE,
            Choice::Multicast(_) => Capabilities::PRIVATE | Capabilities::MULTICAST,
        }
    }
}

impl From<Candidate> for Choice {
    fn from(candidate: Candidate) -> Choice {
        match candidate {
            Candidate::Algorithm(algorithm) => Choice::Algorithm(algorithm),
            Candidate::Multicast(multicast) => Choice::Multicast(multicast),
        }
    }
}

/// A choice that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseChoiceError {
    /// Neither `stock` nor the name of an algorithm.
    #[error("{0}, {multicast}, stock", multicast = MULTICAST_NAMES.join(", "))]
    UnknownName(ParseAlgorithmError),
    /// The algorithm exists, but not with these parameters.
    #[error(transparent)]
    Parameters(ParseAlgorithmError),
    /// Multicast exists, but not with these parameters.
    #[error(transparent)]
    MulticastParameters(ParseMulticastError),
}

impl FromStr for Choice {
    type Err = ParseChoiceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim() == "stock" {
            return Ok(Choice::Stock);
        }
        match text.parse() {
            Ok(multicast) => return Ok(Choice::Multicast(multicast)),
            Err(ParseMulticastError::UnknownName(_)) => {}
            Err(parameters) => return Err(ParseChoiceError::MulticastParameters(parameters)),
        }
        text.parse().map(Choice::Algorithm).map_err(|error| match error {
            ParseAlgorithmError::UnknownName { .. } => ParseChoiceError::UnknownName(error),
            _ => ParseChoiceError::Parameters(error),
        })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Stock => f.pad("stock"),
            Choice::Algorithm(algorithm) => algorithm.fmt(f),
            Choice::Multicast(multicast) => multicast.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        for text in ["stock", "chain:segment=8KiB", "k-nomial:k=4", "multicast-pull:sync=random"] {
            assert_eq!(text.parse::<Choice>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_all_names() {
        let error = "stok".parse::<Choice>().unwrap_err().to_string();
        assert!(error.contains("\"stok\"") && error.ends_with("multicast-pull, stock"), "{error}");
    }
}
