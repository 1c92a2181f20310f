use proptest::prelude::*;

use super::*;
use crate::fleet::tests::{BLOCKS, happen, ms, orders};

const UNDER_WAY: u64 = 64;

/// All are ready, and all but `deaf` hear the source.
fn begun(others: u32, deaf: &[u32]) -> Fleet {
    let mut fleet = Fleet::new(others, BLOCKS, 1, ms(60_000));
    (1..=others).for_each(|node| fleet.ready(node, 0, ms(1)));
    let order: Vec<u32> = (1..=others).collect();
    fleet.begin_by_multicast(&order, |node| !deaf.contains(&node), UNDER_WAY, ms(1));
    fleet
}

/// The rings and the orders that are given while nodes tell how far they are, as `have` says.
fn run(
    fleet: &mut Fleet,
    (from_ms, to_ms): (u64, u64),
    have: impl Fn(u32, u64) -> Option<u64>,
) -> (Vec<Ring>, Vec<(u32, u32)>) {
    let (mut rings, mut told) = (Vec::new(), Vec::new());
    for at in (from_ms..to_ms).step_by(100) {
        for node in 0..fleet.nodes.len() as u32 {
            if let Some(have) = have(node, at) {
                fleet.progress(node, have, ms(at));
            }
        }
        fleet.tick(ms(at));
        rings.extend(fleet.next_ring(ms(at)));
        told.extend(orders(fleet));
    }
    (rings, told)
}

fn ring(number: u32, members: &[u32], first_block: u64) -> Ring {
    Ring { number, members: members.to_vec(), first_block }
}

#[test]
fn who_hears_the_source_is_in_the_ring_and_others_take_from_its_last() {
    let mut fleet = begun(4, &[2]);
    assert_eq!(fleet.next_ring(ms(1)), Some(ring(1, &[1, 3, 4], 0)));
    assert_eq!((fleet.next_ring(ms(1)), orders(&mut fleet)), (None, vec![(2, 4)]));
    // Two are no more than a link apart.
    let mut fleet = begun(3, &[1, 2]);
    assert_eq!((fleet.next_ring(ms(1)), orders(&mut fleet)), (None, vec![(1, 0), (2, 1), (3, 2)]));
    assert!(!fleet.is_ring());
}

#[test]
fn a_ring_goes_on_without_who_is_silent_or_gone() {
    let mut fleet = begun(5, &[]);
    fleet.next_ring(ms(1));
    // Node 2 stops, and holds up the others after a while.
    let have = |node, at: u64| (node != 2 || at < 500).then_some(if node == 3 { 9 } else { at.min(560) });
    let (rings, told) = run(&mut fleet, (100, 1_000), have);
    assert_eq!((rings, told), (vec![ring(2, &[1, 3, 4, 5], 9)], vec![]));
    fleet.lost(5, "killed".into(), ms(1_000));
    assert_eq!(fleet.next_ring(ms(1_000)), Some(ring(3, &[1, 3, 4], 9)));
    // It comes back, and takes from the last.
    fleet.progress(2, 500, ms(1_050));
    assert_eq!((fleet.next_ring(ms(1_050)), orders(&mut fleet)), (None, vec![(2, 4)]));
    // Those that are left are too few.
    fleet.lost(4, "killed".into(), ms(1_100));
    assert_eq!((fleet.next_ring(ms(1_100)), orders(&mut fleet)), (Some(ring(4, &[1, 3], 9)), vec![(2, 3)]));
    fleet.lost(1, "killed".into(), ms(1_100));
    assert_eq!((fleet.next_ring(ms(1_100)), orders(&mut fleet)), (Some(ring(5, &[], 0)), vec![(3, 0)]));
}

#[test]
fn whose_words_do_not_come_is_there_while_the_others_get_on() {
    let mut fleet = begun(3, &[]);
    fleet.next_ring(ms(1));
    let have = |node, at: u64| (node != 2 || at < 200).then_some(at);
    assert_eq!(run(&mut fleet, (100, 1_600), have), (vec![], vec![]));
    // When they stand still it may be the one.
    let (rings, _) = run(&mut fleet, (1_600, 1_700), |node, _| (node != 2).then_some(1_500));
    assert_eq!((rings, fleet.trouble(2)), (vec![ring(2, &[1, 3], 1_500)], Some(Trouble::Silent)));
    // Nor is it waited for without end.
    let mut fleet = begun(3, &[]);
    fleet.next_ring(ms(1));
    run(&mut fleet, (100, 1_800), have);
    assert_eq!(fleet.trouble(2), Some(Trouble::Slow));
}

#[test]
fn who_has_all_and_falls_silent_is_left_out_too() {
    let mut fleet = begun(3, &[]);
    fleet.next_ring(ms(1));
    // The others wait for its word.
    let have =
        |node, at: u64| (node != 2 || at < 300).then_some(if node == 2 { BLOCKS } else { at.min(500) });
    let (rings, _) = run(&mut fleet, (100, 1_000), have);
    assert_eq!(rings.first(), Some(&ring(2, &[1, 3], 500)));
    assert_eq!(fleet.standing(2), &Standing::Complete);
}

