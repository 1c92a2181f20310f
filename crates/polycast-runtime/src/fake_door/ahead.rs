//! Calls that are started and not waited for, on several communicators at a time: no rank waits for another before it has started them all.

use std::ffi::c_void;
use std::io::Write;
use std::ptr::null_mut;

use super::job::{Broadcast, Job, Step};
use super::network::Weather;
use super::process::{Ended, Member, data, wanted};
use super::random::{Random, with_seeds};
use crate::communicator::{Operation, Plan};
use crate::interface::{SERVED, polycast_plan_ahead, polycast_plan_free, polycast_start, polycast_test};

/// In the program's order on each communicator, which all ranks have in common, and in any order of communicators.
fn own_order(calls: &[Broadcast], random: &mut Random) -> Vec<usize> {
    let mut turns: Vec<usize> = calls.iter().map(|call| call.communicator).collect();
    random.shuffle(&mut turns);
    let mut left: Vec<usize> = (0..calls.len()).collect();
    let next = |communicator: usize| {
        let place =
            left.iter().position(|at| calls[*at].communicator == communicator).expect("as many turns");
        left.remove(place)
    };
    turns.into_iter().map(next).collect()
}

/// Of a call, its place among those that are started, and what it was started with.
type Started = (usize, Operation, *mut Plan);

/// Asks one of them, any, whether it has ended.
fn look(
    started: &mut Vec<Started>,
    buffers: &[Vec<u8>],
    ended: &mut [Option<Ended>],
    number: usize,
    random: &mut Random,
) {
    let which = random.below(started.len() as u64) as usize;
    let (at, operation, plan) = &started[which];
    let mut has_ended = 0;
    // SAFETY: polycast_start has filled it, and it is asked no more when it has ended; then its plan is given back.
    unsafe {
        let code = polycast_test(operation, &mut has_ended);
        if has_ended == 0 {
            return;
        }
        polycast_plan_free(*plan);
        let expected = data(number + at, buffers[*at].len());
        ended[*at] = Some(Ended { is_served: true, code, has_data: buffers[*at] == expected });
    }
    started.swap_remove(which);
}

/// In the order of the program. What is left is the MPI's, and none of ours.
pub fn start(
    members: &mut [Option<Member>],
    calls: &[Broadcast],
    number: usize,
    random: &mut Random,
) -> Vec<Ended> {
    let mut buffers: Vec<Vec<u8>> = Vec::new();
    let mut ended = vec![Some(Ended::LEFT); calls.len()];
    let mut started = Vec::new();
    let rank_in = |members: &[Option<Member>], call: &Broadcast| {
        members[call.communicator].as_ref().expect("all ranks are members").rank
    };
    for (at, call) in calls.iter().enumerate() {
        let rank = rank_in(members, call);
        let expected = data(number + at, call.bytes[rank as usize]);
        buffers.push(if rank == call.root { expected } else { vec![0xaa; call.bytes[rank as usize]] });
    }
    for at in own_order(calls, random) {
        let (call, buffer) = (&calls[at], &mut buffers[at]);
        let member = members[call.communicator].as_mut().expect("all ranks are members");
        let place: *mut c_void = buffer.as_mut_ptr().cast();
        let mut plan = null_mut();
        let mut operation = Operation { communicator: null_mut(), key: 0 };
        // SAFETY: the pointer comes from polycast_attach; the buffer has these bytes, and stays until the call has ended.
        unsafe {
            let wanted = wanted(call.root, buffer.len());
            if !member.asks(&wanted, false)
                || polycast_plan_ahead(member.runtime, &wanted, 0, &mut plan) != SERVED
            {
                continue;
            }
            assert_eq!(polycast_start(plan, place, place, &mut operation), 0);
        }
        ended[at] = None;
        started.push((at, operation, plan));
        if random.one_in(2) {
            look(&mut started, &buffers, &mut ended, number, random);
        }
    }
    while !started.is_empty() {
        look(&mut started, &buffers, &mut ended, number, random);
    }
    ended.into_iter().flatten().collect()
}

/// Two communicators of all ranks: calls that are started before their ranks have agreed on anything, a call on each that is waited for, and
/// calls that are started then.
fn job(random: &mut Random, seed: u64, ranks: u32, algorithm: &str) -> (Job, usize) {
    let mut job = Job::new(ranks, seed, algorithm, &[]);
    let free = job.program.pop();
    job.program.push(Step::Make { members: (0..ranks).rev().collect() });
    let mut call = |communicator| {
        let most = random.one_of(&[10, 3000, 60_000]);
        let bytes = random.within(1, most) as usize;
        let root = random.below(ranks.into()) as u32;
        Broadcast { communicator, root, bytes: vec![bytes; ranks as usize] }
    };
    let count = 6;
    let first = (0..count).map(|at| call(at % 2)).collect();
    let (one, other) = (call(0), call(1));
    let then = (0..count).map(|at| call(at % 2)).collect();
    let steps = [Step::Ahead(first), Step::Broadcast(one), Step::Broadcast(other), Step::Ahead(then)];
    job.program.extend(steps);
    job.program.extend(free);
    job.program.push(Step::Free { communicator: 1 });
    (job, count)
}

