//! Calls of operations that polycast does not serve: the report says that they were there.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::counters::Count;

/// By `POLYCAST_UNSERVED_*` of polycast.h.
const OPERATIONS: [&str; 1] = ["MPI_Ibcast"];

struct Counter {
    calls: AtomicU64,
    bytes: AtomicU64,
}

static COUNTERS: [Counter; OPERATIONS.len()] =
    [const { Counter { calls: AtomicU64::new(0), bytes: AtomicU64::new(0) } }; OPERATIONS.len()];

/// One more call. An operation of a newer door is ignored.
pub fn count(operation: u32, bytes: u64) {
    if let Some(counter) = COUNTERS.get(operation as usize) {
        // Relaxed: nothing is ordered by these numbers, which are read when MPI ends.
        counter.calls.fetch_add(1, Ordering::Relaxed);
        counter.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The operations that were called, with their counts.
pub fn counts() -> impl Iterator<Item = (&'static str, Count)> {
    let read = |counter: &Counter| Count {
        calls: counter.calls.load(Ordering::Relaxed),
        bytes: counter.bytes.load(Ordering::Relaxed),
    };
    let counts = COUNTERS.iter().map(read);
    OPERATIONS.into_iter().zip(counts).filter(|(_, count)| count.calls > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_known_operations_are_counted() {
        assert_eq!(counts().count(), 0);
        count(0, 100);
        count(0, 11);
        count(OPERATIONS.len() as u32, 5);
        assert_eq!(counts().collect::<Vec<_>>(), [("MPI_Ibcast", Count { calls: 2, bytes: 111 })]);
    }
}
