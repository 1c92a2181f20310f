//! Communicators come and go, several at a time; some are there when MPI ends. Groups linger and are taken again, contexts are another
//! communicator's next, and nothing is left of anything.

use std::ffi::c_int;
use std::time::Duration;

use polycast_core::protocol::message::MAX_TO_SUCCESSOR_BYTES;

use super::job::{Broadcast, Job, Outcome, Step};
use super::network::Weather;
use super::process::Ended;
use super::random::{Random, with_seeds};
use super::stage::Delays;

/// Some of the processes, in any order.
fn members(random: &mut Random, processes: u32) -> Vec<u32> {
    let mut members: Vec<u32> = (0..processes).collect();
    random.shuffle(&mut members);
    members.truncate(random.within(1, u64::from(processes)) as usize);
    members
}

fn program(random: &mut Random, processes: u32, steps: u32) -> Vec<Step> {
    let mut program = vec![Step::Make { members: (0..processes).collect() }];
    // The sizes of those that are there.
    let mut alive = vec![(0, processes)];
    let mut made = 1;
    for _ in 0..steps {
        let (communicator, ranks) = alive[random.below(alive.len() as u64) as usize];
        match random.below(8) {
            0 | 1 => {
                let members = members(random, processes);
                alive.push((made, members.len() as u32));
                program.push(Step::Make { members });
                made += 1;
            }
            2 if alive.len() > 1 => {
                alive.retain(|(other, _)| *other != communicator);
                program.push(Step::Free { communicator });
            }
            3 => {
                let process = random.below(processes.into()) as u32;
                // A group lingers for a second.
                let time = Duration::from_millis(random.one_of(&[1, 1, 2, 5, 10, 10, 30, 1200]));
                program.push(Step::Pause { process, time });
            }
            _ => {
                let root = random.below(ranks.into()) as u32;
                let most = random.one_of(&[1, 3000, 30_000]);
                let bytes = vec![random.within(1, most) as usize; ranks as usize];
                program.push(Step::Broadcast(Broadcast { communicator, root, bytes }));
            }
        }
    }
    program
}

fn assert_right(outcome: &Outcome, job: &Job) {
    for (rank, told) in outcome.ranks.iter().enumerate() {
        assert!(told.calls.iter().all(Ended::is_right), "rank {rank}: {told:?} of {job:?}");
    }
    assert_eq!((outcome.memberships, outcome.unreceived), (0, 0), "{job:?}");
}

/// One goes on with what another has begun, whoever its ranks are.
#[test]
fn communicators_come_and_go_with_trials() {
    with_seeds(60, |seed| {
        let random = &mut Random::new(seed);
        let processes = random.within(2, 6) as u32;
        let hosts: Vec<u32> = (0..processes).map(|_| random.below(4) as u32).collect();
        let table = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(table.path(), super::trials::TABLE).unwrap();
        let mut job = Job::new(processes, seed, "", &[]).on_hosts(&hosts, Weather::FINE);
        job = job.with(None, "POLYCAST_TABLE", table.path().to_str().unwrap());
        job = job.with(None, "POLYCAST_TRIALS", "on");
        job.program = program(random, processes, 60);
        job.conditions.numbers = random.one_of(&[Some(1), Some(2), Some(5), None]);
        assert_right(&job.run(), &job);
    });
}

