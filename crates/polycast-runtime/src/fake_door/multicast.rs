//! Multicast in a job: set up, lost, late, doubled and damaged datagrams, ranks that are late, sizes that differ; and what becomes of a
//! job where it does not work.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;

use polycast_core::protocol::message::MAX_TO_SUCCESSOR_BYTES;

use super::conditions::Stalled;
use super::job::{Broadcast, Job, Outcome, Step};
use super::network::Weather;
use super::process::Ended;
use super::random::{Random, with_seeds};
use super::stage::Delays;
use crate::operation::RELAYED_PARTS;

const ERROR_SIZE: i32 = -2;
const FORMS: [&str; 2] = ["multicast-pull", "multicast-push"];

/// Each host has one rank, or some; the ranks of a host need not follow each other.
fn hosts(random: &mut Random) -> Vec<u32> {
    let count = random.within(2, 6);
    let mut hosts: Vec<u32> = (0..count as u32).collect();
    let more = random.below(6);
    hosts.extend((0..more).map(|_| random.below(count) as u32));
    random.shuffle(&mut hosts);
    hosts
}

fn weather(random: &mut Random) -> Weather {
    let mut some = |most: &[u64]| random.one_of(most);
    Weather {
        lost: some(&[0, 0, 10, 300]),
        doubled: some(&[0, 0, 100]),
        damaged: some(&[0, 0, 30]),
        latest: Duration::from_micros(some(&[0, 0, 50, 3000])),
        full: some(&[0, 0, 100]),
        failing: some(&[0, 0, 0, 20]),
        receive_buffer_bytes: some(&[1 << 20, 1 << 20, 8 << 10]) as usize,
        mtu_bytes: some(&[1500, 9000, 300]) as u32,
        ..Weather::FINE
    }
}

fn delays(random: &mut Random) -> Delays {
    let most = Duration::from_micros(random.one_of(&[50, 2000, 20_000]));
    Delays { one_in: random.one_of(&[0, 0, 20, 300]), most }
}

fn calls(random: &mut Random, ranks: u64, count: u64) -> Vec<(u32, usize)> {
    let call = |random: &mut Random| {
        let most = random.one_of(&[1, 1500, 20_000, 120_000]);
        (random.below(ranks) as u32, random.within(1, most) as usize)
    };
    (0..count).map(|_| call(random)).collect()
}

/// A job on some hosts, whatever the weather.
fn job(random: &mut Random, seed: u64) -> Job {
    let hosts = hosts(random);
    let ranks = hosts.len();
    let calls = calls(random, ranks as u64, 5);
    let form = random.one_of(&FORMS);
    let mut job = Job::new(ranks as u32, seed, form, &calls).on_hosts(&hosts, weather(random));
    job.conditions.eager_bytes = random.one_of(&[64, 4 << 10, MAX_TO_SUCCESSOR_BYTES]);
    job.conditions.delays = delays(random);
    job.conditions.processors = random.one_of(&[1, 64]);
    job
}

/// All is right, all ranks went the same way, and nothing is left of it.
fn assert_right(outcome: &Outcome, job: &Job) {
    for (rank, told) in outcome.ranks.iter().enumerate() {
        let context = format!("rank {rank}: {told:?} of {job:?}");
        assert!(told.calls.iter().all(Ended::is_right), "{context}");
        let ways = |calls: &[Ended]| calls.iter().map(|ended| ended.is_served).collect::<Vec<_>>();
        assert_eq!(ways(&told.calls), ways(&outcome.ranks[0].calls), "{context}");
    }
    assert_eq!(outcome.memberships, 0, "{job:?}");
    assert_eq!(outcome.unreceived, 0, "{job:?}");
}

#[test]
fn all_ranks_get_what_the_root_has_whatever_the_weather() {
    with_seeds(60, |seed| {
        let job = job(&mut Random::new(seed), seed);
        let outcome = job.run();
        assert_right(&outcome, &job);
    });
}

#[test]
fn in_fine_weather_multicast_carries_the_data() {
    with_seeds(20, |seed| {
        let random = &mut Random::new(seed);
        let mut job = job(random, seed);
        job.conditions.weather = Weather { mtu_bytes: job.conditions.weather.mtu_bytes, ..Weather::FINE };
        let outcome = job.run();
        assert_right(&outcome, &job);
        let payload = job.conditions.weather.mtu_bytes as usize;
        let sizes = job.program.iter().filter_map(|step| match step {
            Step::Broadcast(call) => Some(call.bytes[0]),
            _ => None,
        });
        let least: usize = sizes.map(|bytes| bytes / payload).sum();
        assert!(outcome.datagrams as usize >= least, "{} datagrams of {job:?}", outcome.datagrams);
    });
}

