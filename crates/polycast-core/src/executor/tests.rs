use std::num::NonZeroU64;

use proptest::prelude::*;

use super::*;
use crate::algorithm::broadcast::Planner;
use crate::algorithm::{Algorithm, Registry};
use crate::collective::{Call, Collective};
use crate::schedule::{Kind, Lane, Slice, Step, Stream};
use crate::units::{Bytes, Rank};

fn executor(
    algorithm: &str,
    ranks: u32,
    rank: u32,
    bytes: u64,
    limits: Limits,
) -> Executor<Box<dyn Schedule>> {
    let call = Call::broadcast(ranks, Rank(0), Bytes(bytes));
    let algorithm: Algorithm = algorithm.parse().unwrap();
    Executor::new(algorithm.schedule(call, Rank(rank), &mut Planner::flat(ranks)), limits)
}

/// All that can start now, as (lane, index).
fn start_all<S: Schedule>(executor: &mut Executor<S>) -> Vec<(LaneIndex, u64)> {
    std::iter::from_fn(|| executor.next_operation())
        .map(|operation| (operation.id.lane, operation.id.index))
        .collect()
}

fn complete<S: Schedule>(executor: &mut Executor<S>, lane: LaneIndex, index: u64) {
    executor.complete(StepId { lane, index });
}

#[test]
fn nothing_to_do_is_finished() {
    let mut executor = executor("chain", 2, 0, 0, Limits::default());
    assert!(executor.is_finished());
    assert_eq!(executor.next_operation(), None);
}

#[test]
fn all_children_get_a_segment_before_any_gets_the_next() {
    let mut root = executor("flat:segment=1", 4, 0, 2, Limits::default());
    assert_eq!(start_all(&mut root), [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]);
}

#[test]
fn a_segment_is_forwarded_when_it_has_come() {
    let mut middle = executor("binary:segment=1", 7, 1, 3, Limits { per_lane: 2, sends: 32 });
    assert_eq!(start_all(&mut middle), [(0, 0), (0, 1)]);
    complete(&mut middle, 0, 0);
    assert_eq!(start_all(&mut middle), [(0, 2), (1, 0), (2, 0)]);
    // A later segment before an earlier one: nothing may go yet.
    complete(&mut middle, 0, 2);
    assert_eq!(start_all(&mut middle), []);
    complete(&mut middle, 0, 1);
    assert_eq!(start_all(&mut middle), [(1, 1), (2, 1)]);
    complete(&mut middle, 1, 1);
    assert_eq!(start_all(&mut middle), [], "step 0 is still outstanding, the window is full");
    complete(&mut middle, 1, 0);
    assert_eq!(start_all(&mut middle), [(1, 2)]);
    for (lane, index) in [(1, 2), (2, 0), (2, 1)] {
        complete(&mut middle, lane, index);
    }
    assert_eq!(start_all(&mut middle), [(2, 2)]);
    assert!(!middle.is_finished());
    complete(&mut middle, 2, 2);
    assert!(middle.is_finished());
}

#[test]
fn the_number_of_sends_is_limited_over_all_lanes() {
    let mut root = executor("flat:segment=1", 4, 0, 2, Limits { per_lane: 16, sends: 2 });
    assert_eq!(start_all(&mut root), [(0, 0), (1, 0)]);
    complete(&mut root, 1, 0);
    assert_eq!(start_all(&mut root), [(2, 0)]);
}

#[test]
fn nothing_is_sent_to_a_child_that_is_not_ready() {
    let mut root = executor("flat:ready", 3, 0, 10, Limits::default());
    let lanes: Vec<_> = start_all(&mut root);
    assert_eq!(lanes, [(0, 0), (2, 0)], "only the signals are awaited");
    complete(&mut root, 2, 0);
    assert_eq!(start_all(&mut root), [(3, 0)], "the child that is ready does not wait for the other");
}

#[test]
fn a_window_of_64_may_complete_backwards() {
    let mut leaf = executor("chain:segment=1", 2, 1, 130, Limits { per_lane: 64, sends: 1 });
    for window in [0..64, 64..128, 128..130] {
        assert_eq!(start_all(&mut leaf).len() as u64, window.end - window.start);
        window.rev().for_each(|index| complete(&mut leaf, 0, index));
    }
    assert!(leaf.is_finished());
}

/// Two receive lanes of two steps; a send that waits for all of both.
struct Gather([Lane; 3]);

