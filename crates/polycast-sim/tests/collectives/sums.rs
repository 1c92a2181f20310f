//! Sums of doubles, bit by bit: every way that claims the order of the tree has the bits that the tree's combinations have, one after the other.

use std::num::NonZeroU64;

use polycast_core::algorithm::broadcast::Planner;
use polycast_core::algorithm::{Algorithm, Registry};
use polycast_core::collective::doubles::{add, contribution};
use polycast_core::collective::{Call, Collective, CombinationOrder, CombinationTree};
use polycast_core::schedule::{Buffer, Contract, Nodes};
use polycast_core::units::{Bytes, Rank};
use polycast_sim::{Buffers, Network, Schedules};

fn expected(ranks: u32, elements: u64) -> Vec<u8> {
    let tree = CombinationTree::new(ranks);
    (0..elements)
        .flat_map(|at| tree.evaluate(|rank| contribution(rank, at), |a, b| a + b).to_le_bytes())
        .collect()
}

fn prove(algorithm: Algorithm, call: &Call, host_of: &[u64], expected: &[u8]) {
    let ring: Vec<Rank> = (0..call.ranks).map(Rank).collect();
    let mut schedules = Vec::new();
    let mut buffers = Vec::new();
    for &rank in &ring {
        let nodes = Nodes::new(host_of, &ring, rank);
        schedules.push(algorithm.schedule(
            *call,
            rank,
            &mut Planner::flat(call.ranks).on_nodes(nodes.into()),
        ));
        let contract = Contract { call: *call };
        let empty = |buffer| vec![0xEE; contract.size(rank, buffer) as usize];
        let mut of = Buffers { input: empty(Buffer::Input), output: empty(Buffer::Output) };
        let own = (0..call.bytes.0 / 8).flat_map(|at| contribution(rank, at).to_le_bytes()).collect();
        *(if call.is_in_place_at(rank) { &mut of.output } else { &mut of.input }) = own;
        buffers.push(of);
    }
    let run = Schedules::new(Network::ethernet(1e9), schedules).carry(buffers, add);
    let outcome = run.run().unwrap_or_else(|stuck| panic!("{algorithm} {call:?}: {stuck}"));
    for (rank, output) in ring.iter().zip(outcome.delivered.as_ref().expect("data was carried")) {
        if call.collective == Collective::Allreduce || *rank == call.root {
            assert!(output == expected, "{algorithm} {call:?}: other bits at rank {rank}");
        }
    }
}

/// The ways to sum that claim the order of the tree where nodes have so many ranks each.
fn ways(collective: Collective, host_of: &[u64]) -> Vec<Algorithm> {
    let ring: Vec<Rank> = (0..).map(Rank).take(host_of.len()).collect();
    let nodes = Nodes::new(host_of, &ring, Rank(0));
    let is_on_one_node = host_of.iter().all(|host| *host == 0);
    let anywhere = Registry::BUILT_IN.samples(collective).into_iter();
    let on_one_node =
        Registry::BUILT_IN.samples_on_one_node(collective).into_iter().filter(|_| is_on_one_node);
    anywhere
        .chain(on_one_node)
        .filter(|algorithm| algorithm.keeps_on(&nodes) == CombinationOrder::Tree)
        .collect()
}

fn prove_all(ranks: u32, width: u32, lengths: &[u64]) {
    let host_of: Vec<u64> = (0..ranks).map(|rank| u64::from(rank / width)).collect();
    for (number, &elements) in lengths.iter().enumerate() {
        let expected = expected(ranks, elements);
        for collective in [Collective::Reduce, Collective::Allreduce] {
            let roots = if collective == Collective::Reduce && elements < 100 { ranks } else { 1 };
            for (root, algorithm) in
                (0..roots).flat_map(|root| ways(collective, &host_of).into_iter().map(move |way| (root, way)))
            {
                let plain =
                    Call::new(collective, ranks, Rank((root + number as u32) % ranks), Bytes(8 * elements));
                let element = NonZeroU64::new(8).expect("not 0");
                let is_in_place = (root + ranks).is_multiple_of(2);
                let segment = [0, 24, 1000, 8192][(number + root as usize) % 4];
                let call = Call { element, order: CombinationOrder::Tree, is_in_place, ..plain };
                prove(
                    Algorithm { segment: NonZeroU64::new(segment), ..algorithm },
                    &call,
                    &host_of,
                    &expected,
                );
            }
        }
    }
}

#[test]
fn every_way_that_claims_it_has_the_bits_of_the_tree() {
    for ranks in (2..=9).chain([16, 17]) {
        prove_all(ranks, ranks, &[1, 2, 3, 7, 29]);
        prove_all(ranks, 1, &[1, 5, 17]);
    }
    for (ranks, width) in [(4, 2), (6, 2), (7, 4), (12, 4), (16, 4), (17, 4)] {
        prove_all(ranks, width, &[1, 11]);
    }
}

mod long {
    #[test]
    fn every_way_that_claims_it_has_the_bits_of_the_tree() {
        for ranks in [3, 5, 8, 17] {
            super::prove_all(ranks, ranks, &[511, 1024, 5000, 8191]);
        }
        super::prove_all(12, 4, &[1000, 5000, 20_000]);
    }
}

/// Numbers that do not tell orders apart would prove nothing: one after the other, and in pairs by distance, sums have other bits.
#[test]
fn these_numbers_tell_orders_apart() {
    for ranks in [3u32, 4, 5, 8, 17] {
        let of = |at| (0..ranks).map(move |rank| contribution(Rank(rank), at));
        let (rising, falling): (Vec<f64>, Vec<f64>) =
            (0..1000).map(|at| (of(at).sum::<f64>(), of(at).rev().fold(0.0, |sum, x| x + sum))).unzip();
        let bits = |all: Vec<f64>| -> Vec<u8> { all.into_iter().flat_map(f64::to_le_bytes).collect() };
        let tree = expected(ranks, 1000);
        let others = |other: Vec<u8>| tree.chunks(8).zip(other.chunks(8)).filter(|(a, b)| a != b).count();
        // Of three ranks the tree adds them one after the other.
        assert!(ranks == 3 || others(bits(rising)) > 100, "{ranks}");
        assert!(others(bits(falling)) > 100, "{ranks}");
    }
}
