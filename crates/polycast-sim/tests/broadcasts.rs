//! The production code in virtual time: data arrives, closed forms hold, late ranks are bounded, size is no problem.

use std::num::NonZeroU64;

use polycast_core::algorithm::{Algorithm, Entry, Parameter, Registry};
use polycast_core::collective::{Call, Collective};
use polycast_core::executor::Limits;
use polycast_core::tree::Tree;
use polycast_core::units::{Bytes, Rank};
use polycast_sim::{Network, Outcome, Simulation};
use proptest::prelude::*;

/// Every algorithm: whole, in segments that divide nothing, and waiting for children.
fn algorithms() -> Vec<String> {
    let ways = [(None, false), (NonZeroU64::new(77), false), (NonZeroU64::new(1000), true)];
    let samples = Registry::BUILT_IN.samples(Collective::Broadcast).into_iter();
    let all = samples.flat_map(|sample| ways.map(|(segment, ready)| Algorithm { segment, ready, ..sample }));
    all.map(|algorithm| algorithm.to_string()).collect()
}

fn simulation(algorithm: &str, ranks: u32, root: u32, bytes: u64, network: Network) -> Simulation {
    let algorithm: Algorithm = algorithm.parse().expect("a valid algorithm");
    Simulation::new(network, Call::broadcast(ranks, Rank(root), Bytes(bytes)), algorithm)
}

fn run(algorithm: &str, ranks: u32, bytes: u64, network: Network) -> Outcome {
    simulation(algorithm, ranks, 0, bytes, network).run().expect("a correct broadcast")
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 + i / 251) as u8).collect()
}

