//! Flits that cross a channel in a second, on one core: the network by events, beside the same cycle by cycle.
//!
//! `experiment` is the published one: multicasts of 1 KiB on a mesh of 16 × 16 nodes under a background of 0.05, nodes included; it is
//! too long for the network cycle by cycle. `fabric` gives both the same messages, of 1 KiB, uniformly drawn, at the same load.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use polycast_study::wormhole::{
    Costs, CycleByCycle, Effort, Experiment, Fabric, Message, MulticastTree, Notice, Switching, Topology,
    Traffic,
};

const MESH: Topology = Topology::Mesh { width: 16, height: 16 };
const LOAD: f64 = 0.05;
const BYTES: u64 = 1 << 10;

fn experiment(criterion: &mut Criterion) {
    let traffic = Traffic {
        tree: MulticastTree::Optimal,
        groups: 1,
        group_nodes: 64,
        bytes: BYTES,
        interval: None,
        local: None,
        background: None,
        mean_bytes: BYTES,
        seed: 1,
    };
    // One placement runs on one core.
    let effort =
        Effort { placements: 1, discarded: 1, least: 8, most: 8, relative_error: 1.0, time: u64::MAX };
    let experiment = Experiment::plain(MESH, Costs::BASELINE, traffic, effort).under(LOAD, 0.0);
    let mut group = criterion.benchmark_group("wormhole");
    group.sample_size(20).throughput(Throughput::Elements(experiment.run().flit_hops));
    group.bench_function("experiment", |bencher| bencher.iter(|| black_box(&experiment).run()));
    group.finish();
}

/// A stretch of uniform traffic: when each message asks for its node's channel.
fn messages(switching: Switching) -> Vec<(u64, Message)> {
    let mut random = 1_u64;
    let mut below = |limit: u64| {
        // Knuth's MMIX generator, of which the high bits are good enough here.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(random >> 11) * u128::from(limit)) >> 53) as u64
    };
    let between = (BYTES as f64 * switching.flit_time as f64 / LOAD / f64::from(MESH.nodes())) as u64;
    (0..400)
        .map(|number| {
            let from = below(u64::from(MESH.nodes())) as u32;
            let to = (from + 1 + below(u64::from(MESH.nodes()) - 1) as u32) % MESH.nodes();
            (number * between, Message { from, to, flits: BYTES, number })
        })
        .collect()
}

fn by_events(switching: Switching, sent: &[(u64, Message)]) -> u64 {
    let mut fabric = Fabric::new(MESH, switching, u64::MAX);
    sent.iter().for_each(|(at, message)| fabric.send(*at, *message));
    let mut arrived = 0;
    while let Some(at) = fabric.soonest() {
        fabric.step(at, |_, _, notice| arrived += u64::from(matches!(notice, Notice::Arrived { .. })));
    }
    assert_eq!(arrived, sent.len() as u64);
    fabric.flit_hops()
}

fn by_cycles(switching: Switching, sent: &[(u64, Message)]) -> u64 {
    let mut network = CycleByCycle::new(MESH, switching, u64::MAX);
    let (mut arrived, mut last) = (0, 0);
    let mut pending = sent.iter().peekable();
    for cycle in 0.. {
        while let Some((at, message)) = pending.next_if(|(at, _)| *at <= cycle) {
            network.send(*at, *message);
        }
        network.step(|at, _, notice| {
            arrived += u64::from(matches!(notice, Notice::Arrived { .. }));
            last = at;
        });
        if pending.peek().is_none() && network.is_empty() {
            break;
        }
    }
    assert_eq!(arrived, sent.len() as u64);
    last
}

fn fabric(criterion: &mut Criterion) {
    let switching = Switching::plain(2);
    let sent = messages(switching);
    let mut group = criterion.benchmark_group("wormhole fabric");
    group.sample_size(10).measurement_time(Duration::from_secs(5));
    group.throughput(Throughput::Elements(by_events(switching, &sent)));
    group.bench_function("by events", |bencher| bencher.iter(|| by_events(switching, black_box(&sent))));
    group.bench_function("cycle by cycle", |bencher| bencher.iter(|| by_cycles(switching, black_box(&sent))));
    group.finish();
}

criterion_group!(benches, experiment, fabric);
criterion_main!(benches);