#[test]
fn a_ring_that_breaks_is_made_again_and_given_up_in_the_end() {
    let mut fleet = begun(3, &[]);
    fleet.next_ring(ms(1));
    for number in 1..=3 {
        let at = 1_000 * u64::from(number);
        let (rings, _) = run(&mut fleet, (at, at + 100), |_, at| Some(at));
        assert_eq!(rings, []);
        // All tell it, and somebody tells it late.
        (0..3).for_each(|_| fleet.ring_failed(number, ms(at)));
        fleet.ring_failed(number - 1, ms(at));
        let (rings, told) = run(&mut fleet, (at + 100, at + 1_000), |_, at| Some(at));
        let is_last = number == 3;
        let expected = if is_last { ring(4, &[], 0) } else { ring(number + 1, &[1, 2, 3], at + 800) };
        assert_eq!(rings, [expected]);
        assert_eq!(told, if is_last { vec![(1, 0), (2, 1), (3, 2)] } else { vec![] });
    }
}

#[test]
fn a_ring_that_stands_still_is_given_up_if_it_is_not_the_source_that_does() {
    let mut fleet = begun(3, &[]);
    fleet.next_ring(ms(1));
    let (rings, told) = run(&mut fleet, (100, 10_000), |_, _| Some(100));
    assert_eq!((rings, told), (vec![], vec![]));
    let (rings, told) = run(&mut fleet, (10_000, 12_000), |node, _| Some(if node == 0 { 200 } else { 100 }));
    assert_eq!((rings, told), (vec![ring(2, &[], 0)], vec![(1, 0), (2, 1), (3, 2)]));
}

#[test]
fn segments_that_a_limit_makes_last_long_are_waited_for() {
    let mut fleet = begun(3, &[]).limited(ms(140));
    fleet.next_ring(ms(1));
    // A segment of 16 blocks in 2.24 s.
    let have = |node, at: u64| Some(if node == 0 { 200 } else { at / 2_240 * 16 });
    assert_eq!(run(&mut fleet, (100, 20_000), have), (vec![], vec![]));
    let (rings, told) = run(&mut fleet, (20_000, 22_000), |_, _| Some(128));
    assert_eq!((rings, told), (vec![ring(2, &[], 0)], vec![(1, 0), (2, 1), (3, 2)]));
}

#[test]
fn who_holds_all_up_is_set_aside() {
    let mut fleet = begun(3, &[]);
    fleet.next_ring(ms(1));
    let have = |node, at: u64| Some(if node == 2 { at / 10 } else { at / 10 + UNDER_WAY - 4 });
    let (rings, told) = run(&mut fleet, (100, 3_000), have);
    assert_eq!(rings.len(), 1, "{rings:?}");
    assert_eq!((&rings[0].members, told), (&vec![1, 3], vec![(2, 3)]));
    assert_eq!(fleet.trouble(2), Some(Trouble::Slow));
    // Who is a little behind is not.
    let mut fleet = begun(3, &[]);
    fleet.next_ring(ms(1));
    let have = |node, at: u64| Some(if node == 2 { at / 10 } else { at / 10 + UNDER_WAY / 2 });
    assert_eq!(run(&mut fleet, (100, 9_000), have), (vec![], vec![]));
}

proptest! {
    /// Whatever happens, parents lead to the source or to the ring, whose members are there and take from nobody.
    #[test]
    fn parents_lead_to_the_ring(
        others in 3u32..9,
        events in prop::collection::vec((0u8..6, 1u32..9, 0u64..1_000), 0..80),
    ) {
        let mut fleet = begun(others, &[]);
        let mut now = 1;
        for (what, node, value) in events {
            let node = (node - 1) % others + 1;
            now += value;
            match what {
                3 => fleet.ring_failed(fleet.rings.number, ms(now)),
                4 => fleet.progress(SOURCE, fleet.have(SOURCE) + value, ms(now)),
                _ => happen(&mut fleet, what, node, value, ms(now)),
            }
            fleet.next_ring(ms(now));
            let members = fleet.rings.members.clone();
            prop_assert_ne!(members.len(), 1);
            for child in 1..=others {
                if *fleet.standing(child) != Standing::Taking || members.contains(&child) {
                    continue;
                }
                let parent = fleet.nodes[child as usize].parent.unwrap();
                prop_assert!(!matches!(fleet.standing(parent), Standing::Out(_) | Standing::Silent));
                let mut at = child;
                for _ in 0..=others {
                    at = fleet.nodes[at as usize].parent.unwrap_or(at);
                    if at == SOURCE || members.contains(&at) {
                        break;
                    }
                }
                let has_source = at == SOURCE || members.contains(&at) || *fleet.standing(at) == Standing::Complete;
                prop_assert!(has_source, "{} takes from {}, which takes from nobody", child, at);
            }
        }
    }
}
