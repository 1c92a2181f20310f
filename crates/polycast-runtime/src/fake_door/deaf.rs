//! Multicast that dies in mid-job, and comes back: all ranks leave it before the same call, and return to it before the same.

use std::time::Duration;

use polycast_core::protocol::message::MAX_TO_SUCCESSOR_BYTES;

use super::job::{Broadcast, Job, Outcome, Step};
use super::network::Weather;
use super::process::Ended;
use super::random::{Random, with_seeds};
use super::stage::Delays;

/// Longer than until multicast is tried again for the first time.
const LONG: Duration = Duration::from_secs(35);

fn call(ranks: usize, root: u32, bytes: usize) -> Step {
    Step::Broadcast(Broadcast { communicator: 0, root, bytes: vec![bytes; ranks] })
}

/// Whether the table's choice is served, or left to stock, on all ranks alike; all data is right.
fn served(outcome: &Outcome, job: &Job) -> Vec<bool> {
    let ways = |calls: &[Ended]| calls.iter().map(|ended| ended.is_served).collect::<Vec<_>>();
    for (rank, told) in outcome.ranks.iter().enumerate() {
        assert!(told.calls.iter().all(Ended::is_right), "rank {rank}: {told:?} of {job:?}");
        assert_eq!(ways(&told.calls), ways(&outcome.ranks[0].calls), "rank {rank} of {job:?}");
    }
    assert_eq!((outcome.memberships, outcome.unreceived), (0, 0), "{job:?}");
    ways(&outcome.ranks[0].calls)
}

/// Multicast is blocked for a while after the first calls.
fn blocked_job(hosts: &[u32], form: &str, root: u32) -> Job {
    let ranks = hosts.len();
    // First all come together: a push goes on without those behind it.
    let pause = || {
        let all = (0..ranks as u32).map(|process| Step::Pause { process, time: LONG });
        [Step::Make { members: (0..ranks as u32).collect() }].into_iter().chain(all)
    };
    let calls = |count| (0..count).map(|_| call(ranks, root, 8192));
    let weather = Weather { blocked: LONG / 2..LONG + LONG / 2, ..Weather::FINE };
    let mut job = Job::new(ranks as u32, 1, form, &[]).on_hosts(hosts, weather);
    // So that nobody waits for a receive while another one pauses.
    job.conditions.eager_bytes = MAX_TO_SUCCESSOR_BYTES;
    job.program.pop();
    job.program.extend(calls(5));
    job.program.extend(pause());
    job.program.extend(calls(30));
    job.program.extend(pause());
    job.program.extend(calls(40));
    job.program.push(Step::Free { communicator: 0 });
    job
}

#[test]
fn multicast_that_dies_is_left_within_ten_calls_and_comes_back() {
    for (hosts, root) in [(&[0, 1, 2][..], 0), (&[0, 1, 2, 0, 1, 2], 0), (&[0, 0, 1, 1, 2, 2, 2], 2)] {
        // The root of a push runs ahead of those who have to tell it, as far as chance lets it.
        for form in ["multicast-pull", "multicast-pull:sync=none,parity"] {
            let job = blocked_job(hosts, form, root);
            let outcome = job.run();
            let served = served(&outcome, &job);
            let (before, rest) = served.split_at(5);
            let (dead, again) = rest.split_at(30);
            let left = dead.iter().position(|is_served| !is_served);
            assert!(before.iter().all(|is_served| *is_served), "{served:?}");
            assert!(left.is_some_and(|left| left < 10), "{form}, {hosts:?}: {served:?}");
            assert!(!dead[left.unwrap_or(0)..].contains(&true), "{served:?}");
            // Looked at 16 calls after it was left, then after 32 more.
            let back = again.iter().position(|is_served| *is_served);
            assert!(back.is_some_and(|back| back < 32 && !again[back..].contains(&false)), "{served:?}");
            let warnings: Vec<usize> =
                outcome.ranks.iter().map(|told| told.said.matches("multicast has died").count()).collect();
            assert_eq!((warnings[0], warnings[1..].iter().sum::<usize>()), (1, 0), "one warning, by rank 0");
        }
    }
}

