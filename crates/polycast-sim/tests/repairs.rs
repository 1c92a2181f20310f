//! Repairs by datagrams: a packet of MPI's connections that gets lost twice holds up what comes behind it for 200 ms, and the broadcast
//! for some milliseconds.

use polycast_core::units::Nanos;
use polycast_sim::protocol::{
    Arrivals, Delay, Faults, Hardware, Late, ProtocolOutcome, Saying, Scenario, Simulator, Stalled, Target,
    Which,
};

const MILLI: u64 = 1_000_000;
/// TCP's shortest retransmission timeout in Linux.
const TIMEOUT: Nanos = Nanos(200 * MILLI);
/// A request waits 8 to 9.6 ms; it, or the answer, may be lost, so that another one follows after 16 ms more.
const MILLISECONDS: Nanos = Nanos(40 * MILLI);

/// 16 nodes on gigabit Ethernet that loses 2 % of the datagrams on their way to a node, with so much between two broadcasts that one does not
/// hold up the next.
fn lossy(spec: &str, count: usize, bytes: u64) -> Scenario {
    let mut scenario = Scenario::calm(16, &vec![(spec, 0, bytes); count]);
    (scenario.payload_bytes, scenario.batch_datagrams) = (1440, 42);
    scenario.hardware = Hardware::gigabit();
    scenario.faults = Faults {
        loss: 0.02,
        multicast_delay: Delay::constant(Nanos(25_000)),
        message_delay: Delay::constant(Nanos(25_000)),
        arrivals: Arrivals { period: Nanos(100 * MILLI), ..Arrivals::default() },
        ..Faults::default()
    };
    scenario
}

fn run(scenario: &Scenario) -> ProtocolOutcome {
    Simulator::new().run(scenario).unwrap_or_else(|failure| {
        let (_, timeline) = Simulator::new().narrate(scenario);
        panic!("{scenario:?}\n{timeline}\n{failure}")
    })
}

/// The times from the first call to the last return. The first broadcast is left out: in it nodes
/// that lose nothing do not know yet that others do.
fn times(outcome: &ProtocolOutcome) -> impl Iterator<Item = Nanos> {
    outcome.broadcasts[1..].iter().map(|timing| timing.completion())
}

fn longest(outcome: &ProtocolOutcome) -> Nanos {
    times(outcome).max().expect("some")
}

/// For `make test`; `make check` goes without.
mod long {
    use super::*;

    /// TCP loses one packet of 2,500 twice, where it loses 2 % once. Of messages that take 36 ms, without parities half took longer than 55 ms.
    #[test]
    fn connections_that_stand_still_cost_a_long_message_little() {
        let mut times = Vec::new();
        for seed in 0..4 {
            let mut scenario = lossy("multicast-pull:sync=none", 6, 4 << 20);
            scenario.seed = seed;
            scenario.faults.stalled = Some(Stalled { part: 4e-4, by: TIMEOUT, only: None });
            let outcome = Simulator::for_measuring().run(&scenario).expect("all holds");
            assert!(outcome.totals.restored > 100, "{:?}", outcome.totals);
            times.extend(super::times(&outcome).map(|time| time.0 / MILLI));
        }
        times.sort_unstable();
        let (median, most) = (times[times.len() / 2], times[times.len() * 9 / 10]);
        assert!(median <= 41 && most <= 55, "{times:?}");
    }

    #[test]
    fn a_packet_that_tcp_loses_twice_costs_milliseconds() {
        for only in [Saying::Request, Saying::Fragments, Saying::Done].map(Some).into_iter().chain([None]) {
            let mut longer = 0;
            for seed in 0..4 {
                let mut scenario = lossy("multicast-pull:sync=none", 5, 128 << 10);
                scenario.seed = seed;
                scenario.faults.stalled = Some(Stalled { part: 0.05, by: TIMEOUT, only });
                let outcome = run(&scenario);
                longer += times(&outcome).filter(|time| *time > MILLISECONDS).count();
                assert!(outcome.totals.answers > 0 || only == Some(Saying::Done), "{only:?}, seed {seed}");
            }
            // Of 16; all or nearly all without those datagrams. A done that stands still and whose datagram is lost is not told again.
            assert!(longer <= 2, "{only:?}: {longer}");
        }
    }
}

