use std::fmt;
use std::str::FromStr;

use super::{Capabilities, Collective, CommunicatorShape};
use crate::algorithm::{Algorithm, ParseAlgorithmError, Registry};
use crate::collective::CombinationOrder;

/// The way to serve a call. Written `stock`, or as the algorithm is: `chain:segment=8KiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// The MPI below.
    Stock,
    /// An algorithm of polycast's.
    Algorithm(Algorithm),
}

impl Choice {
    /// The capabilities that a communicator must have for the choice.
    #[inline]
    pub fn needs(self) -> Capabilities {
        match self {
            Choice::Stock => Capabilities::NONE,
            Choice::Algorithm(algorithm) if algorithm.shares_memory() => {
                Capabilities::PRIVATE | Capabilities::SHARED
            }
            Choice::Algorithm(algorithm) if algorithm.entry.has_schedules() => Capabilities::PRIVATE,
            Choice::Algorithm(_) => Capabilities::PRIVATE | Capabilities::MULTICAST,
        }
    }

    /// Whether nodes are served by multicast.
    pub fn is_by_multicast(self) -> bool {
        self.needs().has(Capabilities::MULTICAST)
    }
}

impl Choice {
    /// Whether the choice can serve communicators of this shape: some algorithms are for a single
    /// node, and some for nodes that have about as many ranks each.
    pub fn suits(self, shape: CommunicatorShape) -> bool {
        match self {
            Choice::Algorithm(algorithm) => {
                let entry = algorithm.entry;
                (shape.nodes == 1 || !entry.is_on_one_node()) && (!entry.is_padded || shape.is_even())
            }
            Choice::Stock => true,
        }
    }

    /// The choice for a call whose contributions have to be combined in the order of ranks: the MPI
    /// below in place of an algorithm that is for operations that commute only.
    pub fn in_order(self, shape: CommunicatorShape) -> Choice {
        match self.keeps(shape) < CombinationOrder::Ranks {
            true => Choice::Stock,
            false => self,
        }
    }

    /// The order of combination that the choice keeps on communicators of this shape. The MPI's is
    /// as good as any, for a program that expects no other.
    pub(super) fn keeps(self, shape: CommunicatorShape) -> CombinationOrder {
        match self {
            Choice::Stock => CombinationOrder::Tree,
            Choice::Algorithm(algorithm) => algorithm.keeps_in(shape.nodes, shape.are_parts),
        }
    }
}

/// A choice that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseChoiceError {
    /// Neither `stock` nor the name of an algorithm for the collective.
    #[error("{0}, stock")]
    UnknownName(ParseAlgorithmError),
    /// The algorithm exists, but not with these parameters.
    #[error(transparent)]
    Parameters(ParseAlgorithmError),
}

impl Choice {
    /// Reads a choice for calls of a collective.
    pub fn read(collective: Collective, text: &str) -> Result<Choice, ParseChoiceError> {
        use ParseAlgorithmError::{OtherCollective, UnknownName};
        if text.trim() == "stock" {
            return Ok(Choice::Stock);
        }
        Registry::BUILT_IN.read(collective, text).map(Choice::Algorithm).map_err(|error| match error {
            UnknownName { .. } | OtherCollective { .. } => ParseChoiceError::UnknownName(error),
            _ => ParseChoiceError::Parameters(error),
        })
    }
}

impl FromStr for Choice {
    type Err = ParseChoiceError;

    /// Reads a choice for broadcasts; [`Choice::read`] reads those for another collective.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Choice::read(Collective::Broadcast, text)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Stock => f.pad("stock"),
            Choice::Algorithm(algorithm) => algorithm.fmt(f),
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
    fn each_collective_has_choices_of_its_own() {
        for (collective, text) in
            [(Collective::Allreduce, "recursive-doubling"), (Collective::Scatter, "binomial")]
        {
            assert_eq!(Choice::read(collective, text).unwrap().to_string(), text);
        }
        for text in ["chain", "multicast-pull"] {
            let error = Choice::read(Collective::Allgather, text).unwrap_err().to_string();
            assert!(
                error.contains(
                    "expected one of ring, recursive-doubling, bruck, two-level, cells, direct, stock"
                ),
                "{error}"
            );
        }
        let error = "dissemination".parse::<Choice>().unwrap_err().to_string();
        assert!(
            error.starts_with("dissemination serves barrier, not bcast: expected one of flat"),
            "{error}"
        );
    }

    #[test]
    fn by_messages_no_memory_has_to_be_shared() {
        let needs = |text: &str| Choice::read(Collective::Allreduce, text).unwrap().needs();
        assert_eq!(needs("two-level"), Capabilities::PRIVATE | Capabilities::SHARED);
        assert_eq!(needs("two-level:within=messages"), Capabilities::PRIVATE);
    }

    /// By default, too: a rule for all shapes is passed over where it would carry 13 times the data.
    #[test]
    fn what_is_padded_is_for_nodes_of_about_as_many_ranks() {
        let even = CommunicatorShape::new(64, 16, None).unwrap();
        let uneven = CommunicatorShape::new(79, 16, Some(64)).unwrap();
        for collective in Collective::ALL {
            use Collective::{Allgather, Alltoall, Gather, Scatter};
            let choice = Choice::read(collective, "two-level").unwrap();
            let is_padded = matches!(collective, Allgather | Alltoall | Gather | Scatter);
            assert_eq!((choice.suits(even), choice.suits(uneven)), (true, !is_padded), "{collective}");
        }
    }

    #[test]
    fn what_keeps_no_order_is_for_operations_that_commute() {
        let shape = CommunicatorShape::new(16, 4, None).unwrap();
        for (text, expected) in
            [("ring", "stock"), ("halving-doubling", "halving-doubling"), ("stock", "stock")]
        {
            let choice = Choice::read(Collective::Allreduce, text).unwrap();
            assert_eq!(choice.in_order(shape).to_string(), expected);
        }
        assert_eq!(Choice::read(Collective::Allgather, "ring").unwrap().in_order(shape).to_string(), "ring");
    }

    #[test]
    fn an_unknown_name_is_answered_with_all_names() {
        let error = "stok".parse::<Choice>().unwrap_err().to_string();
        assert!(error.contains("\"stok\"") && error.ends_with("multicast-pull, cells, stock"), "{error}");
    }
}
