//! Broadcasts on two levels: ranks map a real arena, each for itself, and the kernel refuses it where a test says so.

use std::cell::Cell;
use std::time::Duration;

use super::conditions::Refused;
use super::job::{Broadcast, Job, Step};
use super::network::Weather;
use super::process::Ended;
use super::random::{Random, with_seeds};
use super::stage::Delays;
use crate::fault::Point;

const ALGORITHMS: [&str; 7] = [
    "two-level",
    "two-level:between=chain,segment=3000",
    "two-level:between=binary,buffer=500,segment=8KiB",
    "two-level:overlap=none,segment=4000",
    "two-level:buffer=100,overlap=300,segment=1000",
    "two-level:between=scatter-ring",
    "two-level:between=scatter-ring,buffer=500,overlap=1000,segment=3000",
];

fn job(random: &mut Random, seed: u64) -> Job {
    let ranks = random.within(2, 8) as u32;
    let hosts: Vec<u32> = (0..ranks).map(|_| random.below(3) as u32).collect();
    let calls: Vec<(u32, usize)> = (0..random.within(3, 12))
        .map(|_| {
            let most = random.one_of(&[0, 40, 9000, 40_000, 250_000]);
            (random.below(ranks.into()) as u32, random.within(0, most) as usize)
        })
        .collect();
    let mut job = Job::new(ranks, seed, random.one_of(&ALGORITHMS), &calls);
    job.conditions.hosts = hosts;
    if random.one_in(3) {
        job.conditions.delays = Delays { one_in: 20, most: Duration::from_millis(2) };
    }
    job
}

#[test]
fn any_placement_has_the_roots_bytes() {
    with_seeds(150, |seed| {
        let random = &mut Random::new(seed);
        let job = job(random, seed);
        let outcome = job.run();
        for told in &outcome.ranks {
            assert_eq!(told.calls, vec![Ended::SERVED_WELL; told.calls.len()], "{job:?}");
        }
        let nodes_with_others = |host: &u32| job.conditions.hosts.iter().filter(|of| *of == host).count() > 1;
        let shared = (0..3).filter(nodes_with_others).count();
        assert_eq!((outcome.segments, outcome.unreceived), (shared, 0), "{job:?}");
    });
}

/// One call after the other, each waited for: through cells of some kibibytes, what is longer in rounds.
#[test]
fn cells_have_the_roots_bytes() {
    with_seeds(60, |seed| {
        let random = &mut Random::new(seed);
        let mut job = job(random, seed);
        job.conditions.hosts.fill(0);
        let algorithm = random.one_of(&["cells", "cells:segment=100"]);
        job = job.with(None, "POLYCAST_BCAST", algorithm);
        let outcome = job.run();
        for told in &outcome.ranks {
            assert_eq!(told.calls, vec![Ended::SERVED_WELL; told.calls.len()], "{job:?}");
        }
    });
}

/// Ranks that come late again and again take long for many rounds, without a message: they are not stuck.
#[test]
fn long_work_in_memory_alone_is_no_standstill() {
    let mut job = Job::new(4, 0, "cells:segment=100", &[(0, 60_000), (3, 60_000), (1, 60_000)]);
    job.conditions.delays = Delays { one_in: 3, most: Duration::from_millis(30) };
    let outcome = job.run();
    assert!(outcome.took > Duration::from_secs(6), "so this can fail: {:?}", outcome.took);
    assert!(outcome.ranks.iter().all(|told| told.calls == [Ended::SERVED_WELL; 3]));
}

/// One rank does not want it, so none has it, and the MPI serves.
#[test]
fn memory_can_be_switched_off() {
    let mut job = Job::new(3, 0, "cells", &[(0, 100), (2, 5000)]);
    job = job.with(Some(1), "POLYCAST_SHARED_MEMORY", "off");
    let outcome = job.run();
    assert!(outcome.ranks.iter().flat_map(|told| &told.calls).all(|call| call.is_right() && !call.is_served));
}

