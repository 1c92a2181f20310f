//! Ranks that compare polycast with the MPI serve each call alike, whatever the times are, and keep the faster one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use polycast_core::policy::trials::CACHE_FILE;
use polycast_core::protocol::message::MAX_TO_SUCCESSOR_BYTES;

use super::job::{Broadcast, Job, Step};
use super::network::Weather;
use super::random::{Random, with_seeds};

/// On hosts with links that one may be slow on; the table has multicast, a tree and the MPI.
pub const TABLE: &str = "version = 1\n\
    [[rule]]\ncollective = \"bcast\"\nbytes = \"8KiB..\"\nuse = \"multicast-pull\"\n\
    [[rule]]\ncollective = \"bcast\"\nbytes = \"1KiB..\"\nuse = \"chain:segment=1KiB\"\n";

#[test]
fn all_ranks_try_alike() {
    with_seeds(60, |seed| {
        let random = &mut Random::new(seed);
        let hosts: Vec<u32> = (0..random.within(2, 5)).map(|_| random.below(3) as u32).collect();
        let sizes = [20_000, 9_000, 2_000, 10];
        let calls: Vec<(u32, usize)> = (0..random.within(20, 60))
            .map(|_| (random.below(hosts.len() as u64) as u32, random.one_of(&sizes)))
            .collect();
        let table = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(table.path(), TABLE).unwrap();
        let mut job = Job::new(hosts.len() as u32, seed, "", &calls).on_hosts(&hosts, Weather::FINE);
        job = job.with(None, "POLYCAST_TABLE", table.path().to_str().unwrap());
        job = job.with(None, "POLYCAST_TRIALS", "on");
        if random.one_in(3) {
            job = job.with(None, "POLYCAST_MULTICAST", "off");
        }
        if random.one_in(2) {
            let process = random.below(hosts.len() as u64) as u32;
            let at = random.within(1, job.program.len() as u64 - 1) as usize;
            job.program.insert(at, Step::Pause { process, time: Duration::from_millis(3) });
        }
        let outcome = job.run();
        let first = &outcome.ranks[0].choices;
        assert_eq!(first.len(), calls.len(), "{job:?}");
        for told in &outcome.ranks {
            assert_eq!(&told.choices, first, "{job:?}");
        }
        let of_20_000: Vec<String> = calls
            .iter()
            .zip(first)
            .filter(|((_, bytes), _)| *bytes == 20_000)
            .map(|(_, choice)| choice.to_string())
            .collect();
        if of_20_000.len() > 3 {
            assert!(of_20_000.contains(&"stock".to_owned()), "it had no turn: {of_20_000:?} {job:?}");
        }
    });
}

/// Where no rule speaks, all ranks compare the same ways with the MPI, which has the first calls alone. They may cost 2 % of
/// the time of such calls: some jobs are too short for that.
#[test]
fn challengers_are_tried_alike() {
    let jobs_that_tried = AtomicUsize::new(0);
    with_seeds(10, |seed| {
        let random = &mut Random::new(seed);
        let hosts: Vec<u32> = (0..random.within(3, 6) as u32).collect();
        let ranks = hosts.len() as u32;
        let calls: Vec<(u32, usize)> = (0..400).map(|_| (random.below(ranks.into()) as u32, 9000)).collect();
        let run = |trials| {
            let mut job = Job::new(ranks, seed, "", &calls).on_hosts(&hosts, Weather::FINE);
            job = job.with(None, "POLYCAST_MULTICAST", "off").with(None, "POLYCAST_TRIALS", trials);
            let outcome = job.run();
            let first = outcome.ranks[0].choices.clone();
            assert_eq!(first.len(), calls.len(), "{job:?}");
            assert!(outcome.ranks.iter().all(|told| told.choices == first), "{job:?}");
            first.iter().map(ToString::to_string).collect::<Vec<String>>()
        };
        let is_stock = |choice: &String| choice == "stock";
        let compared = run("on");
        assert!(compared[..32].iter().all(is_stock), "{compared:?}");
        jobs_that_tried.fetch_add(usize::from(!compared.iter().all(is_stock)), Ordering::Relaxed);
        assert!(run("off").iter().all(is_stock), "no rule is for such calls");
    });
    let is_one_seed = std::env::var_os("FAKE_DOOR_SEED").is_some();
    assert!(is_one_seed || jobs_that_tried.into_inner() > 0, "nothing was tried");
}

