//! What a step costs in the executor: a rank in the middle of a chain, 1 MiB in segments of 2 KiB, over a transport
//! that takes no time.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use polycast_core::algorithm::Algorithm;
use polycast_core::algorithm::broadcast::Planner;
use polycast_core::collective::Call;
use polycast_core::executor::{Executor, Limits};
use polycast_core::units::{Bytes, Rank};

const SEGMENTS: u64 = 512;

fn run(algorithm: &Algorithm, call: Call, rank: Rank, planner: &mut Planner) -> u64 {
    let mut executor = Executor::new(algorithm.schedule(call, rank, planner), Limits::default());
    let mut steps = 0;
    while let Some(operation) = executor.next_operation() {
        executor.complete(black_box(operation).id);
        steps += 1;
    }
    assert!(executor.is_finished());
    steps
}

fn chain(criterion: &mut Criterion) {
    let algorithm: Algorithm = "chain:segment=2KiB".parse().expect("a valid algorithm");
    let call = Call::broadcast(16, Rank(0), Bytes(SEGMENTS * 2048));
    let mut group = criterion.benchmark_group("executor");
    group.throughput(Throughput::Elements(2 * SEGMENTS));
    let mut planner = Planner::flat(16);
    let name = "chain 1MiB in 2KiB";
    group.bench_function(name, |bencher| bencher.iter(|| run(&algorithm, call, Rank(7), &mut planner)));
    group.finish();
}

fn wide_root(criterion: &mut Criterion) {
    let algorithm: Algorithm = "flat".parse().expect("a valid algorithm");
    let call = Call::broadcast(1024, Rank(0), Bytes(1024));
    let mut group = criterion.benchmark_group("executor");
    group.throughput(Throughput::Elements(1023));
    let mut planner = Planner::flat(1024);
    let name = "flat root of 1024";
    group.bench_function(name, |bencher| bencher.iter(|| run(&algorithm, call, Rank(0), &mut planner)));
    group.finish();
}

criterion_group!(benches, chain, wide_root);
criterion_main!(benches);