#[test]
fn a_host_that_hears_nothing_leaves_all_to_trees() {
    with_seeds(20, |seed| {
        let random = &mut Random::new(seed);
        let mut job = job(random, seed);
        let deaf = random.below(u64::from(job.ranks())) as u32;
        // Who hears must be the host's leader.
        let leader =
            job.conditions.hosts.iter().position(|host| *host == job.conditions.hosts[deaf as usize]);
        let since = Duration::from_millis(random.one_of(&[0, 0, 15, 40]));
        job.conditions.weather.deaf = leader.map(|leader| (leader as u32, since..Duration::MAX));
        let outcome = job.run();
        assert_right(&outcome, &job);
    });
}

/// One host hears nothing: each further set of nodes that it is in finds that out without a probe, and those without it have multicast.
#[test]
fn a_host_outside_refuses_in_every_set() {
    let weather = Weather { deaf: Some((3, Duration::ZERO..Duration::MAX)), ..Weather::FINE };
    let sets: [&[u32]; 5] = [&[0, 1, 3], &[1, 2, 3], &[0, 3], &[0, 2, 3], &[0, 1, 2]];
    let of_first = datagrams_over(&[], &weather);
    assert_eq!(datagrams_over(&sets[..4], &weather), of_first, "no further probes");
    assert!(datagrams_over(&sets, &weather) > of_first + 9000 / 1440, "multicast serves the others");
}

/// As in clouds.
#[test]
fn a_network_without_multicast_is_probed_once() {
    let weather = Weather { blocked: Duration::ZERO..Duration::MAX, ..Weather::FINE };
    let sets: [&[u32]; 3] = [&[0, 1, 3], &[1, 2, 3], &[0, 3]];
    assert_eq!(datagrams_over(&sets, &weather), datagrams_over(&[], &weather));
}

/// Broadcasts of 9000 bytes on 4 hosts, and then on these sets of them.
fn datagrams_over(sets: &[&[u32]], weather: &Weather) -> u64 {
    let mut job = Job::new(4, 1, "multicast-pull", &[]).on_hosts(&[0, 1, 2, 3], weather.clone());
    job.program.truncate(1);
    job.program.push(Step::Broadcast(Broadcast { communicator: 0, root: 0, bytes: vec![9000; 4] }));
    for (communicator, members) in (1..).zip(sets) {
        let bytes = vec![9000; members.len()];
        job.program.push(Step::Make { members: members.to_vec() });
        job.program.push(Step::Broadcast(Broadcast { communicator, root: 0, bytes }));
    }
    let all = 0..=sets.len();
    job.program.extend(all.map(|communicator| Step::Free { communicator }));
    let outcome = job.run();
    assert_eq!((outcome.memberships, outcome.unreceived), (0, 0));
    outcome.datagrams
}

/// A switch that has not heard of a member sends it nothing. Whoever hears nobody says once more that it is one.
#[test]
fn a_lost_report_of_a_membership_costs_a_round() {
    for rank in 0..3 {
        let weather = Weather { lost_report: Some(rank), ..Weather::FINE };
        let mut job = Job::new(3, 1, "multicast-pull", &[]).on_hosts(&[0, 1, 2], weather);
        job.program.truncate(1);
        job.program.push(Step::Broadcast(Broadcast { communicator: 0, root: 0, bytes: vec![90_000; 3] }));
        job.program.push(Step::Free { communicator: 0 });
        let outcome = job.run();
        assert_right(&outcome, &job);
        assert!(outcome.datagrams >= 90_000 / 1440, "rank {rank}: {} datagrams", outcome.datagrams);
    }
}

#[test]
fn where_no_socket_or_interface_is_to_be_had_trees_serve() {
    with_seeds(20, |seed| {
        let random = &mut Random::new(seed);
        let mut job = job(random, seed);
        let rank = Some(random.below(u64::from(job.ranks())) as u32);
        match random.below(4) {
            0 => job.conditions.weather.no_socket = rank,
            1 => job.conditions.weather.no_interface = rank,
            2 => job = job.with(rank, "POLYCAST_MULTICAST", "off"),
            _ => job = job.with(rank, "POLYCAST_MULTICAST", "perhaps"),
        }
        let outcome = job.run();
        assert_right(&outcome, &job);
    });
}