impl Gather {
    fn new() -> Self {
        let lane = |peer, direction, steps| {
            let stream = Stream { peer: Rank(peer), direction, channel: 0, posting: Posting::AtOnce };
            Lane::new(Kind::Messages(stream), steps)
        };
        Gather([lane(0, Direction::Receive, 2), lane(1, Direction::Receive, 2), lane(2, Direction::Send, 1)])
    }
}

impl Schedule for Gather {
    fn lanes(&self) -> &[Lane] {
        &self.0
    }

    fn step(&self, lane: LaneIndex, _: u64) -> Step {
        match lane {
            2 => Step { action: Action::Send(Slice::output(0..1)), after: After::LanesBelow(2) },
            _ => Step { action: Action::Receive(Slice::output(0..1)), after: After::Start },
        }
    }
}

#[test]
fn a_step_can_wait_for_several_lanes() {
    let mut executor = Executor::new(Gather::new(), Limits::default());
    assert_eq!(start_all(&mut executor), [(0, 0), (1, 0), (0, 1), (1, 1)]);
    for (lane, index) in [(0, 1), (1, 0), (0, 0)] {
        complete(&mut executor, lane, index);
        assert_eq!(start_all(&mut executor), []);
    }
    complete(&mut executor, 1, 1);
    assert_eq!(start_all(&mut executor), [(2, 0)]);
}

#[test]
fn a_later_phase_goes_only_while_the_earlier_one_cannot() {
    let mut root = executor("scatter-ring:segment=1", 4, 0, 8, Limits { per_lane: 64, sends: 100 });
    let children: Vec<_> = start_all(&mut root);
    // Lanes 0 and 1 scatter to positions 2 and 1, lane 2 is the ring.
    let ring = (0..6).map(|index| (2, index));
    let scatter = [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (0, 3)];
    assert_eq!(children, scatter.into_iter().chain(ring).collect::<Vec<_>>());
}

#[test]
#[should_panic(expected = "per_lane: 65")]
fn a_window_above_the_limit_is_refused() {
    Executor::new(Gather::new(), Limits { per_lane: 65, sends: 1 });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever completes first, the limits hold, nothing starts too early, and in the end all is done.
    #[test]
    fn invariants_hold_in_any_order_of_completion(
        sample in prop::sample::select(Registry::BUILT_IN.samples(Collective::Broadcast)),
        (ranks, rank) in (1u32..20).prop_flat_map(|ranks| (Just(ranks), 0..ranks)),
        bytes in 0u64..200,
        segment in 1u64..50,
        ready: bool,
        limits in (1u32..=64, 1u32..5).prop_map(|(per_lane, sends)| Limits { per_lane, sends }),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 4000),
    ) {
        let algorithm = Algorithm { segment: NonZeroU64::new(segment), ready, ..sample };
        let mut executor = executor(&algorithm.to_string(), ranks, rank, bytes, limits);
        let lanes = executor.schedule.lanes().to_vec();
        let mut completed: Vec<Vec<bool>> = lanes.iter().map(|lane| vec![false; lane.steps as usize]).collect();
        let mut outstanding: Vec<StepId> = Vec::new();
        let mut picks = picks.into_iter();
        loop {
            while let Some(operation) = executor.next_operation() {
                let is_done = |lane: LaneIndex, count: u64| completed[lane][..count as usize].iter().all(|done| *done);
                match executor.schedule.step(operation.id.lane, operation.id.index).after {
                    After::Start => {}
                    After::Steps { lane, count } => prop_assert!(is_done(lane, count)),
                    After::LanesBelow(end) => prop_assert!((0..end).all(|lane| is_done(lane, lanes[lane].steps))),
                }
                let opener = lanes[operation.id.lane].opens_after;
                prop_assert!(opener.is_none_or(|opener| is_done(opener, 1)));
                outstanding.push(operation.id);
            }
            let sends = outstanding.iter().filter(|id| lanes[id.lane].is_send()).count();
            prop_assert!(sends <= limits.sends as usize);
            for lane in 0..lanes.len() {
                prop_assert!(outstanding.iter().filter(|id| id.lane == lane).count() <= limits.per_lane as usize);
            }
            if outstanding.is_empty() {
                break;
            }
            let pick = picks.next().map_or(0, |pick| pick.index(outstanding.len()));
            let id = outstanding.swap_remove(pick);
            completed[id.lane][id.index as usize] = true;
            executor.complete(id);
        }
        prop_assert!(executor.is_finished());
        prop_assert!(completed.into_iter().flatten().all(|done| done));
    }
}
