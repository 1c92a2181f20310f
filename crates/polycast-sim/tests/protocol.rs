//! The multicast protocol in virtual time: many seeds, then the cases that deserve a name.

use polycast_core::units::Nanos;
use polycast_protocol::Form;
use polycast_sim::protocol::{
    Arrivals, Dead, Delay, Faults, Hardware, Late, ProtocolOutcome, Scenario, Search, Simulator, Target,
    Which,
};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1000 * MILLI;

fn run(scenario: &Scenario) -> ProtocolOutcome {
    Simulator::new().run(scenario).unwrap_or_else(|failure| {
        let (_, timeline) = Simulator::new().narrate(scenario);
        panic!("{scenario:?}\n{timeline}\n{failure}")
    })
}

/// Both forms, with and without parity, one after the other, from changing roots.
fn all_forms(nodes: u32, bytes: u64, sync: &str) -> Scenario {
    let specs: Vec<String> = ["push", "pull", "push", "pull"]
        .iter()
        .zip(["", "", ",parity", ",parity"])
        .map(|(form, parity)| format!("multicast-{form}:sync={sync}{parity}"))
        .collect();
    let calls: Vec<_> = (0..8).map(|i| (specs[i % 4].as_str(), i as u32 / 2 % nodes, bytes)).collect();
    Scenario::calm(nodes, &calls)
}

/// A cluster's delays, so that who waits for whom is as it would be.
fn with_delays(mut scenario: Scenario) -> Scenario {
    scenario.faults.multicast_delay = Delay::constant(Nanos(30_000));
    scenario.faults.message_delay = Delay { least: Nanos(40_000), jitter: Nanos(20_000), ..Delay::default() };
    scenario
}

#[test]
fn thousands_of_seeds() {
    let search = Search { first_seed: 0, seeds: 3000, nodes: 2..=64 };
    let found = search.run(|seed, failure| eprintln!("seed {seed}: {failure}"), |_| ());
    assert!(found.failures.is_empty(), "polycast simulate --protocol --verbose --seed {}", found.failures[0]);
    let totals = found.totals;
    assert_eq!(totals.runs, 3000);
    // A search in which nothing goes wrong would prove nothing.
    assert!(
        totals.lost > totals.datagrams && totals.repaired > 100_000 && totals.restored > 1000,
        "{totals:?}"
    );
    assert!(totals.rejected > 1000 && totals.hostile > 1000 && totals.requests > 10_000, "{totals:?}");
}

/// One run of 300,000: a node had a short broadcast from copies of it alone, and they did not tell that its root had told all to leave multicast.
#[test]
fn copies_tell_what_the_root_told() {
    run(&Scenario::from_seed(5_292_037, 2..=64));
}

/// One run of a million: what a node was to answer from a copy that it did not have any more kept it in its broadcast until something woke it often
/// enough.
#[test]
fn what_is_forgotten_holds_nobody_up() {
    run(&Scenario::from_seed(101_349_790, 2..=64));
}

#[test]
fn a_seed_replays_exactly() {
    for seed in 0..50 {
        let scenario = Scenario::from_seed(seed, 2..=64);
        assert_eq!(Scenario::from_seed(seed, 2..=64), scenario);
        let (first, timeline) = Simulator::new().narrate(&scenario);
        let mut used = Simulator::new();
        let _ = used.run(&Scenario::from_seed(seed + 1, 2..=64));
        assert_eq!(used.narrate(&scenario), (first, timeline), "memory that was used before changes nothing");
    }
}

#[test]
fn nothing_is_repaired_where_nothing_is_lost() {
    for nodes in [2, 3, 5, 16, 64] {
        for sync in ["none", "50us", "random", "adaptive"] {
            let mut scenario = with_delays(all_forms(nodes, 1000, sync));
            scenario.faults.message_delay.least = Nanos(SECOND);
            // Also when numbers wrap around: a later datagram must not pass for an old one.
            scenario.communicators[0].first_operation = u64::MAX - 1;
            scenario.communicators[0].broadcasts.retain(|b| b.spec.form == Form::Pull);
            let totals = run(&scenario).totals;
            assert_eq!(
                (totals.repaired, totals.restored, totals.requests),
                (0, 0, 0),
                "{nodes} nodes, {sync}"
            );
        }
    }
}

#[test]
fn half_of_everything_is_lost() {
    for nodes in [2, 3, 16, 64] {
        let mut scenario = with_delays(all_forms(nodes, 2000, "adaptive"));
        scenario.faults.loss = 0.5;
        assert!(run(&scenario).totals.repaired > 0);
    }
}

#[test]
fn all_of_it_is_lost_and_the_ring_brings_it() {
    for nodes in [2, 3, 16, 64] {
        let mut scenario = with_delays(all_forms(nodes, 2000, "none"));
        scenario.faults.loss = 1.0;
        let totals = run(&scenario).totals;
        assert_eq!(totals.repaired, u64::from(nodes - 1) * 8 * 2000u64.div_ceil(16));
    }
}