#[test]
fn communicators_come_and_go() {
    with_seeds(60, |seed| {
        let random = &mut Random::new(seed);
        let processes = random.within(2, 6) as u32;
        let algorithm =
            random.one_of(&["multicast-pull", "multicast-push", "chain:segment=1KiB", "binomial"]);
        let hosts: Vec<u32> = (0..processes).map(|_| random.below(4) as u32).collect();
        let latest = Duration::from_micros(random.one_of(&[0, 100, 5000]));
        let weather = Weather { lost: random.one_of(&[0, 20]), latest, ..Weather::FINE };
        let mut job = Job::new(processes, seed, algorithm, &[]).on_hosts(&hosts, weather);
        job.program = program(random, processes, 25);
        job.conditions.eager_bytes = random.one_of(&[64, 4 << 10, MAX_TO_SUCCESSOR_BYTES]);
        job.conditions.tag_most = random.one_of(&[32_767, (1 << 23) - 1, c_int::MAX as u64]) as c_int;
        job.conditions.numbers = random.one_of(&[Some(1), Some(2), Some(5), None]);
        job.conditions.has_threads = random.one_in(2);
        job.conditions.delays =
            Delays { one_in: random.one_of(&[0, 50]), most: Duration::from_millis(random.one_of(&[1, 20])) };
        assert_right(&job.run(), &job);
    });
}

fn call(communicator: usize, bytes: Vec<usize>) -> Step {
    Step::Broadcast(Broadcast { communicator, root: 0, bytes })
}

/// With the tags that MPI guarantees; the first that is freed makes room for one more.
#[test]
fn what_finds_no_number_is_left_on_all_ranks() {
    let mut job = Job::new(3, 1, "binomial", &[]);
    job.conditions.tag_most = 32_767;
    let make = || Step::Make { members: vec![2, 0, 1] };
    job.program = (0..66).flat_map(|communicator| [make(), call(communicator, vec![100; 3])]).collect();
    job.program.extend([
        Step::Free { communicator: 7 },
        make(),
        call(66, vec![3000; 3]),
        call(65, vec![9; 3]),
    ]);
    let outcome = job.run();
    assert_right(&outcome, &job);
    for told in &outcome.ranks {
        let is_served: Vec<bool> = told.calls.iter().map(|ended| ended.is_served).collect();
        let expected: Vec<bool> = (0..68).map(|call| call < 64 || call == 66).collect();
        assert_eq!(is_served, expected);
    }
}

/// A rank that has less room than what comes: some messages may have met nobody. The number is not used again.
#[test]
fn a_number_under_which_something_went_wrong_is_given_to_nobody() {
    with_seeds(30, |seed| {
        let random = &mut Random::new(seed);
        let algorithm = random.one_of(&["chain:segment=1KiB", "binomial", "scatter-ring"]);
        let make = || Step::Make { members: vec![0, 1, 2] };
        let free = |communicator| Step::Free { communicator };
        // On one host the number goes with the memory, of which there is more.
        let (hosts, is_last) = random.one_of(&[([0, 1, 2], true), ([0, 0, 0], false)]);
        let mut job = Job::new(3, seed, algorithm, &[]).on_hosts(&hosts, Weather::FINE);
        job = job.with(None, "POLYCAST_MULTICAST", "off");
        job.conditions.numbers = Some(1);
        job.conditions.eager_bytes = random.one_of(&[0, 100_000]);
        let wrong = random.within(1, 60_000) as usize;
        job.program =
            vec![make(), call(0, vec![50_000; 3]), free(0), make(), call(1, vec![50_000, 50_000, wrong])];
        job.program.extend([free(1), make(), call(2, vec![50_000; 3]), free(2)]);
        let outcome = job.run();
        for told in &outcome.ranks {
            let is_served: Vec<bool> = told.calls.iter().map(|ended| ended.is_served).collect();
            assert_eq!(is_served, [true, true, wrong >= 50_000 || !is_last], "{told:?} of {job:?}");
            assert!(told.calls[2].is_right(), "{told:?} of {job:?}");
        }
    });
}

/// Who is never served asks nobody for anything: the ranks may come at any time, and go.
#[test]
fn what_is_left_needs_no_exchange() {
    let make = || Step::Make { members: vec![0, 1, 2] };
    let mut job = Job::new(3, 1, "stock", &[]);
    job.program = vec![make(), call(0, vec![100; 3])];
    // Of the program's own, of the vote, of the private communicator, of records, of names, of the last word.
    let before = job.run().collectives;
    job.program.extend((1..9).flat_map(|communicator| [make(), call(communicator, vec![100; 3])]));
    assert_eq!(job.run().collectives, before + 8, "one broadcast of the program's on each");
}

