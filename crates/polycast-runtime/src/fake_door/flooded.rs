//! Strangers flood the group from before it is set up until after its last broadcast: nobody is stuck, and nobody waits for long.

use std::time::Duration;

use super::flood::Flood;
use super::job::{Job, Outcome, Step};
use super::network::Weather;
use super::process::Ended;
use super::random::{Random, with_seeds};
use super::stage::Turns;

/// All rounds of a probe that fails, and what lies between them.
const ROUNDS: Duration = Duration::from_millis(735);
const CALLS: [(u32, usize); 12] = [(0, 8192); 12];

fn job(nodes: u32, seed: u64, flood: Flood) -> Job {
    let hosts: Vec<u32> = (0..nodes).collect();
    let weather = Weather { flood: Some(flood), receive_buffer_bytes: 200 << 10, ..Weather::FINE };
    let mut job = Job::new(nodes, seed, "multicast-pull", &CALLS).on_hosts(&hosts, weather);
    job.conditions.turns = Turns { others_one_in: 20, ..Turns::default() };
    for _ in 0..2 {
        job.program.insert(6, Step::Pause { process: nodes - 1, time: Duration::from_millis(20) });
    }
    job
}

fn assert_right(outcome: &Outcome) {
    for told in &outcome.ranks {
        assert!(told.calls.iter().all(Ended::is_right) && told.choices == outcome.ranks[0].choices);
    }
    assert_eq!((outcome.memberships, outcome.unreceived), (0, 0), "something is left");
}

/// Of all ranks, until the first broadcast has ended.
fn set_up(outcome: &Outcome) -> Duration {
    outcome.ranks.iter().map(|told| told.returned[0]).max().expect("ranks")
}

fn flood(every: Duration, is_filtered: bool) -> Flood {
    Flood { when: Duration::ZERO..Duration::from_secs(60), every, is_filtered }
}

/// More than anybody can read, and the kernel drops none: set-up ends when its time is over, and trees serve.
#[test]
fn a_flood_faster_than_anybody_reads_does_not_keep_set_up_from_ending() {
    for nodes in [4, 8] {
        let outcome = job(nodes, 1, flood(Duration::from_nanos(100), false)).run();
        assert_right(&outcome);
        assert!(set_up(&outcome) < ROUNDS + Duration::from_millis(50), "{:?}", set_up(&outcome));
        assert!(outcome.ranks[0].calls.iter().all(|ended| !ended.is_served), "nobody was heard");
    }
}

/// The same where the kernel drops them: multicast serves as if there were no flood.
#[test]
fn a_flood_that_the_kernel_drops_does_not_keep_set_up_from_multicast() {
    let outcome = job(6, 1, flood(Duration::from_nanos(100), true)).run();
    assert_right(&outcome);
    assert!(outcome.ranks[0].calls.iter().all(|ended| *ended == Ended::SERVED_WELL));
    // Its first round may fall into what had come before the kernel was asked.
    assert!(set_up(&outcome) < Duration::from_millis(100), "{:?}", set_up(&outcome));
}

/// At any speed, from whenever until whenever.
#[test]
fn a_flood_of_any_speed_keeps_nobody() {
    with_seeds(10, |seed| {
        let random = &mut Random::new(seed);
        let every = Duration::from_nanos(random.one_of(&[100, 1000, 3000, 30_000]));
        let begin = Duration::from_micros(random.one_of(&[0, 0, 10_000, 20_000, 60_000]));
        let end = begin + Duration::from_millis(random.one_of(&[5, 100, 60_000]));
        let flood = Flood { when: begin..end, every, is_filtered: random.one_in(2) };
        let outcome = job(random.within(4, 8) as u32, seed, flood).run();
        assert_right(&outcome);
        assert!(outcome.took < 2 * ROUNDS, "{:?}", outcome.took);
    });
}
