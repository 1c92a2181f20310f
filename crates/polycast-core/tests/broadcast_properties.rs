//! Every algorithm, for every communicator and root, is a correct broadcast: see the invariants of
//! `polycast_core::schedule`, which the checker proves.

use std::collections::BTreeSet;

use polycast_core::algorithm::broadcast::Planner;
use polycast_core::algorithm::{Algorithm, Registry};
use polycast_core::collective::Call;
use polycast_core::collective::{self, Collective};
use polycast_core::schedule::{Summary, check};
use polycast_core::topology::{Placed, Topology};
use polycast_core::tree::Site;
use polycast_core::units::{Bytes, Rank};
use proptest::prelude::*;

/// Every algorithm, with the values of its parameters that make a difference.
fn samples() -> Vec<Algorithm> {
    Registry::BUILT_IN.samples(Collective::Broadcast)
}

/// Fails with the call that breaks it.
fn prove(algorithm: Algorithm, call: Call, planner: &mut Planner) -> Summary {
    let schedules: Vec<_> =
        (0..call.ranks).map(|rank| algorithm.schedule(call, Rank(rank), planner)).collect();
    let promised = collective::Call::new(Collective::Broadcast, call.ranks, call.root, call.bytes);
    let summary =
        check(&schedules, &promised).unwrap_or_else(|violation| panic!("{algorithm} {call:?}: {violation}"));
    // Ranks of a node that share memory receive no message.
    let receivers = match algorithm.shares_memory() {
        true => planner.site().hosts().into_iter().collect::<BTreeSet<u64>>().len() as u64 - 1,
        false => u64::from(call.ranks - 1),
    };
    let expected = call.bytes.0 * receivers;
    assert_eq!(summary.bytes.0, expected, "{algorithm} {call:?}: every rank receives the data once");
    summary
}

/// Bytes and segment sizes (0: whole) around the edges: nothing, fewer bytes than ranks, segments that do not divide
/// the message, that are larger than it, of one byte.
const CUTS: [(u64, u64); 7] = [(0, 0), (1, 0), (7, 1), (37, 5), (1000, 0), (1021, 64), (100, 128)];

fn prove_every_root(ranks: u32) {
    let mut planner = Planner::flat(ranks);
    for (number, (bytes, segment)) in CUTS.into_iter().enumerate() {
        for sample in samples() {
            // Trees that are planned know nothing of a root's number: on larger communicators a few roots stand for all.
            let roots = if ranks > 16 && sample.entry.is_planned() { ranks / 16 } else { 1 };
            for root in (0..ranks).step_by(roots as usize) {
                // Every second root, others for the next cut.
                let ready = (root as usize + number).is_multiple_of(2);
                let segment = std::num::NonZeroU64::new(segment);
                let algorithm = Algorithm { segment, ready, ..sample };
                prove(algorithm, Call::broadcast(ranks, Rank(root), Bytes(bytes)), &mut planner);
            }
        }
    }
}

/// Ranks anywhere on a random tree of switches, several on a host or none.
fn random_site(ranks: u32, switches: usize, hosts: usize, seed: u64) -> Site {
    let mut random = fastrand::Rng::with_seed(seed);
    let topology = Topology::random(switches, hosts, |n| random.usize(..n));
    let host_of = (0..ranks).map(|_| random.usize(..hosts)).collect();
    Site::new(&Placed { topology, host_of, unplaced_hosts: Vec::new() })
}

/// A communicator of some ranks is planned on the part of the network that carries them.
#[test]
fn what_carries_no_rank_changes_no_tree() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (switches, hosts) = (random.usize(1..12), random.usize(1..30));
        let topology = Topology::random(switches, hosts, |n| random.usize(..n));
        let all: Vec<usize> = (0..40).map(|_| random.usize(..hosts)).collect();
        let job = Placed { topology, host_of: all, unplaced_hosts: Vec::new() };
        let mut some: Vec<u32> = (0..40).collect();
        random.shuffle(&mut some);
        some.truncate(random.usize(1..40));
        let host_of = some.iter().map(|rank| job.host_of[*rank as usize]).collect();
        let whole = Placed { host_of, ..job.clone() };
        let part = job.only(&some);
        assert!(part.topology.hosts.len() <= some.len());
        let [whole, part] = [&whole, &part].map(Site::new);
        assert_eq!(whole.ring(), part.ring(), "seed {seed}");
        let [mut in_whole, mut in_part] = [whole, part].map(Planner::new);
        for sample in samples().into_iter().filter(|sample| sample.entry.is_planned()) {
            let root = Rank(random.u32(..some.len() as u32));
            let call = Call::broadcast(some.len() as u32, root, Bytes(100_000));
            for rank in (0..call.ranks).map(Rank) {
                let [one, other] = [&mut in_whole, &mut in_part]
                    .map(|planner| format!("{:?}", sample.schedule(call, rank, planner).lanes()));
                assert_eq!(one, other, "seed {seed}: {sample} {call:?} {rank:?}");
            }
        }
    }
}

#[test]
fn every_root_of_ranks_scattered_over_hosts_and_switches() {
    for (ranks, switches, hosts) in [(4, 1, 2), (7, 3, 3), (16, 4, 5), (33, 20, 40)] {
        let mut planner = Planner::new(random_site(ranks, switches, hosts, 7));
        for (sample, root) in
            samples().into_iter().flat_map(|sample| (0..ranks).map(move |root| (sample, Rank(root))))
        {
            prove(sample, Call::broadcast(ranks, root, Bytes(1021)), &mut planner);
        }
    }
}

/// Any call of any algorithm, with as many ranks at most, anywhere.
fn calls(most_ranks: u32) -> impl Strategy<Value = (Algorithm, Call, Site)> {
    let sizes = (1..=most_ranks).prop_flat_map(|ranks| (Just(ranks), 0..ranks));
    let cuts = (prop_oneof![0u64..3000, 0u64..100_000_000], 0u64..20, any::<bool>());
    let places = (1usize..40, 1usize..200, any::<u64>());
    let all = (prop::sample::select(samples()), sizes, cuts, places);
    all.prop_map(|(sample, (ranks, root), (bytes, segments, ready), (switches, hosts, seed))| {
        // As many buffers as segments: what is proven grows with steps, not with bytes.
        let bytes = sample.given("buffer").map_or(bytes, |buffer| bytes % (20 * buffer));
        let segment = bytes.checked_div(segments).and_then(std::num::NonZeroU64::new);
        let call = Call::broadcast(ranks, Rank(root), Bytes(bytes));
        (Algorithm { segment, ready, ..sample }, call, random_site(ranks, switches, hosts, seed))
    })
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn every_root_up_to_12_ranks() {
    (1..=12).for_each(prove_every_root);
}

#[test]
fn every_root_up_to_16_ranks() {
    (13..=16).for_each(prove_every_root);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn samples_up_to_200_ranks((algorithm, call, site) in calls(200)) {
        prove(algorithm, call, &mut Planner::new(site));
    }
}

mod long {
    use super::*;

    #[test]
    fn every_root_up_to_24_ranks() {
        (17..=24).for_each(prove_every_root);
    }

    #[test]
    #[ignore = "make test-all: takes longer than all other proofs together"]
    fn every_root_up_to_48_ranks() {
        (25..=48).for_each(prove_every_root);
    }

    #[test]
    #[ignore = "make test-all: takes longer than all other proofs together"]
    fn every_root_up_to_64_ranks() {
        (49..=64).for_each(prove_every_root);
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn samples_up_to_1024_ranks((algorithm, call, site) in calls(1024)) {
            prove(algorithm, call, &mut Planner::new(site));
        }
    }
}