/// A push goes on without those behind it, but not far: it is left, too, and the ranks come back.
#[test]
fn a_push_that_dies_is_left_soon_and_comes_back() {
    for (hosts, root) in [(&[0, 1][..], 0), (&[0, 1, 2, 3, 4, 5], 0), (&[0, 0, 1, 1, 2, 2, 2], 2)] {
        for form in ["multicast-push", "multicast-push:sync=random", "multicast-push:parity"] {
            let job = blocked_job(hosts, form, root);
            let served = served(&job.run(), &job);
            let (dead, again) = served[5..].split_at(30);
            let left = dead.iter().position(|is_served| !is_served);
            assert!(left.is_some_and(|left| left < 20), "{form}, {hosts:?}: {served:?}");
            assert!(!dead[left.unwrap_or(0)..].contains(&true), "{served:?}");
            assert!(again.contains(&true), "{form}, {hosts:?}: {served:?}");
        }
    }
}

/// Whose root is so far ahead that nobody has room for what it sends: that is heard all the same.
#[test]
fn a_root_far_ahead_is_not_taken_for_dead() {
    with_seeds(6, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(2, 5) as usize;
        let form = random.one_of(&["multicast-push", "multicast-push:sync=none", "multicast-push:parity"]);
        let hosts: Vec<u32> = (0..ranks as u32).collect();
        let mut job = Job::new(ranks as u32, seed, form, &[]).on_hosts(&hosts, Weather::FINE);
        job.conditions.eager_bytes = MAX_TO_SUCCESSOR_BYTES;
        job.conditions.delays =
            Delays { one_in: random.one_of(&[0, 20, 300]), most: Duration::from_micros(2000) };
        job.program.pop();
        let late = 1 + random.below(ranks as u64 - 1) as u32;
        for _ in 0..150 {
            job.program.push(call(ranks, 0, random.one_of(&[8192, 16_000])));
            if random.one_in(40) {
                job.program.push(Step::Pause { process: late, time: Duration::from_millis(5) });
            }
        }
        job.program.push(Step::Free { communicator: 0 });
        let served = served(&job.run(), &job);
        assert!(!served.contains(&false), "{form}: {served:?}");
    });
}

/// Switches without a querier forget members after 260 s. Each tells them before.
#[test]
fn memberships_are_renewed_before_switches_forget_them() {
    let ranks = 3;
    for form in ["multicast-pull", "multicast-push"] {
        let weather = Weather { forgotten_after: Duration::from_secs(260), ..Weather::FINE };
        let mut job = Job::new(ranks as u32, 1, form, &[]).on_hosts(&[0, 1, 2], weather);
        job.conditions.eager_bytes = MAX_TO_SUCCESSOR_BYTES;
        job.program.pop();
        for _ in 0..30 {
            job.program.push(call(ranks, 0, 8192));
            let all = (0..ranks as u32).map(|process| Step::Pause { process, time: LONG });
            job.program.extend(all);
        }
        job.program.push(Step::Free { communicator: 0 });
        let served = served(&job.run(), &job);
        assert!(!served.contains(&false), "{form}: {served:?}");
    }
}

/// On one of whose nodes the root rank does not lead: it learns of deaf nodes from what its leader sends it in other broadcasts.
#[test]
fn ranks_that_lead_no_node_learn_of_it_too() {
    let mut job = blocked_job(&[0, 1, 2, 0, 1, 2], "multicast-pull", 4);
    let mut nth = 0;
    for step in &mut job.program {
        if let Step::Broadcast(call) = step {
            (call.root, nth) = ([4, 3][nth % 2], nth + 1);
        }
    }
    let served = served(&job.run(), &job);
    assert!(!served[17..35].contains(&true), "{served:?}");
}

