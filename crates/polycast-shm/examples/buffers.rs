//! How many buffers, and how large: what a broadcast through a ring of n buffers of B bytes takes (Wu 2005, §2.5 and Figure 2.7, where
//! 16 × 8 KiB was the best on his machines). After the last reader has the message, the next one begins.
//!
//! ```text
//!     cargo run --release -p polycast-shm --example buffers [RANKS [MESSAGE_KIB]]
//! ```
//! Ranks are threads, each bound to a processor of its own if there are as many, where they spin; else they give way. Medians and quartiles of
//! all rounds, the combinations by turns.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::time::Instant;

use nix::libc;
use polycast_shm::{Got, Raw, Segment, Shape, Streams, Style, Way};

const BUFFERS: [(usize, usize); 12] =
    [(2, 4), (2, 8), (2, 16), (2, 32), (4, 4), (4, 8), (4, 16), (8, 8), (16, 4), (16, 8), (16, 16), (32, 8)];
const ROUNDS: usize = 40;
/// One after the other in a row.
const MESSAGES: u64 = 5;
const OPERATIONS: u64 = ROUNDS as u64 * MESSAGES;

struct Memory {
    raw: Raw,
    _segment: Segment,
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<usize>().expect("a number"));
    let ranks = arguments.next().unwrap_or(2) as u32;
    let bytes = arguments.next().unwrap_or(4096) << 10;
    let shared: Vec<(usize, Memory)> = BUFFERS
        .iter()
        .map(|(count, kib)| {
            let shape = Shape::new(ranks).with_ring((count * kib) << 10);
            let bytes = shape.bytes().next_multiple_of(4096);
            let (segment, _) = Segment::create(bytes, 1).expect("a segment");
            segment.take(0..bytes).expect("memory");
            segment.words(0..3).iter().for_each(|word| word.store(0, Ordering::Relaxed));
            // SAFETY: zeros that nobody else uses, as long as the segment is there.
            let raw = unsafe { Raw::new(segment.at(0), shape) };
            raw.meet();
            (kib << 10, Memory { raw, _segment: segment })
        })
        .collect();
    let barrier = Barrier::new(ranks as usize);
    let mut times = std::thread::scope(|scope| {
        let (shared, barrier) = (&shared, &barrier);
        for me in 1..ranks {
            scope.spawn(move || run(me, ranks, bytes, shared, barrier));
        }
        run(0, ranks, bytes, shared, barrier)
    });
    println!("{ranks} ranks, {} KiB: GB/s to each reader, median (quartiles) of {ROUNDS}", bytes >> 10);
    for ((count, kib), times) in BUFFERS.iter().zip(&mut times) {
        times.sort_unstable();
        let speed = |time: u64| (bytes as u64 * MESSAGES) as f64 / time as f64;
        let [slow, median, fast] = [3, 2, 1].map(|quarter| speed(times[times.len() * quarter / 4]));
        println!("  {:>2} x {kib:>2} KiB   {median:5.2}   ({slow:.2} to {fast:.2})", count);
    }
}

/// The nanoseconds of each round, by combination; rank 0 publishes.
fn run(me: u32, ranks: u32, bytes: usize, shared: &[(usize, Memory)], barrier: &Barrier) -> Vec<Vec<u64>> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let rest: fn() = if ranks as usize <= processors {
        bind(me as usize);
        std::hint::spin_loop
    } else {
        std::thread::yield_now
    };
    let mut streams: Vec<_> =
        shared.iter().map(|(buffer, memory)| Streams::new(&memory.raw, me, *buffer)).collect();
    // Not zero: pages of zeros that nobody has written are all one page.
    let mut message = vec![1 + me as u8; bytes];
    let readers: Arc<[u32]> = (1..ranks).collect();
    let mut times = vec![Vec::new(); shared.len()];
    for operation in (1..=OPERATIONS).step_by(MESSAGES as usize) {
        for (streams, times) in streams.iter_mut().zip(&mut times) {
            barrier.wait();
            let begun = Instant::now();
            for operation in operation..operation + MESSAGES {
                match me {
                    0 => publish(streams, operation, &message, &readers, rest),
                    _ => fetch(streams, operation, &mut message, rest),
                }
            }
            barrier.wait();
            times.push(begun.elapsed().as_nanos() as u64);
        }
    }
    assert!(message.iter().all(|byte| *byte == 1), "what was published");
    times
}

fn publish(streams: &mut Streams<&Raw>, operation: u64, message: &[u8], readers: &Arc<[u32]>, rest: fn()) {
    streams.announce(0, operation, message.len() as u64, Style::Data, readers.clone());
    let mut done = 0;
    while done < message.len() {
        // SAFETY: so many bytes are left.
        let count = unsafe { streams.put(0, operation, message[done..].as_ptr(), message.len() - done) };
        done += count;
        if count == 0 {
            rest();
        }
    }
    while !streams.close(0, operation) {
        rest();
    }
}

fn fetch(streams: &mut Streams<&Raw>, operation: u64, message: &mut [u8], rest: fn()) {
    let way = Way { writer: 0, channel: 0 };
    streams.expect(way, operation);
    let opening = loop {
        match streams.hear(way, operation) {
            Some(opening) => break opening,
            None => rest(),
        }
    };
    let mut done = 0;
    while done < message.len() {
        let left = message.len() - done;
        // SAFETY: so many bytes are left.
        let got = unsafe {
            streams.get((way, operation), opening, done as u64, message[done..].as_mut_ptr(), left)
        };
        let Got::Bytes(count) = got else { panic!("nobody spoils it") };
        done += count;
        if count == 0 {
            rest();
        }
    }
    streams.finish(way, operation);
}

fn bind(processor: usize) {
    // SAFETY: a set of processors is numbers, for which zero is a value; the call reads it.
    let code = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    assert_eq!(code, 0, "processor {processor} is not to be had");
}