#[test]
fn only_one_datagram_is_lost() {
    for which in [Which::First, Which::Last] {
        for node in [None, Some(1), Some(7)] {
            for bytes in [1, 16, 17, 500] {
                let mut scenario = with_delays(all_forms(8, bytes, "none"));
                scenario.faults.target = Some(Target { which, node });
                assert!(run(&scenario).totals.lost > 0, "{which:?} {node:?} {bytes}");
            }
        }
    }
}

#[test]
fn only_one_receiver_loses_everything() {
    let mut scenario = with_delays(all_forms(16, 500, "none"));
    scenario.faults.target = Some(Target { which: Which::All, node: Some(15) });
    let totals = run(&scenario).totals;
    let fragments = 500u64.div_ceil(16);
    assert_eq!(totals.lost, fragments * 8 + 4 + 4, "with the ends of pull, and the parities");
    assert!(totals.repaired >= fragments * 8);
}

#[test]
fn multicast_dies_in_mid_broadcast() {
    for node in [None, Some(3)] {
        for sync in ["none", "random"] {
            let mut scenario = with_delays(all_forms(8, 3000, sync));
            scenario.bits_per_second = Some(100_000_000);
            let took = run(&scenario).took;
            for part in 1..8 {
                let from = Nanos(took.0 * part / 8);
                scenario.faults.dead = Some(Dead { from, until: Nanos(u64::MAX), node });
                let totals = run(&scenario).totals;
                assert!(totals.repaired > 0 && totals.lost < totals.datagrams * 7, "from {from}: {totals:?}");
                scenario.faults.dead = Some(Dead { from, until: from + Nanos(MILLI), node });
                run(&scenario);
            }
        }
    }
}

/// Node 2 calls three seconds after all others, who have lost everything that was sent to it.
fn late_successor(spec: &str) -> ProtocolOutcome {
    let mut scenario = with_delays(Scenario::calm(4, &[(spec, 0, 2000)]));
    let late = Late::Node(2, Nanos(3 * SECOND));
    scenario.faults.arrivals = Arrivals { period: Nanos(0), late };
    scenario.faults.target = Some(Target { which: Which::All, node: Some(2) });
    run(&scenario)
}

#[test]
fn a_successor_seconds_late_is_served_by_a_predecessor_that_has_returned() {
    let outcome = late_successor("multicast-push:sync=none");
    let broadcast = &outcome.broadcasts[0];
    assert_eq!(broadcast.last_call, Nanos(3 * SECOND));
    assert!(broadcast.first_return < Nanos(MILLI), "the others do not wait: {broadcast:?}");
    assert!(broadcast.last_return - broadcast.last_call < Nanos(MILLI), "all of it was there: {broadcast:?}");
}

#[test]
fn a_successor_seconds_late_is_waited_for_if_it_has_to_ask() {
    let outcome = late_successor("multicast-pull:sync=none");
    let broadcast = &outcome.broadcasts[0];
    assert!(broadcast.first_return < Nanos(10 * MILLI), "whose successor was there returns: {broadcast:?}");
    assert!(broadcast.last_return - broadcast.last_call < Nanos(5 * MILLI), "{broadcast:?}");
    assert_eq!(outcome.totals.requests, 1);
}

/// Node `nodes - 1` is still in its first call, whose first fragment the ring brings it after a second, while all of the
/// later ones arrive.
fn held_up_in_the_first_call(nodes: u32, then: &[(&str, u32, u64)]) -> Scenario {
    let mut calls = vec![("multicast-push:sync=none", 0, 1000)];
    calls.extend(then);
    let mut scenario = with_delays(Scenario::calm(nodes, &calls));
    scenario.faults.message_delay.least = Nanos(SECOND);
    scenario.faults.target = Some(Target { which: Which::First, node: Some(nodes - 1) });
    scenario
}

#[test]
fn more_is_missing_than_one_request_holds() {
    let mut scenario = held_up_in_the_first_call(2, &[("multicast-pull:sync=none", 0, 20_000)]);
    scenario.payload_bytes = 4;
    scenario.faults.loss = 0.5;
    let totals = run(&scenario).totals;
    assert!(totals.repaired > 2000, "{totals:?}");
    assert!((3..10).contains(&totals.requests), "of 509 runs each, for about 1250: {totals:?}");
}

#[test]
fn what_comes_early_is_kept_within_a_limit() {
    for needs_receiver in [false, true] {
        let mut scenario = held_up_in_the_first_call(3, &[("multicast-push:sync=none", 0, 1_100_000); 4]);
        scenario.payload_bytes = 1000;
        scenario.faults.needs_receiver = needs_receiver;
        let totals = run(&scenario).totals;
        // 4 MiB hold 3942 datagrams with what each costs beside its payload, of 4396 that are not lost.
        assert_eq!((totals.lost, totals.repaired), (5, 5 + 4396 - 3942));
    }
}