/// Whoever has a device, whether or not anything arrives over it: all go the same way, and multicast serves.
#[test]
fn nodes_agree_on_verbs_or_ip() {
    with_seeds(30, |seed| {
        let random = &mut Random::new(seed);
        let hosts: Vec<u32> = (0..random.within(2, 6) as u32).collect();
        let ranks = hosts.len() as u32;
        let ranks_with_verbs = random.one_of(&[0, 1, u64::from(ranks) - 1, u64::from(ranks)]) as u32;
        let is_verbs_silent = random.below(2) == 1;
        let weather = Weather { ranks_with_verbs, is_verbs_silent, ..Weather::FINE };
        let calls = calls(random, ranks.into(), 4);
        let mut job = Job::new(ranks, seed, "multicast-pull", &calls).on_hosts(&hosts, weather);
        job = job.with(None, "POLYCAST_MULTICAST", "verbs");
        let is_ip_missing = random.below(4) == 0;
        if is_ip_missing {
            job.conditions.weather.no_socket = Some(random.below(ranks.into()) as u32);
        }
        let outcome = job.run();
        assert_right(&outcome, &job);
        assert_eq!(outcome.over_verbs > 0, ranks_with_verbs == ranks, "{job:?}");
        let is_served = ranks_with_verbs == ranks && !is_verbs_silent || !is_ip_missing;
        assert!(
            outcome.ranks[0].choices.iter().all(|choice| choice.is_by_multicast() == is_served),
            "{outcome:?} of {job:?}"
        );
    });
}

/// TCP that has lost packets twice: what stands still for 200 ms is repaired by datagrams, and no message is left behind by who has returned on
/// the word of a datagram.
#[test]
fn what_mpi_brings_late_does_not_hold_up_a_broadcast() {
    const BROADCASTS: usize = 6;
    const SINCE: Duration = Duration::from_millis(100);
    with_seeds(3, |seed| {
        let random = &mut Random::new(seed);
        let calls: Vec<_> = (0..=BROADCASTS).map(|_| (random.below(6) as u32, 60_000)).collect();
        let weather = Weather { lost: 30, ..Weather::FINE };
        let mut job = Job::new(6, seed, "multicast-pull", &calls).on_hosts(&[0, 1, 2, 3, 4, 5], weather);
        // Not while ranks find out about their network and set multicast up, for the first one.
        job.program.insert(2, Step::Pause { process: calls[1].0, time: SINCE });
        job.conditions.stalled =
            Some(Stalled { one_in: 10, time: Duration::from_millis(200), since: SINCE, of: None });
        job.conditions.eager_bytes = MAX_TO_SUCCESSOR_BYTES;
        let outcome = job.run();
        assert_right(&outcome, &job);
        let each = (outcome.took - SINCE) / BROADCASTS as u32;
        assert!(each < Duration::from_millis(100), "{each:?}");
        // An MPI that asks the receiver first holds up the sender, too: slow, but right.
        job.conditions.eager_bytes = random.one_of(&[64, 4 << 10]);
        assert_right(&job.run(), &job);
    });
}

/// The receiver that was drawn says that it has called; where MPI sends that only when the root makes a call, too, as it makes connections, it goes
/// on: the root does not wait for it yet.
#[test]
fn a_drawn_receiver_does_not_wait_for_a_root_that_is_elsewhere() {
    const ELSEWHERE: Duration = Duration::from_millis(50);
    with_seeds(6, |seed| {
        let mut job =
            Job::new(4, seed, "multicast-push", &[(0, 1000); 13]).on_hosts(&[0, 1, 2, 3], Weather::FINE);
        for call in 2..14 {
            job.program.insert(2 * call - 2, Step::Pause { process: 0, time: ELSEWHERE });
        }
        job.conditions.eager_bytes = 0;
        let outcome = job.run();
        assert_right(&outcome, &job);
        let returned = |rank: usize, call: usize| outcome.ranks[rank].returned[call];
        for call in 1..13 {
            let last = (1..4).map(|rank| returned(rank, call)).max().expect("three receivers");
            let after = last.saturating_sub(returned(0, call));
            assert!(after < ELSEWHERE / 2, "call {call}: {after:?}, {job:?}");
        }
    });
}

/// A leader stays until its successor has everything; the others of its node have it before.
#[test]
fn ranks_of_a_node_do_not_wait_for_the_next_node() {
    const LATE: Duration = Duration::from_millis(50);
    let mut job = Job::new(6, 1, "multicast-pull:sync=none", &[(0, 100_000); 2])
        .on_hosts(&[0, 0, 1, 1, 2, 2], Weather::FINE);
    job.program.insert(2, Step::Pause { process: 4, time: LATE });
    let outcome = job.run();
    assert_right(&outcome, &job);
    let last = outcome.ranks.iter().map(|told| told.returned[1]);
    let took: Vec<Duration> = last.map(|at| at - outcome.ranks[0].returned[0]).collect();
    assert!(took[2] >= LATE, "{took:?}");
    assert!(took[1] < LATE / 2 && took[3] < LATE / 2, "{took:?}");
}

