//! The prediction of a tree on one switch is the time of the simulated broadcast, where both have the same model: ports that
//! serve one message after the other, and nothing else that costs time but the latency.

use polycast_core::algorithm::Algorithm;
use polycast_core::collective::Call;
use polycast_core::cost::{Predictor, Sends};
use polycast_core::model::{ClassParameters, Curve, LinkClass, Measured, Parameters, Point};
use polycast_core::topology::Topology;
use polycast_core::units::{Bytes, Rank};
use polycast_sim::{Network, Simulation};
use proptest::prelude::*;

/// What measuring the simulated network would give.
fn parameters(network: &Network) -> Parameters {
    let latency = Curve::new(vec![Point::exact(1, network.latency_ns as f64)]);
    let gap = [1, 1 << 24].map(|bytes| Point::exact(bytes, network.ns_per_byte * bytes as f64));
    let class = ClassParameters::new(latency.unwrap(), Curve::new(gap.to_vec()).unwrap());
    Parameters::new(Measured::default(), [(LinkClass::SameSwitch, class)].into()).unwrap()
}

fn predicted_and_simulated(latency_ns: u64, call: Call, algorithm: Algorithm) -> (u64, u64) {
    let network = Network { latency_ns, ..Network::bare(8.0) };
    let names: Vec<String> = (0..call.ranks).map(|rank| format!("h{rank}")).collect();
    let placed = Topology::flat(names.clone()).place(&names);
    let mut predictor = Predictor::new(&placed, &parameters(&network), call.root).sends(Sends::InTurn);
    let simulated = Simulation::new(network, call, algorithm).run().expect("a broadcast").completion_ns;
    (predictor.cost(&algorithm, call.bytes).time.0, simulated)
}

fn algorithm(text: &str) -> Algorithm {
    text.parse().expect("an algorithm")
}

proptest! {
    #[test]
    fn whole_messages(
        name in prop::sample::select(vec!["flat", "chain", "binary", "k-ary:k=3", "binomial", "k-nomial:k=4"]),
        (ranks, root) in (2u32..70).prop_flat_map(|ranks| (Just(ranks), 0..ranks)),
        latency_ns in 0u64..100_000,
        bytes in 1u64..100_000,
    ) {
        let call = Call::broadcast(ranks, Rank(root), Bytes(bytes));
        let (predicted, simulated) = predicted_and_simulated(latency_ns, call, algorithm(name));
        prop_assert_eq!(predicted, simulated);
    }

    #[test]
    fn segments_down_a_chain(
        (ranks, root) in (2u32..70).prop_flat_map(|ranks| (Just(ranks), 0..ranks)),
        latency_ns in 0u64..20_000,
        (segment, segments) in (1000u64..20_000, 1u64..100),
    ) {
        let call = Call::broadcast(ranks, Rank(root), Bytes(segment * segments));
        let chain = algorithm(&format!("chain:segment={segment}"));
        let (predicted, simulated) = predicted_and_simulated(latency_ns, call, chain);
        prop_assert_eq!(predicted, simulated);
    }

    /// Where ranks have different numbers of children, a rank that is not the bottleneck may gather some lead.
    #[test]
    fn segments_down_wider_trees(
        name in prop::sample::select(vec!["flat", "binary", "k-ary:k=3", "binomial"]),
        ranks in 2u32..70,
        latency_ns in 0u64..20_000,
        (segment, segments) in (1000u64..20_000, 1u64..100),
    ) {
        let call = Call::broadcast(ranks, Rank(0), Bytes(segment * segments));
        let separator = if name.contains(':') { ',' } else { ':' };
        let algorithm = algorithm(&format!("{name}{separator}segment={segment}"));
        let (predicted, simulated) = predicted_and_simulated(latency_ns, call, algorithm);
        let error = predicted as f64 / simulated as f64;
        prop_assert!((0.99..1.01).contains(&error), "{algorithm} {ranks}: {predicted} against {simulated}");
    }
}
