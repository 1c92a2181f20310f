//! Calls that only the door sees: they are counted by atomic numbers, for the report need not be wanted.

use std::sync::atomic::{AtomicU64, Ordering};

use polycast_core::collective::Collective;

use super::record::Count;

/// Functions that are never served, in two forms each: nonblocking, and made to be started again and again. First those of the
/// collectives in their order, then of `POLYCAST_ALLGATHERV`.
pub static UNSERVED: Untimed<18> = Untimed::new([
    "MPI_Ibcast",
    "MPI_Bcast_init",
    "MPI_Iscatter",
    "MPI_Scatter_init",
    "MPI_Igather",
    "MPI_Gather_init",
    "MPI_Iallgather",
    "MPI_Allgather_init",
    "MPI_Ialltoall",
    "MPI_Alltoall_init",
    "MPI_Ibarrier",
    "MPI_Barrier_init",
    "MPI_Ireduce",
    "MPI_Reduce_init",
    "MPI_Iallreduce",
    "MPI_Allreduce_init",
    "MPI_Iallgatherv",
    "MPI_Allgatherv_init",
]);

/// Reasons for which calls are left to the MPI, by collective and `POLYCAST_BECAUSE_*` of
/// polycast.h.
pub static LEFT: [Untimed<7>; Collective::ALL.len()] = [const {
    Untimed::new([
        "on intercommunicators",
        "on communicators of one rank",
        "on communicators whose ranks cannot all be served alike (another build of polycast on some rank, or an error of the MPI)",
        "on communicators that reach outside MPI_COMM_WORLD",
        "of no data",
        "of datatypes with an operation that polycast does not combine",
        "of blocks whose lengths differ too much",
    ])
}; Collective::ALL.len()];

/// Kinds of calls with their counts.
pub struct Untimed<const N: usize> {
    names: [&'static str; N],
    calls: [AtomicU64; N],
    bytes: [AtomicU64; N],
}

impl<const N: usize> Untimed<N> {
    const fn new(names: [&'static str; N]) -> Untimed<N> {
        let [calls, bytes] = [const { [const { AtomicU64::new(0) }; N] }; 2];
        Untimed { names, calls, bytes }
    }

    /// Counts one more call. A kind that only a newer door knows is ignored.
    pub fn count(&self, kind: u32, bytes: u64) {
        if let (Some(calls), Some(sum)) = (self.calls.get(kind as usize), self.bytes.get(kind as usize)) {
            // Relaxed: nothing is ordered by these numbers, which are read when MPI ends.
            calls.fetch_add(1, Ordering::Relaxed);
            sum.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Name of a kind in the report.
    pub fn name(&self, kind: u32) -> Option<&'static str> {
        self.names.get(kind as usize).copied()
    }

    /// The kind whose name contains `says`.
    #[cfg(test)]
    pub fn kind(&self, says: &str) -> usize {
        self.names.iter().position(|name| name.contains(says)).expect("a kind")
    }

    /// The kinds of which there were calls, with their counts.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, Count)> {
        let read = |(calls, bytes): (&AtomicU64, &AtomicU64)| Count {
            calls: calls.load(Ordering::Relaxed),
            bytes: bytes.load(Ordering::Relaxed),
            nanos: 0,
        };
        let counts = self.calls.iter().zip(&self.bytes).map(read);
        self.names.into_iter().zip(counts).filter(|(_, count)| count.calls > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_known_kinds_are_counted() {
        let untimed = Untimed::new(["first", "second"]);
        assert_eq!(untimed.counts().count(), 0);
        untimed.count(1, 100);
        untimed.count(1, 11);
        untimed.count(2, 5);
        let expected = [("second", Count { calls: 2, bytes: 111, nanos: 0 })];
        assert_eq!(untimed.counts().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_collective_has_two_forms_that_are_not_served() {
        for (collective, names) in Collective::ALL.into_iter().zip(UNSERVED.names.chunks(2)) {
            let name = collective.name();
            assert_eq!(names[0], format!("MPI_I{name}"));
            assert_eq!(names[1], format!("{}_init", collective.function()));
        }
    }
}