/// A root that leads no node: its leader multicasts what it has, and waits for the rest.
#[test]
fn what_comes_from_the_root_is_multicast_while_more_comes() {
    let before = RELAYED_PARTS.load(Ordering::Relaxed);
    with_seeds(6, |seed| {
        let random = &mut Random::new(seed);
        let calls: Vec<_> = (0..8).map(|_| (random.one_of(&[1, 2, 4]) as u32, 150_000)).collect();
        let mut job =
            Job::new(6, seed, "multicast-pull", &calls).on_hosts(&[0, 0, 0, 1, 1, 2], weather(random));
        job.conditions.delays = delays(random);
        assert_right(&job.run(), &job);
    });
    assert!(RELAYED_PARTS.load(Ordering::Relaxed) > before);
}

/// More than a switch's port or a socket takes at once: each says once that it is there.
#[test]
fn three_hundred_nodes_find_out_that_multicast_works() {
    let hosts: Vec<u32> = (0..300).collect();
    // What Linux grants by default.
    let weather = Weather { receive_buffer_bytes: 425_984, ..Weather::FINE };
    let job = Job::new(300, 1, "multicast-pull", &[(0, 20_000)]).on_hosts(&hosts, weather);
    let outcome = job.run();
    assert_right(&outcome, &job);
    assert_eq!(outcome.datagrams, 300 + 20_000u64.div_ceil(1440) + 1, "with the end");
}

#[test]
fn a_group_that_somebody_has_is_not_taken() {
    for taken_groups in [1, 2, 3, 20] {
        let weather = Weather { taken_groups, ..Weather::FINE };
        let job = Job::new(3, taken_groups.into(), "multicast-pull", &[(0, 9000), (2, 100)]);
        let job = job.on_hosts(&[0, 1, 2], weather);
        let outcome = job.run();
        assert_right(&outcome, &job);
        assert_eq!(outcome.datagrams > 0, taken_groups < 6, "{outcome:?}");
    }
}

/// Ranks of the same and of other nodes call with another size; also of one that makes one datagram more or less.
fn sizes(random: &mut Random, ranks: usize) -> Vec<usize> {
    let most = random.one_of(&[10, 3000, 60_000]);
    let right = random.within(1, most) as usize;
    let mut sizes = vec![right; ranks];
    for _ in 0..random.within(1, 3) {
        let other = random.one_of(&[1, right + 1, right.div_ceil(2), 2 * right, right + 5000]);
        sizes[random.below(ranks as u64) as usize] = other;
    }
    sizes
}

#[test]
fn ranks_with_different_sizes_return_and_go_on() {
    // Where multicast cannot be had, ranks with different sizes must not find different rules. Forced, it would have the shipped
    // table behind it, so it is the only rule of a table.
    let tables = FORMS.map(|form| {
        let mut table = tempfile::NamedTempFile::new().unwrap();
        write!(table, "version = 1\n[[rule]]\ncollective = \"bcast\"\nuse = \"{form}\"\n").unwrap();
        table
    });
    with_seeds(60, |seed| {
        let random = &mut Random::new(seed);
        let mut job = job(random, seed);
        let table = &tables[random.below(FORMS.len() as u64) as usize];
        job =
            job.with(None, "POLYCAST_BCAST", "").with(None, "POLYCAST_TABLE", table.path().to_str().unwrap());
        let weather = &mut job.conditions.weather;
        // So that multicast serves, as a rule.
        *weather = Weather {
            lost: weather.lost.min(10),
            failing: 0,
            receive_buffer_bytes: 1 << 20,
            ..weather.clone()
        };
        let ranks = job.ranks() as usize;
        let calls = random.within(1, 3) as usize;
        for nth in 0..calls {
            let root = random.below(ranks as u64) as u32;
            let bytes = sizes(random, ranks);
            job.program.insert(1 + nth, Step::Broadcast(Broadcast { communicator: 0, root, bytes }));
        }
        let outcome = job.run();
        // Where the weather left no multicast: what stock does with such a program is another matter.
        if !outcome.ranks[0].calls[0].is_served {
            return;
        }
        for (rank, told) in outcome.ranks.iter().enumerate() {
            let context = format!("rank {rank}: {told:?} of {job:?}");
            let (wrong, right) = told.calls.split_at(calls);
            for (nth, ended) in wrong.iter().enumerate() {
                let Step::Broadcast(call) = &job.program[1 + nth] else { panic!() };
                let lacks_room = call.bytes[rank] < call.bytes[call.root as usize];
                assert_eq!(ended.code, if lacks_room { ERROR_SIZE } else { 0 }, "{context}");
                assert!(ended.code != 0 || ended.has_data || rank == call.root as usize, "{context}");
            }
            assert!(right.len() == 5 && right.iter().all(Ended::is_right), "{context}");
        }
    });
}
