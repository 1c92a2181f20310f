//! What a job pays for reading what earlier jobs have found, from a file as long as it may get: `cargo bench -p polycast-core --bench memories`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use polycast_core::algorithm::Registry;
use polycast_core::policy::trials::{Finding, Memory, Recalled, Sameness, Setting};
use polycast_core::policy::{Capabilities, Choice, Collective, CommunicatorShape};

/// A file of more is written anew.
const MOST_BYTES: usize = 256 << 10;

fn setting(rate: &str) -> Setting {
    let network = polycast_core::network::Network { rate: rate.parse().ok(), ..Default::default() };
    let shape = CommunicatorShape::new(16, 16, None).expect("a shape").on_network(network);
    Setting {
        mpi: "/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4".into(),
        hosts: "node#".into(),
        build: 7,
        shape,
    }
}

/// Lines for several networks, sizes and collectives.
fn file() -> String {
    let mut text = String::new();
    for number in 0u64.. {
        let collective = Collective::ALL[number as usize % 8];
        let of = Sameness::tuned(collective, 1 << (number / 8 % 40), Capabilities::ALL);
        let ways = [first(collective), Choice::Stock];
        let finding = Finding { of, arm: 0, nanos: [number, 2 * number, 0, 0] };
        let rate = format!("{}mbit", 1 + number / 320);
        text += &(Memory::new(&setting(&rate), &ways, &finding, 512, 100).line() + "\n");
        if text.len() > MOST_BYTES {
            break;
        }
    }
    text
}

fn first(collective: Collective) -> Choice {
    Choice::Algorithm(Registry::BUILT_IN.compared(collective)[0])
}

fn read(text: &str, setting: &Setting) -> Vec<(u64, Recalled)> {
    let (memories, _) = Memory::read_all(text, 100);
    memories.iter().filter_map(|memory| Some((memory.distance(setting)?, memory.recall_tuned()?))).collect()
}

fn memories(criterion: &mut Criterion) {
    let (text, setting) = (file(), setting("1mbit"));
    assert!(read(&text, &setting).len() > 100);
    let mut group = criterion.benchmark_group("memories");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("read", |bencher| bencher.iter(|| read(black_box(&text), black_box(&setting))));
    group.finish();
}

criterion_group!(benches, memories);
criterion_main!(benches);
