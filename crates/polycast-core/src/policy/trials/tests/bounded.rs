//! Trials whose cost is bounded.

use super::*;

fn bounded(ranks: usize) -> Ranks {
    Ranks { bound: Some(0), ..Ranks::new(ranks) }
}

/// Numbers that look random.
fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

/// Takes each way's time; the way of each call.
fn ways(calls: usize, times: &[u64]) -> Vec<Arm> {
    let mut ranks = bounded(3);
    (0..calls).map(|_| ranks.call(of(9000), times.len(), |_, arm| times[usize::from(arm)])).collect()
}

fn calls_of(arm: Arm, ways: &[Arm]) -> usize {
    ways.iter().filter(|way| **way == arm).count()
}

#[test]
fn the_mpi_serves_alone_until_a_comparison_can_be_afforded() {
    let ways = ways(400, &[4000, 1000]);
    let first = ways.iter().position(|arm| *arm == 0).unwrap();
    assert!((20..40).contains(&first), "call {first}");
    assert_eq!(calls_of(0, &ways), 2);
    let slower = super::bounded::ways(400, &[2000, 1000]);
    assert!(calls_of(0, &slower[..100]) == 2 && calls_of(0, &slower) <= 8, "each costs 50 calls: {slower:?}");
}

#[test]
fn what_is_faster_is_found_soon_and_stays() {
    let ways = ways(400, &[600, 2000, 1000]);
    assert_eq!(ways.last(), Some(&0));
    assert!(calls_of(0, &ways[..300]) > 150, "{ways:?}");
}

#[test]
fn who_makes_few_calls_tries_nothing() {
    assert_eq!(calls_of(2, &ways(20, &[10, 10, 1000])), 20);
}

/// What is set up, and what adding up takes.
#[test]
fn what_was_set_up_is_waited_for() {
    let mut ranks = bounded(2);
    let mut tried = Vec::new();
    for call in 0..3000 {
        let arm = ranks.call(of(9000), 2, |_, arm| [1200, 1000][usize::from(arm)]);
        if arm == 0 {
            tried.push(call);
            if tried.len() == 1 {
                ranks.ranks.iter_mut().for_each(|rank| rank.spent(20_000));
            }
        }
    }
    assert!(tried[1] - tried[0] <= 3 && tried[2] > 1000, "20 calls' time is paid for in 1000: {tried:?}");
}

#[test]
fn communicators_go_on_where_others_have_waited() {
    let mut ledgers = vec![Ledger::default(); 2];
    let mut counts = [0; 2];
    for _ in 0..400 {
        let mut ranks = Ranks { bound: Some(0), ..Ranks::with(&ledgers) };
        for _ in 0..3 {
            let arm = ranks.call(of(9000), 2, |_, arm| [500, 1000][usize::from(arm)]);
            counts[usize::from(arm)] += 1;
        }
        ranks.free(&mut ledgers);
    }
    assert!(counts[0] > 900, "{counts:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever other ways take, and whatever disturbs calls: when a round begins, those before
    /// have cost no more than 2 % of the time of all calls so far, as well as a median of four
    /// tells that of the MPI.
    #[test]
    fn trials_cost_no_more_than_their_part(
        seed in any::<u64>(),
        factors in prop::collection::vec(prop_oneof![10u64..100, 100u64..130, 130u64..1000, 1000u64..200_000], 1..4),
        (usual, disturbed) in (500u64..2_000_000, prop::bool::ANY),
        ranks in 1usize..4,
        calls in 500usize..6000,
    ) {
        let mut random = numbers(seed);
        let arms = factors.len() + 1;
        let mut job = bounded(ranks);
        let (mut cost, mut time, mut incumbent, mut judged) = (0i128, 0i128, arms as Arm - 1, 0);
        for call in 0..calls {
            let factor = |arm: Arm| factors.get(usize::from(arm)).copied().unwrap_or(100);
            let spike = if disturbed && random().is_multiple_of(10) { 1 + random() % 100 } else { 1 };
            let noise = 100 + random() % 6;
            let nanos = |arm: Arm| usual * factor(arm) / 100 * noise / 100;
            let turn = job.turn(of(9000), arms, |_, arm| nanos(arm) * if arm == incumbent { 1 } else { spike });
            let (arm, _) = turn.way();
            if matches!(turn, Turn::Tried(..)) && arm != incumbent && judged < job.judgements {
                judged = job.judgements;
                let most = time * 2 / 100 * 107 / 100;
                prop_assert!(cost <= most, "before call {}: {} of {}", call, cost, time);
            }
            time += i128::from(nanos(incumbent));
            match turn {
                Turn::Tried(..) if arm != incumbent => {
                    cost += i128::from(nanos(arm) * spike) - i128::from(nanos(incumbent));
                }
                Turn::Settled(arm, _) | Turn::Waiting(arm) => incumbent = arm,
                Turn::Tried(..) => {}
            }
        }
    }
}