/// On communicators with one call each. What the first ones find the later ones know, so multicast, which takes a set-up each, is not
/// even tried by them where the MPI is faster.
#[test]
fn communicators_that_live_for_one_call_learn() {
    with_seeds(5, |seed| {
        let table = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(table.path(), TABLE).unwrap();
        let mut job = Job::new(3, seed, "", &[]).on_hosts(&[0, 1, 2], Weather::FINE);
        job = job.with(None, "POLYCAST_TABLE", table.path().to_str().unwrap());
        job = job.with(None, "POLYCAST_TRIALS", "on");
        let lives = 60;
        job.program = (0..lives)
            .flat_map(|communicator| {
                let broadcast = Broadcast { communicator, root: 0, bytes: vec![9000; 3] };
                let members = vec![0, 1, 2];
                [Step::Make { members }, Step::Broadcast(broadcast), Step::Free { communicator }]
            })
            .collect();
        let outcome = job.run();
        let choices: Vec<String> = outcome.ranks[0].choices.iter().map(ToString::to_string).collect();
        assert_eq!(choices.len(), lives, "{job:?}");
        let (first, last) = choices.split_at(51);
        assert!(
            ["multicast-pull", "chain:segment=1KiB", "stock"]
                .iter()
                .all(|way| first.contains(&way.to_string()))
        );
        assert!(last.iter().all(|way| *way == last[0]), "{choices:?}");
        for told in &outcome.ranks {
            assert_eq!(told.choices, outcome.ranks[0].choices, "{job:?}");
        }
    });
}

/// What one job found the next one knows from its first call on, but for rules that choose among other ways.
#[test]
fn the_next_job_goes_on() {
    with_seeds(5, |seed| {
        let (folder, table) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
        let choices = |text: &str| -> Vec<String> {
            std::fs::write(table.path(), text).unwrap();
            let mut job = Job::new(3, seed, "", &[(0, 9000); 60]).on_hosts(&[0, 1, 2], Weather::FINE);
            job = job.with(None, "POLYCAST_TABLE", table.path().to_str().unwrap());
            job = job.with(None, "POLYCAST_TRIALS", "on");
            // Rank 0's counts.
            job = job.with(Some(0), "POLYCAST_CACHE", folder.path().to_str().unwrap());
            let outcome = job.run();
            assert!(outcome.ranks.iter().all(|told| told.choices == outcome.ranks[0].choices), "{job:?}");
            outcome.ranks[0].choices.iter().map(ToString::to_string).collect()
        };
        let first = choices(TABLE);
        let second = choices(TABLE);
        assert!(first.iter().any(|way| way != &first[59]));
        assert!(second.iter().all(|way| *way == first[59]), "{first:?} {second:?}");
        let other = choices(&TABLE.replace("chain:segment=1KiB", "binary:segment=1KiB"));
        assert!(other.iter().any(|way| *way != other[59]), "{other:?}");
    });
}

/// Multicast, which an earlier job has found fastest, dies: from then on what was second serves, which is not compared again just then.
#[test]
fn what_was_second_serves_when_multicast_dies() {
    let (folder, table) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    std::fs::write(table.path(), TABLE).unwrap();
    let long = Duration::from_secs(35);
    let on_tables = |weather| {
        let job = Job::new(3, 1, "", &[(0, 9000); 60]).on_hosts(&[0, 1, 2], weather);
        let job = job.with(None, "POLYCAST_TABLE", table.path().to_str().unwrap());
        let job = job.with(None, "POLYCAST_TRIALS", "on");
        job.with(Some(0), "POLYCAST_CACHE", folder.path().to_str().unwrap())
    };
    on_tables(Weather::FINE).run();
    let file = folder.path().join(CACHE_FILE);
    let found = std::fs::read_to_string(&file).unwrap();
    for second in ["chain:segment=1KiB", "stock"] {
        let mut known: serde_json::Value = serde_json::from_str(found.lines().last().unwrap()).unwrap();
        known["stays"] = "multicast-pull".into();
        for way in known["ways"].as_array_mut().unwrap() {
            let rank = ["multicast-pull", second].iter().position(|known| way["choice"] == *known);
            way["nanos"] = (1_000_000 * (1 + rank.unwrap_or(2))).into();
        }
        std::fs::write(&file, known.to_string()).unwrap();
        let mut job = on_tables(Weather { blocked: long / 2..10 * long, ..Weather::FINE });
        // So that nobody waits for a receive while another one pauses.
        job.conditions.eager_bytes = MAX_TO_SUCCESSOR_BYTES;
        let pause = (0..3).map(|process| Step::Pause { process, time: long });
        job.program.splice(5..5, pause);
        let outcome = job.run();
        let choices = &outcome.ranks[0].choices;
        assert!(outcome.ranks.iter().all(|told| told.choices == *choices), "{choices:?}");
        let choices: Vec<String> = choices.iter().map(ToString::to_string).collect();
        let dies = choices.iter().position(|way| way != "multicast-pull").expect("it is left");
        assert!((4..14).contains(&dies), "{choices:?}");
        assert!(choices[dies..].iter().all(|way| way == second), "{second}: {choices:?}");
    }
}

