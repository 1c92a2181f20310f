//! Penalty rounds under loss: what predictions take them for, against the protocol in virtual time (Siebert 2006, §3.2.2; Hoefler et al.
//! 2007, §5).

use polycast_core::cost::Loss;
use polycast_core::units::Nanos;
use polycast_sim::protocol::{Arrivals, Cluster, Delay, Late, Scaling, Scenario, Simulator};

/// A message from node to node takes so long, a datagram no time to speak of.
const HOP: Nanos = Nanos(1_000_000);

/// Broadcasts of one datagram by push: the nth receiver has it n rounds after the root's call if the n before it, and itself,
/// missed it.
#[test]
fn at_a_loss_of_one_half_a_node_waits_one_round_on_average() {
    const NODES: u32 = 40;
    let (mut rounds, mut most, mut nodes) = (0.0, 0.0, 0.0);
    let mut broadcasts = 0.0;
    for seed in 0..40 {
        let mut scenario = Scenario::calm(NODES, &[("multicast-push:sync=none", 0, 10); 10]);
        scenario.seed = seed;
        scenario.faults.loss = 0.5;
        scenario.faults.message_delay = Delay::constant(HOP);
        scenario.faults.multicast_delay = Delay::constant(Nanos(1));
        scenario.faults.arrivals = Arrivals { period: Nanos(1_000_000_000), late: Late::Nobody };
        let outcome = Simulator::for_measuring().run(&scenario).unwrap();
        for timing in &outcome.broadcasts {
            let of = |returned: &Nanos| ((*returned - timing.root_call).0 / HOP.0) as f64;
            let each: Vec<f64> = timing.returned[1..].iter().map(of).collect();
            rounds += each.iter().sum::<f64>();
            nodes += each.len() as f64;
            most += each.iter().copied().fold(0.0, f64::max);
            broadcasts += 1.0;
        }
    }
    let loss = Loss::of(0.5, 1, false);
    let mean = rounds / nodes;
    assert!((mean - 1.0).abs() < 0.06, "{mean}");
    assert!((mean - loss.mean_rounds(NODES - 1)).abs() < 0.05, "{mean} {}", loss.mean_rounds(NODES - 1));
    let most = most / broadcasts;
    let predicted = loss.most_rounds(NODES - 1);
    // Nodes one after the other are not independent of each other: a row of k counts once, not k times.
    assert!(most < predicted && most > predicted - 1.5, "{most} {predicted}");
}

/// `simulate --scaling` at its loss of 0.1 %: what penalty rounds add, in rounds.
#[test]
fn what_a_loss_adds_grows_with_the_nodes_as_predicted() {
    let spec = "multicast-push".parse::<polycast_core::algorithm::Algorithm>().unwrap().multicast().unwrap();
    let took = |loss, nodes| {
        let scaling = Scaling { bytes: 8 << 10, loss, broadcasts: 100, seed: 1, cluster: Cluster::gigabit() };
        scaling.multicast(spec, nodes).unwrap().mean_us
    };
    // A hop with a fragment of 1440 bytes: overheads, latency, two ports.
    let hop_us = 25.0 + 5.0 + 12.0;
    for nodes in [16, 128, 1024] {
        let added = (took(0.001, nodes) - took(0.0, nodes)) / hop_us;
        let predicted = Loss::of(0.001, Loss::decisive(6, 12.0, hop_us), false).most_rounds(nodes - 1);
        assert!(
            (added - predicted).abs() < 0.15,
            "{nodes} nodes: {added:.2} rounds, predicted {predicted:.2}"
        );
    }
}