/// It hears nothing in its own broadcasts but its leader's word in every fourth.
#[test]
fn a_rank_that_leads_no_node_and_is_always_the_root_learns_of_it_too() {
    with_seeds(6, |seed| {
        let random = &mut Random::new(seed);
        let (hosts, roots) = random.one_of(&[
            (&[0, 0, 1, 2][..], &[1][..]),
            (&[0, 0, 1, 1, 2, 2, 2], &[6]),
            (&[0, 1, 2, 0, 1, 2, 0], &[3]),
            (&[0, 1, 1, 1, 2], &[2, 3]),
        ]);
        let (form, most) = random.one_of(&[
            ("multicast-pull", 14),
            ("multicast-pull:sync=none,parity", 14),
            ("multicast-push", 24),
            ("multicast-push:sync=random", 24),
        ]);
        let mut job = blocked_job(hosts, form, roots[0]);
        job.seed = seed;
        job.conditions.delays = Delays { one_in: random.one_of(&[0, 50]), most: Duration::from_micros(500) };
        let mut turns = roots.iter().cycle();
        for step in &mut job.program {
            if let Step::Broadcast(call) = step {
                call.root = *turns.next().unwrap_or(&0);
            }
        }
        let served = served(&job.run(), &job);
        let (dead, again) = served[5..].split_at(30);
        let left = dead.iter().position(|is_served| !is_served);
        assert!(left.is_some_and(|left| left < most), "{form}, {hosts:?}: {served:?}");
        assert!(!dead[left.unwrap_or(0)..].contains(&true), "{served:?}");
        assert!(again.contains(&true), "it comes back: {served:?}");
    });
}

/// Communicators that come later, and those that share the group, need not find it out for themselves.
#[test]
fn a_group_that_has_died_is_not_used_by_others() {
    let mut job = blocked_job(&[0, 1, 2], "multicast-pull", 0);
    let make = || Step::Make { members: vec![0, 1, 2] };
    let on = |communicator| Step::Broadcast(Broadcast { communicator, root: 0, bytes: vec![8192; 3] });
    // One is there from the beginning; and one is made when the group is known to have died.
    job.program.truncate(6 + 4 + 12);
    job.program.splice(1..1, [make(), on(1)]);
    job.program.extend((0..8).map(|_| on(1)));
    job.program.extend([make(), on(3)]);
    let served = served(&job.run(), &job);
    let (of_first, of_others) = served.split_at(1 + 5 + 12);
    let left = of_first.iter().position(|is_served| !is_served);
    assert!(left.is_some(), "{served:?}");
    let others: Vec<bool> = of_others[..8].to_vec();
    assert!(others.iter().filter(|is_served| **is_served).count() < 8, "{served:?}");
    assert!(!of_others[8], "{served:?}");
}

/// Whatever is lost where, and whenever it is blocked and opened, ranks decide alike.
#[test]
fn ranks_never_leave_or_return_differently() {
    with_seeds(10, |seed| {
        let random = &mut Random::new(seed);
        let hosts: Vec<u32> = {
            let count = random.within(2, 5);
            let mut hosts: Vec<u32> = (0..count as u32).collect();
            hosts.extend((0..random.below(4)).map(|_| random.below(count) as u32));
            random.shuffle(&mut hosts);
            hosts
        };
        let ranks = hosts.len() as u64;
        let form = random.one_of(&["multicast-pull", "multicast-push", "multicast-pull:sync=none,parity"]);
        let mut weather = Weather {
            lost: random.one_of(&[0, 0, 10, 500, 900]),
            latest: Duration::from_micros(random.one_of(&[0, 50, 3000])),
            mtu_bytes: random.one_of(&[1500, 9000]) as u32,
            ..Weather::FINE
        };
        let moment = |random: &mut Random| {
            let [unit, most] = random.one_of(&[[1, 40], [100, 50], [1000, 80]]);
            Duration::from_micros(unit * random.below(most) * 1000)
        };
        let from = moment(random);
        let range = from..from + moment(random);
        match random.below(3) {
            0 => weather.deaf = Some((random.below(ranks) as u32, range)),
            _ => weather.blocked = range,
        }
        let mut job = Job::new(ranks as u32, seed, form, &[]).on_hosts(&hosts, weather);
        job.conditions.processors = random.one_of(&[1, 64]);
        job.conditions.delays =
            Delays { one_in: random.one_of(&[0, 20, 300]), most: Duration::from_micros(2000) };
        job.program.pop();
        let first_root = random.below(ranks) as u32;
        let changes_roots = random.one_in(2);
        for _ in 0..random.within(10, 60) {
            let root = if changes_roots { random.below(ranks) as u32 } else { first_root };
            job.program.push(call(ranks as usize, root, random.one_of(&[1, 1400, 9000])));
            match random.below(16) {
                0 => {
                    let time = moment(random);
                    let all = (0..ranks as u32).map(|process| Step::Pause { process, time });
                    job.program.extend(all);
                }
                1 => {
                    let time = Duration::from_millis(random.below(40));
                    job.program.push(Step::Pause { process: random.below(ranks) as u32, time });
                }
                _ => {}
            }
        }
        job.program.push(Step::Free { communicator: 0 });
        served(&job.run(), &job);
    });
}