/// A root that comes later from a call on than it did: all ranks compare anew at the same call, and serve each call alike.
#[test]
fn calls_that_take_longer_than_they_did_are_compared_anew() {
    with_seeds(2, |seed| {
        let table = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(table.path(), TABLE).unwrap();
        let (calls, late_from) = (500, 400);
        let mut job = Job::new(3, seed, "", &vec![(0, 2000); calls]).on_hosts(&[0, 1, 2], Weather::FINE);
        job = job.with(None, "POLYCAST_TABLE", table.path().to_str().unwrap());
        job = job.with(None, "POLYCAST_TRIALS", "on");
        let choices = |late: Duration| -> Vec<String> {
            let mut job = job.clone();
            // The first step makes the communicator.
            for (place, step) in std::mem::take(&mut job.program).into_iter().enumerate() {
                let time = if place > late_from { late } else { Duration::from_millis(2) };
                job.program.extend([Step::Pause { process: 0, time }, step]);
            }
            let outcome = job.run();
            assert!(outcome.ranks.iter().all(|told| told.choices == outcome.ranks[0].choices), "{job:?}");
            outcome.ranks[0].choices.iter().map(ToString::to_string).collect()
        };
        let (as_ever, late) = (choices(Duration::from_millis(2)), choices(Duration::from_millis(300)));
        assert_eq!(as_ever[..late_from], late[..late_from]);
        let changes = |choices: &[String]| choices[late_from..].iter().any(|way| *way != choices[late_from]);
        assert!(!changes(&as_ever) && changes(&late), "{as_ever:?} {late:?}");
    });
}

/// A rank of which somebody reads looks at each call; the others only count most of those that are like the last one. They decide alike, at call
/// numbers at which rules change, too.
#[test]
fn who_looks_at_each_call_decides_as_who_counts() {
    let first = "version = 1\n\
        [[rule]]\ncollective = \"bcast\"\nbytes = \"64..1KiB\"\nuse = \"stock\"\n\
        [[rule]]\ncollective = \"bcast\"\nbytes = \"8KiB..\"\nearlier_calls = \"300..\"\nuse = \"flat\"\n";
    let left = "[[rule]]\ncollective = \"bcast\"\nbytes = \"8KiB..\"\nuse = \"stock\"\n";
    let last = "[[rule]]\ncollective = \"bcast\"\nbytes = \"32..\"\nuse = \"chain:segment=1KiB\"\n";
    with_seeds(12, |seed| {
        let random = &mut Random::new(seed);
        let rules = [first, random.one_of(&["", left]), last].concat();
        let hosts: Vec<u32> = (0..random.within(3, 4)).map(|_| random.below(3) as u32).collect();
        let mut calls: Vec<(u32, usize)> = Vec::new();
        while calls.len() < 600 {
            let bytes = random.one_of(&[9_000, 8_189, 2_000, 500, 10]);
            let alike = random.within(1, 90);
            calls.extend(
                (0..alike)
                    .map(|_| (random.below(hosts.len() as u64) as u32, bytes + random.below(8) as usize)),
            );
        }
        let (table, folder) = (tempfile::NamedTempFile::new().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(table.path(), rules).unwrap();
        let mut job = Job::new(hosts.len() as u32, seed, "", &calls).on_hosts(&hosts, Weather::FINE);
        job = job.with(None, "POLYCAST_TABLE", table.path().to_str().unwrap());
        job = job.with(None, "POLYCAST_TRIALS", random.one_of(&["on", "off"]));
        // What is longer than 8 KiB is left and not counted.
        job.conditions.memory_left = vec![random.one_of(&[None, Some(64 * 8192)]); hosts.len()];
        let read_of = random.below(hosts.len() as u64) as u32;
        job = job.with(Some(read_of), "POLYCAST_REPORT", folder.path().join("report.json").to_str().unwrap());
        let outcome = job.run();
        for told in &outcome.ranks {
            assert_eq!(told.choices, outcome.ranks[0].choices, "{job:?}");
        }
    });
}