/// On several nodes there are none, and nobody looks for memory.
#[test]
fn cells_are_for_one_node() {
    let mut job = Job::new(3, 0, "cells", &[(0, 100), (2, 5000)]).on_hosts(&[0, 0, 1], Weather::FINE);
    job = job.with(None, "POLYCAST_MULTICAST", "off");
    let outcome = job.run();
    assert!(outcome.ranks.iter().flat_map(|told| &told.calls).all(|call| call.is_right() && !call.is_served));
    assert_eq!(outcome.slots, 0);
}

/// All ranks find the same way; where others cannot be read, everything goes through the ring.
#[test]
fn what_the_kernel_refuses_to_one_nobody_uses() {
    with_seeds(100, |seed| {
        let random = &mut Random::new(seed);
        let mut job = job(random, seed);
        job.conditions.hosts.fill(0);
        let refused = random.one_of(&[Refused::Create, Refused::Open, Refused::Take, Refused::Read]);
        // The first rank leads.
        let leads = [Refused::Create, Refused::Take].contains(&refused);
        let rank = if leads { 0 } else { random.within(1, u64::from(job.ranks()) - 1) as u32 };
        job.conditions.refused = vec![(rank, refused)];
        let outcome = job.run();
        let is_served = refused == Refused::Read;
        for told in &outcome.ranks {
            assert!(told.calls.iter().all(|call| call.is_right() && call.is_served == is_served), "{job:?}");
        }
    });
}

/// In the middle of a call or between two: its writers hand it what they show, and nothing is lost.
#[test]
fn who_may_not_read_others_any_more_is_handed_the_bytes() {
    let was_refused = Cell::new(0);
    with_seeds(60, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(2, 6) as u32;
        let calls: Vec<(u32, usize)> = (0..random.within(3, 8))
            .map(|_| (random.below(ranks.into()) as u32, random.within(0, 250_000) as usize))
            .collect();
        let algorithm = random.one_of(&["two-level", "two-level:segment=100000"]);
        let mut job = Job::new(ranks, seed, algorithm, &calls);
        // The mark of its neighbour, when MPI begins.
        let rank = random.below(ranks.into()) as u32;
        job.conditions.reads_until = Some((rank, 1 + random.below(4) as u32));
        let outcome = job.run();
        let said = &outcome.ranks[rank as usize].said;
        was_refused.set(was_refused.get() + u32::from(said.contains("now refuses it")));
        for told in &outcome.ranks {
            assert_eq!(told.calls, vec![Ended::SERVED_WELL; told.calls.len()], "{job:?}");
        }
    });
    assert!(was_refused.get() > 20, "{was_refused:?} of 60");
}

/// Where one node has no memory, none has any: its leader gets none, or some rank fails while they agree.
#[test]
fn memory_that_one_node_lacks_nobody_uses() {
    for (refused, panic) in [
        (vec![(2, Refused::Take)], None),
        (vec![(3, Refused::Open)], None),
        (vec![(0, Refused::Create)], None),
        (Vec::new(), Some((1, Point::Memory, 0))),
        (Vec::new(), Some((2, Point::Memory, 0))),
        (Vec::new(), Some((4, Point::Memory, 0))),
    ] {
        let mut job = Job::new(5, 0, "two-level", &[(0, 100), (2, 5000)]);
        job = job.on_hosts(&[0, 0, 1, 1, 2], Weather::FINE).with(None, "POLYCAST_MULTICAST", "off");
        job.conditions.refused = refused;
        let outcome = Job { panic, ..job }.run();
        let calls = || outcome.ranks.iter().flat_map(|told| &told.calls);
        assert!(calls().all(|call| call.is_right() && !call.is_served), "{outcome:?}");
    }
}

/// A communicator of these ranks that is used once, for each number.
fn made(numbers: std::ops::Range<usize>, members: &[u32]) -> impl Iterator<Item = Step> {
    let members = members.to_vec();
    numbers.flat_map(move |communicator| {
        let broadcast = Broadcast { communicator, root: 0, bytes: vec![700; members.len()] };
        [Step::Make { members: members.clone() }, Step::Broadcast(broadcast)]
    })
}