fn assert_served_once_agreed(job: &Job, count: usize) {
    for (rank, told) in job.run().ranks.iter().enumerate() {
        let (before, after) = told.calls.split_at(count);
        assert!(before.iter().all(|ended| *ended == Ended::LEFT), "rank {rank}: {before:?} of {job:?}");
        assert!(after.iter().all(|ended| *ended == Ended::SERVED_WELL), "rank {rank}: {after:?} of {job:?}");
        assert_eq!(told.calls.len(), 2 * count + 2, "rank {rank} of {job:?}");
    }
}

#[test]
fn nobody_waits_before_all_are_started() {
    with_seeds(60, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(2, 7) as u32;
        let algorithm = random.one_of(&["chain:segment=1KiB", "binary:segment=1KiB,ready", "scatter-ring"]);
        let (job, count) = job(random, seed, ranks, algorithm);
        assert_served_once_agreed(&job, count);
    });
}

/// What a group or shared memory is needed for is started when a call that was waited for has tried it.
#[test]
fn what_is_tried_together_is_not_tried_by_them() {
    with_seeds(60, |seed| {
        let random = &mut Random::new(seed);
        let ranks = 2 * random.within(2, 4) as u32;
        let algorithm = random.one_of(&["multicast-pull", "two-level:between=chain", "cells"]);
        let (job, count) = job(random, seed, ranks, algorithm);
        let per_host = if algorithm == "cells" { ranks } else { 2 };
        let hosts: Vec<u32> = (0..ranks).map(|rank| rank / per_host).collect();
        assert_served_once_agreed(&job.on_hosts(&hosts, Weather::FINE), count);
    });
}

/// A communicator that comes to multicast with its number, for another one has the group, does not know yet what its nodes share. Broadcasts that were
/// begun so would be gone on with later, by ranks that have them, while others begin theirs through memory.
#[test]
fn what_came_with_the_number_waits_for_what_the_nodes_share() {
    let mut table = tempfile::NamedTempFile::new().unwrap();
    table.write_all(b"version = 1\n[[rule]]\ncollective = \"bcast\"\nuse = \"multicast-pull\"\n").unwrap();
    with_seeds(40, |seed| {
        let mut job = Job::new(4, seed, "", &[]).with(None, "POLYCAST_TABLE", table.path().to_str().unwrap());
        job.program.pop();
        let on = |communicator, bytes| Broadcast { communicator, root: 0, bytes: vec![bytes; 4] };
        let length = 20_000;
        job.program.push(Step::Broadcast(on(0, length)));
        job.program.push(Step::Free { communicator: 0 });
        job.program.push(Step::Make { members: (0..4).collect() });
        job.program.extend([length; 2].map(|bytes| Step::Broadcast(on(1, bytes))));
        job.program.push(Step::Ahead(vec![on(1, length)]));
        job.program.push(Step::Broadcast(on(1, length)));
        job.program
            .push(Step::Ahead([30_000, 9_000, 5_000, 60_000, length].map(|bytes| on(1, bytes)).to_vec()));
        job.program.push(Step::Free { communicator: 1 });
        let job = job.on_hosts(&[0, 0, 1, 1], Weather::FINE);
        for (rank, told) in job.run().ranks.iter().enumerate() {
            assert!(told.calls.iter().all(Ended::is_right), "rank {rank}: {:?} of {job:?}", told.calls);
            assert!(told.calls.contains(&Ended::SERVED_WELL), "rank {rank}: {:?} of {job:?}", told.calls);
        }
    });
}

/// Rules about the network decide after the next call that is waited for, even one that none of them is for, as they do in calls that ask
/// themselves. What the ranks find the network to be is up to the machine.
#[test]
fn who_is_started_has_the_network_asked() {
    let table = tempfile::NamedTempFile::new().unwrap();
    let rule = "collective = \"bcast\"\nrate = \"8kbit..\"\nbytes = \"2000..\"\nuse = \"flat\"\n";
    std::fs::write(table.path(), format!("version = 1\n[[rule]]\n{rule}")).unwrap();
    with_seeds(60, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(3, 6) as u32;
        let mut job = Job::new(ranks, seed, "", &[]);
        job = job.with(None, "POLYCAST_TABLE", table.path().to_str().unwrap());
        let free = job.program.pop();
        let mut call = |bytes| {
            let root = random.below(ranks.into()) as u32;
            Broadcast { communicator: 0, root, bytes: vec![bytes; ranks as usize] }
        };
        job.program.extend([Step::Ahead(vec![call(3000)]), Step::Broadcast(call(1))]);
        job.program.extend([Step::Ahead(vec![call(3000)]), Step::Broadcast(call(3000))]);
        job.program.extend(free);
        let hosts: Vec<u32> = (0..ranks).collect();
        let job = job.on_hosts(&hosts, Weather::FINE);
        for (rank, told) in job.run().ranks.iter().enumerate() {
            let is_served: Vec<bool> = told.calls.iter().map(|ended| ended.is_served).collect();
            assert_eq!(is_served[..2], [false, false], "rank {rank} of {job:?}");
            assert_eq!(is_served[2], is_served[3], "rank {rank} of {job:?}");
        }
    });
}