/// Of its life before something may still lie there, of a broadcast whose number comes again: it is no word about that one.
#[test]
fn what_was_said_before_multicast_died_is_not_taken_for_what_is_said_after_it_came_back() {
    with_seeds(10, |seed| {
        let random = &mut Random::new(seed);
        let form = random.one_of(&["multicast-pull", "multicast-pull:sync=none", "multicast-push"]);
        let weather = Weather { deaf: Some((1, LONG / 2..LONG + LONG / 2)), ..Weather::FINE };
        let mut job = Job::new(3, seed, form, &[]).on_hosts(&[0, 1, 2], weather);
        job.conditions.eager_bytes = MAX_TO_SUCCESSOR_BYTES;
        job.conditions.delays = Delays { one_in: 20, most: Duration::from_millis(2) };
        job.program.pop();
        // Lengths go by other turns than the numbers of operations do before and after.
        let lengths = [64 << 10, 1400, 9000, 20_000, 120];
        let mut calls = 0;
        let mut go_on = |job: &mut Job, count: usize| {
            for _ in 0..count {
                calls += 1;
                job.program.push(Step::Pause { process: 2, time: Duration::from_millis(5) });
                job.program.push(call(3, 0, lengths[calls % lengths.len()]));
            }
        };
        let pause = |job: &mut Job| {
            job.program.push(Step::Make { members: (0..3).collect() });
            job.program.extend((0..3).map(|process| Step::Pause { process, time: LONG }));
        };
        go_on(&mut job, 61);
        pause(&mut job);
        go_on(&mut job, 31);
        pause(&mut job);
        go_on(&mut job, 143);
        job.program.push(Step::Free { communicator: 0 });
        let served = served(&job.run(), &job);
        assert!(served[92..].contains(&true), "it comes back: {served:?}");
    });
}

/// Communicators that share a group find out one after the other that it has died; that counts as one refusal, and harms no group that came after it.
#[test]
fn a_group_that_has_died_is_refused_once() {
    let make = || Step::Make { members: vec![0, 1, 2] };
    let on = |communicator| Step::Broadcast(Broadcast { communicator, root: 0, bytes: vec![8192; 3] });
    let rest = || (0..3).map(|process| Step::Pause { process, time: LONG });
    let calls = |communicator: usize, count: usize| (0..count).map(move |_| on(communicator));
    let job = |program: Vec<Step>| {
        let weather = Weather { blocked: LONG / 2..LONG + LONG / 2, ..Weather::FINE };
        let mut job = Job::new(3, 1, "multicast-pull", &[]).on_hosts(&[0, 1, 2], weather);
        job.conditions.eager_bytes = MAX_TO_SUCCESSOR_BYTES;
        job.program.pop();
        job.program.extend(program);
        job
    };
    // Three that find out while it is blocked.
    let mut program: Vec<Step> = [make(), make(), on(1), on(2)].to_vec();
    program.extend(calls(0, 5).chain(rest()).chain(calls(0, 12)).chain(calls(1, 12)).chain(calls(2, 12)));
    program.extend(rest().chain(calls(0, 60)));
    program.extend((0..3).map(|communicator| Step::Free { communicator }));
    let all = job(program);
    let of_first = served(&all.run(), &all)[43..].to_vec();
    assert!(of_first.contains(&true), "it is tried again after 30 s: {of_first:?}");

    // One that finds out when the first is back.
    let mut program: Vec<Step> = [make(), on(1)].to_vec();
    program.extend(calls(0, 5).chain(rest()).chain(calls(0, 12)).chain(rest()).chain(calls(0, 60)));
    program.extend(calls(1, 40).chain([make(), on(2)]));
    program.extend((0..3).map(|communicator| Step::Free { communicator }));
    let all = job(program);
    let served = served(&all.run(), &all);
    assert!(served[77], "the first is back: {served:?}");
    assert!(served[78..118].contains(&true), "the second takes the new group: {served:?}");
    assert!(served[118], "so does a third: {served:?}");
}
