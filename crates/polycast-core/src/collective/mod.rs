//! The eight collective operations, and what a call of one is given.

mod combination;
pub mod doubles;

pub use combination::{Child, CombinationOrder, CombinationTree, TreeNeighbours};

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use crate::units::{Bytes, Rank};

/// A collective operation of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Collective {
    /// `MPI_Bcast`: everybody ends with the root's data.
    Broadcast,
    /// `MPI_Scatter`: everybody ends with a block of the root's.
    Scatter,
    /// `MPI_Gather`: the root ends with everybody's block.
    Gather,
    /// `MPI_Allgather`: everybody ends with everybody's block.
    Allgather,
    /// `MPI_Alltoall`: everybody has a block for everybody.
    Alltoall,
    /// `MPI_Barrier`: nobody ends before all have begun.
    Barrier,
    /// `MPI_Reduce`: the root ends with the combination of everybody's data.
    Reduce,
    /// `MPI_Allreduce`: everybody ends with the combination of everybody's data.
    Allreduce,
}

/// The error for text that names no collective.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown collective {found:?}, expected one of {}", names())]
pub struct ParseCollectiveError {
    found: String,
}

impl Collective {
    /// All collectives, in the order in which they are declared: each stands at its own number.
    pub const ALL: [Collective; 8] = [
        Collective::Broadcast,
        Collective::Scatter,
        Collective::Gather,
        Collective::Allgather,
        Collective::Alltoall,
        Collective::Barrier,
        Collective::Reduce,
        Collective::Allreduce,
    ];

    /// The collective of this name, in upper or lower case, with or without `MPI_`.
    pub fn named(text: &str) -> Option<Collective> {
        let lower = text.to_ascii_lowercase();
        let name = lower.strip_prefix("mpi_").unwrap_or(&lower);
        Collective::ALL.into_iter().find(|collective| collective.name() == name)
    }

    /// The name, as in the MPI function's.
    pub fn name(self) -> &'static str {
        match self {
            Collective::Broadcast => "bcast",
            Collective::Scatter => "scatter",
            Collective::Gather => "gather",
            Collective::Allgather => "allgather",
            Collective::Alltoall => "alltoall",
            Collective::Barrier => "barrier",
            Collective::Reduce => "reduce",
            Collective::Allreduce => "allreduce",
        }
    }

    /// The name of the MPI function: `MPI_Bcast`.
    pub fn function(self) -> String {
        let (first, rest) = self.name().split_at(1);
        format!("MPI_{}{rest}", first.to_uppercase())
    }

    /// Whether one rank differs from the others.
    pub fn has_root(self) -> bool {
        use Collective::{Broadcast, Gather, Reduce, Scatter};
        matches!(self, Broadcast | Scatter | Gather | Reduce)
    }

    /// Whether contributions are combined.
    pub fn combines(self) -> bool {
        matches!(self, Collective::Reduce | Collective::Allreduce)
    }
}

fn names() -> String {
    Collective::ALL.map(Collective::name).join(", ")
}

impl FromStr for Collective {
    type Err = ParseCollectiveError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Collective::named(text).ok_or_else(|| ParseCollectiveError { found: text.to_owned() })
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A call of a collective, as every rank of the communicator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The operation.
    pub collective: Collective,
    /// Ranks in the communicator, at least 1.
    pub ranks: u32,
    /// The rank that has, or gets, what the others have not; without meaning where no rank does.
    pub root: Rank,
    /// Broadcast, reduce, allreduce: all data. Scatter, gather, allgather: one rank's block. All-to-all: the block of a pair of
    /// ranks.
    pub bytes: Bytes,
    /// Bytes of an element, which is not cut where data is combined; `bytes` is a multiple of it.
    pub element: NonZeroU64,
    /// The order in which contributions are combined.
    pub order: CombinationOrder,
    /// `MPI_IN_PLACE`: a rank's contribution is in its output. Scatter, gather, reduce: of the root only, and only the root knows.
    pub is_in_place: bool,
}

impl Call {
    /// A call whose elements are bytes, for which any order of combination is right, and in which
    /// nothing is in place.
    pub fn new(collective: Collective, ranks: u32, root: Rank, bytes: Bytes) -> Call {
        let element = NonZeroU64::MIN;
        Call { collective, ranks, root, bytes, element, order: CombinationOrder::Any, is_in_place: false }
    }

    /// A broadcast.
    pub fn broadcast(ranks: u32, root: Rank, bytes: Bytes) -> Call {
        Call::new(Collective::Broadcast, ranks, root, bytes)
    }

    /// The most bytes that a message of the call may have, whatever the algorithm.
    pub fn most_bytes_of_a_message(&self) -> u64 {
        use Collective::{Allreduce, Alltoall, Broadcast, Reduce};
        let ranks = u64::from(self.ranks);
        match self.collective {
            Broadcast | Reduce | Allreduce => self.bytes.0,
            // From node to node go blocks of all ranks for all ranks.
            Alltoall => self.bytes.0.saturating_mul(ranks).saturating_mul(ranks),
            _ => self.bytes.0.saturating_mul(ranks),
        }
    }

    /// The distance from the root up to `rank`, modulo the number of ranks.
    pub(crate) fn position_of(&self, rank: Rank) -> u32 {
        rank.relative_to(self.root, self.ranks)
    }

    /// The rank at a distance from the root; undoes [`Call::position_of`].
    pub(crate) fn rank_at(&self, position: u32) -> Rank {
        Rank::from_relative(position, self.root, self.ranks)
    }

    /// Whether `rank`'s contribution is in its output (scatter: its block stays in its input).
    pub fn is_in_place_at(&self, rank: Rank) -> bool {
        use Collective::{Allgather, Allreduce, Alltoall};
        let concerns_all = matches!(self.collective, Allgather | Allreduce | Alltoall);
        self.is_in_place && (concerns_all || self.collective.has_root() && rank == self.root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_people_write_them() {
        for text in ["bcast", "Bcast", "MPI_Bcast", "mpi_bcast", "MPI_BCAST"] {
            assert_eq!(text.parse(), Ok(Collective::Broadcast), "{text}");
        }
        for text in ["", "mpi_", "broadcast", "MPI_MPI_Bcast", "allreduces"] {
            let error = text.parse::<Collective>().unwrap_err().to_string();
            assert!(error.ends_with(
                "expected one of bcast, scatter, gather, allgather, alltoall, barrier, reduce, allreduce"
            ));
        }
    }

    #[test]
    fn each_has_the_variable_of_its_name() {
        for (collective, variable) in Collective::ALL.into_iter().zip(crate::variables::FORCED) {
            assert_eq!(variable, format!("POLYCAST_{}", collective.name().to_uppercase()));
            assert!(crate::variables::find(variable).is_some());
        }
    }
}
