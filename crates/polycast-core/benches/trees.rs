//! What planning costs: 10,000 ranks on 1250 hosts behind 400 switches, once per communicator and per tree.

use std::hint::black_box;
use std::num::NonZeroU32;

use criterion::{Criterion, criterion_group, criterion_main};
use polycast_core::topology::{Placed, Topology};
use polycast_core::tree::{PlannedShape, SendTimes, Site};
use polycast_core::units::Rank;

const SWITCHES: usize = 400;
const HOSTS: usize = 1250;
const RANKS_PER_HOST: usize = 8;

fn placed() -> Placed {
    let mut random = fastrand::Rng::with_seed(1);
    let topology = Topology::random(SWITCHES, HOSTS, |n| random.usize(..n));
    let host_of = (0..HOSTS * RANKS_PER_HOST).map(|rank| rank % HOSTS).collect();
    Placed { topology, host_of, unplaced_hosts: Vec::new() }
}

fn planning(criterion: &mut Criterion) {
    let placed = placed();
    let mut group = criterion.benchmark_group("10,000 ranks");
    group.sample_size(10);
    group.bench_function("site", |bencher| bencher.iter(|| Site::new(black_box(&placed))));
    let site = Site::new(&placed);
    for (name, shape) in [
        ("contention-free-chain", PlannedShape::ContentionFreeChain),
        ("contention-free-binary", PlannedShape::ContentionFreeKAry(NonZeroU32::new(2).unwrap())),
        ("contention-free-k-ary:k=4", PlannedShape::ContentionFreeKAry(NonZeroU32::new(4).unwrap())),
        ("link-aware", PlannedShape::LinkAware { segment_bytes: 8 << 10, segments: 128 }),
        ("opt-tree", PlannedShape::Optimal(SendTimes::default())),
        ("block-binomial", PlannedShape::BlockBinomial { block: None }),
    ] {
        group.bench_function(name, |bencher| bencher.iter(|| shape.plan(black_box(&site), Rank(4711))));
    }
    group.finish();
}

criterion_group!(benches, planning);
criterion_main!(benches);
