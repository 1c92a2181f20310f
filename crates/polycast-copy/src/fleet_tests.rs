use proptest::prelude::*;

use super::*;

pub(super) const BLOCKS: u64 = 10_000;

pub(super) fn ms(milliseconds: u64) -> Nanos {
    Nanos::from_micros(milliseconds * 1000)
}

/// Lets something happen to a node of any fleet. `what`: 0 it gets on by `value`, 1 it dies, 2 its
/// parent refuses it, else only time goes on.
pub(super) fn happen(fleet: &mut Fleet, what: u8, node: u32, value: u64, now: Nanos) {
    match what {
        0 => fleet.progress(node, fleet.have(node) + value, now),
        1 => fleet.lost(node, "dead".into(), now),
        2 => {
            let parent = fleet.nodes[node as usize].parent.unwrap_or(SOURCE);
            fleet.parent_failed(node, parent, "refused", now);
        }
        _ => fleet.tick(now),
    }
}

/// A fleet that has begun, everybody ready.
fn begun(others: u32, fanout: usize) -> Fleet {
    let mut fleet = Fleet::new(others, BLOCKS, fanout, ms(60_000));
    (1..=others).for_each(|node| fleet.ready(node, 0, ms(1)));
    fleet.begin(&(1..=others).collect::<Vec<_>>(), ms(1));
    fleet
}

pub(super) fn orders(fleet: &mut Fleet) -> Vec<(u32, u32)> {
    std::iter::from_fn(|| fleet.next_order()).map(|order| (order.node, order.parent)).collect()
}

/// Blocks of every node but the source over time, told every 100 ms.
fn run(
    fleet: &mut Fleet,
    from_ms: u64,
    to_ms: u64,
    have: impl Fn(u32, u64) -> Option<u64>,
) -> Vec<(u32, u32)> {
    for at in (from_ms..to_ms).step_by(100) {
        for node in 1..fleet.nodes.len() as u32 {
            if let Some(have) = have(node, at) {
                fleet.progress(node, have, ms(at));
            }
        }
        fleet.tick(ms(at));
    }
    orders(fleet)
}

#[test]
fn chains_and_trees() {
    assert_eq!(orders(&mut begun(3, 1)), [(1, 0), (2, 1), (3, 2)]);
    assert_eq!(orders(&mut begun(6, 2)), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2)]);
    let mut fleet = Fleet::new(3, BLOCKS, 1, ms(60_000));
    (1..=3).for_each(|node| fleet.ready(node, 0, ms(1)));
    fleet.begin(&[3, 1, 2], ms(1));
    assert_eq!(orders(&mut fleet), [(3, 0), (1, 3), (2, 1)]);
}

#[test]
fn what_is_long_goes_through_a_chain() {
    for (others, blocks, fanout) in
        [(1, 1, 1), (15, 1_000, 1), (1_000, 1_000, 1), (1_000, 100, 2), (15, 1, 2)]
    {
        assert_eq!(best_fanout(others, blocks), fanout, "{others} nodes, {blocks} blocks");
    }
}

#[test]
fn who_is_alike_is_left_alone() {
    let mut fleet = begun(4, 1);
    orders(&mut fleet);
    let told = run(&mut fleet, 100, 9_000, |node, at| Some((at - 20 * u64::from(node)).min(BLOCKS)));
    assert_eq!(told, []);
    run(&mut fleet, 10_000, 10_400, |_, _| Some(BLOCKS));
    assert!(fleet.is_over());
}

#[test]
fn blocks_that_a_limit_makes_last_long_are_waited_for() {
    let mut fleet = Fleet::new(2, BLOCKS, 2, ms(60_000)).limited(ms(2_600));
    (1..=2).for_each(|node| fleet.ready(node, 0, ms(1)));
    fleet.begin(&[1, 2], ms(1));
    fleet.progress(SOURCE, 100, ms(50));
    assert_eq!(orders(&mut fleet), [(1, 0), (2, 0)]);
    // Two share what the source gives.
    assert_eq!(run(&mut fleet, 100, 30_000, |_, at| Some(at / 5_200)), []);
    assert_eq!(run(&mut fleet, 30_000, 34_000, |_, _| Some(5)), [(1, 0), (2, 0)]);
}

#[test]
fn a_source_that_stands_still_is_waited_for() {
    let mut fleet = begun(2, 1);
    orders(&mut fleet);
    fleet.progress(SOURCE, 100, ms(50));
    let told = run(&mut fleet, 100, 30_000, |_, _| Some(100));
    assert_eq!(told, []);
    // What it has read and nobody gets is another matter.
    fleet.progress(SOURCE, 101, ms(30_000));
    assert_eq!(run(&mut fleet, 30_000, 31_600, |_, _| Some(100)), [(1, 0)]);
}

#[test]
fn a_stopped_node_is_gone_around_and_catches_up_behind_the_last() {
    let mut fleet = begun(4, 1);
    orders(&mut fleet);
    let told = run(&mut fleet, 100, 3_000, |node, at| (node != 2 || at < 1_000).then_some(at));
    assert_eq!(told, [(3, 1)]);
    assert_eq!((fleet.standing(2), fleet.trouble(2)), (&Standing::Silent, Some(Trouble::Silent)));
    let told = run(&mut fleet, 3_000, 4_000, |node, at| Some(if node == 2 { 1_000 } else { at }));
    assert_eq!(told[0], (2, 4));
    run(&mut fleet, 4_000, 5_000, |_, _| Some(BLOCKS));
    assert!(fleet.is_over());
}

