//! Calls like the last one take no memory: invariant 5 of the chooser, counted exactly, for any table, order of calls and answers of the ranks.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use polycast_core::policy::chooser::{
    Answer, Chooser, Learning, LongestCalls, Numbered, Opened, RankExchange, Request, Waiting, WhoServes,
};
use polycast_core::policy::trials::{Ledger, SUMS};
use polycast_core::policy::{Call, Collective, CommunicatorShape, Policy, Rules, Table};
use polycast_core::units::Bytes;

thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// The system's memory; counts how often a thread takes some.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: it is the system's in all that it does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = TAKEN.try_with(|taken| taken.set(taken.get() + 1));
        // SAFETY: handed on from the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: handed on from the caller.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let _ = TAKEN.try_with(|taken| taken.set(taken.get() + 1));
        // SAFETY: handed on from the caller.
        unsafe { System.realloc(place, layout, bytes) }
    }
}

fn counted<R>(work: impl FnOnce() -> R) -> (R, u64) {
    let before = TAKEN.get();
    let result = work();
    (result, TAKEN.get() - before)
}

fn table(chance: &mut fastrand::Rng) -> Table {
    const WAYS: [(&str, &[&str]); 2] = [
        ("bcast", &["stock", "chain:segment=1KiB", "binomial", "multicast-pull", "two-level", "cells"]),
        ("allreduce", &["stock", "recursive-doubling", "two-level", "cells", "ring"]),
    ];
    const CONDITIONS: [&str; 5] = [
        "",
        "bytes = \"..1KiB\"\n",
        "bytes = \"8KiB..\"\n",
        "earlier_calls = \"50..\"\n",
        "rate = \"1gbit..\"\n",
    ];
    let rules = (0..chance.usize(1..8)).map(|_| {
        let (collective, ways) = WAYS[chance.usize(..2)];
        let (condition, way) = (CONDITIONS[chance.usize(..5)], ways[chance.usize(..ways.len())]);
        format!("[[rule]]\ncollective = \"{collective}\"\n{condition}use = \"{way}\"\n")
    });
    Table::parse(&format!("version = 1\n{}", rules.collect::<String>()), "a table").unwrap()
}

/// What the ranks have learned, by chance.
fn answer(
    exchange: RankExchange,
    policy: &Arc<Policy>,
    shape: CommunicatorShape,
    chance: &mut fastrand::Rng,
) -> Answer {
    let trials = || Ledger::default().resumed(&Ledger::default().words_for_others());
    match exchange {
        RankExchange::Open(_) if chance.u8(..8) == 0 => Answer::Opened(Opened::Refused),
        RankExchange::Open(opening) => Answer::Opened(Opened::Number(Numbered {
            policy: policy.clone(),
            ranks: shape.ranks,
            shares_nodes: shape.nodes < shape.ranks,
            has_multicast: false,
            trials: opening.hears.then(trials),
        })),
        RankExchange::Multicast => Answer::Multicast(if chance.bool() {
            Ok(())
        } else {
            Err(polycast_core::policy::chooser::Again::Later)
        }),
        RankExchange::Look => Answer::Look { has_died: chance.u8(..8) == 0 },
        RankExchange::Memory => Answer::Memory(chance.bool()),
        RankExchange::Sum => Answer::Sums(Box::new([0; SUMS])),
        RankExchange::Hear => Answer::Heard { trials: trials(), measured: Vec::new() },
        RankExchange::Measure => unreachable!("nothing is tuned"),
    }
}

fn request(chance: &mut fastrand::Rng) -> Request {
    let collective = if chance.u8(..3) == 0 { Collective::Allreduce } else { Collective::Broadcast };
    let bytes = Bytes([4, 700, 1500, 9000, 100_000][chance.usize(..5)]);
    Request {
        call: Call::new(collective, bytes),
        is_root: chance.bool(),
        may_be_compared: collective == Collective::Broadcast || chance.bool(),
        is_ordered: false,
        is_own: false,
        when: Waiting::Waited,
    }
}

#[test]
fn calls_like_the_last_one_take_no_memory() {
    let (mut steady, mut all) = (0u64, 0u64);
    for seed in 0..400 {
        let chance = &mut fastrand::Rng::with_seed(seed);
        let table = table(chance);
        let ranks = [2, 4, 8][chance.usize(..3)];
        let nodes = [1, 2, ranks][chance.usize(..3)];
        let shape = CommunicatorShape::new(ranks, nodes, None).unwrap();
        let policy = Arc::new(Policy::new(Rules::new(&[], None, &table, None), shape));
        let learning = Learning { tries: chance.bool(), tunes: false };
        let longest = chance.bool().then(|| LongestCalls::new(50_000, shape));
        let mut chooser = Chooser::new(policy.clone(), learning, longest, [0; 8], chance.u8(..4) == 0);
        for _ in 0..20 {
            let request = request(chance);
            for call in 0..chance.u32(1..300) {
                let (mut next, mut taken) = counted(|| chooser.next(&request));
                // Nobody reads why: it was answered without a look at rules and trials.
                let is_steady =
                    matches!(next, WhoServes::Leave { why: None, .. } | WhoServes::Serve { why: None, .. });
                while let WhoServes::First(exchange) = next {
                    chooser.heard(answer(exchange, &policy, shape, chance));
                    (next, taken) = counted(|| chooser.next(&request));
                }
                if let WhoServes::Serve { sample: Some(sample), .. }
                | WhoServes::Leave { sample: Some(sample), .. } = next
                {
                    chooser.took(sample, 1000 + chance.u64(..20_000));
                }
                assert!(
                    !is_steady || taken == 0,
                    "seed {seed}, call {call}: {request:?} takes memory {taken} times"
                );
                (steady, all) = (steady + u64::from(is_steady), all + 1);
            }
        }
    }
    assert!(steady > all / 3, "{steady} of {all}");
}

#[test]
fn what_is_taken_is_counted() {
    assert_eq!(counted(|| (Box::new(1), vec![3; 10])).1, 2);
}