/// Nothing else is lost, so that no node knows that the network loses anything: whoever waits asks.
#[test]
fn a_done_that_stands_still_is_asked_for() {
    // Who is asked answers in its next broadcast: the last one may wait for MPI.
    for (period, most) in [(30, 40), (100, 105)] {
        for seed in 0..8 {
            let mut scenario = lossy("multicast-pull:sync=none", 4, 128 << 10);
            (scenario.seed, scenario.faults.loss) = (seed, 0.0);
            scenario.faults.arrivals.period = Nanos(period * MILLI);
            scenario.faults.stalled = Some(Stalled { part: 0.05, by: TIMEOUT, only: Some(Saying::Done) });
            let outcome = run(&scenario);
            for (index, timing) in outcome.broadcasts[..3].iter().enumerate() {
                let took = timing.completion().0 / MILLI;
                assert!(took <= most, "period {period}, seed {seed}, broadcast {index}: {took} ms");
            }
        }
    }
}

#[test]
fn an_arrived_that_stands_still_is_asked_for() {
    for spec in ["multicast-pull:sync=random", "multicast-push:sync=random"] {
        let mut scenario = lossy(spec, 4, 8 << 10);
        scenario.faults.loss = 0.0;
        scenario.faults.stalled = Some(Stalled { part: 1.0, by: TIMEOUT, only: Some(Saying::Arrived) });
        let outcome = run(&scenario);
        assert!(longest(&outcome) < MILLISECONDS, "{spec}: {:?}", longest(&outcome));
        // Each asks once, and is told once.
        let fragments = (8u64 << 10).div_ceil(1440) + u64::from(spec.contains("pull"));
        assert_eq!(outcome.totals.datagrams, 4 * (fragments + 2), "{spec}");
    }
}

/// A node that misses pushed data asks its sender, which has left: it answers in its next broadcast
/// from what it has kept.
#[test]
fn what_is_pushed_and_stands_still_is_asked_for() {
    let count = |only: Option<Saying>| {
        let (mut longer, mut all, mut answers) = (0, 0, 0);
        for seed in 0..12 {
            let mut scenario = lossy("multicast-push:sync=none", 20, 8 << 10);
            scenario.seed = seed;
            scenario.faults.arrivals.period = Nanos(10 * MILLI);
            scenario.faults.stalled = Some(Stalled { part: 0.01, by: TIMEOUT, only });
            let outcome = run(&scenario);
            let of_interest = || outcome.broadcasts[..16].iter();
            longer += of_interest().filter(|timing| timing.completion() > MILLISECONDS).count();
            all += of_interest().count();
            answers += outcome.totals.answers;
        }
        assert!(answers > 10, "{answers}");
        (longer, all)
    };
    let (longer, all) = count(Some(Saying::Fragments));
    // Most of them without: one such packet holds up all that its connection carries in twenty broadcasts.
    assert!(longer <= all / 20, "{longer} of {all}");
}

/// A receiver, or a successor, that has not called has nothing to say: it is asked five times, and waited for.
#[test]
fn who_is_late_is_asked_a_few_times() {
    for spec in ["multicast-pull:sync=random", "multicast-pull:sync=none", "multicast-push:sync=random"] {
        let mut scenario = lossy(spec, 1, 8 << 10);
        (scenario.nodes, scenario.faults.loss) = (2, 0.0);
        scenario.faults.arrivals.late = Late::Node(1, Nanos(3000 * MILLI));
        let outcome = run(&scenario);
        let fragments = (8u64 << 10).div_ceil(1440) + u64::from(spec.contains("pull"));
        assert_eq!(outcome.totals.datagrams, fragments + 5, "{spec}");
    }
}

/// All miss the last datagram, so that only their predecessors' messages tell them that it was sent.
#[test]
fn an_end_that_stands_still_is_asked_for() {
    for node in [None, Some(1), Some(9)] {
        let mut scenario = lossy("multicast-pull:sync=none", 3, 128 << 10);
        scenario.faults.loss = 0.0;
        // A full last fragment does not travel early: the end is alone, so that with it nothing else is lost that could be missed.
        scenario.faults.target = Some(Target { which: Which::Last, node });
        scenario.faults.stalled = Some(Stalled { part: 1.0, by: TIMEOUT, only: Some(Saying::End) });
        assert!(longest(&run(&scenario)) < MILLISECONDS, "{node:?}");
    }
}

