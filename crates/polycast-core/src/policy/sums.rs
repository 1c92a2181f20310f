//! What becomes of sums, whose bits depend on the order in which contributions are combined.

use std::fmt;
use std::str::FromStr;

use super::{Choice, CommunicatorShape};
use crate::collective::CombinationOrder;
use crate::variables::SERVED_SUMS;

/// Which sums are served, as the user says: floating-point ones, and those of operations of the
/// program's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ServedSums {
    /// Those for which rules name a way that keeps the order of sums, or that the user forces.
    #[default]
    Auto,
    /// All, from the first call of every communicator on, by ways that keep the order.
    Canonical,
    /// None: the MPI combines in its own order.
    Mpi,
}

impl ServedSums {
    /// All, in the order in which documentation lists them.
    pub const ALL: [ServedSums; 3] = [ServedSums::Auto, ServedSums::Canonical, ServedSums::Mpi];
    /// The words for them, at their places in [`ServedSums::ALL`].
    pub const WORDS: [&str; 3] = SERVED_SUMS;
}

impl fmt::Display for ServedSums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(ServedSums::WORDS[*self as usize])
    }
}

/// A word that names no [`ServedSums`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected one of {}, found {found:?}", ServedSums::WORDS.join(", "))]
pub struct ParseServedSumsError {
    found: String,
}

impl FromStr for ServedSums {
    type Err = ParseServedSumsError;

    /// Reads a word in lower or upper case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let at = ServedSums::WORDS.iter().position(|word| word.eq_ignore_ascii_case(text.trim()));
        at.map(|at| ServedSums::ALL[at]).ok_or_else(|| ParseServedSumsError { found: text.to_owned() })
    }
}

/// The ways that may serve sums on a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaysOfSums {
    pub served: ServedSums,
    /// The shape of the communicator.
    pub shape: CommunicatorShape,
}

impl WaysOfSums {
    pub fn new(served: ServedSums, shape: CommunicatorShape) -> WaysOfSums {
        WaysOfSums { served, shape }
    }

    /// True if sums may go this way where nobody forces one.
    pub fn has(&self, choice: Choice) -> bool {
        match (self.served, choice) {
            (ServedSums::Mpi, choice) => choice == Choice::Stock,
            (ServedSums::Canonical, Choice::Stock) => false,
            (_, choice) => choice.keeps_order_of_sums(self.shape),
        }
    }

    /// The choice for a call whose contributions have to be combined in the order of ranks.
    pub fn in_order(&self, choice: Choice) -> Choice {
        choice.in_order(self.shape)
    }

    /// True if sums may go a way that the user forces: the MPI's, or one of another order, where
    /// nothing else is promised.
    pub fn has_forced(&self, choice: Choice) -> bool {
        self.served == ServedSums::Auto || self.has(choice)
    }

    /// The number of calls after which rules must hold so that they decide about all sums of a
    /// communicator, from its first one on. A call number must not change bits: so communicators
    /// of all ranks, which are few and live long, begin with what rules say in the end. Others may
    /// live for a few calls only and keep to what rules say at first.
    pub fn decided_after(&self) -> u64 {
        match self.served == ServedSums::Canonical || self.shape.is_of_all {
            true => u64::MAX,
            false => 0,
        }
    }
}

impl Choice {
    /// True if the choice is the MPI's, or combines by the
    /// [tree](crate::collective::CombinationTree) of the ranks on communicators of this shape.
    pub fn keeps_order_of_sums(self, shape: CommunicatorShape) -> bool {
        CombinationOrder::Tree.among(shape.ranks) <= self.keeps(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::Collective;

    #[test]
    fn words_are_read_back() {
        for served in ServedSums::ALL {
            assert_eq!(served.to_string().to_ascii_uppercase().parse(), Ok(served));
        }
        let error = "exact".parse::<ServedSums>().unwrap_err().to_string();
        assert_eq!(error, "expected one of auto, canonical, mpi, found \"exact\"");
    }

    #[test]
    fn only_who_keeps_the_order_serves_sums() {
        let shape = |ranks, nodes| CommunicatorShape::new(ranks, nodes, None).unwrap();
        let keeps =
            |text: &str, shape| Choice::read(Collective::Allreduce, text).unwrap().keeps_order_of_sums(shape);
        for (text, expected) in [
            ("stock", true),
            ("ring", false),
            ("recursive-doubling", true),
            ("pairwise", true),
            ("two-level", false),
            ("two-level:between=pairwise", true),
        ] {
            assert_eq!(keeps(text, shape(8, 2)), expected, "{text}");
        }
        assert!(keeps("two-level", shape(5, 1)), "nothing goes between nodes");
        assert!(!keeps("two-level:between=pairwise", shape(6, 2)), "three ranks are no part of the tree");
        assert!(!keeps("ring", shape(2, 2)), "a ring may swap two numbers");
    }
}