#[test]
fn every_algorithm_delivers_the_data() {
    for algorithm in algorithms() {
        for ranks in [1, 2, 3, 7, 8, 13, 32] {
            for bytes in [0, 1, 5, 1000, 4097] {
                let data = pattern(bytes);
                let outcome = simulation(&algorithm, ranks, ranks / 2, 0, Network::ethernet(1e9))
                    .carry(data.clone())
                    .run()
                    .unwrap_or_else(|stuck| panic!("{algorithm}, {ranks} ranks, {bytes} bytes: {stuck}"));
                let delivered = outcome.delivered.expect("data was carried");
                assert!(delivered.iter().all(|buffer| *buffer == data), "{algorithm} {ranks} {bytes}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_data_arrives_whoever_is_late_and_whatever_the_limits(
        algorithm in prop::sample::select(algorithms()),
        ranks in 1u32..40,
        root in any::<prop::sample::Index>(),
        bytes in 0usize..3000,
        starts_ns in prop::collection::vec(0u64..3_000_000, 40),
        limits in (1u32..=64, 1u32..40).prop_map(|(per_lane, sends)| Limits { per_lane, sends }),
        rendezvous_threshold in prop::option::of(0u64..200),
        overheads in (0u64..5000, 0u64..5000),
    ) {
        let network = Network {
            rendezvous_threshold,
            send_overhead_ns: overheads.0,
            receive_overhead_ns: overheads.1,
            ..Network::ethernet(1e8)
        };
        let data = pattern(bytes);
        let root = root.index(ranks as usize) as u32;
        let mut simulation = simulation(&algorithm, ranks, root, 0, network).limits(limits).carry(data.clone());
        for (rank, start_ns) in (0..ranks).zip(starts_ns) {
            simulation = simulation.start(Rank(rank), start_ns);
        }
        let outcome = simulation.clone().run();
        prop_assert_eq!(&outcome, &simulation.run(), "two runs of the same simulation differ");
        let delivered = outcome.expect("a correct broadcast").delivered.expect("data was carried");
        prop_assert!(delivered.iter().all(|buffer| *buffer == data));
    }
}

/// A byte takes one nanosecond, nothing else takes time.
fn bare(algorithm: &str, ranks: u32, bytes: u64) -> u64 {
    run(algorithm, ranks, bytes, Network::bare(1.0)).completion_ns
}

#[test]
fn a_chain_takes_its_hops_plus_its_segments() {
    for (ranks, segments, segment) in [(2, 1, 1000), (5, 1, 1000), (16, 64, 512), (100, 10, 7)] {
        let expected = (u64::from(ranks) - 1 + segments - 1) * segment;
        let algorithm = format!("chain:segment={segment}");
        assert_eq!(
            bare(&algorithm, ranks, segments * segment),
            expected,
            "{ranks} ranks, {segments} segments"
        );
    }
}

#[test]
fn a_flat_root_sends_to_one_after_the_other() {
    assert_eq!(bare("flat", 17, 1000), 16_000);
    let slow = Network { latency_ns: 500, receive_overhead_ns: 70, ..Network::bare(1.0) };
    assert_eq!(run("flat", 17, 1000, slow).completion_ns, 16_000 + 500 + 70);
}

#[test]
fn a_binomial_tree_takes_as_many_rounds_as_the_number_of_ranks_has_bits() {
    for (ranks, rounds) in [(2, 1), (3, 2), (4, 2), (8, 3), (13, 4), (16, 4), (64, 6)] {
        assert_eq!(bare("binomial", ranks, 1000), rounds * 1000, "{ranks} ranks");
    }
    assert_eq!(bare("k-nomial:k=3", 9, 1000), 4 * 1000, "two rounds of two sends");
}

#[test]
fn rendezvous_costs_a_question_and_an_answer() {
    let network = Network { latency_ns: 100, ..Network::bare(1.0) };
    assert_eq!(run("chain", 2, 1000, network).completion_ns, 1100);
    let asking = Network { rendezvous_threshold: Some(1000), ..network };
    assert_eq!(run("chain", 2, 1000, asking).completion_ns, 1300);
    assert_eq!(run("chain", 2, 999, asking).completion_ns, 1099);
}

#[test]
fn scatter_and_allgather_is_bound_by_the_root_that_sends_everything_about_twice() {
    let bytes = 1 << 20;
    for algorithm in
        ["scatter-ring", "scatter-ring:segment=1KiB", "scatter-doubling", "scatter-doubling:segment=1KiB"]
    {
        let times_wire = bare(algorithm, 16, bytes) as f64 / bytes as f64;
        assert!((1.8..2.4).contains(&times_wire), "{algorithm}: {times_wire}");
    }
}

#[test]
fn only_readiness_bounds_what_piles_up_at_a_late_rank() {
    let late = |algorithm: &str| {
        let simulation = simulation(algorithm, 8, 0, 1 << 20, Network::ethernet(1e9));
        simulation.start(Rank(3), 50_000_000).run().expect("a correct broadcast").peak_unexpected_bytes
    };
    assert_eq!(late("chain:segment=8KiB"), 1 << 20);
    let limits = Limits::default();
    assert!(late("chain:segment=8KiB,ready") <= u64::from(limits.per_lane) * 8192);
}

/// The child that is found ready first may get its window full before the next one is served.
#[test]
fn readiness_costs_at_most_one_window_when_the_root_is_last() {
    let network = Network::ethernet(1e9);
    let root_last = |algorithm: &str| {
        let simulation = simulation(algorithm, 32, 0, 1 << 20, network);
        simulation.start(Rank(0), 10_000_000).run().expect("a correct broadcast").completion_ns
    };
    let window_ns = u64::from(Limits::default().per_lane) * network.occupancy_ns(8192);
    let difference = root_last("binary:segment=8KiB,ready").abs_diff(root_last("binary:segment=8KiB"));
    assert!(difference <= window_ns, "{difference}");
}

/// An algorithm is simulated when it has an entry; nothing else is to be added.
#[test]
fn one_more_entry_is_simulated() {
    static ONE_MORE: [Entry; 1] =
        [Entry::tree("spread", "`width` children per rank", "nobody", |a| Tree::KAry(a.number("width")))
            .with(&[Parameter::number("width", "how many", 2, 3)])];
    let call = Call::broadcast(13, Rank(5), Bytes(1000));
    for sample in Registry::with(&ONE_MORE)
        .samples(Collective::Broadcast)
        .into_iter()
        .filter(|sample| sample.entry == &ONE_MORE[0])
    {
        let data = pattern(1000);
        let outcome =
            Simulation::new(Network::ethernet(1e9), call, sample).carry(data.clone()).run().unwrap();
        assert!(outcome.delivered.unwrap().iter().all(|buffer| *buffer == data), "{sample}");
    }
}

mod long {
    use super::*;

    #[test]
    fn thousands_of_ranks() {
        for algorithm in
            ["chain:segment=64KiB", "binary:segment=64KiB", "flat", "binomial", "split-binary:segment=64KiB"]
        {
            let outcome = run(algorithm, 4096, 1 << 20, Network::ethernet(1e10));
            assert!(outcome.messages >= 4095, "{algorithm}");
            assert!(outcome.per_rank_ns.iter().skip(1).all(|finished_ns| *finished_ns > 0));
            let data = pattern(1000);
            let outcome =
                simulation(algorithm, 4096, 4095, 0, Network::ethernet(1e10)).carry(data.clone()).run();
            let delivered = outcome.expect("a correct broadcast").delivered.expect("data was carried");
            assert!(delivered.len() == 4096 && delivered.iter().all(|buffer| *buffer == data), "{algorithm}");
        }
    }
}
