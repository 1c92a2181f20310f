//! Jobs of hundreds to thousands of nodes: what it takes each of them to attach, to ask the network, to set up multicast and to leave it
//! grows with the logarithm of their number or not at all; where it must grow with their number, by how much is bounded here.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use polycast_core::units::Rate;

use super::job::{Job, Outcome, Step};
use super::network::Weather;
use super::process::Ended;
use super::stage::Turns;

/// Messages that any rank sends and gets, from the beginning to the end, with four broadcasts: those that measure the network are most of them.
const MOST_MESSAGES: u32 = 64;
/// What a rank keeps for each node of its job, beside what each test allows.
const MOST_BYTES_PER_NODE: u64 = 120;
/// The first broadcast with all that it sets up, by itself and for each node: its turn in the probe, twice.
const LONGEST: Duration = Duration::from_millis(25);
const LONGEST_PER_NODE: Duration = Duration::from_micros(10);
/// A set-up that fails: all rounds of the probe and what lies between them, beside that.
const ROUNDS: Duration = Duration::from_millis(730);

/// A rank on each node. Small datagrams, for each node opens those of all.
fn job(nodes: u32, algorithm: &str, calls: &[(u32, usize)], weather: Weather) -> Job {
    let hosts: Vec<u32> = (0..nodes).collect();
    let weather = Weather { mtu_bytes: 300, ..weather };
    let mut job = Job::new(nodes, 1, algorithm, calls).on_hosts(&hosts, weather);
    job.conditions.turns = Turns { others_one_in: 100, wake_up: Duration::from_millis(1) };
    job.conditions.message_rate = Rate::from_bits_per_second(1_000_000_000);
    job
}

/// Of all ranks, when the last of them had returned from this call.
fn returned(outcome: &Outcome, call: usize) -> Duration {
    outcome.ranks.iter().map(|told| told.returned[call]).max().expect("ranks")
}

fn ways(outcome: &Outcome) -> Vec<String> {
    outcome.ranks[0].choices.iter().map(ToString::to_string).collect()
}

/// All is right, of bounded size, and nothing is left of it. `probes`: datagrams that a node that is no root may send;
/// `bytes`: what it may keep, whatever the number of nodes.
fn assert_bounded(outcome: &Outcome, messages: u32, probes: u64, bytes: u64) {
    let nodes = outcome.ranks.len() as u64;
    let of_others = outcome.datagrams_of.iter().filter(|(rank, _)| **rank != 0).map(|(_, sent)| *sent);
    let of_others = of_others.max().unwrap_or(0);
    // Who comes first makes what is the same for all of this process.
    let mut memory: Vec<u64> = outcome.ranks.iter().map(|told| told.memory).collect();
    memory.sort_unstable();
    let memory = memory[memory.len() * 9 / 10];
    // What docs/simulation.md has.
    println!(
        "{nodes} nodes: {} messages of a rank at most, {:.1} on average; {} datagrams, {of_others} of another than the root; \
         {:.1} ms until the first broadcast has ended; {} KiB on a rank",
        outcome.most_messages,
        f64::from(2 * outcome.messages) / nodes as f64,
        outcome.datagrams,
        returned(outcome, 0).as_secs_f64() * 1e3,
        memory >> 10
    );
    assert!(outcome.most_messages <= messages, "{} messages of one rank", outcome.most_messages);
    assert!(of_others <= probes, "{of_others} datagrams of one node");
    assert!(memory <= bytes + MOST_BYTES_PER_NODE * nodes, "{memory} bytes on one rank");
    for told in &outcome.ranks {
        assert!(told.calls.iter().all(Ended::is_right));
        assert!(told.choices == outcome.ranks[0].choices, "all ranks choose alike");
        assert_eq!((told.attached, told.outstanding_receives), (1, 0));
    }
    assert_eq!((outcome.memberships, outcome.unreceived), (0, 0), "something is left");
}