#[test]
fn numbers_wrap_around() {
    for first_operation in [u64::MAX - 3, (1 << 63) - 3] {
        let mut scenario = with_delays(all_forms(5, 300, "adaptive"));
        scenario.communicators[0].first_operation = first_operation;
        scenario.faults.loss = 0.2;
        scenario.faults.hostile = 1.0;
        scenario.faults.multicast_delay.straggler = 0.2;
        scenario.faults.multicast_delay.straggle = Nanos(20 * MILLI);
        assert!(run(&scenario).totals.repaired > 0);
    }
}

#[test]
fn datagrams_of_later_broadcasts_overtake() {
    let calls = [("multicast-push:sync=none", 0, 200); 20];
    let mut scenario = Scenario::calm(6, &calls);
    scenario.faults.multicast_delay = Delay { jitter: Nanos(10 * MILLI), ..Delay::default() };
    scenario.faults.message_delay = Delay { jitter: Nanos(10 * MILLI), ..Delay::default() };
    run(&scenario);
}

#[test]
fn two_communicators_share_a_group() {
    for is_concurrent in [false, true] {
        let mut scenario = with_delays(all_forms(7, 700, "random"));
        let mut other = scenario.communicators[0].clone();
        other.broadcasts.rotate_left(3);
        // The same numbers, so that only the communicator tells them apart.
        scenario.communicators.push(other);
        scenario.is_concurrent = is_concurrent;
        scenario.faults.loss = 0.1;
        scenario.faults.receive_buffer_bytes = Some(500);
        assert_eq!(run(&scenario).totals.broadcasts, 16);
    }
}

#[test]
fn in_pull_the_wire_carries_the_message_about_once() {
    let bytes = 200 << 10;
    let nodes = 16;
    let mut scenario = with_delays(Scenario::calm(nodes, &[("multicast-pull:sync=none", 0, bytes)]));
    scenario.payload_bytes = 1440;
    scenario.hardware = Hardware::gigabit();
    scenario.faults = Faults { loss: 0.01, ..scenario.faults };
    let totals = run(&scenario).totals;
    let message = bytes as f64;
    let by_root = totals.datagram_bytes as f64 / message;
    let per_link = totals.message_bytes as f64 / message / f64::from(nodes - 1);
    assert!(by_root < 1.05, "32 bytes of header for 1440, and few fragments again: {by_root}");
    assert!(per_link < 0.025, "1 % and what asks for it: {per_link}");
}

/// Where a message does not wait for the datagrams in front of it, the root's end is not said before these have left.
#[test]
fn an_end_by_message_does_not_overtake_what_waits_in_the_roots_host() {
    for is_fair in [false, true] {
        let mut scenario = with_delays(Scenario::calm(4, &[("multicast-pull:sync=none", 0, 2 << 20); 2]));
        (scenario.payload_bytes, scenario.batch_datagrams) = (1440, 42);
        // 17 ms of the link, eight times the patience.
        scenario.hardware = Hardware { send_buffer_bytes: Some(2 << 20), is_fair, ..Hardware::gigabit() };
        let totals = Simulator::for_measuring().run(&scenario).expect("all holds").totals;
        assert_eq!((totals.requests, totals.repaired), (0, 0), "{is_fair}");
    }
}

/// Multicast that is blocked somewhere in mid-job: all nodes are told in the same broadcast, which each of them is through with knowing it.
/// The checker looks at that after every broadcast.
#[test]
fn nodes_that_hear_nothing_any_more_are_told_of_in_the_same_broadcast() {
    for (nodes, node, spec) in [
        (2, None, "multicast-pull"),
        (16, None, "multicast-pull"),
        (16, Some(1), "multicast-pull"),
        (16, Some(9), "multicast-pull"),
        (16, Some(15), "multicast-push"),
        (16, None, "multicast-push:parity"),
    ] {
        let mut scenario = with_delays(Scenario::calm(nodes, &[(spec, 0, 160); 30]));
        scenario.faults.arrivals = Arrivals { period: Nanos(10 * MILLI), ..Arrivals::default() };
        // From the sixth broadcast on.
        scenario.faults.dead = Some(Dead { from: Nanos(49 * MILLI), until: Nanos(u64::MAX), node });
        let told: Vec<bool> =
            run(&scenario).broadcasts.iter().map(|timing| timing.is_told_to_leave == Some(true)).collect();
        let first = told.iter().position(|told| *told);
        // Five good ones, three bad ones, and the one that tells; where one node alone is deaf, those before it in the ring hand it on.
        let latest = if node.is_some() { 25 } else { 9 };
        let is_in_time = first.is_some_and(|first| (7..=latest).contains(&first));
        assert!(is_in_time, "{nodes} nodes, {node:?}, {spec}: {told:?}");
    }
}

#[test]
fn a_network_that_loses_a_third_is_no_reason_to_leave() {
    for seed in 0..20 {
        let mut scenario = with_delays(all_forms(8, 1000, "none"));
        (scenario.seed, scenario.faults.loss) = (seed, 0.3);
        let told = run(&scenario).broadcasts.iter().any(|timing| timing.is_told_to_leave == Some(true));
        assert!(!told, "seed {seed}");
    }
}
