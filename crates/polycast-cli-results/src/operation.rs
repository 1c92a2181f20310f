//! What is measured: nine functions of MPI, how large their blocks are, and what the busiest link must carry.

use std::fmt;

use polycast_core::collective::Collective;

/// A function of MPI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// `MPI_Bcast`
    #[default]
    Bcast,
    /// `MPI_Scatter`
    Scatter,
    /// `MPI_Gather`
    Gather,
    /// `MPI_Allgather`
    Allgather,
    /// `MPI_Allgatherv` with blocks of two sizes
    Allgatherv,
    /// `MPI_Alltoall`
    Alltoall,
    /// `MPI_Barrier`
    Barrier,
    /// `MPI_Reduce` of doubles
    Reduce,
    /// `MPI_Allreduce` of doubles
    Allreduce,
}

use Operation::{Allgather, Allgatherv, Allreduce, Alltoall, Barrier, Bcast, Gather, Reduce, Scatter};

/// An error in a list of operations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperationsError {
    /// A word in the list is no collective.
    #[error(
        "unknown collective {0:?}, expected all or a list of bcast, scatter, gather, allgather, allgatherv, alltoall, barrier, reduce, allreduce"
    )]
    Unknown(String),
    /// A collective is in the list twice.
    #[error("{0} is listed twice")]
    Twice(Operation),
}

impl Operation {
    /// The operations that can be measured.
    pub const ALL: [Operation; 9] =
        [Bcast, Scatter, Gather, Allgather, Allgatherv, Alltoall, Barrier, Reduce, Allreduce];

    /// Reads `all`, or names separated by commas.
    pub fn parse_list(text: &str) -> Result<Vec<Operation>, OperationsError> {
        if text == "all" {
            return Ok(Operation::ALL.to_vec());
        }
        let mut list = Vec::new();
        for name in text.split(',').map(str::trim) {
            let known = Operation::ALL.into_iter().find(|operation| operation.name() == name);
            let operation = known.ok_or_else(|| OperationsError::Unknown(name.to_owned()))?;
            if list.contains(&operation) {
                return Err(OperationsError::Twice(operation));
            }
            list.push(operation);
        }
        Ok(list)
    }

    /// Returns the name as in the MPI function, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Allgatherv => "allgatherv",
            _ => self.collective().name(),
        }
    }

    /// True if the operation has a root whose data all others wait for.
    pub fn has_source(self) -> bool {
        matches!(self, Bcast | Scatter)
    }

    /// Returns the collective whose algorithms serve the operation.
    pub fn collective(self) -> Collective {
        match self {
            Bcast => Collective::Broadcast,
            Scatter => Collective::Scatter,
            Gather => Collective::Gather,
            Allgather | Allgatherv => Collective::Allgather,
            Alltoall => Collective::Alltoall,
            Barrier => Collective::Barrier,
            Reduce => Collective::Reduce,
            Allreduce => Collective::Allreduce,
        }
    }

    /// Returns the operation that this collective's algorithms serve; of two operations, the one
    /// with blocks of equal size.
    pub fn of(collective: Collective) -> Operation {
        match collective {
            Collective::Broadcast => Bcast,
            Collective::Scatter => Scatter,
            Collective::Gather => Gather,
            Collective::Allgather => Allgather,
            Collective::Alltoall => Alltoall,
            Collective::Barrier => Barrier,
            Collective::Reduce => Reduce,
            Collective::Allreduce => Allreduce,
        }
    }

    /// Returns the name of the variable that says what serves the operation.
    pub fn variable(self) -> String {
        format!("POLYCAST_{}", self.collective().name().to_ascii_uppercase())
    }

    /// The function's name: `MPI_Bcast`.
    pub fn function(self) -> String {
        format!("MPI_{}", capitalised(self.name()))
    }

    /// True if only the root ends with data: then the root's return ends the time.
    pub fn ends_at_root(self) -> bool {
        matches!(self, Gather | Reduce)
    }

    /// The bytes of a block, of which the largest buffer of a rank has one or `ranks`; rounded up as the measuring program does (`bench/call.h`): to
    /// whole blocks of the same size, or whole doubles. Allgatherv's are so large on the average.
    pub fn block_bytes(self, bytes: u64, ranks: usize) -> u64 {
        match self {
            Bcast => bytes,
            Barrier => 0,
            Reduce | Allreduce => bytes.next_multiple_of(8),
            Scatter | Gather | Allgather | Allgatherv | Alltoall => bytes.div_ceil(ranks.max(1) as u64),
        }
    }

    /// The block of one rank, which differs from [`Operation::block_bytes`] for allgatherv: of two neighbours the first has half a block and the
    /// second one and a half.
    fn block_of(self, rank: usize, bytes: u64, ranks: usize) -> u64 {
        let block = self.block_bytes(bytes, ranks);
        match self {
            Allgatherv if rank % 2 == 1 => block + block / 2,
            Allgatherv if rank + 1 < ranks => block - block / 2,
            _ => block,
        }
    }

    /// Returns a lower bound of the bytes that the busiest link between hosts must carry in one
    /// direction, whatever the algorithm.
    ///
    /// `host_of` has the host of each rank, numbered from 0, each with one link that carries both directions at once. What has to enter or leave
    /// a host goes over its link. An allreduce of B bytes on n hosts needs n - 1 receptions to combine each element and n - 1 to bring the result
    /// to all, by multicast too: 2 (n - 1) B bytes in all, so 2 (n - 1)/n · B on the busiest of n links (Patarasuk and Yuan, Journal of Parallel
    /// and Distributed Computing 69, 2009). 0 where one host has all ranks, and for a barrier.
    pub fn wire_bytes(self, bytes: u64, host_of: &[usize], root: usize) -> u64 {
        let (ranks, hosts) = (host_of.len(), host_of.iter().max().map_or(0, |last| last + 1) as u64);
        if hosts < 2 {
            return 0;
        }
        let block = self.block_bytes(bytes, ranks);
        let sum = |is_meant: &dyn Fn(usize) -> bool| -> u64 {
            let meant = (0..ranks).filter(|rank| is_meant(host_of[*rank]));
            meant.map(|rank| self.block_of(rank, bytes, ranks)).sum()
        };
        let others = |host: usize| sum(&|of| of != host);
        let count = |host: usize| host_of.iter().filter(|of| **of == host).count() as u64;
        let busiest = |carried: &dyn Fn(usize) -> u64| (0..hosts as usize).map(carried).max().unwrap_or(0);
        match self {
            Barrier => 0,
            Bcast | Reduce => block,
            Scatter | Gather => host_of.get(root).map_or(0, |host| others(*host)),
            Allgather | Allgatherv => busiest(&|host| others(host).max(sum(&|of| of == host))),
            Alltoall => busiest(&|host| block * count(host) * (ranks as u64 - count(host))),
            Allreduce => (2 * (hosts - 1) * block).div_ceil(hosts),
        }
    }
}

