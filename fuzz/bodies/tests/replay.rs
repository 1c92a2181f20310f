//! The committed corpus and a bounded number of mutations of it, through the same functions as the fuzz targets.
//!
//! A mutation is drawn from its number alone: what fails, fails again. Its bytes are printed, to be put into the corpus.

use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use fastrand::Rng;
use polycast_fuzz_bodies::{BODIES, Body};

/// Mutations of one input that are laid over each other.
const MAX_MUTATIONS: usize = 6;
/// Longer than any input of the corpus.
const MAX_BYTES: usize = 8 << 10;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 10, "{} has only {} inputs", folder.display(), paths.len());
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn try_input(target: &str, body: Body, name: &str, input: &[u8]) {
    if panic::catch_unwind(AssertUnwindSafe(|| body(input))).is_err() {
        panic!("{target}: {name} fails; its bytes: b\"{}\"", input.escape_ascii());
    }
}

fn replay(target: &str, mutations: u64) {
    let (_, body) = *BODIES.iter().find(|(name, _)| *name == target).expect("a target");
    let corpus = corpus(target);
    for (index, input) in corpus.iter().enumerate() {
        try_input(target, body, &format!("input {index} of the corpus"), input);
    }
    for number in 0..mutations {
        let input = mutated(&corpus, &mut Rng::with_seed(number));
        try_input(target, body, &format!("mutation {number}"), &input);
    }
}

fn mutated(corpus: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut input = corpus[rng.usize(..corpus.len())].clone();
    for _ in 0..rng.usize(1..=MAX_MUTATIONS) {
        mutate(&mut input, corpus, rng);
    }
    input.truncate(MAX_BYTES);
    input
}

fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], rng: &mut Rng) {
    let at = rng.usize(..=input.len());
    let end = rng.usize(at..=input.len());
    match rng.u8(..8) {
        0 => input.truncate(at),
        1 => drop(input.drain(at..end)),
        2 => input.insert(at, rng.u8(..)),
        3 => {
            // A part of another input, or of this one again.
            let other = &corpus[rng.usize(..corpus.len())];
            let from = rng.usize(..=other.len());
            let part = other[from..rng.usize(from..=other.len())].to_vec();
            input.splice(at..at, part);
        }
        4 => {
            let number = *rng.choice(&[0, 1, u64::MAX, 1 << 31, 1 << 16, u64::MAX >> 1]).expect("not empty");
            let bytes = number.to_le_bytes();
            let width = (1 << rng.u8(..4)).min(input.len() - at);
            input[at..at + width].copy_from_slice(&bytes[..width]);
        }
        5 if at < input.len() => input[at] = rng.u8(..),
        _ if at < input.len() => input[at] ^= 1 << rng.u8(..8),
        _ => {}
    }
}

/// How many mutations of each are affordable: what it reads decides.
const MUTATIONS: [(&str, u64); 13] = [
    ("datagram", 60_000),
    ("message", 60_000),
    ("madcap", 30_000),
    ("table", 20_000),
    ("topology", 6_000),
    ("lldp", 20_000),
    ("addresses", 20_000),
    ("copy", 20_000),
    ("packed", 20_000),
    ("trace", 20_000),
    ("endpoint", 24_000),
    ("memory", 20_000),
    ("settings", 20_000),
];

fn mutations(target: &str) -> u64 {
    MUTATIONS.iter().find(|(name, _)| *name == target).expect("a target").1
}

// One test each, so that they run side by side.

#[test]
fn datagram() {
    replay("datagram", mutations("datagram") / 10);
}

#[test]
fn message() {
    replay("message", mutations("message") / 10);
}

#[test]
fn madcap() {
    replay("madcap", mutations("madcap") / 10);
}

#[test]
fn table() {
    replay("table", mutations("table") / 10);
}

#[test]
fn topology() {
    replay("topology", mutations("topology") / 10);
}

#[test]
fn lldp() {
    replay("lldp", mutations("lldp") / 10);
}

#[test]
fn addresses() {
    replay("addresses", mutations("addresses") / 10);
}

#[test]
fn copy() {
    replay("copy", mutations("copy") / 10);
}

#[test]
fn packed() {
    replay("packed", mutations("packed") / 10);
}

#[test]
fn trace() {
    replay("trace", mutations("trace") / 10);
}

#[test]
fn endpoint() {
    replay("endpoint", mutations("endpoint") / 10);
}

#[test]
fn memory() {
    replay("memory", mutations("memory") / 10);
}

#[test]
fn settings() {
    replay("settings", mutations("settings") / 10);
}

#[test]
#[ignore = "make test-all: ten times as many mutations"]
fn all_mutations() {
    MUTATIONS.iter().for_each(|(target, mutations)| replay(target, *mutations));
}

/// Mutations that a thread takes at once.
const PORTION: u64 = 100;

/// `make fuzz SECONDS=N ONLY=TARGET`: as many as each target, or one, does in so many seconds, on all processors. None of them is one of
/// [`replay`]'s.
#[test]
#[ignore = "make fuzz"]
fn for_some_seconds() {
    let text = env::var("SECONDS").unwrap_or_else(|_| "1".into());
    let seconds = text.parse().unwrap_or_else(|error| panic!("SECONDS={text}: {error}; expected how many"));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let only = env::var("ONLY").unwrap_or_default();
    let names = BODIES.map(|(target, _)| target);
    assert!(only.is_empty() || names.contains(&&*only), "ONLY={only}: expected one of {}", names.join(", "));
    let mut all = 0;
    for (target, body) in BODIES.into_iter().filter(|(target, _)| only.is_empty() || *target == only) {
        let (until, corpus) = (Instant::now() + Duration::from_secs(seconds), corpus(target));
        let (next, done) = (AtomicU64::new(mutations(target)), AtomicU64::new(0));
        let work = || {
            while Instant::now() < until {
                let first = next.fetch_add(PORTION, Ordering::Relaxed);
                for number in first..first + PORTION {
                    let input = mutated(&corpus, &mut Rng::with_seed(number));
                    try_input(target, body, &format!("mutation {number}"), &input);
                }
                done.fetch_add(PORTION, Ordering::Relaxed);
            }
        };
        thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        println!("{target:>10} {:>12} executions", done.load(Ordering::Relaxed));
        all += done.load(Ordering::Relaxed);
    }
    println!("{:>10} {all:>12} executions, no failure", "all");
}

#[test]
fn every_target_is_replayed_and_has_its_file() {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz_targets");
    let this_file = include_str!("replay.rs");
    for (name, _) in BODIES {
        assert!(this_file.contains(&format!("replay(\"{name}\", ")), "{name}");
        assert!(targets.join(format!("{name}.rs")).is_file(), "{name}");
    }
    assert_eq!(fs::read_dir(targets).unwrap().count(), BODIES.len());
}

#[test]
fn an_input_that_fails_is_reported_with_its_bytes() {
    let report =
        panic::catch_unwind(|| try_input("some", |_| panic!("wrong"), "input 3", b"a\xff")).unwrap_err();
    assert!(report.downcast_ref::<String>().unwrap().contains("some: input 3 fails; its bytes: b\"a\\xff\""));
}