/// The last parity says as much.
#[test]
fn an_end_that_gets_lost_behind_parities_is_not_missed() {
    let mut scenario = lossy("multicast-pull:sync=none", 3, 128 << 10);
    scenario.faults.target = Some(Target { which: Which::Last, node: Some(9) });
    scenario.faults.stalled = Some(Stalled { part: 1.0, by: TIMEOUT, only: Some(Saying::End) });
    let outcome = run(&scenario);
    assert!(longest(&outcome) < Nanos(8 * MILLI), "{:?}", longest(&outcome));
    assert_eq!(outcome.totals.urgent_requests, 0);
}

#[test]
fn what_all_miss_is_asked_for_by_few() {
    for nodes in [16, 128] {
        let mut scenario = lossy("multicast-pull:sync=none", 3, 64 << 10);
        scenario.nodes = nodes;
        scenario.faults.loss = 0.0;
        // On the root's own link: all miss the same.
        scenario.faults.uplink_loss = 0.1;
        scenario.faults.stalled = Some(Stalled { part: 1.0, by: TIMEOUT, only: Some(Saying::Request) });
        let outcome = Simulator::for_measuring().run(&scenario).expect("all holds");
        let totals = outcome.totals;
        assert!(longest(&outcome) < MILLISECONDS, "{nodes} nodes: {totals:?}");
        assert!(totals.requests > u64::from(nodes), "each of its predecessor: {totals:?}");
        // Who is nearest to the root asks, and those who have not heard it yet.
        assert!(totals.urgent_requests < 60, "{nodes} nodes: {totals:?}");
    }
}

/// All ask, since no message of the ring comes, and each answer goes to all.
#[test]
fn answers_do_not_fill_the_links_where_all_connections_stand_still() {
    let mut scenario = lossy("multicast-pull:sync=none", 2, 1 << 20);
    scenario.faults.arrivals.period = Nanos(1000 * MILLI);
    scenario.faults.loss = 0.1;
    scenario.faults.stalled = Some(Stalled { part: 1.0, by: TIMEOUT, only: None });
    let totals = Simulator::for_measuring().run(&scenario).expect("all holds").totals;
    let fragments = (1u64 << 20).div_ceil(1440);
    // A tenth at each of 15 nodes is more than all of it.
    let most = 2 * (fragments / 8 + 64);
    assert!((most / 2..2 * most).contains(&totals.answers), "{most} and what is on its way: {totals:?}");
}

#[test]
fn connections_stand_still_in_every_run() {
    let (mut requests, mut answers) = (0, 0);
    for seed in 0..600 {
        let mut scenario = Scenario::from_seed(seed, 2..=32);
        scenario.payload_bytes = scenario.payload_bytes.max(16);
        scenario.faults.loss = scenario.faults.loss.clamp(0.02, 0.3);
        scenario.faults.stalled = Some(Stalled { part: 0.2, by: TIMEOUT, only: None });
        let totals = run(&scenario).totals;
        requests += totals.urgent_requests;
        answers += totals.answers;
    }
    assert!(requests > 1000 && answers > 1000, "{requests} {answers}");
}

#[test]
fn nothing_more_is_sent_where_nothing_is_lost() {
    let mut scenario = lossy("multicast-pull:sync=none", 4, 128 << 10);
    scenario.faults.loss = 0.0;
    let fragments = (128u64 << 10).div_ceil(1440);
    for late in [Nanos(0), Nanos(10 * MILLI)] {
        // MPI's messages take long, too: dones that are on their way are not missed.
        scenario.faults.message_delay = Delay::constant(late);
        let totals = run(&scenario).totals;
        assert_eq!((totals.datagrams, totals.urgent_requests), (4 * (fragments + 1), 0));
        let mut pushed = lossy("multicast-push:sync=none", 4, 128 << 10);
        (pushed.faults.loss, pushed.faults.message_delay) = (0.0, Delay::constant(late));
        let totals = run(&pushed).totals;
        assert_eq!((totals.datagrams, totals.urgent_requests), (4 * fragments, 0));
    }
}

/// On a network where messages always take as long as if they were stuck, nodes learn to wait for them.
#[test]
fn words_that_always_take_long_are_not_asked_for_again_and_again() {
    let asked = |count: usize| {
        let mut scenario = lossy("multicast-pull:sync=none", count, 128 << 10);
        scenario.faults.loss = 0.0;
        scenario.faults.message_delay = Delay::constant(Nanos(20 * MILLI));
        run(&scenario).totals.urgent_requests
    };
    let [few, many] = [40, 120].map(asked);
    assert!(few > 0 && many == few, "{few} in 40 broadcasts, {many} in 120");
}