fn freed(numbers: std::ops::Range<usize>) -> impl Iterator<Item = Step> {
    numbers.map(|communicator| Step::Free { communicator })
}

/// Jobs of ranks on one host that begin without a communicator.
fn on_one_host(ranks: u32, algorithm: &str) -> Job {
    let mut job = Job::new(ranks, 0, algorithm, &[]).on_hosts(&vec![0; ranks as usize], Weather::FINE);
    job.program.clear();
    job.with(None, "POLYCAST_MULTICAST", "off")
}

/// A slot serves one communicator after the other of as many ranks, whichever they are; nothing is mapped for a further one.
#[test]
fn a_thousand_communicators_take_few_slots() {
    for algorithm in ["two-level", "cells", "two-level:segment=100000"] {
        let random = &mut Random::new(0);
        let mut job = on_one_host(4, algorithm);
        let sets = [vec![0, 1, 2, 3], vec![3, 1], vec![3, 0], vec![3, 2], vec![2, 0, 1], vec![2, 3, 0]];
        for communicator in 0..1000 {
            let members = sets[random.below(6) as usize].clone();
            let most = random.one_of(&[0, 8, 700, 9000, 150_000]);
            let (root, bytes) = (random.below(members.len() as u64) as u32, vec![most; members.len()]);
            job.program.push(Step::Make { members });
            job.program.push(Step::Broadcast(Broadcast { communicator, root, bytes }));
            job.program.push(Step::Free { communicator });
        }
        let outcome = job.run();
        assert!(outcome.ranks.iter().flat_map(|told| &told.calls).all(|call| *call == Ended::SERVED_WELL));
        // Who leads may be ahead of the others, whose slot it does not have yet: it takes another.
        assert!((3..=40).contains(&outcome.slots), "{} slots", outcome.slots);
        assert_eq!(outcome.segments, 1);
    }
}

/// All at a time, most of them in the small shape; polycast-shm has a test with ten thousand.
#[test]
fn thousands_of_communicators_are_served() {
    let mut job = on_one_host(2, "cells");
    job.program.extend(made(0..2000, &[0, 1]));
    let outcome = job.run();
    assert!(outcome.ranks.iter().flat_map(|told| &told.calls).all(|call| *call == Ended::SERVED_WELL));
    assert_eq!((outcome.slots, outcome.segments), (2000, 1));
}

#[test]
fn ranks_of_a_large_node_share_it() {
    let mut job = on_one_host(256, "cells");
    job.program.extend(made(0..2, &(0..256).collect::<Vec<u32>>()));
    let outcome = job.run();
    assert!(outcome.ranks.iter().flat_map(|told| &told.calls).all(|call| *call == Ended::SERVED_WELL));
}

/// Which of its own calls a rank of these saw served.
fn served(job: &Job) -> Vec<Vec<bool>> {
    let outcome = job.run();
    assert!(outcome.ranks.iter().flat_map(|told| &told.calls).all(Ended::is_right));
    outcome.ranks.iter().map(|told| told.calls.iter().map(|call| call.is_served).collect()).collect()
}

/// Those that live at a time have memory until there is none; others go another way, as all of their ranks do. What is given back serves
/// again, also what was kept for communicators of as many ranks.
#[test]
fn what_the_arena_has_no_room_for_goes_another_way() {
    let mut job = on_one_host(3, "cells");
    job.conditions.arena_bytes = Some(4 << 20);
    let of_three = 8;
    let last = of_three + 300;
    job.program.extend(made(0..of_three, &[0, 1, 2]).chain(freed(0..of_three)));
    job.program.extend(made(of_three..last, &[0, 1]).chain(freed(of_three..last)));
    job.program.extend(made(last..last + 1, &[0, 1, 2]));
    let served = served(&job);
    assert_eq!(served[0], served[1]);
    let at_once = served[0][of_three..last].iter().take_while(|is_served| **is_served).count();
    assert!((100..200).contains(&at_once), "{at_once}");
    assert!(served[0][of_three + at_once..last].iter().all(|is_served| !is_served));
    assert_eq!(served[2], [true; 9]);
}
