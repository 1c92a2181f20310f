//! What a served call costs of our own: memory from the system, counted exactly. For its time see `measurements/served_call.sh`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use super::job::Job;
use super::network::Weather;
use super::process::Ended;
use super::random::with_seeds;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static IS_COUNTING: Cell<bool> = const { Cell::new(false) };
    /// What it has in bytes, while that is looked at.
    static HELD: Cell<Option<i64>> = const { Cell::new(None) };
}

/// The system's, and counts what a thread asks of it while it is [`counted`].
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count() {
    // A thread that ends has no cell any more.
    if IS_COUNTING.try_with(Cell::get).unwrap_or(false) {
        COUNT.set(COUNT.get() + 1);
    }
}

/// So many bytes more.
fn holds(bytes: i64) {
    if let Some(held) = HELD.try_with(Cell::get).unwrap_or(None) {
        HELD.set(Some(held + bytes));
    }
}

/// From now on what this thread asks for is looked at, but for what it asks for [`outside`].
pub fn hold() {
    HELD.set(Some(0));
}

/// The bytes that it has of that.
pub fn held() -> u64 {
    HELD.get().map_or(0, |held| held.max(0) as u64)
}

// SAFETY: it is the system's in all that it does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        holds(layout.size() as i64);
        // SAFETY: handed on from the caller.
        unsafe { System.alloc(layout) }
    }

    // Pages that nobody writes cost nothing.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        holds(layout.size() as i64);
        // SAFETY: handed on from the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        holds(-(layout.size() as i64));
        // SAFETY: handed on from the caller.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        holds(bytes as i64 - layout.size() as i64);
        // SAFETY: handed on from the caller.
        unsafe { System.realloc(place, layout, bytes) }
    }
}

/// How often `work` asked for memory, but for what it did [`outside`].
pub fn counted<R>(work: impl FnOnce() -> R) -> (R, u64) {
    COUNT.set(0);
    IS_COUNTING.set(true);
    let result = work();
    IS_COUNTING.set(false);
    (result, COUNT.get())
}

/// What the door and the machine do is not ours.
pub fn outside<R>(work: impl FnOnce() -> R) -> R {
    let (was_counting, held) = (IS_COUNTING.replace(false), HELD.take());
    let result = work();
    IS_COUNTING.set(was_counting);
    HELD.set(held);
    result
}

/// Of each call, the allocations of the rank that makes the most.
fn most_per_call(job: &Job) -> Vec<u64> {
    let outcome = job.run();
    assert!(outcome.ranks.iter().all(|told| told.calls.iter().all(|ended| *ended == Ended::SERVED_WELL)));
    let calls = 0..outcome.ranks[0].calls.len();
    calls.map(|call| outcome.ranks.iter().map(|told| told.allocations[call]).max().unwrap_or(0)).collect()
}

const CALLS: [(u32, usize); 500] = [(0, 8192); 500];

#[test]
fn a_served_broadcast_asks_for_no_memory_after_the_first_one() {
    with_seeds(3, |seed| {
        let all = ["binomial", "chain", "flat", "scatter-ring", "double-tree", "chain:segment=1KiB"];
        for algorithm in all {
            let job = Job::new(4, seed, algorithm, &CALLS).on_hosts(&[0, 1, 2, 3], Weather::FINE);
            let counts = most_per_call(&job);
            assert!(counts[0] > 0 && counts[1..].iter().all(|count| *count == 0), "{algorithm}: {counts:?}");
        }
    });
}

/// What is longer than the ring is read where it is; while others read it, its owner waits.
#[test]
fn neither_does_one_through_shared_memory() {
    let calls = [(0, 8192), (0, 200_000)].repeat(10);
    let counts = most_per_call(&Job::new(3, 1, "two-level", &calls));
    assert!(counts[0] > 0 && counts[4..].iter().all(|count| *count == 0), "{counts:?}");
}

/// Memory is kept, as much as was ever needed at once; now and then a call needs more at once than all before it, for what the others
/// send that are ahead. How often differs from seed to seed, so the mean of some counts.
#[test]
fn a_multicast_asks_for_hardly_any_memory_after_the_first_ones() {
    const SEEDS: u64 = 4;
    for algorithm in ["multicast-pull", "multicast-push", "multicast-pull:parity", "multicast-push:parity"] {
        let more = (1..=SEEDS).map(|seed| {
            let job = Job::new(4, seed, algorithm, &CALLS).on_hosts(&[0, 1, 2, 3], Weather::FINE);
            most_per_call(&job)[300..].iter().filter(|count| **count > 0).count() as u64
        });
        let more: Vec<u64> = more.collect();
        assert!(more.iter().sum::<u64>() <= 20 * SEEDS, "{algorithm}: {more:?}");
    }
}

#[test]
fn what_is_asked_for_is_counted() {
    let (_, count) = counted(|| (Box::new(1), outside(|| Box::new(2)), vec![3; 10]));
    assert_eq!(count, 2);
}