#[test]
fn the_first_one_may_stop_too_and_so_may_one_that_has_all() {
    let mut fleet = begun(3, 1);
    orders(&mut fleet);
    let told = run(&mut fleet, 100, 2_000, |node, at| match node {
        1 => (at < 500).then_some(BLOCKS),
        _ => Some(at),
    });
    assert_eq!(told, [(2, 0)]);
    assert_eq!(fleet.standing(1), &Standing::Complete);
}

#[test]
fn a_slow_node_is_gone_around_where_somebody_waits_for_it() {
    let mut fleet = begun(4, 1);
    orders(&mut fleet);
    // What is behind node 2 gets what node 2 gets, until it takes from another one.
    let is_slow = |node, at| node == 2 || (node > 2 && at < 1_200);
    let told = run(&mut fleet, 100, 2_400, |node, at| Some(if is_slow(node, at) { at / 5 } else { at }));
    assert_eq!(told, [(3, 1), (2, 4)]);
    assert_eq!(fleet.trouble(2), Some(Trouble::Slow));
    // At the end of the line nobody does.
    let told = run(&mut fleet, 2_400, 8_000, |node, at| Some(if node == 2 { at / 5 } else { at }));
    assert_eq!(told, []);
}

#[test]
fn who_gets_nothing_asks_others_and_is_given_up_in_the_end() {
    let mut fleet = begun(3, 1);
    orders(&mut fleet);
    fleet.parent_failed(3, 2, "refused", ms(50));
    assert_eq!(orders(&mut fleet), [(3, 2)]);
    fleet.parent_failed(3, 2, "refused", ms(60));
    assert_eq!(orders(&mut fleet), [(3, 1)]);
    fleet.parent_failed(3, 1, "refused", ms(70));
    assert_eq!(orders(&mut fleet), [(3, 0)]);
    // What is late from an earlier parent says nothing.
    fleet.parent_failed(3, 1, "refused", ms(70));
    assert_eq!(orders(&mut fleet), []);
    (0..3).for_each(|_| fleet.parent_failed(3, 0, "refused", ms(80)));
    assert!(matches!(fleet.standing(3), Standing::Out(reason) if reason.ends_with("refused")));
}

#[test]
fn who_dies_or_is_never_heard_again_is_out() {
    let mut fleet = begun(3, 1);
    orders(&mut fleet);
    fleet.lost(1, "killed".into(), ms(50));
    assert_eq!(orders(&mut fleet), [(2, 0)]);
    let told = run(&mut fleet, 100, 62_000, |node, at| (node == 3).then_some((at / 10).min(BLOCKS)));
    assert_eq!(told, [(3, 0)]);
    assert_eq!(fleet.standing(2), &Standing::Out("nothing was heard of it for 60 s".into()));
}

/// Node 1 has all blocks but has not put the files in place yet, and node 3 is not even ready.
#[test]
fn who_has_all_or_gets_ready_and_is_never_heard_again_is_out() {
    let mut fleet = Fleet::new(3, BLOCKS, 1, ms(60_000));
    fleet.ready(1, 0, ms(1));
    fleet.ready(2, 0, ms(1));
    // Its agent has begun to read what is left of an earlier run.
    fleet.heard(3, ms(30_000));
    fleet.progress(1, BLOCKS, ms(100));
    run(&mut fleet, 100, 60_100, |node, _| (node == 2).then_some(BLOCKS));
    assert_eq!(
        [1, 2, 3].map(|node| fleet.standing(node).clone()),
        [Standing::Complete, Standing::Complete, Standing::Away]
    );
    run(&mut fleet, 60_100, 90_100, |node, _| (node == 2).then_some(BLOCKS));
    let out = Standing::Out("nothing was heard of it for 60 s".into());
    assert_eq!([1, 2, 3].map(|node| fleet.standing(node).clone()), [out.clone(), Standing::Complete, out]);
    assert!(fleet.is_over());
}

#[test]
fn who_comes_late_is_served_by_the_last() {
    let mut fleet = Fleet::new(3, BLOCKS, 1, ms(60_000));
    fleet.ready(1, 0, ms(1));
    fleet.ready(3, BLOCKS, ms(1));
    fleet.begin(&[1, 2, 3], ms(2));
    assert_eq!((orders(&mut fleet), fleet.away()), (vec![(1, 0)], 1));
    fleet.ready(2, 7, ms(500));
    assert_eq!((orders(&mut fleet), fleet.have(2)), (vec![(2, 3)], 7));
}

proptest! {
    /// Whatever happens, parents lead to the source, and nobody takes from who is out or silent.
    #[test]
    fn parents_lead_to_the_source(
        others in 1u32..9,
        fanout in 1usize..4,
        events in prop::collection::vec((0u8..4, 1u32..9, 0u64..1_000), 0..80),
    ) {
        let mut fleet = begun(others, fanout);
        let mut now = 1;
        for (what, node, value) in events {
            let node = (node - 1) % others + 1;
            now += value;
            happen(&mut fleet, what, node, value, ms(now));
            for child in 1..=others {
                if *fleet.standing(child) != Standing::Taking {
                    continue;
                }
                let parent = fleet.nodes[child as usize].parent.unwrap();
                prop_assert!(!matches!(fleet.standing(parent), Standing::Out(_) | Standing::Silent));
                let mut at = child;
                for _ in 0..=others {
                    at = fleet.nodes[at as usize].parent.unwrap_or(SOURCE);
                }
                prop_assert_eq!(at, SOURCE, "a circle");
            }
        }
    }
}