fn set_up(nodes: u32) {
    let outcome = job(nodes, "multicast-pull", &[(0, 20_000); 4], Weather::FINE).run();
    // One probe, and another if a broadcast's last word seems to be stuck.
    assert_bounded(&outcome, MOST_MESSAGES, 2, 165 << 10);
    assert!(ways(&outcome).iter().all(|way| way == "multicast-pull"), "{:?}", ways(&outcome));
    assert!(returned(&outcome, 0) <= LONGEST + nodes * LONGEST_PER_NODE, "{:?}", returned(&outcome, 0));
}

/// One node hears nothing for a while: nobody uses multicast until it is tried again.
fn fails_first(nodes: u32) {
    let deaf = Some((nodes / 2, Duration::ZERO..Duration::from_secs(20)));
    let mut job = job(nodes, "multicast-pull", &[(0, 2000); 20], Weather { deaf, ..Weather::FINE });
    job.program.insert(2, Step::Pause { process: 0, time: Duration::from_secs(31) });
    let outcome = job.run();
    // One probe, twice two in the next rounds, and one more in the second try.
    assert_bounded(&outcome, MOST_MESSAGES, 7, 450 << 10);
    let first = ways(&outcome).iter().position(|way| way == "multicast-pull");
    assert_eq!(first, Some(16), "{:?}", ways(&outcome));
    let most = LONGEST + ROUNDS + 5 * nodes * LONGEST_PER_NODE;
    assert!(returned(&outcome, 0) <= most, "{:?}", returned(&outcome, 0));
}

/// By the shipped table, with trials: the MPI, which takes no time here, is found to be faster by all.
fn by_table(nodes: u32) {
    let job = job(nodes, "", &[(0, 8192); 60], Weather::FINE).with(None, "POLYCAST_TRIALS", "on");
    let outcome = job.run();
    // Buffers of each way stay.
    assert_bounded(&outcome, MOST_MESSAGES + 16, 2, 5 << 20);
    let ways = ways(&outcome);
    assert!(ways[..40].iter().any(|way| way == "multicast-push:parity"), "{ways:?}");
    assert!(ways[40..].iter().all(|way| way == "stock"), "{ways:?}");
}

#[test]
fn multicast_is_set_up_among_300_nodes() {
    set_up(300);
}

#[test]
fn a_set_up_that_fails_among_300_nodes_is_tried_again() {
    fails_first(300);
}

#[test]
fn ways_are_compared_among_300_nodes() {
    by_table(300);
}

#[test]
#[ignore = "make test-all: half a minute"]
fn multicast_is_set_up_among_1024_nodes() {
    set_up(1024);
}

#[test]
#[ignore = "make test-all: half a minute"]
fn ways_are_compared_among_1024_nodes() {
    by_table(1024);
}

#[test]
#[ignore = "make test-all: half a minute"]
fn a_set_up_that_fails_among_1024_nodes_is_tried_again() {
    fails_first(1024);
}

/// One after the other, and only where there is room for it.
fn set_up_in(gigabytes: u64, nodes: u32) {
    static LARGE: Mutex<()> = Mutex::new(());
    let _alone = LARGE.lock().unwrap_or_else(PoisonError::into_inner);
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available =
        memory.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.split_whitespace().next());
    let kibibytes = available.and_then(|kibibytes| kibibytes.parse::<u64>().ok());
    if kibibytes.is_some_and(|kibibytes| kibibytes >> 20 < gigabytes) {
        println!("{nodes} nodes: left out, for they take {gigabytes} GB of memory");
        return;
    }
    set_up(nodes);
}

#[test]
#[ignore = "make test-all: a minute, and 2 GB of memory"]
fn multicast_is_set_up_among_2048_nodes() {
    set_up_in(2, 2048);
}

#[test]
#[ignore = "make test-all: minutes, and 4 GB of memory"]
fn multicast_is_set_up_among_4096_nodes() {
    set_up_in(4, 4096);
}

#[test]
#[ignore = "make test-all: minutes, and 14 GB of memory"]
fn multicast_is_set_up_among_8192_nodes() {
    set_up_in(14, 8192);
}