/// Calls that no communicator of the job would have served are left without a look at this one; settings of the program's may change that.
#[test]
fn short_calls_are_left_without_a_look() {
    let table = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(table.path(), super::trials::TABLE).unwrap();
    let mut job = Job::new(3, 1, "", &[]).on_hosts(&[0, 1, 2], Weather::FINE);
    job = job.with(None, "POLYCAST_TABLE", table.path().to_str().unwrap());
    let make = || Step::Make { members: vec![0, 1, 2] };
    job.program = vec![make(), call(0, vec![1023; 3]), call(0, vec![1024; 3]), call(0, vec![10; 3])];
    job.program.extend([Step::Configure(vec!["binomial"; 3]), make(), call(1, vec![10; 3])]);
    let outcome = job.run();
    assert_right(&outcome, &job);
    for told in &outcome.ranks {
        let choices: Vec<String> = told.choices.iter().map(ToString::to_string).collect();
        assert_eq!(choices, ["stock", "chain:segment=1KiB", "stock", "binomial"]);
    }
}

/// What rules serve from a later call on only the door counts until then, before the communicator is attached. Where somebody reads of each
/// call, all are asked about: the runtime counts as the door.
#[test]
fn the_door_counts_first_calls_as_the_runtime_does() {
    const TABLE: &str = "version = 1\n[[rule]]\ncollective = \"bcast\"\nbytes = \"1KiB..8KiB\"\nearlier_calls = \"4..\"\nuse = \"flat\"\n";
    let table = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(table.path(), TABLE).unwrap();
    for reader in [None, Some(1)] {
        let mut job = Job::new(3, 1, "", &[]).on_hosts(&[0, 1, 2], Weather::FINE);
        job = job.with(None, "POLYCAST_TABLE", table.path().to_str().unwrap());
        job = job.with(None, "POLYCAST_TRIALS", "off");
        if reader.is_some() {
            job = job.with(reader, "POLYCAST_REPORT", "on");
        }
        let sizes = [2000, 10, 2000, 2000, 20_000, 2000, 10, 2000, 20_000, 2000];
        job.program = vec![Step::Make { members: vec![0, 1, 2] }];
        job.program.extend(sizes.map(|bytes| call(0, vec![bytes; 3])));
        let outcome = job.run();
        assert_right(&outcome, &job);
        for told in &outcome.ranks {
            let served: Vec<usize> = (0..sizes.len()).filter(|call| told.calls[*call].is_served).collect();
            assert_eq!(served, [7, 9], "{reader:?}: after four calls that count");
        }
    }
}

#[test]
fn the_next_communicator_takes_the_group_of_the_last() {
    let members = || Step::Make { members: vec![0, 1, 2] };
    let call = |communicator| Step::Broadcast(Broadcast { communicator, root: 1, bytes: vec![5000; 3] });
    let mut datagrams = Vec::new();
    for pause in [Duration::from_millis(100), Duration::from_secs(3)] {
        let pauses = (0..3).map(|process| Step::Pause { process, time: pause });
        let mut job = Job::new(3, 1, "multicast-pull", &[]).on_hosts(&[0, 1, 2], Weather::FINE);
        job.program = vec![members(), call(0), Step::Free { communicator: 0 }];
        job.program.extend(pauses);
        job.program.extend([members(), call(1), Step::Free { communicator: 1 }]);
        let outcome = job.run();
        assert_right(&outcome, &job);
        datagrams.push(outcome.datagrams);
    }
    // Three from each of three nodes probe a new group.
    assert_eq!(datagrams[0] + 9, datagrams[1]);
}

