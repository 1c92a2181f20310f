//! Unicast traffic beside points of BookSim 2 (Jiang et al. 2013).

use super::credit_routers::{RouterNetwork, Unicast, UnicastMeasured};

fn run(network: RouterNetwork, load: f64, cycles: u64, seed: u64) -> UnicastMeasured {
    Unicast { network, flits: 20, buffer_flits: 4, load, cycles, seed }.run()
}

/// Mean and standard deviation of the mean latencies of some runs.
fn runs(network: RouterNetwork, load: f64, cycles: u64, seeds: u64) -> (f64, f64) {
    let each: Vec<f64> = (0..seeds).map(|seed| run(network, load, cycles, seed).latency).collect();
    let mean = each.iter().sum::<f64>() / seeds as f64;
    let squares: f64 = each.iter().map(|one| (one - mean).powi(2)).sum();
    (mean, (squares / (seeds - 1) as f64).sqrt())
}

/// A message alone: 2 cycles to the router, 4 for each router's head, and its flits by fours every 6 cycles, as credits come.
#[test]
fn a_message_alone_takes_as_long_as_the_stages() {
    // 6.25 routers on average; the last flit is the last one of the fifth four.
    let expected = 2.0 + 4.0 * 6.25 + 4.0 * 6.0 + 3.0;
    let found = run(RouterNetwork::Mesh { width: 8 }, 0.002, 200_000, 1);
    assert!((found.latency / expected - 1.0).abs() < 0.03, "{found:?} {expected}");
    assert!((found.accepted / 0.002 - 1.0).abs() < 0.1 && found.messages > 500, "{found:?}");
}

#[test]
#[ignore = "make test-all: half a minute; docs/wormhole.md has the numbers"]
fn booksims_points_lie_within_what_runs_of_their_length_differ_by() {
    let points = [
        (RouterNetwork::Mesh { width: 8 }, 0.095, 105.8),
        (RouterNetwork::Mesh { width: 16 }, 0.05, 156.8),
        (RouterNetwork::Tree { arity: 4, levels: 3 }, 0.094, 72.5),
    ];
    for (network, load, latency) in points {
        let (mean, deviation) = runs(network, load, 6000, 8);
        let (steady, of_steady) = runs(network, load, 60_000, 4);
        println!(
            "{network:?} at {load}: {latency}; {mean:.1} ± {deviation:.1}, {steady:.1} ± {of_steady:.1}"
        );
        assert!((mean - latency).abs() < 2.0 * deviation, "{network:?}: {latency}, {mean} ± {deviation}");
        assert!((steady / latency - 1.0).abs() < 0.25, "{network:?}: {latency}, {steady}");
    }
}
