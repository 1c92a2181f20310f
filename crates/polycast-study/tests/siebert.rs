//! The times that Siebert 2006, §1.5 prints for a broadcast of 1 MiB to 8 nodes on Fast Ethernet (Figures 2 to 9), and the growth that
//! Figure 10 shows; the figures themselves are lost.

use polycast_core::algorithm::Algorithm;
use polycast_core::collective::Call;
use polycast_core::units::{Bytes, Rank};
use polycast_sim::{Network, Simulation};

/// Three numbers describe the cluster: a message of 1 MiB keeps its sender 0.0905 s, and is with its receiver after 0.103 s
/// (Figure 3).
/// What it takes beyond the wire belongs to each byte, too: in Figure 4 a fragment of 64 KiB is with its receiver after 0.0064 s.
const SENDER_S: f64 = 0.0905;
const BEYOND_S: f64 = 0.0125;
/// The time for which each message keeps its sender beyond that of its bytes: the root of Figure 4
/// takes 0.097 s for 16 messages.
const MESSAGE_S: f64 = (0.097 - SENDER_S) / 15.0;
const MIB: u64 = 1 << 20;

fn seconds(algorithm: &str, ranks: u32, message: u64) -> Vec<f64> {
    let algorithm: Algorithm = algorithm.parse().unwrap();
    let network = Network {
        latency_ns: (BEYOND_S * 1e9 * message as f64 / MIB as f64) as u64,
        ..Network::bare((SENDER_S + (MIB / message - 1) as f64 * MESSAGE_S) * 1e9 / MIB as f64)
    };
    let outcome =
        Simulation::new(network, Call::broadcast(ranks, Rank(0), Bytes(MIB)), algorithm).run().unwrap();
    outcome.per_rank_ns.iter().map(|ns| *ns as f64 / 1e9).collect()
}

fn mean(seconds: &[f64]) -> f64 {
    seconds.iter().sum::<f64>() / seconds.len() as f64
}

#[track_caller]
fn close(found: &[f64], published: &[f64], tolerance: f64) {
    for (rank, (found, published)) in found.iter().zip(published).enumerate() {
        assert!(
            (found / published - 1.0).abs() < tolerance,
            "rank {rank}: {found:.3}, published {published}"
        );
    }
    let (found, published) = (mean(found), mean(published));
    assert!((found / published - 1.0).abs() < tolerance, "mean: {found:.3}, published {published:.3}");
}

/// Figure 2.
#[test]
fn linear() {
    close(&seconds("flat", 8, MIB), &[0.641, 0.103, 0.195, 0.284, 0.376, 0.468, 0.560, 0.651], 0.02);
}

/// Figure 3.
#[test]
fn chain() {
    close(&seconds("chain", 8, MIB), &[0.090, 0.194, 0.297, 0.399, 0.503, 0.607, 0.709, 0.721], 0.02);
}

/// Figure 4.
#[test]
fn fragmented_chain() {
    let found = seconds("chain:segment=64KiB", 8, 64 << 10);
    close(&found, &[0.097, 0.104, 0.110, 0.116, 0.123, 0.130, 0.136, 0.142], 0.03);
    assert!((mean(&seconds("chain", 8, MIB)) / mean(&found) / 3.67 - 1.0).abs() < 0.1);
}

/// Figures 7 and 8.
#[test]
fn binomial() {
    let mut found = seconds("binomial", 8, MIB);
    found.sort_by(f64::total_cmp);
    close(&found, &[0.274, 0.285, 0.285, 0.286, 0.297, 0.297, 0.297, 0.308], 0.06);
}

/// Figures 5 and 6: 0.307 on average, and the root is done after two messages.
#[test]
fn binary() {
    let found = seconds("binary", 8, MIB);
    assert!((mean(&found) / 0.307 - 1.0).abs() < 0.05, "{found:?}");
    assert!((found[0] / (2.0 * SENDER_S) - 1.0).abs() < 0.01, "{found:?}");
}

/// Figure 9: the binomial tree of 16 nodes has one more level; nobody is done before the root.
#[test]
fn one_more_level_of_a_binomial_tree() {
    let [eight, sixteen] = [8, 16].map(|ranks| mean(&seconds("binomial", ranks, MIB)));
    assert!((sixteen / eight / (4.0 / 3.0) - 1.0).abs() < 0.05, "{eight} {sixteen}");
}

/// Figure 10: two lines and two logarithms, the binomial tree below the binary one.
#[test]
fn two_grow_with_the_nodes_and_two_with_their_logarithm() {
    let at = |algorithm: &str| [8, 16, 32].map(|ranks| mean(&seconds(algorithm, ranks, MIB)));
    for algorithm in ["flat", "chain"] {
        let [eight, sixteen, thirty_two] = at(algorithm);
        assert!((thirty_two - sixteen) / (sixteen - eight) > 1.8, "{algorithm}");
    }
    for algorithm in ["binary", "binomial"] {
        let [eight, sixteen, thirty_two] = at(algorithm);
        assert!((thirty_two - sixteen) / (sixteen - eight) < 1.3, "{algorithm}");
    }
    assert!(at("binomial").iter().zip(at("binary")).all(|(binomial, binary)| *binomial < binary));
}