/// Returns a name with a capital first letter.
pub fn capitalised(name: &str) -> String {
    name.get(..1).map_or(String::new(), str::to_ascii_uppercase) + name.get(1..).unwrap_or_default()
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn lists_are_read() {
        assert_eq!(Operation::parse_list("all").unwrap(), Operation::ALL);
        assert_eq!(Operation::parse_list("allreduce, bcast").unwrap(), [Allreduce, Bcast]);
        assert!(
            Operation::parse_list("bcast,reduce,bcast")
                .unwrap_err()
                .to_string()
                .contains("bcast is listed twice")
        );
        let error = Operation::parse_list("MPI_Scan").unwrap_err().to_string();
        assert!(error.contains("\"MPI_Scan\"") && error.contains("allgatherv, alltoall"), "{error}");
        assert_eq!(Operation::ALL.map(Operation::function)[4..6], ["MPI_Allgatherv", "MPI_Alltoall"]);
        assert_eq!(Collective::ALL.map(|one| Operation::of(one).collective()), Collective::ALL);
    }

    /// `each` ranks on each of `hosts` hosts.
    fn placed(hosts: usize, each: usize) -> Vec<usize> {
        (0..hosts * each).map(|rank| rank / each).collect()
    }

    /// With headers at 100 Mb/s: 77 ms, 88, 153, and for all-to-all 77 or 307.
    #[test]
    fn the_busiest_link_of_a_megabyte() {
        for each in [1, 4] {
            let of = |operation: Operation| operation.wire_bytes(MIB, &placed(8, each), 0);
            for operation in [Scatter, Gather, Allgather] {
                assert_eq!(of(operation), MIB / 8 * 7, "{operation}");
            }
            assert_eq!((of(Bcast), of(Reduce), of(Allreduce)), (MIB, MIB, MIB / 4 * 7));
            assert_eq!((of(Alltoall), of(Barrier)), (MIB / 8 * 7 * each as u64, 0));
        }
        let on_one = |operation: &Operation| operation.wire_bytes(MIB, &placed(1, 8), 0);
        assert!(Operation::ALL.iter().all(|operation| on_one(operation) == 0), "no link is used");
    }

    #[test]
    fn ranks_are_where_they_are() {
        let of = |operation: Operation, root| operation.wire_bytes(80, &[0, 0, 0, 0, 0, 1, 0, 1], root);
        assert_eq!((of(Scatter, 0), of(Scatter, 5), of(Gather, 7)), (20, 60, 60));
        assert_eq!((of(Allgather, 0), of(Alltoall, 0), of(Allreduce, 0)), (60, 120, 80));
        // Ranks 5 and 7 have 15 bytes each, and get all others.
        assert_eq!(of(Allgatherv, 0), 50);
        assert_eq!(Allgatherv.wire_bytes(80, &placed(8, 1), 0), 75, "all but the half block of rank 0");
    }

    #[test]
    fn blocks_are_rounded_up() {
        assert_eq!(
            (Scatter.block_bytes(9, 8), Alltoall.block_bytes(8, 8), Gather.block_bytes(0, 8)),
            (2, 1, 0)
        );
        assert_eq!(
            (Reduce.block_bytes(9, 8), Bcast.block_bytes(9, 8), Barrier.block_bytes(9, 8)),
            (16, 9, 0)
        );
    }
}
