//! Ranks that measure together before the first call of a size serve each call alike, whatever the times are and whatever fails, and later jobs go
//! on with what was found.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::conditions::{Fault, Function};
use super::job::{Broadcast, Job, Outcome, Step};
use super::network::Weather;
use super::random::{Random, with_seeds};
use super::trials::TABLE;
use polycast_core::policy::trials::CACHE_FILE;

fn job(ranks: u32, seed: u64, hosts: &[u32], calls: &[(u32, usize)], folder: &Path) -> Job {
    let job = Job::new(ranks, seed, "", calls).on_hosts(hosts, Weather::FINE);
    let job = job.with(None, "POLYCAST_TUNE", "300ms");
    job.with(Some(0), "POLYCAST_CACHE", folder.to_str().unwrap())
}

fn all_alike(job: &Job, outcome: &Outcome) -> Vec<String> {
    let first = &outcome.ranks[0];
    for told in &outcome.ranks {
        assert_eq!(told.choices, first.choices, "{job:?}");
        assert!(told.calls.iter().all(|ended| ended.is_right()), "{job:?}");
    }
    first.choices.iter().map(ToString::to_string).collect()
}

#[test]
fn all_ranks_choose_alike_what_was_fastest() {
    with_seeds(5, |seed| {
        let (random, folder) = (&mut Random::new(seed), tempfile::tempdir().unwrap());
        let hosts: Vec<u32> = (0..random.within(2, 4)).map(|_| random.below(3) as u32).collect();
        let sizes = [9_000, 10];
        let calls: Vec<(u32, usize)> = (0..random.within(5, 25))
            .map(|_| (random.below(hosts.len() as u64) as u32, random.one_of(&sizes)))
            .collect();
        let mut job = job(hosts.len() as u32, seed, &hosts, &calls, folder.path());
        if random.one_in(2) {
            let table = folder.path().join("table");
            fs::write(&table, TABLE).unwrap();
            job = job.with(None, "POLYCAST_TABLE", table.to_str().unwrap());
        }
        let are_tried = random.one_in(2);
        if are_tried {
            job = job.with(None, "POLYCAST_TRIALS", "on");
        }
        let choices = all_alike(&job, &job.run());
        assert_eq!(choices.len(), calls.len());
        // Each has its own size, and one choice, until it is looked at again at call 256 at the earliest.
        for bytes in sizes {
            let mut of_size =
                calls.iter().zip(&choices).filter(|((_, of), _)| *of == bytes).map(|(_, choice)| choice);
            if let Some(first) = of_size.next() {
                assert!(of_size.all(|choice| choice == first), "{choices:?} {job:?}");
            }
        }
        let text = fs::read_to_string(folder.path().join(CACHE_FILE)).unwrap();
        assert!(text.contains("\"interval\":65535"), "{text}");
    });
}

#[test]
fn the_next_job_reads_what_was_found() {
    with_seeds(2, |seed| {
        let folder = tempfile::tempdir().unwrap();
        let job = job(3, seed, &[0, 1, 2], &[(0, 9000), (1, 20), (2, 9000)], folder.path());
        let first = job.run();
        let choices = all_alike(&job, &first);
        assert!(choices.iter().any(|choice| choice != "stock"), "{choices:?}");
        let reads = job.clone().with(None, "POLYCAST_TUNE", "on");
        let second = reads.run();
        assert_eq!(all_alike(&reads, &second), choices);
        assert!(second.collectives * 5 < first.collectives, "{} {}", second.collectives, first.collectives);
        assert!(second.ranks.iter().all(|told| !told.said.contains("for nothing")), "{:?}", second.ranks);
        // Foreign, half written, and of another version: one line says so, and the rest counts.
        let path = folder.path().join(CACHE_FILE);
        let text = fs::read_to_string(&path).unwrap();
        let line = text.lines().find(|line| !line.is_empty()).unwrap();
        let spoiled =
            format!("{}\nhello\n{}\n{text}", line.replace("\"version\":1", "\"version\":9"), &line[..30]);
        fs::write(&path, spoiled).unwrap();
        let third = reads.run();
        assert_eq!(all_alike(&reads, &third), choices);
        assert_eq!(
            third.ranks[0].said.matches("some lines count for nothing").count(),
            1,
            "{:?}",
            third.ranks[0].said
        );
        // Nothing is written by one that has no time.
        fs::remove_file(&path).unwrap();
        all_alike(&reads, &reads.run());
        assert!(!path.exists());
    });
}

/// A rank on which MPI fails gives its error; the others end, too.
#[test]
fn whatever_fails_all_ranks_return() {
    with_seeds(15, |seed| {
        let (random, folder) = (&mut Random::new(seed), tempfile::tempdir().unwrap());
        let mut job = job(3, seed, &[0, 1, 1], &[(0, 9000), (1, 9000)], folder.path());
        let function =
            random.one_of(&[Function::Collective, Function::Isend, Function::Irecv, Function::Poll]);
        let (rank, nth) = (random.below(3) as u32, random.below(200) as u32);
        job.conditions.fault = Some(Fault { rank, function, nth, is_late: true });
        job.run();
    });
}

/// What is forced is as the user has it; communicators that come later know what was found on the first.
#[test]
fn each_communicator_of_a_shape_knows_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = job(3, 1, &[0, 1, 2], &[(0, 9000)], folder.path());
    let once = job.run();
    let broadcast = job.program[1].clone();
    let Step::Broadcast(mut again) = broadcast else { panic!("{job:?}") };
    again.communicator = 1;
    job.program.extend([Step::Make { members: vec![0, 1, 2] }, Step::Broadcast(again)]);
    fs::remove_file(folder.path().join(CACHE_FILE)).unwrap();
    let twice = job.run();
    let choices = all_alike(&job, &twice);
    assert_eq!(choices[0], choices[1]);
    assert!(twice.collectives < once.collectives * 3 / 2, "{} {}", twice.collectives, once.collectives);
    let forced = job.with(None, "POLYCAST_BCAST", "chain:segment=512");
    let outcome = forced.run();
    let choices = all_alike(&forced, &outcome);
    assert!(choices.iter().all(|choice| choice == "chain:segment=512"), "{choices:?}");
    assert!(outcome.collectives < 20, "{}", outcome.collectives);
}

/// Communicators of other leaders have no other budget.
#[test]
fn the_budget_is_that_of_the_job() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = job(3, 1, &[0, 1, 2], &[(0, 9000)], folder.path());
    let Step::Broadcast(first) = job.program[1].clone() else { panic!("{job:?}") };
    for (communicator, members) in [(1, vec![1, 2, 0]), (2, vec![2, 0, 1])] {
        let next = Broadcast { communicator, bytes: vec![20_000 << communicator; 3], ..first.clone() };
        job.program.extend([Step::Make { members }, Step::Broadcast(next)]);
    }
    // Each with a memory of its own. Where little time is left when others lead, multicast is still set up among these, for 80 ms.
    let took = |seed| {
        let folder = tempfile::tempdir().unwrap();
        let job = job.clone().with(Some(0), "POLYCAST_CACHE", folder.path().to_str().unwrap());
        Job { seed, ..job }.with(None, "POLYCAST_TUNE", "40ms").run().took
    };
    let mut took: Vec<Duration> = (1..6).map(took).collect();
    took.sort_unstable();
    assert!(took[2] < Duration::from_millis(90), "{took:?}");
}