/// One exchange for each: what is known of the network, its number, and the group; and one for the memory that ranks of a host share.
#[test]
fn to_take_a_group_costs_no_exchange() {
    let cycle = |communicator| {
        [
            Step::Make { members: vec![0, 1, 2, 3] },
            call(communicator, vec![5000; 4]),
            Step::Free { communicator },
        ]
    };
    for (hosts, exchanges) in [([0, 1, 2, 3], 1), ([0, 1, 1, 2], 2)] {
        let mut job = Job::new(4, 1, "multicast-pull", &[]).on_hosts(&hosts, Weather::FINE);
        job.program = cycle(0).into();
        let one = job.run();
        job.program.extend((1..9).flat_map(cycle));
        let nine = job.run();
        assert_right(&nine, &job);
        assert!(nine.ranks[3].choices.iter().all(|choice| choice.to_string() == "multicast-pull"));
        assert_eq!(nine.collectives, one.collectives + 8 * exchanges, "{hosts:?}");
    }
}

/// Who leads a node keeps a communicator until its neighbours have said goodbye, the others of the node do not; so of the memory that they
/// shared the others have it back before.
#[test]
fn memory_of_the_last_communicator_is_taken_by_all_or_none() {
    with_seeds(20, |seed| {
        let random = &mut Random::new(seed);
        let mut job = Job::new(6, seed, "multicast-push", &[]).on_hosts(&[0, 0, 1, 1, 2, 2], Weather::FINE);
        for communicator in 0..8 {
            let members = (0..6).collect();
            let of = Broadcast { communicator, root: random.below(6) as u32, bytes: vec![1388; 6] };
            job.program.extend([Step::Make { members }, Step::Broadcast(of), Step::Free { communicator }]);
        }
        job.conditions.delays = Delays { one_in: 10, most: Duration::from_millis(20) };
        let outcome = job.run();
        assert_right(&outcome, &job);
    });
}

#[test]
fn where_multicast_did_not_work_it_is_tried_again_after_calls_and_time() {
    let deaf = Some((1, Duration::ZERO..Duration::from_secs(20)));
    let calls = vec![(0, 2000); 1100];
    let mut job =
        Job::new(2, 1, "multicast-pull", &calls).on_hosts(&[0, 1], Weather { deaf, ..Weather::FINE });
    let is_served =
        |outcome: &Outcome| outcome.ranks[0].calls.iter().map(|ended| ended.is_served).collect::<Vec<_>>();
    let early = job.run();
    assert_right(&early, &job);
    job.program.insert(2, Step::Pause { process: 0, time: Duration::from_secs(31) });
    let late = job.run();
    assert_right(&late, &job);
    let expected: Vec<bool> = (0..1100).map(|call| call >= 16).collect();
    assert_eq!((is_served(&early), is_served(&late)), (vec![false; 1100], expected));
}

#[test]
fn a_rank_that_is_switched_off_leaves_all_to_stock() {
    for off in 0..3 {
        let job = Job::new(3, off.into(), "binomial", &[(0, 100)]).with(Some(off), "POLYCAST", "off");
        let outcome = job.run();
        assert!(outcome.ranks.iter().all(|told| told.attached == 0 && told.calls == [Ended::LEFT]));
    }
}

/// A report asks all ranks once more when MPI ends.
#[test]
fn all_ranks_report() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("report.json");
    let file = file.to_str().expect("a name");
    let job = Job::new(4, 5, "binomial", &[(0, 100), (3, 5000)]).with(None, "POLYCAST_REPORT", file);
    assert_right(&job.run(), &job);
    let report = std::fs::read_to_string(file).expect("a report");
    assert!(report.contains("binomial"), "{report}");
}

#[test]
fn what_is_wrong_is_said_once() {
    let job = Job::new(3, 1, "multicast-pull", &[(0, 100), (1, 100)]).on_hosts(&[0, 1, 2], Weather::FINE);
    let outcome = job.with(Some(2), "POLYCAST_MULTICAST", "perhaps").run();
    let said: Vec<&str> = outcome.ranks.iter().map(|told| told.said.as_str()).collect();
    assert_eq!(said[0].matches("warning").count(), 1, "{said:?}");
    assert_eq!(said[1..], ["", ""]);
}
